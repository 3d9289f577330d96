//! The order that an automation gives to the forge work after a run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use tagboat_api::ObjectName;
use tagboat_api::settings::{PullRequestSettings, TemplateLanguage};

use super::super::delivered::Delivered;
use super::super::delivery::{
    BranchState, CautiousAutomation, ImageHash, LeftBranch, OwnerHash, PolicyHash, TextSource,
};
use super::super::waiting::{Closed, Wait, WriteGate};
use super::progress::PullRequestProgress;
use crate::git::{BranchAction, BranchFacts, BranchName, BranchOutcome, LeftReason};
use crate::message::MessageData;

/// The change that an automation makes on a branch.
#[derive(Clone, Debug, PartialEq)]
pub struct BranchContent {
    /// The data of the commit's message.
    pub data: MessageData,
    /// `spec.update.path`, to which the names of files in the data are relative.
    pub path: Option<String>,
    /// The message of the commit, if it has a template.
    pub message: Option<String>,
}

impl BranchContent {
    /// Returns the source of the texts with the templates of an automation's settings.
    pub(super) fn source<'a>(
        &'a self,
        settings: &'a PullRequestSettings,
        language: TemplateLanguage,
    ) -> TextSource<'a> {
        TextSource {
            data: &self.data,
            path: self.path.as_deref(),
            message: self.message.as_deref(),
            title: settings.title.text(),
            body: settings.body.text(),
            language,
        }
    }

    /// Returns the policies whose values the branch changes, with their images.
    pub fn images(&self) -> BTreeSet<ImageHash> {
        self.data.images().into_iter().map(|image| ImageHash::of(&image.policy, &image.image)).collect()
    }
}

/// The pull requests that an automation wants after a run.
#[derive(Clone, Debug)]
pub struct PullRequestOrder {
    /// The automation.
    pub automation: ObjectName,
    /// The hash by which its pull requests are recognized.
    pub owner: OwnerHash,
    /// The branch into which pull requests are merged.
    pub base: BranchName,
    /// The settings of its pull requests.
    pub settings: PullRequestSettings,
    /// The other automations that want a more cautious merge and may render the same branches.
    pub cautious: Vec<CautiousAutomation>,
    /// The language of its templates.
    pub language: TemplateLanguage,
    /// The branches that git has looked at, with the facts by which it decided.
    pub facts: BTreeMap<BranchName, BranchFacts>,
    /// The branches that it renders.
    pub rendered: BTreeSet<BranchName>,
    /// The policies of which it is known whether the base needs a change.
    pub readable: BTreeSet<PolicyHash>,
    /// The other policies that it selects.
    pub unreadable: BTreeSet<PolicyHash>,
    /// The numbers of the pull requests that were open when the automation was reported last.
    pub reported_open: BTreeSet<u64>,
    /// The changes, by branch.
    pub contents: BTreeMap<BranchName, BranchContent>,
    /// The result of git.
    pub delivered: Delivered,
    /// Decides whether the automation may write.
    pub gate: Option<WriteGate>,
    /// The time at which the run began, before git read the base.
    pub made_at: Instant,
}

impl PullRequestOrder {
    /// Returns true if another order wants the same of the forge.
    ///
    /// The commits that git has reported do not count, nor do the pull requests that were reported, the gate, and the age
    /// of facts and of the order.
    pub(super) fn wants_same(&self, other: &Self) -> bool {
        self.wish() == other.wish()
    }

    /// Returns what is wanted of the forge.
    fn wish(&self) -> impl PartialEq {
        let Self { automation, owner, base, settings, cautious, language, rendered, contents, .. } = self;
        let dated = |facts: &BranchFacts| BranchFacts { is_unknown: false, ..*facts };
        let facts: Vec<_> = self.facts.iter().map(|(branch, facts)| (branch, dated(facts))).collect();
        let by = (automation, owner, base, (settings, cautious), language);
        let policies = (&self.readable, &self.unreadable);
        (by, rendered, policies, contents, facts, self.delivered.without_commits())
    }

    /// Returns the terms on which the automation wants a branch with a base.
    ///
    /// There are none if it neither renders the branch nor has looked at it. The content does not matter.
    pub(super) fn terms(&self, (base, branch): (&BranchName, &BranchName)) -> Option<impl PartialEq> {
        let is_rendered = self.rendered.contains(branch);
        let is_own = self.base == *base && (is_rendered || self.facts.contains_key(branch));
        let settings = (&self.settings, &self.cautious, self.language);
        let own_rules = self.gate.as_ref().map(|gate| (&gate.own, &gate.quiet));
        is_own.then_some((&self.automation, &self.owner, is_rendered, settings, own_rules))
    }

