//! The active automations of one repository, and the branches that they render.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::settings::{AutomationSettings, Delivery, MergeTime, PREFIX};
use tagboat_api::{GitRepository, ImagePolicy, ImageUpdateAutomation, ObjectName};

use super::branch_plan::{self, BranchNaming};
use super::delivery::{BranchSeries, Bundles, CautiousAutomation, OwnerHash, RenderedBranches, Standstill};
use super::request::{self, ImageOverrides};
use super::source::SourceReference;
use super::transaction::proposal_name;
use super::waiting::GroupHolds;
use crate::git::outcome::Target;
use crate::git::{Absence, BranchName, DropReason};
use crate::reconcile::branch_references::BranchReferences;
use crate::reconcile::conditions::{self, ConditionStatus, ConditionType};
use crate::reconcile::cross_namespace::CrossNamespace;
use crate::reconcile::repository::request::ObjectIdentity;

/// The annotations that name the branches of an automation, without the prefix.
const NAMING: [&str; 3] = ["delivery", "push-branch", "template-language"];

/// The active automations of one namespace and GitRepository.
///
/// A suspended or deleted one does not count. Clones share what is rendered, so each automation of a batch is rendered once
/// for all others.
#[derive(Clone, Default)]
pub struct Siblings(Arc<Shared>);

#[derive(Default)]
struct Shared {
    automations: Vec<Arc<ImageUpdateAutomation>>,
    /// Those that are suspended.
    suspended: Vec<Arc<ImageUpdateAutomation>>,
    /// The names of the proposals of those that fail again.
    failing: BTreeSet<String>,
    /// The images of policies that the run does not reconcile.
    images: ImageOverrides,
    known: OnceLock<Known>,
}

/// The objects from which automations get their branches.
#[derive(Clone, Debug)]
pub struct SiblingInputs {
    /// The GitRepository of all of them.
    pub repository: Option<GitRepository>,
    /// The policies of their namespace.
    pub policies: Vec<Arc<ImagePolicy>>,
    /// Images that replace those in the policies' status.
    pub given: ImageOverrides,
    /// The treatment of an existing push branch.
    pub references: BranchReferences,
}

/// The siblings and the series of their branches.
///
/// They are known once the first automation of a batch is prepared. Several batches of one repository can wait for git, so
/// what an automation needs only to render its branches is not kept.
struct Known {
    inputs: SiblingInputs,
    siblings: Vec<Sibling>,
    /// Those whose settings are invalid, but not the ones that name their branches.
    stalled: Vec<Sibling>,
    /// The automations that push commits to a branch.
    pushing: BTreeSet<ObjectName>,
    /// The branches to which others push commits, with the first of them by name.
    pushed: BTreeMap<BranchName, ObjectName>,
    series: Arc<BranchSeries>,
}

/// An automation with branches of its own.
struct Sibling {
    automation: Arc<ImageUpdateAutomation>,
    name: ObjectName,
    /// Its target with branches of its own; siblings in a row share equal ones.
    target: Arc<Target>,
    /// The branches, once they are rendered; none if that is not possible.
    rendered: OnceLock<Option<Box<Rendered>>>,
}

/// The branches to which an automation writes.
enum Branches {
    /// Branches of its own.
    Own(BranchNaming),
    /// The branches of this target.
    Pushed(Target),
}

/// The branches of an automation.
struct Rendered {
    bundles: Bundles,
    /// True if each selected policy has an image and a branch.
    is_complete: bool,
    /// True if the policies cannot be selected.
    is_stalled: bool,
    /// The only branch that it can have, if its name does not depend on policies.
    only: Option<BranchName>,
}

impl Siblings {
    /// Makes the siblings of automations with the same namespace and GitRepository.
    ///
    /// `is_tried` is true for an automation that takes part in this run, or cannot succeed without a change. Of another, it is
    /// unknown whether it fails as before.
    pub fn new(
        automations: Vec<Arc<ImageUpdateAutomation>>,
        is_tried: impl Fn(&ImageUpdateAutomation) -> bool,
    ) -> Self {
        Self::with_images(automations, ImageOverrides::new(), is_tried)
    }

