//! The other automations of a repository, and the branches that they render.

use std::fmt;
use std::sync::Arc;
use std::sync::OnceLock;

use kube::ResourceExt;
use tagboat_api::settings::AutomationSettings;
use tagboat_api::{GitRepository, ImagePolicy, ImageUpdateAutomation, ObjectName};

use super::branch_plan::{self, BranchNaming};
use super::delivery::Bundles;
use super::request::{self, ImageOverrides};
use super::source::SourceReference;
use super::transaction::proposal_name;
use crate::git::{BranchName, OtherBase};
use crate::reconcile::branch_references::BranchReferences;
use crate::reconcile::cross_namespace::CrossNamespace;
use crate::reconcile::repository::request::ObjectIdentity;

/// The other automations of one namespace and GitRepository, suspended ones too.
///
/// Their branches are rendered only when a branch is about to be changed.
#[derive(Default)]
pub struct Siblings {
    /// The automations.
    pub automations: Vec<Arc<ImageUpdateAutomation>>,
    /// Their GitRepository.
    pub source: Option<GitRepository>,
    /// The policies of their namespace.
    pub policies: Vec<Arc<ImagePolicy>>,
    /// Images that replace those in the policies' status.
    pub given: ImageOverrides,
    /// The treatment of an existing push branch.
    pub references: BranchReferences,
    /// The branches, once they are rendered.
    rendered: OnceLock<Vec<Sibling>>,
}

/// An automation with its branches.
struct Sibling {
    name: ObjectName,
    proposal: String,
    base: BranchName,
    bundles: Bundles,
}

impl Siblings {
    /// Makes the siblings of an automation that render nothing yet.
    pub fn new(
        automations: Vec<Arc<ImageUpdateAutomation>>,
        source: Option<GitRepository>,
        policies: Vec<Arc<ImagePolicy>>,
        given: ImageOverrides,
        references: BranchReferences,
    ) -> Self {
        Self { automations, source, policies, given, references, rendered: OnceLock::new() }
    }

    /// Returns another automation that renders a branch for another base, if there is one.
    pub fn other_base(&self, branch: &BranchName, base: &BranchName) -> Option<OtherBase> {
        let mut others = self.with_branch(branch).filter(|sibling| sibling.base != *base);
        others.next().map(|other| OtherBase { base: other.base.clone(), proposer: other.name.to_string() })
    }

    /// Returns true if the automation of a proposal renders a branch for the same base.
    pub fn share(&self, branch: &BranchName, base: &BranchName, proposal: &str) -> bool {
        let mut others = self.with_branch(branch).filter(|sibling| sibling.base == *base);
        others.any(|sibling| sibling.proposal == proposal)
    }

    fn with_branch(&self, branch: &BranchName) -> impl Iterator<Item = &Sibling> {
        let rendered = self.rendered.get_or_init(|| {
            self.automations.iter().filter_map(|automation| self.render(automation)).collect()
        });
        rendered.iter().filter(|sibling| sibling.bundles.branches.contains_key(branch))
    }

    /// Renders the branches of an automation.
    ///
    /// One that is invalid, or is being deleted, has none.
    fn render(&self, automation: &ImageUpdateAutomation) -> Option<Sibling> {
        if automation.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let settings = AutomationSettings::from_annotations(automation.annotations()).ok()?;
        let reference = SourceReference::of(automation, CrossNamespace::Allowed).ok()?;
        let target = reference.configure(self.source.as_ref(), ObjectIdentity::On).ok()?.target;
        let base = branch_plan::base(&target, &settings, self.references).ok()??;
        let policies = self.policies.iter().map(Arc::as_ref);
        let request = request::of_automation(automation, policies, &self.given).ok()?;
        let naming = BranchNaming::of(automation, &settings, &target, base.clone());
        let bundles = naming.bundles(&request, &self.policies).ok()?;
        let proposal = proposal_name(automation);
        Some(Sibling { name: ObjectName::of(automation), proposal, base, bundles })
    }
}

impl fmt::Debug for Siblings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Siblings")
            .field("automations", &self.automations.len())
            .finish_non_exhaustive()
    }
}
