//! An update as a proposal to git.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tagboat_api::ImageRef;
use tagboat_api::settings::TemplateLanguage;

use super::branch_plan::BranchPlan;
use super::compare::{CompareRun, View};
use super::conclusion::Conclusion;
use super::delivered::{Delivered, DeliveryOutcome};
use super::delivery;
use super::findings::{Findings, SigningResult};
use super::places::{PlaceScan, ProposedPolicies, ProposedPolicy};
use super::proposal_error::ProposalError;
use super::pull_requests::{BranchContent, PullRequestRun};
use super::report::read_revision;
use super::request::UnusableImage;
use super::reselection::Reselection;
use super::reverts::{Overwritten, RevertOutcome, Reverts};
use super::siblings::Siblings;
use super::transaction::{observed, wanted};
use super::waiting::{Change, KnownWait, RunWait, WaitOutcome};
use crate::cloud::GitLoginEntry;
use crate::error::chain;
use crate::git::checkout::Revision;
use crate::git::outcome::Outcome;
use crate::git::{
    Absence, Author, Authorship, BranchAction, BranchDraft, BranchFacts, BranchName, BranchOutcome,
    CommitDraft, CommitPeople, CommitTime, FileChange, ForgeSigningError, Freshness, ProposalTrees, Proposer,
    PushDelay, SigningKey,
};
use crate::message::{DEFAULT_MESSAGE, MessageData, Template, UpdateData, truncated};
use crate::objects::ObjectName;
use crate::update::diff;
use crate::update::{
    Checkpoint, FileEdit, FileTree, HeldValues, Interrupt, MarkerIndex, OwnMarkers, PlanError, Progress,
    ReportedMarkers, ResultV2, TreePath, UpdatePlan, UpdateRequest, divide, edits_in, have_values, plan,
};

/// The level of detail in the findings of a reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Only the markers whose severity is a warning.
    ///
    /// With all markers, many automations on one large repository would each hold the same long list.
    Warnings,
    /// Every marker.
    Everything,
    /// Every marker, and the changes as a diff.
    Diff,
}

/// Updates a tree and proposes the result as a commit.
#[derive(Debug)]
pub struct UpdateProposal {
    /// The update.
    pub update: UpdateRequest,
    /// The author and committer.
    pub author: Author,
    /// The source of the commit's message.
    pub message: MessageSource,
    /// The time of the commit.
    pub time: CommitTime,
    /// The key that signs the commit.
    pub signer: Option<SigningKey>,
    /// Policies whose images cannot be used.
    pub unusable: Vec<UnusableImage>,
    /// The images that count, by the name of their policy.
    pub policies: BTreeMap<String, ImageRef>,
    /// The images that are wanted; others count while a release group is incomplete.
    pub wanted: BTreeMap<String, ImageRef>,
    /// The cache entry of a provider's login, which a server may refuse.
    pub login: Option<GitLoginEntry>,
    /// The cache entry of the token with which the forge signs, which it may refuse.
    pub signing_login: Option<GitLoginEntry>,
    /// Selects the images again after a wait; none if they cannot change meanwhile.
    pub reselection: Option<Reselection>,
    /// The level of detail in the findings.
    pub detail: Detail,
    /// The scan for places, if rollouts are reported.
    pub places: Option<PlaceScan>,
    /// The comparison, if another controller commits and this one does not.
    pub compare: Option<CompareRun>,
    /// True if the last plan found a file with markers that cannot be parsed.
    pub has_unparsable: bool,
    /// The automation's own branches; none if the commit goes to the push branch.
    pub branches: Option<BranchPlan>,
    /// The active automations of the repository.
    pub siblings: Siblings,
    /// The waiting of the run.
    pub wait: RunWait,
    /// Decides which values are left as others set them.
    pub reverts: Reverts,
    /// The pull requests of those branches, if they have some.
    pub pull_requests: Option<PullRequestRun>,
    /// The branches after a run with delivery by branch.
    pub delivered: Option<Delivered>,
    /// The last plan; without detail, only the number of its files.
    pub plan: Option<UpdatePlan>,
    /// The problems that the last plan found.
    pub findings: Option<Findings>,
    /// The signing of the commit by the forge.
    pub signing: SigningResult,
    /// The changes of the last plan as a unified diff.
    pub diff: Option<String>,
}

impl UpdateProposal {
    /// Returns the delivery of the run.
    pub fn delivery(&self) -> DeliveryOutcome {
        match (&self.branches, &self.delivered) {
            (None, _) => DeliveryOutcome::Push,
            (Some(_), None) => DeliveryOutcome::Unknown,
            (Some(_), Some(delivered)) => DeliveryOutcome::Branches(delivered.clone()),
        }
    }