    /// Makes the siblings, with the images of policies that the run does not reconcile.
    ///
    /// They replace those in the policies' status, as [`new`](Self::new) leaves them.
    pub fn with_images(
        mut automations: Vec<Arc<ImageUpdateAutomation>>,
        images: ImageOverrides,
        is_tried: impl Fn(&ImageUpdateAutomation) -> bool,
    ) -> Self {
        automations.retain(|one| one.metadata.deletion_timestamp.is_none());
        let (suspended, automations): (Vec<_>, Vec<_>) =
            automations.into_iter().partition(|one| one.spec.suspend);
        let failing = automations.iter().filter(|one| has_failed(one) && is_tried(one));
        let failing = failing.map(|one| proposal_name(one)).collect();
        Self(Arc::new(Shared { automations, suspended, failing, images, known: OnceLock::new() }))
    }

    /// Returns the series of branches, if they were looked for.
    pub fn known_series(&self) -> Option<Arc<BranchSeries>> {
        self.0.known.get().map(|known| known.series.clone())
    }

    /// Returns the series of branches that several automations render.
    ///
    /// It renders the branches of all, if some of them cannot share a branch.
    pub fn find_series(&self, inputs: &SiblingInputs) -> Arc<BranchSeries> {
        let find = || {
            let mut inputs = inputs.clone();
            for (policy, image) in &self.0.images {
                inputs.given.entry(policy.clone()).or_insert_with(|| image.clone());
            }
            let mut known = Known::new(inputs, &self.0.automations);
            known.series = Arc::new(known.find_series());
            known
        };
        self.0.known.get_or_init(find).series.clone()
    }

    /// Decides about the commit of an absent automation on a branch of another.
    ///
    /// `proposal` is the name of its proposals. It is awaited if it may have the branch and is not known to fail again.
    pub fn absence(&self, by: &ObjectName, branch: &BranchName, proposal: &str) -> Absence {
        let Shared { automations, suspended, failing, known, .. } = self.0.as_ref();
        if suspended.iter().any(|one| proposal_name(one) == proposal) {
            return Absence::Dropped(DropReason::Suspended);
        }
        let Some(other) = automations.iter().find(|one| proposal_name(one) == proposal) else {
            return Absence::Dropped(DropReason::Gone);
        };
        if failing.contains(proposal) {
            return Absence::Dropped(DropReason::Failed);
        }
        let name = ObjectName::of(other.as_ref());
        match known.get() {
            Some(known) if !known.may_share(by, branch, &name) => Absence::Dropped(DropReason::OtherBranch),
            _ => Absence::Awaited(name.to_string()),
        }
    }

    /// Returns the other automations for which merges of one of them may have to wait.
    ///
    /// They want a more cautious merge, do not say what they want, or are suspended. They are known once the series was looked
    /// for. Ones that fail again count as well. The branches of all are rendered.
    pub fn more_cautious(&self, by: &ObjectName, merge: MergeTime) -> Vec<CautiousAutomation> {
        let Some(known) = self.0.known.get().filter(|_| merge > MergeTime::ByHand) else {
            return Vec::new();
        };
        let cautious = |(other, is_suspended): (&Arc<ImageUpdateAutomation>, bool)| {
            let automation = ObjectName::of(other.as_ref());
            let wish = merge_of(other)?;
            let own = wish.filter(|_| !is_suspended).unwrap_or(MergeTime::ByHand);
            if own >= merge || automation == *by {
                return None;
            }
            let branches = match is_suspended {
                true => Some(BTreeSet::new()),
                false => {
                    known.shared_if_stalled(by, &automation).map(|all| all.into_iter().cloned().collect())
                }
            };
            let standstill = match (is_suspended, wish, &branches) {
                (true, ..) => Some(Standstill::Suspended),
                (_, None, _) => Some(Standstill::InvalidSettings),
                (.., None) => Some(Standstill::UnknownBranches),
                _ => known.is_stalled(&automation).then_some(Standstill::Stalled),
            };
            let owner = OwnerHash::of(&automation, other.spec.update.path.as_deref());
            Some(CautiousAutomation { automation, owner, merge: own, branches, standstill })
        };
        let active = self.0.automations.iter().map(|one| (one, false));
        active.chain(self.0.suspended.iter().map(|one| (one, true))).filter_map(cautious).collect()
    }
}

