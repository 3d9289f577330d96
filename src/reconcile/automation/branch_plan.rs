//! The automation's own branches: which policies are delivered on which branch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::ResourceExt;
use tagboat_api::settings::{self, AutomationSettings, Delivery, TemplateLanguage};
use tagboat_api::{ImagePolicy, ImageUpdateAutomation, ObjectName, Reason};

use super::delivery::{
    BranchSeries, BundleError, BundleRequest, Bundles, ImageHash, InvalidBranch, OwnerHash, OwnershipScope,
    SelectedPolicy, bundles, only_branch,
};
use super::pull_requests::Snapshot;
use super::request::Request;
use crate::error::ReconcileError;
use crate::git::checkout::CheckoutReference;
use crate::git::outcome::Target;
use crate::git::{Author, BranchFacts, BranchName, Refresh};
use crate::message::PolicyImage;
use crate::reconcile::branch_references::BranchReferences;
use crate::update::TreePath;

/// The automation's own branches, each with the policies whose images it delivers.
#[derive(Clone, Debug)]
pub struct BranchPlan {
    naming: BranchNaming,
    /// The series of branches that other automations render as well.
    series: Arc<BranchSeries>,
    bundles: Bundles,
    /// The pull requests, if the branches have some.
    pull_requests: Option<Arc<Snapshot>>,
    /// True if they were listed a short time ago.
    is_up_to_date: bool,
    /// The automations of the repository and base with an order, and this one.
    owners: BTreeSet<OwnerHash>,
    /// Branches with known pull requests, which no policy is delivered on any more.
    unwanted: BTreeSet<BranchName>,
    /// True if the branches that it renders stay, unless they were handed back.
    pub ends_branches_only: bool,
    /// The selected policies without an image or a usable branch.
    unplaced: BTreeSet<ObjectName>,
    /// The images of the policies of each branch.
    bundle_images: BTreeMap<BranchName, BTreeSet<ImageHash>>,
    /// The images that each branch sets, once the update is planned.
    images: BTreeMap<BranchName, BTreeSet<ImageHash>>,
    /// The setters whose values each branch changes, once the update is planned.
    setters: BTreeMap<BranchName, BTreeSet<String>>,
}

/// The settings by which an automation's own branches get their names.
#[derive(Clone, Debug)]
pub struct BranchNaming {
    automation: ObjectName,
    path: Option<String>,
    /// The target with branches of its own, whose push branch is the base.
    target: Target,
    push_branch: BranchName,
    template: Option<String>,
    language: TemplateLanguage,
    /// True with delivery `branch`, in which no forge tells what became of a branch.
    has_no_forge: bool,
}

/// The error of branches that cannot be named.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct BranchPlanError(#[from] BundleError);

impl ReconcileError for BranchPlanError {
    fn reason(&self) -> Reason {
        match &self.0 {
            BundleError::IsBase { .. } => Reason::InvalidBranch,
            error => error.reason(),
        }
    }

    fn is_retryable(&self) -> bool {
        self.0.is_retryable()
    }
}

impl BranchNaming {
    /// Returns the settings of an automation with this target and base.
    pub fn of(
        automation: &ImageUpdateAutomation,
        settings: &AutomationSettings,
        target: &Target,
        base: BranchName,
    ) -> Self {
        Self {
            automation: ObjectName::of(automation),
            path: automation.spec.update.path.clone(),
            target: target.clone().with_own_branches(base, refresh(settings)),
            push_branch: target.push.clone(),
            template: settings.push_branch.text().map(str::to_owned),
            language: settings.template_language,
            has_no_forge: settings.delivery == Delivery::Branch,
        }
    }

    /// Returns the target with branches of its own, whose push branch is the base.
    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// Divides the selected policies into bundles.
    ///
    /// # Errors
    ///
    /// If the template is none, or renders to the base.
    pub(super) fn bundles(
        &self,
        request: &Request,
        policies: &[Arc<ImagePolicy>],
    ) -> Result<Bundles, BundleError> {
        let labels: BTreeMap<ObjectName, &BTreeMap<String, String>> =
            policies.iter().map(|policy| (ObjectName::of(policy.as_ref()), policy.labels())).collect();
        let selected = request.update.setters.images().filter_map(|(policy, image)| {
            let labels = labels.get(policy)?;
            let image = PolicyImage { policy: policy.clone(), image: image.clone() };
            Some(SelectedPolicy { image, labels })
        });
        bundles(&self.request(&request.values, selected.collect()))
    }