    /// Hands the order for the pull requests over.
    ///
    /// If git found nothing new, they are only listed again.
    pub fn submit_pull_requests(&self, interval: Duration) {
        let (Some(run), Some(plan)) = (&self.pull_requests, &self.branches) else { return };
        let Some(delivered) = &self.delivered else { return run.touch(plan, interval) };
        run.submit(plan, &self.readability(plan), delivered.clone(), interval);
    }

    /// Returns the branches that the run was to end.
    ///
    /// No policy renders them, or people have handed them back.
    pub fn ended_branches(&self) -> Vec<&BranchOutcome> {
        let is_kept = |one: &BranchOutcome| {
            let plan = self.branches.as_ref();
            let is_rendered =
                plan.is_some_and(|plan| plan.bundle(&one.branch).is_some() && !plan.is_given_up(&one.branch));
            is_rendered && one.action != BranchAction::Deleted
        };
        let branches = self.delivered.iter().flat_map(|delivered| &delivered.branches);
        branches.filter(|one| !is_kept(one)).collect()
    }

    /// Marks the values as waiting that the automation's own branches may not get yet.
    pub fn withhold_branches(&mut self, branches: &[BranchOutcome]) {
        let waiting = branches.iter().filter(|one| one.waits_for().is_some());
        let bundles = waiting.filter_map(|one| self.branches.as_ref()?.bundle(&one.branch));
        let policies: BTreeSet<ObjectName> = bundles.flatten().cloned().collect();
        self.plan.iter_mut().for_each(|plan| plan.withhold(|policy| policies.contains(policy)));
    }

    /// Returns true if every selected policy waits for a release group.
    pub fn waits_for_groups(&self) -> bool {
        self.wait.all_wait_for_groups(self.update.setters.selected().map(|(policy, _)| policy))
    }

    /// Returns the waiting after the run.
    pub fn wait_outcome(&self, conclusion: &Conclusion) -> WaitOutcome {
        let Conclusion::Success { outcome, .. } = conclusion else { return WaitOutcome::Unknown };
        self.wait.outcome(*outcome == Outcome::NothingNew)
    }

    /// Returns the wait for the next run, if the files were read.
    pub fn known_wait(&self, conclusion: &Conclusion, wait: &WaitOutcome) -> Option<KnownWait> {
        let Conclusion::Success { outcome, .. } = conclusion else { return None };
        let revision = read_revision(outcome)?;
        self.wait.known(wait, self.wanted.clone(), &revision)
    }

    /// Returns the holds of the run, for reports.
    pub fn revert_outcome(&self, conclusion: &Conclusion) -> RevertOutcome {
        let Conclusion::Success { outcome, .. } = conclusion else { return RevertOutcome::Unknown };
        self.reverts.outcome(matches!(outcome, Outcome::Waiting { .. }) || self.has_unparsable)
    }

    /// Returns the values of others that the run has overwritten, or would overwrite.
    pub fn overwritten(&self, conclusion: &Conclusion) -> &[Overwritten] {
        let is_written = match conclusion {
            Conclusion::Success { outcome: Outcome::Pushed(_) | Outcome::DryRun { .. }, .. } => true,
            Conclusion::Success { .. } => self.delivery().has_pushed(),
            Conclusion::Stall(_) | Conclusion::Failure(_) => false,
        };
        if is_written { self.reverts.overwritten() } else { &[] }
    }

    /// Returns the selected policies, with true for those that are readable.
    ///
    /// Of these it is known whether the base needs a change. Of those without an image or a usable branch it is not, and of none if a
    /// file with markers cannot be parsed.
    fn readability(&self, plan: &BranchPlan) -> BTreeMap<&ObjectName, bool> {
        let is_invalid = |policy: &ObjectName| plan.invalid().iter().any(|invalid| invalid.policy == *policy);
        let selected = self.update.setters.selected();
        selected
            .map(|(policy, image)| (policy, image.is_some() && !self.has_unparsable && !is_invalid(policy)))
            .collect()
    }

    /// Returns the policies whose values are on the automation's own branches.
    pub fn proposed_policies(&self) -> ProposedPolicies {
        use BranchAction::{Created, Kept, Rebuilt};
        let mut policies = ProposedPolicies::new();
        let (Some(plan), Some(delivered)) = (&self.branches, &self.delivered) else { return policies };
        for outcome in &delivered.branches {
            if matches!(outcome.action, Created | Kept | Rebuilt) {
                let own = ProposedPolicy { branch: outcome.branch.clone(), commit: outcome.commit };
                let bundle = plan.bundle(&outcome.branch).into_iter().flatten();
                policies.extend(bundle.map(|policy| (policy.clone(), own.clone())));
            }
        }
        policies
    }