impl Known {
    /// Divides automations by whether they have branches of their own.
    ///
    /// One whose settings are invalid does neither.
    fn new(inputs: SiblingInputs, automations: &[Arc<ImageUpdateAutomation>]) -> Self {
        let (mut siblings, mut stalled) = (Vec::<Sibling>::new(), Vec::new());
        let (mut pushing, mut pushed) = (BTreeSet::new(), BTreeMap::new());
        for automation in automations {
            let name = ObjectName::of(automation.as_ref());
            match inputs.branches_of(automation) {
                Some(Branches::Own(naming)) => {
                    let shared = siblings.last().map(|sibling| &sibling.target);
                    let shared = shared.filter(|target| target.as_ref() == naming.target());
                    let target = shared.map_or_else(|| Arc::new(naming.target().clone()), Arc::clone);
                    siblings.push(Sibling::new(automation, name, target));
                }
                Some(Branches::Pushed(target)) => {
                    for branch in target.pushed_branches() {
                        let first: &mut ObjectName = pushed.entry(branch).or_insert_with(|| name.clone());
                        if name < *first {
                            first.clone_from(&name);
                        }
                    }
                    pushing.insert(name);
                }
                None => {
                    if let Some(Branches::Own(naming)) = inputs.branches_by_naming(automation) {
                        let target = Arc::new(naming.target().clone());
                        stalled.push(Sibling::new(automation, name, target));
                    }
                }
            }
        }
        Self { inputs, siblings, stalled, pushing, pushed, series: Arc::default() }
    }

    /// Returns false if an automation has no commit on a branch of another any more.
    fn may_share(&self, by: &ObjectName, branch: &BranchName, other: &ObjectName) -> bool {
        self.shared(by, other).is_none_or(|branches| branches.contains(branch))
    }

    /// Returns the branches that an automation renders and another one can share.
    ///
    /// There are none if it may render any: its settings are invalid, or its branches cannot all be rendered and their names
    /// depend on policies.
    fn shared(&self, by: &ObjectName, other: &ObjectName) -> Option<BTreeSet<&BranchName>> {
        if self.pushing.contains(other) {
            return Some(BTreeSet::new());
        }
        self.shared_of(by, self.siblings.iter().find(|sibling| sibling.name == *other)?)
    }

    /// Returns [`shared`](Self::shared) branches, also those of one whose other settings are invalid.
    ///
    /// It would render them once its settings are corrected.
    fn shared_if_stalled(&self, by: &ObjectName, other: &ObjectName) -> Option<BTreeSet<&BranchName>> {
        match self.stalled.iter().find(|sibling| sibling.name == *other) {
            Some(stalled) => self.shared_of(by, stalled),
            None => self.shared(by, other),
        }
    }

    fn shared_of<'k>(&'k self, by: &ObjectName, other: &'k Sibling) -> Option<BTreeSet<&'k BranchName>> {
        let own = self.siblings.iter().find(|sibling| sibling.name == *by)?;
        if !own.target.shares_transaction(&other.target) {
            return Some(BTreeSet::new());
        }
        let rendered = other.rendered(&self.inputs)?;
        match &rendered.only {
            _ if rendered.is_complete => Some(rendered.bundles.branches.keys().collect()),
            only => Some(BTreeSet::from([only.as_ref()?])),
        }
    }

    /// Returns true if the spec of an automation with valid settings cannot be reconciled.
    fn is_stalled(&self, automation: &ObjectName) -> bool {
        let sibling = self.siblings.iter().find(|sibling| sibling.name == *automation);
        sibling.and_then(|sibling| sibling.rendered(&self.inputs)).is_some_and(|rendered| rendered.is_stalled)
    }

    fn find_series(&self) -> BranchSeries {
        let can_share = |sibling: &Sibling| {
            self.siblings.first().is_none_or(|first| sibling.target.shares_transaction(&first.target))
        };
        if self.siblings.iter().all(can_share) {
            return BranchSeries::of(Vec::new(), self.pushed.clone());
        }
        let rendered = self.siblings.iter().filter_map(|sibling| {
            Some(RenderedBranches {
                automation: &sibling.name,
                created: sibling.created(),
                target: &sibling.target,
                bundles: &sibling.rendered(&self.inputs)?.bundles,
            })
        });
        BranchSeries::of(rendered.collect(), self.pushed.clone())
    }
}

