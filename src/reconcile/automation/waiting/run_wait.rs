//! The waiting of one run, while its proposal is made.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use parking_lot::Mutex;
use tagboat_api::ImageRef;

use super::earlier::{EarlierRun, KnownWait};
use super::gate::{Closed, GateState, WriteGate};
use super::groups::GroupHolds;
use super::wait::{Wait, WaitOutcome, WaitReason};
use crate::git::checkout::Revision;
use crate::git::{BranchName, BranchOutcome, Freshness, PushDelay, object_of};
use crate::objects::ObjectName;

/// The maximum number of other automations that a message names.
const MAX_OTHERS: usize = 10;

/// The beginning of the phrase about other automations that delay a branch.
pub const BY_OTHERS: &str = "automation";

/// The waiting of a run: the gate, and what waits at it.
#[derive(Debug, Default)]
pub struct RunWait {
    /// Decides whether the automation may write; none in compare mode.
    gate: Option<WriteGate>,
    /// The state before the run.
    earlier: EarlierRun,
    /// The wait of this run at the gate.
    wait: Option<Wait>,
    /// The release groups.
    groups: GroupHolds,
    /// The wait of this run for release groups.
    group_wait: Option<Wait>,
    /// The last state of the gate.
    gate_state: Mutex<Option<GateState>>,
    /// The change that each own branch makes.
    branches: BTreeMap<BranchName, Change>,
}

/// A change that may have to wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The names of the policies.
    pub policies: Vec<String>,
    /// The number of values.
    pub values: usize,
}

impl RunWait {
    /// Creates the waiting of a run that has not begun.
    pub fn new(gate: Option<WriteGate>, earlier: EarlierRun, groups: GroupHolds) -> Self {
        Self { gate, earlier, groups, ..Self::default() }
    }

    /// Sets the release groups after the images were selected again.
    pub fn set_groups(&mut self, groups: GroupHolds) {
        self.groups = groups;
    }

    /// Looks at the gate when the inputs of the run are read.
    ///
    /// `images` are those that count. The freshness is that of a run whose images are the same.
    pub fn refresh(&mut self, images: &BTreeMap<String, ImageRef>) -> Freshness {
        self.gate.iter_mut().for_each(|gate| gate.observe(images));
        // Otherwise the rules are read only before a push.
        let is_looked_at =
            self.earlier.reports_waiting || self.gate.as_ref().is_some_and(WriteGate::is_cheap);
        let is_open = is_looked_at && self.look_at_gate().is_none();
        // What waited at the gate is written now.
        let is_of_gate = |wait: &mut Wait| wait.reason != WaitReason::ReleaseGroupIncomplete;
        let has_opened = is_open && self.earlier.wait.take_if(is_of_gate).is_some();
        if has_opened { Freshness::Changed } else { Freshness::Unchanged }
    }

    /// Forgets what waited on the tree of an earlier attempt.
    pub fn begin(&mut self) {
        (self.wait, self.group_wait, self.branches) = (None, None, BTreeMap::new());
    }

    /// Records the values that wait for release groups.
    pub fn wait_for_groups(&mut self, waiting: &BTreeMap<ObjectName, usize>) {
        let Some(by) = self.groups.by().filter(|_| !waiting.is_empty()) else { return };
        self.group_wait = Some(Wait {
            reason: WaitReason::ReleaseGroupIncomplete,
            by,
            until: None,
            look_again: None,
            policies: waiting.keys().map(|policy| policy.name.clone()).collect(),
            values: waiting.values().sum(),
            changes: None,
        });
    }

    /// Returns the policies of incomplete release groups.
    pub fn held_by_groups(&self) -> impl Iterator<Item = &ObjectName> {
        self.groups.held()
    }

    /// Looks at the gate, and records the change as waiting if it is closed.
    pub fn hold(&mut self, change: impl FnOnce() -> Change) -> bool {
        let Some(closed) = self.look_at_gate() else { return false };
        let Change { mut policies, mut values } = change();
        if let Some(of_groups) = &self.group_wait {
            policies.extend(of_groups.policies.iter().cloned());
            policies.sort();
            policies.dedup();
            values += of_groups.values;
        }
        self.wait = Some(Wait::at(closed, policies, values));
        true
    }

    /// Records the change that an own branch makes.
    pub fn add_branch(&mut self, branch: BranchName, change: Change) {
        self.branches.insert(branch, change);
    }

