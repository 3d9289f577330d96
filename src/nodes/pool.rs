//! The settings of a pool that decide about its nodes.

use std::time::Duration;

use super::{Stage, Window};
use crate::tenancy::Rate;

/// The rate at which a pool is reconciled.
///
/// One reconcile takes the due steps of all nodes, and each step makes the next one due. So the rate bounds the load of
/// nodes that change without end, and a rollout does not notice it.
pub const RECONCILES: Rate = Rate { burst: 50, refill: Duration::from_millis(100) };

/// The settings of a pool, as far as they are valid.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pool {
    /// The name.
    pub name: String,
    /// The wanted image with its digest; `None` for a pool that only coordinates reboots.
    pub image: Option<String>,
    /// `true` stops new reboots, and cancels those that are not approved yet.
    pub is_paused: bool,
    /// The keys of the hooks.
    pub hooks: Hooks,
    /// The time limits of stages.
    pub limits: TimeLimits,
    /// The number of nodes that may be unavailable.
    pub max_unavailable: MaxUnavailable,
    /// The time after a node is done until the next one begins.
    pub post_complete_delay: Duration,
    /// The times at which nodes may begin; always, without windows.
    pub windows: Vec<Window>,
}

/// The keys that hooks set to `true`, by stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// The keys that end `before-drain`.
    pub before_drain: Vec<String>,
    /// The keys that end `before-reboot`.
    pub before_reboot: Vec<String>,
    /// The keys that end `before-uncordon`.
    pub before_uncordon: Vec<String>,
}

/// A stage that hooks end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookPoint {
    /// Before the drain.
    BeforeDrain,
    /// Before the reboot.
    BeforeReboot,
    /// Before the node is uncordoned.
    BeforeUncordon,
}

impl Hooks {
    /// Returns the keys of a stage.
    #[must_use]
    pub fn of(&self, point: HookPoint) -> &[String] {
        match point {
            HookPoint::BeforeDrain => &self.before_drain,
            HookPoint::BeforeReboot => &self.before_reboot,
            HookPoint::BeforeUncordon => &self.before_uncordon,
        }
    }

    /// Adds the keys of other hooks.
    pub fn add(&mut self, other: Self) {
        self.before_drain.extend(other.before_drain);
        self.before_reboot.extend(other.before_reboot);
        self.before_uncordon.extend(other.before_uncordon);
    }

    /// Returns the keys of all stages.
    pub fn all(&self) -> impl Iterator<Item = &String> {
        self.before_drain.iter().chain(&self.before_reboot).chain(&self.before_uncordon)
    }
}

/// The time limits of stages; none means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeLimits {
    /// The limit of `draining`.
    pub drain: Option<Duration>,
    /// The limit of `rebooting`.
    pub reboot: Option<Duration>,
    /// The limit of each stage that hooks end.
    pub hooks: Option<Duration>,
}

impl TimeLimits {
    /// Returns the limit of a stage.
    #[must_use]
    pub fn of(self, stage: Stage) -> Option<Duration> {
        match stage {
            Stage::Idle | Stage::Paused => None,
            Stage::BeforeDrain | Stage::BeforeReboot | Stage::BeforeUncordon => self.hooks,
            Stage::Draining => self.drain,
            Stage::Rebooting => self.reboot,
        }
    }
}

/// The number of nodes that may be unavailable at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxUnavailable {
    /// A number of nodes.
    Count(usize),
    /// A part of the pool in percent, rounded up.
    Percent(usize),
}

impl Default for MaxUnavailable {
    fn default() -> Self {
        Self::Count(1)
    }
}

impl MaxUnavailable {
    /// Returns the number for a pool of `nodes` nodes.
    #[must_use]
    pub fn of(self, nodes: usize) -> usize {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => nodes.saturating_mul(percent).div_ceil(100),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_rounded_up_and_zero_gives_no_slots() {
        for (max, nodes, expected) in [
            (MaxUnavailable::default(), 50, 1),
            (MaxUnavailable::Count(0), 50, 0),
            (MaxUnavailable::Percent(25), 3, 1),
            (MaxUnavailable::Percent(25), 5, 2),
            (MaxUnavailable::Percent(0), 50, 0),
            (MaxUnavailable::Percent(100), 7, 7),
            (MaxUnavailable::Percent(25), 0, 0),
        ] {
            assert_eq!(max.of(nodes), expected, "{max:?} of {nodes}");
        }
    }

    #[test]
    fn each_stage_of_a_slot_has_its_limit() {
        let [drain, reboot, hooks] = [1, 2, 3].map(|second| Some(Duration::from_secs(second)));
        let limits = TimeLimits { drain, reboot, hooks };
        let found: Vec<_> = Stage::ALL.into_iter().map(|stage| limits.of(stage)).collect();
        assert_eq!(found, [None, None, hooks, drain, hooks, reboot, hooks]);
    }
}
