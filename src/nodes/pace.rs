//! The time of a rollout on many nodes, on a simulated clock.
//!
//! Each step of a machine takes two seconds. The controller reconciles its pool as its queue does: changes are collected
//! for a moment, one reconcile follows the other, and the rate is limited. A reconcile takes longer than the measured one
//! (docs/performance.md).

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::testing::{IMAGE, apply, node_of};
use super::*;
use crate::tenancy::Rate;

/// The number of nodes.
const NODES: usize = 50;

/// The number of nodes that are updated at the same time.
const AT_ONCE: usize = 5;

/// The time of a step of a machine: a staging, a drain, a reboot.
const STEP: Duration = Duration::from_secs(2);

/// The time for which the controller collects changes.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// The time of a reconcile with its patches.
const RECONCILE: Duration = Duration::from_millis(120);

/// The time after which a pool is reconciled again to write its status.
const STATUS: Duration = Duration::from_secs(1);

/// The resolution of the clock.
const TICK: Duration = Duration::from_millis(5);

/// A node with the time of its last change.
struct Machine {
    node: Node,
    changed: Duration,
    is_drained: bool,
}

impl Machine {
    fn new(number: usize) -> Self {
        let mut node = node_of(Stage::Idle, AgentState::Staging);
        node.name = format!("node-{number:02}");
        Self { node, changed: Duration::ZERO, is_drained: false }
    }

    /// Lets the machine do what is over by now.
    ///
    /// Returns `true` if the controller has to know.
    fn work(&mut self, now: Duration) -> bool {
        if now < self.changed + STEP {
            return false;
        }
        let state = match (self.node.stage(), self.node.agent()) {
            (Ok(Stage::Draining), _) => return !std::mem::replace(&mut self.is_drained, true),
            (Ok(Stage::Idle), Some(AgentState::Staging)) => AgentState::UpdateStaged,
            (Ok(Stage::Rebooting), Some(AgentState::UpdateStaged)) => AgentState::UpToDate,
            _ => return false,
        };
        Arc::make_mut(&mut self.node.labels).insert(keys::AGENT.to_owned(), state.as_str().to_owned());
        if state == AgentState::UpToDate {
            Arc::make_mut(&mut self.node.annotations)
                .insert(keys::BOOTED_DIGEST.to_owned(), "sha256:v2".to_owned());
            self.node.boot_id = "2".to_owned();
        }
        self.changed = now;
        true
    }

    fn patch(&mut self, patch: &Value, now: Duration) {
        assert!(apply(&mut self.node, patch));
        (self.changed, self.is_drained) = (now, false);
    }
}

/// The queue of the controller for one pool, with its rate limit.
#[derive(Default)]
struct Queue {
    due: Option<Duration>,
    full_at: Duration,
    /// The end of the reconcile in flight, with its patches by machine.
    in_flight: Option<(Duration, Vec<(usize, Value)>)>,
}

impl Queue {
    fn enqueue(&mut self, at: Duration) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// Takes a token if a reconcile is due and allowed.
    fn begins(&mut self, rate: Rate, now: Duration) -> bool {
        let next = self.full_at.saturating_sub(rate.refill * (rate.burst - 1));
        let begins = self.in_flight.is_none() && self.due.is_some_and(|due| due <= now) && next <= now;
        if begins {
            self.due = None;
            self.full_at = self.full_at.max(now) + rate.refill;
        }
        begins
    }
}

/// Returns the patches of the due steps.
fn patches(machines: &[Machine], pool: &Pool, time: Timestamp) -> Vec<(usize, Value)> {
    let nodes: Vec<&Node> = machines.iter().map(|machine| &machine.node).collect();
    assert!(nodes.iter().filter(|node| node.holds_slot()).count() <= AT_ONCE);
    let granted = grants(&nodes, pool, false, time);
    let patch_of = |(at, machine): (usize, &Machine)| {
        let node = &machine.node;
        let situation = Situation {
            has_grant: granted.iter().any(|found| found.name == node.name),
            is_drained: machine.is_drained,
            ..Situation::default()
        };
        Some((at, patch(node, pool, &step(node, pool, situation)?, time)))
    };
    machines.iter().enumerate().filter_map(patch_of).collect()
}

/// Returns the time of a rollout on all nodes.
fn rollout(pool: &Pool, rate: Rate) -> Duration {
    let start: Timestamp = "2026-11-23T12:00:00Z".parse().unwrap();
    let mut machines: Vec<Machine> = (0..NODES).map(Machine::new).collect();
    let (mut now, mut queue) = (Duration::ZERO, Queue::default());
    while machines.iter().any(|machine| !machine.node.is_done() || machine.node.holds_slot()) {
        now += TICK;
        assert!(now < Duration::from_secs(600), "the rollout does not end");
        for machine in &mut machines {
            if machine.work(now) {
                queue.enqueue(now + DEBOUNCE);
            }
        }
        if let Some((_, patches)) = queue.in_flight.take_if(|(end, _)| *end <= now) {
            queue.enqueue(now + if patches.is_empty() { STATUS } else { DEBOUNCE });
            patches.iter().for_each(|(at, patch)| machines[*at].patch(patch, now));
        }
        if queue.begins(rate, now) {
            queue.in_flight = Some((now + RECONCILE, patches(&machines, pool, start + now)));
        }
    }
    now
}

#[test]
fn fifty_machines_are_done_in_little_more_than_the_shortest_time() {
    let pool = Pool {
        image: Some(IMAGE.to_owned()),
        max_unavailable: MaxUnavailable::Count(AT_ONCE),
        ..Pool::default()
    };
    let waves = u32::try_from(NODES / AT_ONCE).unwrap();
    let shortest = STEP + 2 * STEP * waves;
    let goal = shortest.mul_f64(1.3);
    let time = rollout(&pool, RECONCILES);
    assert!(time >= shortest && time <= goal, "{time:?} in place of {shortest:?}");
    // Each step of a wave is one reconcile at least, so the rate of other kinds would hold a rollout back.
    let slow = rollout(&pool, Rate { burst: 10, refill: Duration::from_secs(1) });
    assert!(slow > goal, "{slow:?}");
}
