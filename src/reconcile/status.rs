//! The members that the statuses of all kinds have in common.

use jiff::Timestamp;
use tagboat_api::Condition;
use tagboat_api::automation::ImageUpdateAutomationStatus;
use tagboat_api::policy::ImagePolicyStatus;
use tagboat_api::repository::ImageRepositoryStatus;

use super::conditions::whole_seconds;

/// A status that a reconcile is written to.
pub trait Status: Clone + Default + PartialEq + Send + Sync {
    /// True if a run that was requested is written to the status before it begins.
    const ANNOUNCES_REQUESTS: bool;

    /// The members that the kinds have in common.
    fn common(&self) -> Common<'_>;

    /// The same members, to be written.
    fn common_mut(&mut self) -> CommonMut<'_>;

    /// Sets the time of the last run, if the kind has a member for it.
    fn set_run_time(&mut self, _: Timestamp) {}
}

/// The members that the statuses of all kinds have in common.
#[derive(Clone, Copy, Debug)]
pub struct Common<'a> {
    /// The conditions of the object.
    pub conditions: &'a [Condition],
    /// The generation that the status is about.
    pub observed_generation: Option<i64>,
    /// The last request that was answered.
    pub handled: Option<&'a str>,
}

/// The members that the statuses of all kinds have in common, to be written.
#[derive(Debug)]
pub struct CommonMut<'a> {
    /// The conditions of the object.
    pub conditions: &'a mut Vec<Condition>,
    /// The generation that the status is about.
    pub observed_generation: &'a mut Option<i64>,
    /// The last request that was answered.
    pub handled: &'a mut Option<String>,
}

/// Implements [`Status`]: all kinds name these members alike.
macro_rules! status {
    ($kind:ty, announces_requests: $announces:literal $(, run_time: $run_time:ident)?) => {
        impl Status for $kind {
            const ANNOUNCES_REQUESTS: bool = $announces;

            fn common(&self) -> Common<'_> {
                Common {
                    conditions: &self.conditions,
                    observed_generation: self.observed_generation,
                    handled: self.last_handled_reconcile_at.as_deref(),
                }
            }

            fn common_mut(&mut self) -> CommonMut<'_> {
                CommonMut {
                    conditions: &mut self.conditions,
                    observed_generation: &mut self.observed_generation,
                    handled: &mut self.last_handled_reconcile_at,
                }
            }

            $(fn set_run_time(&mut self, started: Timestamp) {
                self.$run_time = Some(whole_seconds(started));
            })?
        }
    };
}

status!(ImageUpdateAutomationStatus, announces_requests: true, run_time: last_automation_run_time);
status!(ImageRepositoryStatus, announces_requests: true);
status!(ImagePolicyStatus, announces_requests: false);