    /// Plans the update of a tree, and keeps what reports need.
    fn plan_update(
        &mut self,
        trees: &ProposalTrees<'_>,
        index: &mut MarkerIndex,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<(UpdatePlan, Vec<FileEdit>), ProposalError> {
        let tree = trees.tree;
        self.update.reported = self.reported();
        self.update.own_markers = self.places.as_ref().map(PlaceScan::limits);
        self.update.held = HeldValues::default();
        self.places.iter_mut().for_each(PlaceScan::reset);
        let mut planned = plan(tree, &self.update, index, checkpoint);
        if let Ok(found) = &planned {
            let namespace = &self.message.automation.namespace;
            if let Some(held) = self.reverts.decide(trees, found, &self.update, namespace, checkpoint)? {
                self.update.held = held;
                planned = plan(tree, &self.update, index, checkpoint);
            }
        }
        if let (Some(places), Err(error)) = (&mut self.places, &planned)
            && error.is_missing_path()
        {
            // No file is left there, so no marker is.
            places.keep(OwnMarkers::default(), tree);
        }
        let mut plan = planned?;
        if self.detail == Detail::Diff {
            self.diff = Some(diff::unified(tree, &plan.edits, checkpoint).map_err(ProposalError::Diff)?);
        }
        let edits = std::mem::take(&mut plan.edits);
        if let Some(places) = &mut self.places {
            places.keep(std::mem::take(&mut plan.own_markers), tree);
        }
        self.findings = Some(Findings::of(&plan, &self.unusable));
        self.has_unparsable = !plan.unparsable.is_empty();
        Ok((plan, edits))
    }

    /// Returns the policies that wait for a release group, with their values.
    ///
    /// The base may lack the image that was written last, which is on a branch. So the images tell what waits.
    fn waiting_on_branches(&self, plan: &UpdatePlan) -> BTreeMap<ObjectName, usize> {
        let mut waiting = plan.waiting.clone();
        for policy in self.wait.held_by_groups() {
            if self.wanted.get(&policy.name) != self.policies.get(&policy.name) {
                waiting.entry(policy.clone()).or_insert(1);
            }
        }
        waiting
    }

    /// Makes a commit of edits.
    fn draft(&self, edits: Vec<FileEdit>, message: Vec<u8>) -> CommitDraft {
        let (author, time, signer) = (self.author.clone(), self.time, self.signer.clone());
        CommitDraft { edits, message, author, time, signer }
    }

    /// Returns the selection of markers that a plan reports.
    ///
    /// A comparison with another controller's values needs those of all markers.
    fn reported(&self) -> ReportedMarkers {
        let is_brief = self.detail == Detail::Warnings && self.compare.is_none();
        if is_brief { ReportedMarkers::Warnings } else { ReportedMarkers::All }
    }
}

/// The source of a commit's message, besides the changes.
#[derive(Clone, Debug)]
pub struct MessageSource {
    /// The automation.
    pub automation: ObjectName,
    /// `messageTemplateValues`.
    pub values: BTreeMap<String, String>,
    /// The template, if there is one.
    pub template: Option<String>,
    /// The language of the template.
    pub language: TemplateLanguage,
}

impl MessageSource {
    /// Returns the policies whose values a result changes, and the number of values.
    fn change(&self, update: &UpdateRequest, result: &ResultV2) -> Change {
        let images = update.setters.images().collect();
        let data = MessageData::new(&self.automation, self.values.clone(), result, &images);
        let names: BTreeSet<String> = data.images().iter().map(|image| image.policy.name.clone()).collect();
        Change { policies: names.into_iter().collect(), values: result.edits() }
    }

    /// Returns the change of a branch, of which the message is made.
    fn content(&self, update: &UpdateRequest, result: &ResultV2, message: &[u8]) -> BranchContent {
        let images = update.setters.images().collect();
        let data = MessageData::new(&self.automation, self.values.clone(), result, &images);
        let message = self.template.as_ref().map(|_| String::from_utf8_lossy(message).into_owned());
        BranchContent { data, message }
    }

