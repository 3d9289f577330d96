//! The part of one run of an automation in its pull requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tagboat_api::settings::{AutomationSettings, PullRequestSettings, TemplateLanguage};
use tagboat_api::{ImageUpdateAutomation, ObjectName, Reason};

use super::super::branch_plan::BranchPlan;
use super::super::delivered::{Delivered, listed};
use super::super::delivery::{
    CautiousAutomation, ImageHash, OwnerHash, PolicyHash, PullRequestText, TextError, UnsupportedSetting,
    check_support,
};
use super::super::forge_login::{ForgeAccess, ForgeAccessError};
use super::super::waiting::WriteGate;
use super::before_git::LookUp;
use super::order::{BranchContent, PullRequestOrder};
use super::queue::PullRequestQueue;
use super::repository::RepositoryKey;
use super::snapshot::Snapshot;
use crate::error::ReconcileError;
use crate::git::BranchName;
use crate::secrets::Redactor;

/// The maximum number of automations that an order keeps for a sentence about them only.
const MAX_NAMED: usize = 20;

/// The error of an automation whose pull requests cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum PullRequestSetupError {
    /// The forge, or the login there, cannot be used.
    #[error(transparent)]
    Access(#[from] ForgeAccessError),
    /// The forge lacks a feature for a setting.
    #[error(transparent)]
    Unsupported(#[from] UnsupportedSetting),
}

impl ReconcileError for PullRequestSetupError {
    fn reason(&self) -> Reason {
        match self {
            Self::Access(error) => error.reason(),
            Self::Unsupported(error) => error.reason(),
        }
    }

    fn is_retryable(&self) -> bool {
        match self {
            Self::Access(error) => error.is_retryable(),
            Self::Unsupported(error) => error.is_retryable(),
        }
    }
}

/// The part of one run of an automation in its pull requests.
#[derive(Clone, Debug)]
pub struct PullRequestRun {
    queue: PullRequestQueue,
    key: RepositoryKey,
    automation: ObjectName,
    owner: OwnerHash,
    base: BranchName,
    settings: PullRequestSettings,
    cautious: Vec<CautiousAutomation>,
    language: TemplateLanguage,
    reported_open: BTreeSet<u64>,
    contents: BTreeMap<BranchName, BranchContent>,
    gate: Option<WriteGate>,
    made_at: Instant,
}

impl PullRequestRun {
    /// Connects an automation with its repository at the forge.
    ///
    /// The gate is closed while nothing may be changed there.
    ///
    /// # Errors
    ///
    /// If the forge lacks a feature for a setting.
    pub fn new(
        queue: &PullRequestQueue,
        automation: &ImageUpdateAutomation,
        settings: &AutomationSettings,
        (base, source): (BranchName, &ObjectName),
        access: ForgeAccess,
        gate: Option<WriteGate>,
    ) -> Result<Self, PullRequestSetupError> {
        check_support(access.address.kind, &settings.pull_request)?;
        let name = ObjectName::of(automation);
        let key = RepositoryKey {
            namespace: name.namespace.clone(),
            source: source.clone(),
            api: access.address.api.clone(),
            repository: access.address.repository.full_name(),
        };
        queue.connect(&name, &key, access);
        let path = automation.spec.update.path.as_deref();
        let conditions = automation.status.as_ref().map(|status| status.conditions.as_slice());
        let reported_open = conditions.map(listed).unwrap_or_default();
        Ok(Self {
            queue: queue.clone(),
            key,
            owner: OwnerHash::of(&name, path),
            automation: name,
            base,
            settings: settings.pull_request.clone(),
            cautious: Vec::new(),
            language: settings.template_language,
            reported_open,
            contents: BTreeMap::new(),
            gate,
            made_at: Instant::now(),
        })
    }

    /// Returns the pull requests of the repository as they were listed last.
    ///
    /// With them comes true if git may change a branch by this list.
    pub fn snapshot(&self) -> (Arc<Snapshot>, bool) {
        self.queue.snapshot(&self.key)
    }

    /// Returns a redactor of the present login at the forge.
    pub fn redactor(&self) -> Redactor {
        self.queue.redactor(&self.key)
    }

    /// Returns the automation, and those of its repository and base with an order.
    pub fn owners(&self) -> BTreeSet<OwnerHash> {
        let mut owners = self.queue.owners(&self.key, &self.base);
        owners.insert(self.owner.clone());
        owners
    }

    /// Returns the branches of the automation that git has to look at.
    ///
    /// Their pull requests are open, or were closed a short time ago.
    pub fn known_branches(&self, snapshot: &Snapshot) -> BTreeSet<BranchName> {
        snapshot.branches_for_git(&self.base, &self.owner)
    }

    /// Lists the pull requests, and looks the closed ones of branches up.
    ///
    /// Each branch comes with the images of its policies. The round after the run reports an error, which leaves the branches
    /// as they are.
    pub async fn look_up(&mut self, images: &BTreeMap<BranchName, BTreeSet<ImageHash>>) {
        let (owner, gate) = (self.owner.clone(), self.gate.clone());
        let branches = &images.keys().cloned().collect();
        self.queue.look_up(&self.key, LookUp { base: &self.base, branches, images, owner, gate }).await;
        self.made_at = Instant::now();
    }

    /// Records the other automations of the repository that want a more cautious merge.
    pub fn set_cautious(&mut self, cautious: Vec<CautiousAutomation>) {
        self.cautious = cautious;
    }

    /// Renders the text of a branch's pull request, as far as this automation makes it.
    ///
    /// # Errors
    ///
    /// If a template cannot be rendered, or was interrupted.
    pub fn check_text(
        &self,
        branch: &BranchName,
        content: &BranchContent,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(), TextError> {
        if self.settings.title.text().is_none() && self.settings.body.text().is_none() {
            return Ok(());
        }
        let source = content.source(&self.settings, self.language);
        PullRequestText::render(&[source], branch.as_str(), self.base.as_str(), is_interrupted).map(drop)
    }

    /// Records the changes that the branches make.
    pub fn set_contents(&mut self, contents: BTreeMap<BranchName, BranchContent>) {
        self.contents = contents;
    }

    /// Returns the policies whose images a branch changes on the base.
    pub fn changed_policies(&self, branch: &BranchName) -> BTreeSet<ObjectName> {
        let images = self.contents.get(branch).map(|content| content.data.images());
        images.into_iter().flatten().map(|image| image.policy.clone()).collect()
    }

    /// Hands the order of the run over, with the result of git.
    ///
    /// `policies` are those that it selects, with true if it is known whether the base needs a change. An order that wants the
    /// same as the last one has the pull requests listed again once in an interval.
    pub fn submit(
        &self,
        plan: &BranchPlan,
        policies: &BTreeMap<&ObjectName, bool>,
        delivered: Delivered,
        interval: Duration,
    ) {
        let of = |is_readable: bool| {
            let some = policies.iter().filter(|(_, readable)| **readable == is_readable);
            some.map(|(policy, _)| PolicyHash::of(policy)).collect()
        };
        let order = PullRequestOrder {
            automation: self.automation.clone(),
            owner: self.owner.clone(),
            base: self.base.clone(),
            settings: self.settings.clone(),
            cautious: self.cautious_on(plan),
            language: self.language,
            facts: plan.branches(),
            rendered: plan.bundles().keys().cloned().collect(),
            readable: of(true),
            unreadable: of(false),
            reported_open: self.reported_open.clone(),
            contents: self.contents.clone(),
            delivered,
            gate: self.gate.clone(),
            made_at: self.made_at,
        };
        self.queue.submit(&self.key, order, interval / 2);
    }

    /// Has the pull requests listed again after a run in which git found nothing new.
    pub fn touch(&self, plan: &BranchPlan, interval: Duration) {
        let renewed = (self.gate.clone(), self.cautious_on(plan));
        self.queue.touch(&self.automation, renewed, interval / 2);
    }

    /// Returns the more cautious automations that may render a branch of a plan.
    ///
    /// Of those that only a last line can name, the first are enough: they add a sentence to a wait that there is without them.
    fn cautious_on(&self, plan: &BranchPlan) -> Vec<CautiousAutomation> {
        let is_rendered = |branch: &BranchName| plan.bundle(branch).is_some();
        let within = self.cautious.iter().filter_map(|one| one.within(&is_rendered));
        let (named, others): (Vec<_>, Vec<_>) = within.partition(CautiousAutomation::is_only_named);
        others.into_iter().chain(named.into_iter().take(MAX_NAMED)).collect()
    }
}
