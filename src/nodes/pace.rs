//! The time of a rollout on many nodes, on a simulated clock.
//!
//! Each step of a machine takes two seconds, and each step of the controller a fixed time, which is greater than the
//! measured one (docs/performance.md).

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::testing::{IMAGE, apply, node_of};
use super::*;

/// The number of nodes.
const NODES: usize = 50;

/// The number of nodes that are updated at the same time.
const AT_ONCE: usize = 5;

/// The time of a step of a machine: a staging, a drain, a reboot.
const STEP: Duration = Duration::from_secs(2);

/// The time from a change to the step of the controller that follows.
const LATENCY: Duration = Duration::from_millis(180);

/// A node with the time of its last change.
struct Machine {
    node: Node,
    changed: Duration,
}

impl Machine {
    fn new(number: usize) -> Self {
        let mut node = node_of(Stage::Idle, AgentState::Staging);
        node.name = format!("node-{number:02}");
        Self { node, changed: Duration::ZERO }
    }

    /// Lets the machine do what is over by now.
    fn work(&mut self, now: Duration) {
        if now < self.changed + STEP {
            return;
        }
        let state = match (self.node.stage(), self.node.agent()) {
            (Ok(Stage::Idle), Some(AgentState::Staging)) => AgentState::UpdateStaged,
            (Ok(Stage::Rebooting), Some(AgentState::UpdateStaged)) => AgentState::UpToDate,
            _ => return,
        };
        Arc::make_mut(&mut self.node.labels).insert(keys::AGENT.to_owned(), state.as_str().to_owned());
        if state == AgentState::UpToDate {
            Arc::make_mut(&mut self.node.annotations)
                .insert(keys::BOOTED_DIGEST.to_owned(), "sha256:v2".to_owned());
            self.node.boot_id = "2".to_owned();
        }
        self.changed = now;
    }
}

/// Returns the time of a rollout on all nodes.
fn rollout(pool: &Pool) -> Duration {
    let start: Timestamp = "2026-11-23T12:00:00Z".parse().unwrap();
    let mut machines: Vec<Machine> = (0..NODES).map(Machine::new).collect();
    let (mut now, mut freed) = (Duration::ZERO, Duration::ZERO);
    while machines.iter().any(|machine| !machine.node.is_done() || machine.node.holds_slot()) {
        now += Duration::from_millis(10);
        assert!(now < Duration::from_secs(600), "the rollout does not end");
        machines.iter_mut().for_each(|machine| machine.work(now));
        let nodes: Vec<Node> = machines.iter().map(|machine| machine.node.clone()).collect();
        let refs: Vec<&Node> = nodes.iter().collect();
        assert!(refs.iter().filter(|node| node.holds_slot()).count() <= AT_ONCE);
        let time = start + now;
        let granted = grants(&refs, pool, false, time);
        for (machine, node) in machines.iter_mut().zip(&nodes) {
            let situation = Situation {
                has_grant: granted.iter().any(|found| found.name == node.name) && now >= freed + LATENCY,
                is_drained: now >= machine.changed + STEP,
                ..Situation::default()
            };
            let is_due = now >= machine.changed + LATENCY;
            let Some(step) = step(node, pool, situation).filter(|_| is_due) else { continue };
            assert!(apply(&mut machine.node, &patch(node, pool, &step, time)));
            machine.changed = now;
            if step.to == Stage::Idle {
                freed = now;
            }
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
    let time = rollout(&pool);
    assert!(time >= shortest && time <= shortest.mul_f64(1.3), "{time:?} in place of {shortest:?}");
}