    /// Returns true if a change of the last proposal waits.
    pub fn is_waiting(&self) -> bool {
        self.wait.is_some()
    }

    /// Returns true if all of some policies wait for release groups.
    pub fn all_wait_for_groups<'p>(&self, mut policies: impl Iterator<Item = &'p ObjectName>) -> bool {
        self.group_wait.is_some() && policies.all(|policy| self.groups.holds(policy))
    }

    /// Returns the delay if the gate is closed now.
    pub fn closed(&self) -> Option<PushDelay> {
        let Closed { reason, until, look_again, .. } = self.look_at_gate()?;
        Some(PushDelay { reason: reason.reason(), until, look_again })
    }

    /// Records that own branches wait, and returns true if any does.
    pub fn add_branches(&mut self, branches: &[BranchOutcome]) -> bool {
        let waiting: Vec<&BranchOutcome> =
            branches.iter().filter(|branch| branch.waits_for().is_some()).collect();
        if waiting.is_empty() {
            return false;
        }
        let changes: Vec<&Change> = waiting.iter().filter_map(|one| self.branches.get(&one.branch)).collect();
        let policies: BTreeSet<String> =
            changes.iter().flat_map(|change| change.policies.iter().cloned()).collect();
        let values = changes.iter().map(|change| change.values).sum();
        let closed = waiting.iter().filter_map(|branch| branch.waits_for()).flatten();
        let own = self.gate.as_ref().map(|gate| gate.automation.to_string());
        let others = closed.map(|proposal| (object_of(&proposal.name), proposal.delay));
        let others = others.filter(|(name, _)| own.as_deref() != Some(*name)).collect();
        self.ensure(Change { policies: policies.into_iter().collect(), values }, &others);
        true
    }

    /// Records that a push waits, unless a change does.
    pub fn add_push(&mut self) {
        self.ensure(Change::default(), &BTreeMap::new());
    }

    /// Records that a change waits, unless another one does.
    ///
    /// If the gate is open, it waits for other automations, or its own rule has just ended.
    fn ensure(&mut self, Change { policies, values }: Change, others: &BTreeMap<&str, PushDelay>) {
        if self.wait.is_some() {
            return;
        }
        let by_another = || {
            let delays: Vec<PushDelay> = others.values().copied().collect();
            let by = by_others(others.keys().copied());
            // A rule that has just ended is looked at again at once.
            let gate = self.gate.as_ref().filter(|_| others.is_empty());
            let now = gate.map(|gate| gate.clock.read()[0]);
            let (reason, until, look_again) = united(&delays);
            Closed { reason, by, until, look_again: look_again.or(now), changes: None }
        };
        let closed = self.gate_state.lock().as_ref().and_then(|state| state.closed.clone());
        let wait = Wait::at(closed.unwrap_or_else(by_another), policies, values);
        // The own quiet period has ended, and must not begin anew while the branch waits for others.
        let changes = self.gate.as_ref().and_then(WriteGate::image_changes);
        self.wait = Some(Wait { changes: changes.cloned(), ..wait });
    }

    /// Returns the waiting after a run that succeeded.
    ///
    /// It is that of the earlier run if nothing was read.
    pub fn outcome(&self, is_skipped: bool) -> WaitOutcome {
        if self.gate.is_none() {
            return WaitOutcome::Unknown;
        }
        let state = self.gate_state.lock().clone();
        let closed = state.as_ref().and_then(|state| state.closed.clone());
        let still_waiting = || {
            let known = self.earlier.wait.clone().filter(|_| is_skipped)?;
            match closed {
                Some(closed) => Some(Wait::at(closed, known.policies, known.values)),
                None => Some(known).filter(|known| known.reason == WaitReason::ReleaseGroupIncomplete),
            }
        };
        match (self.wait.clone().or(self.group_wait.clone()).or_else(still_waiting), state) {
            (Some(wait), _) => WaitOutcome::Waiting(wait),
            (None, _) if self.groups.has_groups => WaitOutcome::Nothing,
            (None, Some(state)) if state.has_rules => WaitOutcome::Nothing,
            (None, Some(_)) => WaitOutcome::NoRules,
            (None, None) => WaitOutcome::Unknown,
        }
    }

    /// Returns the wait for the next run, after a run that read the files.
    ///
    /// `policies` are the images that were wanted. There is none if the status has all of it.
    pub fn known(
        &self,
        outcome: &WaitOutcome,
        policies: BTreeMap<String, ImageRef>,
        revision: &Revision,
    ) -> Option<KnownWait> {
        let wait = match outcome {
            WaitOutcome::Waiting(wait) => Some(wait.clone()),
            _ if self.groups.are_incomplete() => None,
            _ => return None,
        };
        Some(KnownWait { wait, policies, revision: revision.to_string() })
    }

    /// Returns the last state of the gate, if it was looked at.
    pub fn gate_state(&self) -> Option<GateState> {
        self.gate_state.lock().clone()
    }

    /// Looks at the gate, and returns the rule that closes it.
    fn look_at_gate(&self) -> Option<Closed> {
        let state = self.gate.as_ref()?.state();
        let closed = state.closed.clone();
        *self.gate_state.lock() = Some(state);
        closed
    }
}

