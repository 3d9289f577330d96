//! The images of pull requests that people have closed, as far as the status tells.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tagboat_api::settings::{AutomationSettings, Delivery};
use tagboat_api::{Condition, ImagePolicy, ImageUpdateAutomation, ObjectName};

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
        automation: &ImageUpdateAutomation,
        settings: &AutomationSettings,
        (request, policies): (&Request, &[Arc<ImagePolicy>]),
        is_same: impl Fn(&ObjectName) -> bool,
    ) -> Option<Self> {
        let status = automation.status.as_ref()?;
        let delivery: &Condition = conditions::find(&status.conditions, ConditionType::Delivery)?;
        let refused = refused_in(&delivery.message);
        let named = Undelivered::of(&status.conditions).refused();
        let is_told = !named.is_empty() || (!refused.is_empty() && delivery.status == "True");
        if !is_told || settings.delivery != Delivery::PullRequest {
            return None;
        }
        let branches =
            bundles_on(automation, settings, &base(automation), (request, policies)).ok()?.branches;
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

/// The end of a refusal.
const END: &str = "another image of its branch, or a person who reopens it, ends that";

/// Returns the branch that is checked out, or any if the GitRepository names it.
fn base(automation: &ImageUpdateAutomation) -> BranchName {
    let git = automation.spec.git.as_ref();
    let branch = git.and_then(|git| git.checkout.as_ref()?.reference.branch.as_deref());
    branch.and_then(|name| name.parse().ok()).unwrap_or_else(|| "main".parse().expect("main is a name"))
}