    /// Returns the only branch, if its name does not depend on policies.
    pub(super) fn only_branch(&self, values: &BTreeMap<String, String>) -> Option<BranchName> {
        only_branch(&self.request(values, Vec::new()))
    }

    fn request<'a>(
        &'a self,
        values: &'a BTreeMap<String, String>,
        policies: Vec<SelectedPolicy<'a>>,
    ) -> BundleRequest<'a> {
        BundleRequest {
            automation: &self.automation,
            path: self.path.as_deref(),
            values,
            base: &self.target.push,
            push_branch: &self.push_branch,
            has_refspec: false,
            template: self.template.as_deref(),
            language: self.language,
            policies,
        }
    }
}

/// The error of a source from which no branches can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BranchSourceError {
    /// It is no branch that is checked out.
    #[error(
        "tagboat.dev/delivery: branches are made on a branch, and {checkout} is checked out: name a branch in \
         spec.git.checkout.ref or spec.ref of the GitRepository"
    )]
    NoBase {
        /// The reference that is checked out.
        checkout: String,
    },
    /// There is a refspec.
    #[error(
        "tagboat.dev/delivery: spec.git.push.refspec {refspec:?} has no place beside branches of the automation's own: \
         remove one of the two"
    )]
    Refspec {
        /// The refspec.
        refspec: String,
    },
    /// The branches cannot be named.
    #[error(transparent)]
    Names(#[from] BranchPlanError),
}

impl ReconcileError for BranchSourceError {
    fn reason(&self) -> Reason {
        match self {
            Self::NoBase { .. } | Self::Refspec { .. } => Reason::InvalidSourceConfiguration,
            Self::Names(error) => error.reason(),
        }
    }

    fn is_retryable(&self) -> bool {
        false
    }
}

/// Returns the branch on which an automation's own branches are made.
///
/// There is none if its commits go to the push branch.
///
/// # Errors
///
/// If the automation has own branches, and they cannot be made.
pub fn base(
    target: &Target,
    settings: &AutomationSettings,
    references: BranchReferences,
) -> Result<Option<BranchName>, BranchSourceError> {
    let base = target.checkout.branch();
    if settings.delivery == Delivery::Push {
        let is_separate = base.as_ref() != Some(&target.push) && target.refspec.is_none();
        return Ok(base.filter(|_| is_separate && references == BranchReferences::Fresh));
    }
    let Some(base) = base else {
        return Err(BranchSourceError::NoBase { checkout: target.checkout.to_string() });
    };
    match &target.refspec {
        Some(refspec) => Err(BranchSourceError::Refspec { refspec: refspec.to_string() }),
        None => Ok(Some(base)),
    }
}

/// Divides the selected policies of an automation into bundles on a base.
///
/// # Errors
///
/// If the template is none, or renders to the base.
pub fn bundles_on(
    automation: &ImageUpdateAutomation,
    settings: &AutomationSettings,
    base: &BranchName,
    (request, policies): (&Request, &[Arc<ImagePolicy>]),
) -> Result<Bundles, BundleError> {
    let checkout = CheckoutReference::Branch(base.clone());
    let push = base.clone();
    let target = Target { checkout, push, refspec: None, own_branches: None, options: Vec::new() };
    BranchNaming::of(automation, settings, &target, base.clone()).bundles(request, policies)
}

/// Returns the rule for rebuilding branches.
fn refresh(settings: &AutomationSettings) -> Refresh {
    match settings.pull_request.refresh {
        settings::Refresh::WhenNeeded => Refresh::WhenNeeded,
        settings::Refresh::Always => Refresh::Always,
    }
}

/// Returns true if each selected policy has an image and a branch.
pub(super) fn is_complete(request: &Request, bundles: &Bundles) -> bool {
    let mut selected = request.update.setters.selected();
    bundles.invalid.is_empty() && selected.all(|(_, image)| image.is_some())
}