impl SiblingInputs {
    /// Returns the branches to which an automation writes, if its settings are valid.
    fn branches_of(&self, automation: &ImageUpdateAutomation) -> Option<Branches> {
        self.branches_by(automation, automation.annotations())
    }

    /// Returns the branches of an automation, if the settings that name them are valid.
    fn branches_by_naming(&self, automation: &ImageUpdateAutomation) -> Option<Branches> {
        let mut naming = automation.annotations().clone();
        naming.retain(|key, _| key.strip_prefix(PREFIX).is_some_and(|name| NAMING.contains(&name)));
        self.branches_by(automation, &naming)
    }

    fn branches_by(
        &self,
        automation: &ImageUpdateAutomation,
        annotations: &BTreeMap<String, String>,
    ) -> Option<Branches> {
        let settings = AutomationSettings::from_annotations(annotations).ok()?;
        let reference = SourceReference::of(automation, CrossNamespace::Allowed).ok()?;
        let target = reference.configure(self.repository.as_ref(), ObjectIdentity::On).ok()?.target;
        let base = branch_plan::base(&target, &settings, self.references).ok()?;
        Some(match base {
            Some(base) => Branches::Own(BranchNaming::of(automation, &settings, &target, base)),
            None => Branches::Pushed(target),
        })
    }
}

impl Sibling {
    fn new(automation: &Arc<ImageUpdateAutomation>, name: ObjectName, target: Arc<Target>) -> Self {
        Self { automation: automation.clone(), name, target, rendered: OnceLock::new() }
    }

    fn created(&self) -> Option<Timestamp> {
        self.automation.metadata.creation_timestamp.as_ref().map(|time| time.0)
    }

    fn rendered(&self, inputs: &SiblingInputs) -> Option<&Rendered> {
        self.rendered.get_or_init(|| self.render(inputs).map(Box::new)).as_deref()
    }

    fn render(&self, inputs: &SiblingInputs) -> Option<Rendered> {
        // Those of a stalled one follow from fewer settings.
        let valid = inputs.branches_of(&self.automation);
        let Some(Branches::Own(naming)) = valid.or_else(|| inputs.branches_by_naming(&self.automation))
        else {
            return None;
        };
        let policies = || inputs.policies.iter().map(Arc::as_ref);
        let git = self.automation.spec.git.as_ref();
        let values = git.map(|git| &git.commit.message_template_values);
        let only = naming.only_branch(values.unwrap_or(&BTreeMap::new()));
        let Ok(mut request) = request::of_automation(&self.automation, policies(), &inputs.given) else {
            return Some(Rendered {
                bundles: Bundles::default(),
                is_complete: false,
                is_stalled: true,
                only,
            });
        };
        if policies().any(GroupHolds::concern) {
            request.hold_groups(&self.automation, policies(), &inputs.given);
        }
        let bundles = naming.bundles(&request, &inputs.policies).ok()?;
        let is_complete = branch_plan::is_complete(&request, &bundles);
        Some(Rendered { bundles, is_complete, is_stalled: false, only })
    }
}

/// Returns the merge time that an automation wants, if it has pull requests.
///
/// The inner value is none with invalid settings: it is unknown, and people merge.
#[allow(clippy::option_option, reason = "an automation without pull requests wants no merge")]
fn merge_of(automation: &ImageUpdateAutomation) -> Option<Option<MergeTime>> {
    let annotations = automation.annotations();
    let (delivery, merge) = match AutomationSettings::from_annotations(annotations) {
        Ok(settings) => (settings.delivery, Some(settings.pull_request.merge)),
        Err(_) => {
            let delivery = annotations.get(&format!("{PREFIX}delivery"));
            let delivery = delivery.map_or(Ok(Delivery::Push), |text| text.parse());
            (delivery.unwrap_or(Delivery::PullRequest), None)
        }
    };
    (delivery == Delivery::PullRequest).then_some(merge)
}

/// Returns true if the last run of an automation failed, which its status reports.
fn has_failed(automation: &ImageUpdateAutomation) -> bool {
    automation.status.as_ref().is_some_and(|status| {
        conditions::is(&status.conditions, ConditionType::Ready, ConditionStatus::False)
    })
}

impl fmt::Debug for Siblings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Siblings")
            .field("automations", &self.0.automations.len())
            .finish_non_exhaustive()
    }
}