    /// Returns true if the automation's own windows and quiet period are overridden.
    pub(super) fn ignores_own(&self) -> bool {
        self.gate.as_ref().is_some_and(|gate| gate.ignores_own)
    }

    /// Returns the wait of images whose pull requests may not be opened or merged yet.
    pub fn withheld(&self, progress: &PullRequestProgress) -> Option<Wait> {
        let withheld = progress.outcomes.iter().filter_map(|outcome| {
            let change = outcome.withheld().filter(|change| change.delays_images)?;
            Some((&self.contents.get(&outcome.branch)?.data, &change.rule))
        });
        let (data, rules): (Vec<&MessageData>, Vec<&Closed>) = withheld.unzip();
        let rule = (*rules.first()?).clone();
        let images = data.iter().flat_map(|data| data.images());
        let policies: BTreeSet<String> = images.map(|image| image.policy.name.clone()).collect();
        let values = data.iter().map(|data| data.count()).sum();
        Some(Wait::at(rule, policies.into_iter().collect(), values))
    }

    /// Returns the outcome of git for a branch, if there is one.
    pub fn outcome(&self, branch: &BranchName) -> Option<&BranchOutcome> {
        self.delivered.branches.iter().find(|outcome| outcome.branch == *branch)
    }

    /// Returns the branches that are to have pull requests.
    ///
    /// Git has made them, or waits for the forge.
    pub(super) fn to_have_pull_requests(&self) -> impl Iterator<Item = &BranchName> {
        use BranchAction::{Created, Kept, Left, Rebuilt};
        self.contents.keys().filter(|branch| {
            let action = self.outcome(branch).map(|outcome| &outcome.action);
            matches!(action, Some(Created | Rebuilt | Kept | Left(LeftReason::AwaitingForge)))
        })
    }

    /// Returns the branches that git leaves alone until the forge has answered.
    pub(super) fn awaiting_forge(&self) -> impl Iterator<Item = &BranchName> {
        let is_awaiting = |outcome: &&BranchOutcome| {
            matches!(outcome.action, BranchAction::Left(LeftReason::AwaitingForge))
        };
        self.delivered.branches.iter().filter(is_awaiting).map(|outcome| &outcome.branch)
    }

    /// Returns the state of a branch; none if git waits for the forge.
    ///
    /// `is_handled` is true for a tip whose pull request is refreshed already.
    pub(super) fn state(
        &self,
        branch: &BranchName,
        is_handled: impl FnOnce(&BranchOutcome) -> bool,
    ) -> Option<BranchState> {
        use BranchAction::{Created, Deleted, Failed, Kept, Left, Rebuilt};
        let Some(outcome) = self.outcome(branch) else { return Some(BranchState::Absent) };
        let left = |reason| Some(BranchState::Left(reason));
        match (&outcome.action, outcome.tip) {
            (Created | Rebuilt, Some(tip)) => {
                Some(BranchState::Current { tip, is_new: !is_handled(outcome) })
            }
            (Kept, Some(tip)) => Some(BranchState::Current { tip, is_new: false }),
            // A dry run makes no branch.
            (Created | Rebuilt | Kept | Deleted, _) => Some(BranchState::Absent),
            (Failed { .. }, _) => Some(BranchState::Failed),
            (Left(LeftReason::AwaitingForge | LeftReason::Waiting { .. }), _) => None,
            (Left(LeftReason::EditedByOthers { .. } | LeftReason::Unreadable { .. }), _) => {
                left(LeftBranch::EditedByOthers)
            }
            // An automation of the round may have it, of which git did not know.
            (
                Left(
                    LeftReason::SharedWith { .. }
                    | LeftReason::UnparsableOf { .. }
                    | LeftReason::OwnedByOthers { .. },
                ),
                _,
            ) => left(LeftBranch::Shared),
            (Left(LeftReason::OpenElsewhere { .. }), _) => left(LeftBranch::OpenElsewhere),
            (Left(LeftReason::Refused), _) => left(LeftBranch::Refused),
            (Left(LeftReason::InMergeQueue), _) => left(LeftBranch::InMergeQueue),
            // With an unparsable file, the pull request is left alone because its policies are not readable.
            (Left(LeftReason::NothingLeft | LeftReason::Abandoned | LeftReason::UnparsableBase), _) => {
                left(LeftBranch::NothingLeft)
            }
        }
    }
}