impl BranchPlan {
    /// Renders the names of the branches for the selected policies.
    ///
    /// A branch in whose series the automation can have no part is invalid.
    ///
    /// # Errors
    ///
    /// If the template is none, or renders to the base.
    pub fn new(
        naming: BranchNaming,
        request: &Request,
        policies: &[Arc<ImagePolicy>],
        series: Arc<BranchSeries>,
    ) -> Result<Self, BranchPlanError> {
        let mut plan = Self {
            naming,
            series,
            bundles: Bundles::default(),
            pull_requests: None,
            is_up_to_date: false,
            owners: BTreeSet::new(),
            unwanted: BTreeSet::new(),
            ends_branches_only: false,
            unplaced: BTreeSet::new(),
            bundle_images: BTreeMap::new(),
            images: BTreeMap::new(),
            setters: BTreeMap::new(),
        };
        plan.select(request, policies)?;
        Ok(plan)
    }

    /// Returns the branch on which the branches are made.
    pub fn base(&self) -> &BranchName {
        &self.target().push
    }

    /// Returns the target with branches of its own, whose push branch is the base.
    pub fn target(&self) -> &Target {
        self.naming.target()
    }

    /// Adds the pull requests of the repository.
    ///
    /// `is_up_to_date` is true if git may change a branch by them. `known` are the branches with ones of the automation that
    /// git has to look at, and `owners` the automations to which they may belong.
    pub fn add_pull_requests(
        &mut self,
        snapshot: Arc<Snapshot>,
        is_up_to_date: bool,
        known: BTreeSet<BranchName>,
        owners: BTreeSet<OwnerHash>,
    ) {
        self.unwanted = known.into_iter().filter(|branch| self.bundle(branch).is_none()).collect();
        self.pull_requests = Some(snapshot);
        self.is_up_to_date = is_up_to_date;
        self.owners = owners;
    }

    /// Records the images that each branch sets, on which a refusal depends.
    pub fn set_images(&mut self, images: BTreeMap<BranchName, BTreeSet<ImageHash>>) {
        self.images = images;
    }

    /// Records the setters whose values each branch changes.
    pub fn set_setters(&mut self, setters: BTreeMap<BranchName, BTreeSet<String>>) {
        self.setters = setters;
    }

    /// Returns the setters whose values a branch changes, if it changes some.
    pub fn setters(&self, branch: &BranchName) -> Option<&BTreeSet<String>> {
        self.setters.get(branch)
    }

