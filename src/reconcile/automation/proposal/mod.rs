//! An update as a proposal to git.
//!
//! | file | contents |
//! |---|---|
//! | `proposer` | the proposal as the writer uses it |
//! | `message` | the source of a commit's message |

mod message;
mod proposer;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tagboat_api::ImageRef;

pub use self::message::MessageSource;
use super::branch_plan::BranchPlan;
use super::compare::CompareRun;
use super::conclusion::Conclusion;
use super::delivered::{BranchPolicies, Delivered, DeliveryOutcome};
use super::findings::{Findings, SigningResult};
use super::places::{PlaceScan, ProposedPolicies, ProposedPolicy};
use super::proposal_error::ProposalError;
use super::pull_requests::PullRequestRun;
use super::report::read_revision;
use super::request::UnusableImage;
use super::reselection::Reselection;
use super::reverts::{Overwritten, RevertOutcome, Reverts};
use super::siblings::Siblings;
use super::waiting::{KnownWait, RunWait, WaitOutcome};
use crate::cloud::GitLoginEntry;
use crate::git::outcome::Outcome;
use crate::git::{
    Author, BranchAction, BranchName, BranchOutcome, CommitDraft, CommitTime, ProposalTrees, SigningKey,
};
use crate::objects::ObjectName;
use crate::update::diff;
use crate::update::{
    Checkpoint, FileEdit, HeldValues, MarkerIndex, OwnMarkers, ReportedMarkers, UpdatePlan, UpdateRequest,
    plan,
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

    /// Returns the policies of each branch that the automation renders.
    pub fn policies_of_branches(&self) -> BTreeMap<BranchName, BranchPolicies> {
        let Some((run, plan)) = self.pull_requests.as_ref().zip(self.branches.as_ref()) else {
            return BTreeMap::new();
        };
        let names = |policies: &BTreeSet<ObjectName>| policies.iter().map(|one| one.name.clone()).collect();
        let of = |(branch, all): (&BranchName, &BTreeSet<ObjectName>)| {
            let policies = BranchPolicies { all: names(all), changed: names(&run.changed_policies(branch)) };
            (branch.clone(), policies)
        };
        plan.bundles().iter().map(of).collect()
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