    /// Renders the message of all changes of a plan, or of some.
    ///
    /// As in Flux, the template is not read before there is something to commit.
    fn render(
        &self,
        update: &UpdateRequest,
        (plan, result): (&UpdatePlan, &ResultV2),
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Vec<u8>, ProposalError> {
        let Some(template) = &self.template else { return Ok(DEFAULT_MESSAGE.into()) };
        let images = update.setters.images().collect();
        let (automation, values) = (&self.automation, &self.values);
        let update = UpdateData { automation, values, result, images: &images };
        let template = Template::compile(template, self.language)?;
        let progress = Progress { files: plan.files, edits: result.edits() };
        let (checkpoint, interrupt) = (RefCell::new(checkpoint), Cell::new(None));
        let is_interrupted = || {
            interrupt.set((checkpoint.borrow_mut())(progress).err());
            interrupt.get().is_some()
        };
        let rendered = template.render_update(&update, plan.remaining_bytes, &is_interrupted);
        match interrupt.get() {
            Some(interrupt) => Err(PlanError::Interrupted(interrupt).into()),
            None => Ok(truncated(rendered?)),
        }
    }
}

impl Proposer for UpdateProposal {
    type Error = ProposalError;

    fn refresh(&mut self) -> Result<Freshness, ProposalError> {
        let Some(request) = self.reselection.as_mut().map(Reselection::select).transpose()?.flatten() else {
            return Ok(self.wait.refresh(&self.policies));
        };
        if let (Some(branches), Some(reselection)) = (&mut self.branches, &self.reselection) {
            branches.select(&request, reselection.policies())?;
        }
        let (policies, wanted) = (observed(&request.update), wanted(&request.update));
        let is_unchanged = (&policies, &wanted) == (&self.policies, &self.wanted);
        self.wait.set_groups(request.groups);
        (self.update, self.unusable) = (request.update, request.unusable);
        (self.policies, self.wanted) = (policies, wanted);
        let as_before = self.wait.refresh(&self.policies);
        Ok(if is_unchanged { as_before } else { Freshness::Changed })
    }

    fn memory(&self) -> u64 {
        u64::try_from(self.reported().max_bytes()).unwrap_or(u64::MAX)
    }

    fn observes_source(&self) -> bool {
        self.places.is_some()
    }

    fn observe_source(
        &mut self,
        revision: &Revision,
        tree: Option<&dyn FileTree>,
        index: &mut MarkerIndex,
        checkpoint: &mut Checkpoint<'_>,
    ) {
        if let Some(places) = &mut self.places {
            places.observe_source(revision, tree, &self.update, index, checkpoint);
        }
    }

    fn observe_signing(&mut self, result: Result<(), Arc<ForgeSigningError>>) {
        self.signing = match result {
            Ok(()) => SigningResult::Signed,
            Err(error) => SigningResult::Unsigned(chain(&*error)),
        };
    }