/// Unites the delays of automations of the same branch.
///
/// It may be pushed once all of them have ended. The reason is the first of them. A rule that has just ended is gone, and was
/// a window or a freeze. Any end is one to look at the rules again.
fn united(delays: &[PushDelay]) -> (WaitReason, Option<Timestamp>, Option<Timestamp>) {
    let is_one = |wait: &WaitReason| delays.iter().any(|delay| delay.reason == wait.reason());
    let reason = WaitReason::ALL.into_iter().find(is_one).unwrap_or(WaitReason::WindowClosed);
    let ends: Option<Vec<Timestamp>> = delays.iter().map(|delay| delay.until).collect();
    let until = ends.and_then(|ends| ends.into_iter().max());
    let look_again = delays.iter().flat_map(|delay| [delay.until, delay.look_again]).flatten().min();
    (reason, until, look_again)
}

/// Returns a phrase about automations of the same branch that may not write.
fn by_others<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.collect();
    let named = &names[..names.len().min(MAX_OTHERS)];
    let more = match names.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    match named {
        [] => "a rule that has just ended".to_owned(),
        [name] => format!("{BY_OTHERS} {name}, which changes the same branch and waits"),
        names => format!("{BY_OTHERS}s {}{more}, which change the same branch and wait", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use tagboat_api::Reason;

    use super::*;

    #[test]
    fn a_phrase_names_the_automations_that_wait() {
        let many: Vec<String> = (10..22).map(|number| format!("shop/a{number} uid-{number}")).collect();
        for (proposals, expected) in [
            (&["shop/web 0a-1"][..], "automation shop/web, which changes the same branch and waits"),
            (
                &["shop/web", "shop/api"],
                "automations shop/api, shop/web, which change the same branch and wait",
            ),
            (
                &many.iter().map(String::as_str).collect::<Vec<_>>(),
                "automations shop/a10, shop/a11, shop/a12, shop/a13, shop/a14, shop/a15, shop/a16, shop/a17, shop/a18, \
                 shop/a19 and 2 more, which change the same branch and wait",
            ),
            (&[], "a rule that has just ended"),
        ] {
            let names: BTreeSet<&str> = proposals.iter().copied().map(object_of).collect();
            assert_eq!(by_others(names.into_iter()), expected);
        }
    }

    #[test]
    fn a_branch_waits_for_the_first_reason_and_the_last_end_of_others() {
        use Reason::{Frozen, QuietPeriod, WindowClosed};
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let delay = |reason, until: Option<i64>, look_again: Option<i64>| PushDelay {
            reason,
            until: until.map(at),
            look_again: look_again.map(at),
        };
        let quiet = delay(QuietPeriod, Some(20), Some(20));
        let closed = delay(WindowClosed, Some(40), Some(10));
        let frozen = delay(Frozen, None, None);
        for (delays, expected) in [
            (&[quiet][..], (WaitReason::QuietPeriod, Some(20), Some(20))),
            (&[quiet, closed], (WaitReason::WindowClosed, Some(40), Some(10))),
            // A freeze without an end.
            (&[quiet, frozen, closed], (WaitReason::Frozen, None, Some(10))),
            (&[frozen], (WaitReason::Frozen, None, None)),
            (&[], (WaitReason::WindowClosed, None, None)),
        ] {
            let (reason, until, look_again) = expected;
            assert_eq!(united(delays), (reason, until.map(at), look_again.map(at)), "{delays:?}");
        }
    }
}
