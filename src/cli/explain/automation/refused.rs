//! The images of pull requests that people have closed, as far as the status tells.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tagboat_api::git_repository::GitRepositoryRef;
use tagboat_api::settings::{AutomationSettings, Delivery};
use tagboat_api::{Condition, GitRepository, ImagePolicy, ImageUpdateAutomation, ObjectName};

use crate::git::BranchName;
use crate::reconcile::automation::branch_plan::bundles_on;
use crate::reconcile::automation::delivered::Undelivered;
use crate::reconcile::automation::pull_requests::{named as numbers, open_in, refused_in};
use crate::reconcile::automation::request::Request;
use crate::reconcile::conditions::{self, ConditionType};

/// The images of an automation that people have refused.
pub(super) struct RefusedImages {
    /// The numbers of the closed pull requests, as a text.
    numbers: String,
    /// The refused policies that the status names, each with its pull request.
    named: BTreeMap<String, u64>,
    /// The policies that the last run wanted on the branches, and that may be refused.
    policies: BTreeSet<ObjectName>,
    /// True if all of them are refused.
    ///
    /// The status has numbers of pull requests and no branches.
    is_certain: bool,
}

impl RefusedImages {
    /// Returns the refused images; none if no pull request was closed by a person.
    ///
    /// `is_same` is true for a policy whose image the last run wanted. Another image ends the refusal of a whole branch.
    pub(super) fn of(
        (automation, repository): (&ImageUpdateAutomation, Option<&GitRepository>),
        settings: &AutomationSettings,
        (request, policies): (&Request, &[Arc<ImagePolicy>]),
        is_same: impl Fn(&ObjectName) -> bool,
    ) -> Option<Self> {
        let delivery = delivery_with_refusals(automation)?;
        let refused = refused_in(&delivery.message);
        let named = named_refusals(automation);
        if settings.delivery != Delivery::PullRequest {
            return None;
        }
        let base = base(automation, repository);
        let branches = bundles_on(automation, settings, &base, (request, policies)).ok()?.branches;
        let may_be_refused = |policies: &&BTreeSet<ObjectName>| policies.iter().all(&is_same);
        let is_all = open_in(&delivery.message).is_empty() && refused.len() >= branches.len();
        Some(Self {
            numbers: numbers(&refused),
            named,
            is_certain: branches.len() == 1 || is_all,
            policies: branches.values().filter(may_be_refused).flatten().cloned().collect(),
        })
    }

    /// Returns the reason for not writing the image of a policy, if it is certain.
    pub(super) fn reason(&self, policy: &ObjectName) -> Option<String> {
        if !self.policies.contains(policy) {
            return None;
        }
        if !self.named.is_empty() {
            let number = self.named.get(&policy.name)?;
            return Some(format!("a person has closed pull request #{number} without a merge; {END}"));
        }
        self.is_certain.then(|| format!("{}; {END}", self.closed()))
    }

    /// Returns a note for images that may be refused or not.
    pub(super) fn note(&self) -> Option<String> {
        let is_doubtful = !self.is_certain && self.named.is_empty() && !self.policies.is_empty();
        is_doubtful.then(|| {
            format!(
                "{}, and the status does not say of which branch it is: of the images that are called written, those of this \
                 branch are not; {END}",
                self.closed()
            )
        })
    }

    fn closed(&self) -> String {
        let noun = if self.numbers.contains(',') { "pull requests" } else { "pull request" };
        format!("a person has closed {noun} {} without a merge", self.numbers)
    }
}

/// Returns the condition `Delivery`, if it names pull requests that people have closed.
pub(super) fn delivery_with_refusals(automation: &ImageUpdateAutomation) -> Option<&Condition> {
    let delivery = conditions::find(&automation.status.as_ref()?.conditions, ConditionType::Delivery)?;
    let is_counted = delivery.status == "True" && !refused_in(&delivery.message).is_empty();
    (is_counted || !named_refusals(automation).is_empty()).then_some(delivery)
}

/// Returns the refused policies that the status names, each with its pull request.
fn named_refusals(automation: &ImageUpdateAutomation) -> BTreeMap<String, u64> {
    let status = automation.status.as_ref();
    status.map(|status| Undelivered::of(&status.conditions).refused()).unwrap_or_default()
}

/// The end of a refusal.
const END: &str = "another image of its branch, or a person who reopens it, ends that";

/// Returns the branch that is checked out.
///
/// It is `main` if the GitRepository names it and is unknown.
fn base(automation: &ImageUpdateAutomation, repository: Option<&GitRepository>) -> BranchName {
    let git = automation.spec.git.as_ref();
    let reference = match git.and_then(|git| git.checkout.as_ref()) {
        Some(checkout) => Some(&checkout.reference),
        None => repository.and_then(|repository| repository.spec.reference.as_ref()),
    };
    let full_name =
        |reference: &GitRepositoryRef| reference.name.as_deref()?.strip_prefix("refs/heads/")?.parse().ok();
    let branch = reference
        .and_then(|reference| full_name(reference).or_else(|| reference.branch.as_deref()?.parse().ok()));
    branch.unwrap_or_else(|| "main".parse().expect("main is a name"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// It was taken for `main`, so a template with the base counted other branches.
    #[test]
    fn the_base_is_the_branch_that_the_automation_or_else_its_repository_names() {
        let release = json!({"branch": "release"});
        let full = json!({"name": "refs/heads/release"});
        for (checkout, reference, expected) in [
            (&Value::Null, Some(&release), "release"),
            (&Value::Null, Some(&full), "release"),
            (&json!({"ref": {"branch": "next"}}), Some(&release), "next"),
            (&json!({"ref": &full}), None, "release"),
            (&Value::Null, Some(&Value::Null), "main"),
            (&Value::Null, None, "main"),
        ] {
            let automation = json!({
                "metadata": {"namespace": "shop", "name": "app"},
                "spec": {
                    "interval": "1m", "sourceRef": {"kind": "GitRepository", "name": "r"},
                    "git": {"checkout": checkout, "commit": {"author": {"email": "bot@example.com"}}},
                },
            });
            let repository = reference.map(|reference| {
                let spec = json!({"url": "https://git.example/r", "interval": "1m", "ref": reference});
                let repository = json!({"metadata": {"namespace": "shop", "name": "r"}, "spec": spec});
                serde_json::from_value(repository).unwrap()
            });
            let automation = serde_json::from_value(automation).unwrap();
            assert_eq!(base(&automation, repository.as_ref()).as_str(), expected, "{checkout} {reference:?}");
        }
    }
}