    fn propose(
        &mut self,
        trees: &ProposalTrees<'_>,
        index: &mut MarkerIndex,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Option<CommitDraft>, ProposalError> {
        let (mut plan, edits) = self.plan_update(trees, index, checkpoint)?;
        self.wait.begin();
        if self.reverts.lacks_baseline {
            return Ok(None);
        }
        self.wait.wait_for_groups(&plan.waiting);
        let change = || self.message.change(&self.update, &plan.result);
        let is_held = !(edits.is_empty() && plan.waiting.is_empty()) && self.wait.hold(change);
        if is_held {
            plan.withhold(|_| true);
        }
        // The plan is kept even if the message fails: it shows what would have changed.
        let plan = self.plan.insert(plan);
        let message = match edits.as_slice() {
            [] => Ok(None),
            _ => self.message.render(&self.update, (plan, &plan.result), checkpoint).map(Some),
        };
        let compared = match (&mut self.compare, &message) {
            (Some(compare), Ok(message)) => {
                let message = message.as_deref();
                let view = View { tree: trees.tree, update: &self.update, plan, edits: &edits, message };
                // The places of the markers are copied, and their values are kept.
                plan.check_memory_for_markers()
                    .map_err(ProposalError::from)
                    .and_then(|()| compare.compare(&view, checkpoint).map_err(ProposalError::Diff))
            }
            _ => Ok(()),
        };
        if self.detail == Detail::Warnings {
            // No memory is reserved any more when the commit is pushed.
            plan.drop_details();
        }
        compared?;
        // A message that cannot be made is an error before the wait ends, too.
        let is_proposed = !is_held && self.compare.is_none();
        let Some(message) = message?.filter(|_| is_proposed) else { return Ok(None) };
        Ok(Some(self.draft(edits, message)))
    }

    fn lacks_baseline(&self) -> bool {
        self.reverts.lacks_baseline
    }

    fn note(&self) -> Option<String> {
        self.reverts.note(&self.policies)
    }

    fn closed(&self) -> Option<PushDelay> {
        self.wait.closed()
    }

    fn has_unparsable(&self) -> bool {
        self.has_unparsable
    }

    fn is_waiting(&self) -> bool {
        self.wait.is_waiting()
    }

    fn branches(&self) -> BTreeMap<BranchName, BranchFacts> {
        self.branches.as_ref().map(BranchPlan::branches).unwrap_or_default()
    }

    fn branch(&self, branch: &BranchName) -> Option<BranchFacts> {
        self.branches.as_ref()?.branch(branch)
    }

    fn propose_branches(
        &mut self,
        trees: &ProposalTrees<'_>,
        index: &mut MarkerIndex,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Vec<BranchDraft>, ProposalError> {
        let (mut plan, edits) = self.plan_update(trees, index, checkpoint)?;
        self.wait.begin();
        if self.reverts.lacks_baseline {
            return Ok(Vec::new());
        }
        self.wait.wait_for_groups(&self.waiting_on_branches(&plan));
        let bundles = self.branches.as_ref().map(|plan| plan.bundles().clone()).unwrap_or_default();
        let groups: Vec<_> = bundles.values().cloned().collect();
        plan.edits = edits;
        let parts = divide(&plan, trees.tree, &self.update, &groups, checkpoint)?;
        plan.edits = Vec::new();
        // The plan is kept even if a message fails: it shows what would have changed.
        let plan = self.plan.insert(plan);
        let (mut drafts, mut contents, mut setters) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        for (branch, part) in bundles.into_keys().zip(parts).filter(|(_, part)| !part.edits.is_empty()) {
            let message = self.message.render(&self.update, (plan, &part.result), checkpoint)?;
            if self.pull_requests.is_some() {
                contents.insert(branch.clone(), self.message.content(&self.update, &part.result, &message));
            }
            self.wait.add_branch(branch.clone(), self.message.change(&self.update, &part.result));
            setters.insert(branch.clone(), part.setters());
            drafts.push((branch, part.edits, message));
        }
        if let Some(branches) = &mut self.branches {
            let images = contents.iter().map(|(branch, content)| (branch.clone(), content.images()));
            branches.set_images(images.collect());
            branches.set_setters(setters);
        }
        self.pull_requests.iter_mut().for_each(|run| run.set_contents(std::mem::take(&mut contents)));
        if self.detail == Detail::Warnings {
            // No memory is reserved any more when the commits are pushed.
            plan.drop_details();
        }
        let draft = |(branch, edits, message)| BranchDraft { branch, commit: self.draft(edits, message) };
        Ok(drafts.into_iter().map(draft).collect())
    }

    fn edits_in(
        &self,
        draft: &BranchDraft,
        tree: &dyn FileTree,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Vec<FileEdit>, Interrupt> {
        let Some(bundle) = self.branches.as_ref().and_then(|plan| plan.bundle(&draft.branch)) else {
            return Ok(Vec::new());
        };
        let (setters, limits) = (self.update.setters.restricted_to(bundle), &self.update.limits);
        edits_in(tree, &draft.commit.edits, &setters, (&self.update.held, limits), checkpoint)
    }

    fn has_values(
        &self,
        draft: &BranchDraft,
        tree: &dyn FileTree,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<bool, Interrupt> {
        let plan = self.branches.as_ref();
        let known = plan.and_then(|plan| Some((plan.bundle(&draft.branch)?, plan.setters(&draft.branch)?)));
        let Some((bundle, changed)) = known else { return Ok(false) };
        let (setters, limits) = (self.update.setters.restricted_to(bundle), &self.update.limits);
        let values = (draft.commit.edits.as_slice(), changed);
        have_values(tree, values, &setters, (&self.update.held, limits), checkpoint)
    }

    fn absence(&self, branch: &BranchName, proposal: &str) -> Absence {
        self.siblings.absence(&self.message.automation, branch, proposal)
    }

    fn authorship(&self, people: CommitPeople<'_>) -> Authorship {
        let own = self.author.clone();
        let scope = delivery::OwnershipScope { people: vec![(own.clone(), own)], ..Default::default() };
        if scope.has_people(people) {
            Authorship::Own
        } else if self.signing != SigningResult::NotWanted && people.are_of_app() {
            Authorship::OfApp
        } else {
            Authorship::Others
        }
    }

    fn owns_change(&self, branch: &BranchName, change: FileChange<'_>) -> bool {
        let path = TreePath::from_bytes(change.path);
        self.branches.as_ref().is_some_and(|plan| {
            plan.ownership(branch, &self.author).owns_change(&path, change.old, change.new)
        })
    }
}
