//! What the statuses of an ImageRepository and of an ImagePolicy have in common.

use tagboat_api::Condition;
use tagboat_api::policy::ImagePolicyStatus;
use tagboat_api::repository::ImageRepositoryStatus;

/// A status that the course of a run is written to.
pub trait Status: Clone + Default + PartialEq {
    /// Whether a run that somebody asked for says so before it begins.
    const ANNOUNCES_REQUESTS: bool;

    /// The members that the kinds have in common.
    fn common(&self) -> Common<'_>;

    /// The same members, to be written.
    fn common_mut(&mut self) -> CommonMut<'_>;
}

/// What the statuses of both kinds have in common.
#[derive(Clone, Copy, Debug)]
pub struct Common<'a> {
    /// How the object is doing.
    pub conditions: &'a [Condition],
    /// The generation that the status speaks of.
    pub observed_generation: Option<i64>,
    /// The last request that was answered.
    pub handled: Option<&'a str>,
}

/// What the statuses of both kinds have in common, to be written.
#[derive(Debug)]
pub struct CommonMut<'a> {
    /// How the object is doing.
    pub conditions: &'a mut Vec<Condition>,
    /// The generation that the status speaks of.
    pub observed_generation: &'a mut Option<i64>,
    /// The last request that was answered.
    pub handled: &'a mut Option<String>,
}

/// Both kinds name these members alike.
macro_rules! status {
    ($kind:ty, announces_requests: $announces:literal) => {
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
        }
    };
}

status!(ImageRepositoryStatus, announces_requests: true);
status!(ImagePolicyStatus, announces_requests: false);