    /// Renders the names again after another selection.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn select(
        &mut self,
        request: &Request,
        policies: &[Arc<ImagePolicy>],
    ) -> Result<(), BranchPlanError> {
        let mut bundles = self.naming.bundles(request, policies)?;
        self.series.refuse(self.target(), &mut bundles);
        let placed: BTreeSet<&ObjectName> = bundles.branches.values().flatten().collect();
        let selected = request.update.setters.selected().map(|(policy, _)| policy);
        self.unplaced = selected.filter(|policy| !placed.contains(policy)).cloned().collect();
        let images: BTreeMap<_, _> = request.update.setters.images().collect();
        let of_bundle = |policies: &BTreeSet<ObjectName>| {
            let with_image = policies.iter().filter_map(|policy| Some((policy, *images.get(policy)?)));
            with_image.map(|(policy, image)| ImageHash::of(policy, image)).collect()
        };
        let all = bundles.branches.iter();
        self.bundle_images = all.map(|(branch, policies)| (branch.clone(), of_bundle(policies))).collect();
        self.bundles = bundles;
        Ok(())
    }

    /// Returns the branches with the facts about each.
    pub fn branches(&self) -> BTreeMap<BranchName, BranchFacts> {
        let names = self.bundles.branches.keys().chain(&self.unwanted);
        names.map(|branch| (branch.clone(), self.facts(branch))).collect()
    }

    /// Returns the facts about a branch, if it is one of them.
    pub fn branch(&self, branch: &BranchName) -> Option<BranchFacts> {
        let is_own = self.bundles.branches.contains_key(branch) || self.unwanted.contains(branch);
        is_own.then(|| self.facts(branch))
    }

    fn facts(&self, branch: &BranchName) -> BranchFacts {
        let none = BTreeSet::new();
        let images = self.bundle(branch).map(|_| self.images.get(branch).unwrap_or(&none));
        let Some(known) = &self.pull_requests else {
            // The change of a policy that has no image or no branch now may be on any of them.
            let is_deleted_if_stale = self.naming.has_no_forge && self.unplaced.is_empty();
            return BranchFacts { is_without_forge: true, is_deleted_if_stale, ..BranchFacts::default() };
        };
        let owner = OwnerHash::of(&self.naming.automation, self.naming.path.as_deref());
        let facts = known.facts(self.base(), branch, images, &owner);
        let is_given_up = facts.is_finished && facts.handed_back.is_some();
        let is_kept = self.ends_branches_only && images.is_some() && !is_given_up;
        let is_unknown = facts.is_unknown || !self.is_up_to_date || is_kept;
        let owned_by_others = known.owned_by_others(self.base(), branch, &self.owners);
        BranchFacts { is_unknown, owned_by_others, is_abandoned: images.is_none(), ..facts }
    }

    /// Returns true if a branch was handed back, and its pull request has ended.
    pub fn is_given_up(&self, branch: &BranchName) -> bool {
        let known = self.pull_requests.as_ref();
        known.is_some_and(|known| known.given_up(self.base()).any(|given_up| given_up == branch))
    }

    /// Returns the branches with their policies.
    pub fn bundles(&self) -> &BTreeMap<BranchName, BTreeSet<ObjectName>> {
        &self.bundles.branches
    }

    /// Returns the images of the policies of each branch.
    pub fn bundle_images(&self) -> &BTreeMap<BranchName, BTreeSet<ImageHash>> {
        &self.bundle_images
    }

    /// Returns the policies of a branch.
    pub fn bundle(&self, branch: &BranchName) -> Option<&BTreeSet<ObjectName>> {
        self.bundles.branches.get(branch)
    }

    /// Returns the policies without a usable branch.
    pub fn invalid(&self) -> &[InvalidBranch] {
        &self.bundles.invalid
    }

    /// Returns the commits and changes that count as the automation's own on a branch.
    pub fn ownership(&self, branch: &BranchName, author: &Author) -> OwnershipScope {
        let path = self.naming.path.as_deref().unwrap_or_default();
        let parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
        let path = parts.fold(TreePath::root(), |path, part| path.join(part.as_bytes()));
        // The policies of a branch that is not wanted any more are unknown, and those without a branch may have been on any.
        let placed: Vec<&BTreeSet<ObjectName>> = match self.bundle(branch) {
            Some(bundle) => vec![bundle],
            None => self.bundles.branches.values().collect(),
        };
        let policies = placed.into_iter().chain([&self.unplaced]).flatten().cloned().collect();
        OwnershipScope { people: vec![(author.clone(), author.clone())], policies, paths: vec![path] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_branches_are_made_on_a_branch() {
        use BranchReferences::{All, Fresh};
        use Delivery::{Branch, PullRequest, Push};
        let main = || CheckoutReference::Branch("main".parse().unwrap());
        let name = || CheckoutReference::Name("refs/heads/main".parse().unwrap());
        let tag = || CheckoutReference::Tag("refs/tags/v1".parse().unwrap());
        for (delivery, references, checkout, push, expected) in [
            (Push, All, main(), "main", Ok(None)),
            (Push, All, main(), "auto", Ok(None)),
            // The gate of Flux, by which a push branch begins at the checkout each time.
            (Push, Fresh, main(), "auto", Ok(Some("main"))),
            (Push, Fresh, main(), "main", Ok(None)),
            (Push, Fresh, tag(), "main", Ok(None)),
            (Branch, All, main(), "main", Ok(Some("main"))),
            (Branch, All, name(), "auto", Ok(Some("main"))),
            (Branch, Fresh, main(), "auto", Ok(Some("main"))),
            (Branch, All, tag(), "main", Err("tag v1")),
            (PullRequest, All, main(), "main", Ok(Some("main"))),
            (PullRequest, All, tag(), "main", Err("tag v1")),
        ] {
            let push = push.parse().unwrap();
            let target = Target { checkout, push, refspec: None, own_branches: None, options: Vec::new() };
            let settings = AutomationSettings { delivery, ..AutomationSettings::default() };
            let found = base(&target, &settings, references);
            let expected = expected
                .map(|base| base.map(|base| base.parse().unwrap()))
                .map_err(|checkout: &str| BranchSourceError::NoBase { checkout: checkout.to_owned() });
            assert_eq!(found, expected, "{delivery:?} {references:?} {target:?}");
        }
    }
}
