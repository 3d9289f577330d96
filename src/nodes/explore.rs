//! Explores every order of events of two nodes that share one slot.
//!
//! The participants are the controller, the agents, the hooks, users, and machines that reboot, crash or come back with
//! the old image. Each write depends on the version of the node, so a write that is based on an older node changes
//! nothing, and a participant that is killed before its write has not acted. So every event is one atomic change, and a
//! restart of a controller or an agent, which keep nothing, is no event at all.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;

use super::testing::apply;
use super::*;

/// The events that may happen, beside the progress of the rollout, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Budget {
    crashes: u8,
    rollbacks: u8,
    pauses: u8,
    pool_pauses: u8,
    retargets: u8,
    closings: u8,
}

/// A machine and its node, with the parts that differ between worlds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Machine {
    stage: Stage,
    agent: Option<AgentState>,
    desired: Option<u8>,
    booted_digest: Option<u8>,
    staged_digest: Option<u8>,
    attempt: Option<(u8, u8)>,
    is_unschedulable: bool,
    is_made: bool,
    is_paused: bool,
    /// The confirmations of the three kinds of hooks.
    confirmed: [bool; 3],
    /// The first two kinds of hooks that confirmed since the node got its slot.
    has_run: [bool; 2],
    /// The images of the host: 1 is the old one.
    booted: u8,
    staged: Option<u8>,
    boot: u8,
    is_up: bool,
    has_pods: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    machines: [Machine; 2],
    target: u8,
    is_pool_paused: bool,
    is_closed: bool,
    budget: Budget,
}

const HOOKS: [&str; 3] = ["h/drain", "h/reboot", "h/uncordon"];

fn now() -> Timestamp {
    "2026-11-23T12:00:00Z".parse().unwrap()
}

fn image(number: u8) -> String {
    format!("r/os@sha256:{number}")
}

fn number(text: &str) -> u8 {
    text.rsplit(':').next().and_then(|text| text.parse().ok()).unwrap()
}

impl Machine {
    fn new() -> Self {
        Self {
            stage: Stage::Idle,
            agent: None,
            desired: Some(2),
            booted_digest: None,
            staged_digest: None,
            attempt: None,
            is_unschedulable: false,
            is_made: false,
            is_paused: false,
            confirmed: [false; 3],
            has_run: [false; 2],
            booted: 1,
            staged: None,
            boot: 0,
            is_up: true,
            has_pods: true,
        }
    }

    fn node(&self, name: &str) -> Node {
        let mut node = Node {
            name: name.to_owned(),
            resource_version: "1".to_owned(),
            is_ready: self.is_up,
            is_unschedulable: self.is_unschedulable,
            boot_id: self.boot.to_string(),
            ..Node::default()
        };
        Arc::make_mut(&mut node.labels).insert(keys::STATE.to_owned(), self.stage.to_string());
        let labels = [
            (keys::AGENT, self.agent.map(|agent| agent.as_str().to_owned())),
            (keys::PAUSE, self.is_paused.then(|| "true".to_owned())),
        ];
        Arc::make_mut(&mut node.labels)
            .extend(labels.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
        let digest = |number: Option<u8>| number.map(|number| format!("sha256:{number}"));
        let annotations = [
            (keys::DESIRED_IMAGE, self.desired.map(image)),
            (keys::BOOTED_DIGEST, digest(self.booted_digest)),
            (keys::STAGED_DIGEST, digest(self.staged_digest)),
            (keys::ATTEMPTED, self.attempt.map(|(image, boot)| format!("sha256:{image} {boot}"))),
            (keys::MADE_UNSCHEDULABLE, self.is_made.then(|| "true".to_owned())),
        ];
        let hooks = HOOKS.into_iter().zip(self.confirmed.map(|is_true| is_true.then(|| "true".to_owned())));
        let all = annotations.into_iter().chain(hooks);
        Arc::make_mut(&mut node.annotations)
            .extend(all.filter_map(|(key, value)| Some((key.to_owned(), value?))));
        node
    }

    /// Takes over what a patch changed.
    fn read(&mut self, node: &Node) {
        let digest = |key: &str| node.annotation(key).map(number);
        self.stage = node.stage().unwrap();
        if !self.stage.holds_slot() {
            self.has_run = [false; 2];
        }
        self.agent = node.agent();
        self.desired = digest(keys::DESIRED_IMAGE);
        self.booted_digest = digest(keys::BOOTED_DIGEST);
        self.staged_digest = digest(keys::STAGED_DIGEST);
        self.attempt =
            node.attempt().map(|attempt| (number(&attempt.digest), attempt.boot_id.parse().unwrap()));
        self.is_made = node.is_made_unschedulable();
        self.is_unschedulable = node.is_unschedulable;
        self.confirmed = HOOKS.map(|hook| node.annotations.contains_key(hook));
        // Pods come back to a node that is not cordoned.
        self.has_pods |= !self.is_unschedulable;
    }

    fn host(&self) -> Host {
        let host_image =
            |number: u8| HostImage { reference: image(number), digest: format!("sha256:{number}") };
        Host {
            booted: Some(host_image(self.booted)),
            staged: self.staged.map(host_image),
            boot_id: self.boot.to_string(),
            ..Host::default()
        }
    }

    fn go_down(&mut self) {
        self.is_up = false;
    }

    /// Boots the staged image, unless the host rolls back.
    fn boot(&mut self, is_rolled_back: bool) {
        let staged = self.staged.take();
        if !is_rolled_back {
            self.booted = staged.unwrap_or(self.booted);
        }
        self.boot += 1;
        self.is_up = true;
    }
}

impl World {
    fn new(budget: Budget) -> Self {
        Self {
            machines: [Machine::new(), Machine::new()],
            target: 2,
            is_pool_paused: false,
            is_closed: false,
            budget,
        }
    }

    fn pool(&self) -> Pool {
        let [before_drain, before_reboot, before_uncordon] = HOOKS.map(|key| vec![key.to_owned()]);
        let hour = std::time::Duration::from_hours(1);
        let closed = Window::new(&[], "20:00", hour, "").unwrap();
        Pool {
            image: Some(image(self.target)),
            is_paused: self.is_pool_paused,
            hooks: Hooks { before_drain, before_reboot, before_uncordon },
            windows: if self.is_closed { vec![closed] } else { Vec::new() },
            ..Pool::default()
        }
    }

    fn with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut next = self.clone();
        change(&mut next);
        next
    }

    /// Patches a node, and returns the world after it.
    fn patched(&self, at: usize, patch: &serde_json::Value) -> Self {
        self.with(|next| {
            let mut node = next.machines[at].node("");
            assert!(apply(&mut node, patch));
            next.machines[at].read(&node);
        })
    }

    /// The step of the controller for a node.
    fn controller(&self, at: usize) -> Option<Self> {
        let (pool, nodes) = (self.pool(), ["a", "b"]);
        let nodes: Vec<Node> =
            self.machines.iter().zip(nodes).map(|(machine, name)| machine.node(name)).collect();
        let granted = grants(&nodes.iter().collect::<Vec<_>>(), &pool, false, now());
        let situation = Situation {
            has_grant: granted.iter().any(|node| node.name == nodes[at].name),
            is_drained: !self.machines[at].has_pods,
            ..Situation::default()
        };
        let step = step(&nodes[at], &pool, situation)?;
        // An approval needs a drain before it.
        assert!(step.to != Stage::Rebooting || !self.machines[at].has_pods, "{self:?}");
        Some(self.patched(at, &patch(&nodes[at], &pool, &step, now())))
    }

    /// The step of the agent of a node.
    fn agent(&self, at: usize) -> Option<Self> {
        let machine = &self.machines[at];
        if !machine.is_up {
            return None;
        }
        let (node, host) = (machine.node(""), machine.host());
        // Messages decide nothing, and worlds do not have them.
        let report = AgentReport { message: String::new(), ..agent_report(&node, &host, None) };
        Some(match agent_step(&node, &host, &report)? {
            AgentStep::Publish => self.patched(at, &report_patch(&node, &report)),
            AgentStep::Acknowledge(attempt) => self.patched(at, &acknowledgment_patch(&node, &attempt)),
            AgentStep::Stage(reference) => self.with(|next| {
                let image = number(&reference);
                next.machines[at].staged = Some(image).filter(|image| *image != next.machines[at].booted);
            }),
            AgentStep::Reboot => {
                assert!(machine.stage == Stage::Rebooting && !machine.has_pods, "{self:?}");
                assert!(machine.is_unschedulable && machine.has_run == [true; 2], "{self:?}");
                assert_eq!(machine.staged, machine.desired, "the approved image is booted: {self:?}");
                self.with(|next| next.machines[at].go_down())
            }
        })
    }

    /// The events by which a rollout proceeds.
    fn progress(&self) -> Vec<Self> {
        let mut found = Vec::new();
        for at in 0..2 {
            let machine = &self.machines[at];
            found.extend(self.controller(at));
            found.extend(self.agent(at));
            if !machine.is_up {
                found.push(self.with(|next| next.machines[at].boot(false)));
            }
            let hook = match machine.stage {
                Stage::BeforeDrain => Some(0),
                Stage::BeforeReboot => Some(1),
                Stage::BeforeUncordon => Some(2),
                _ => None,
            };
            if let Some(hook) = hook.filter(|hook| !machine.confirmed[*hook]) {
                found.push(self.with(|next| {
                    let machine = &mut next.machines[at];
                    machine.confirmed[hook] = true;
                    machine.has_run.iter_mut().skip(hook).take(1).for_each(|has_run| *has_run = true);
                }));
            }
            if machine.stage == Stage::Draining && machine.has_pods {
                found.push(self.with(|next| next.machines[at].has_pods = false));
            }
        }
        found
    }

    /// The events by which users and machines interfere.
    fn interference(&self) -> Vec<Self> {
        let mut found = Vec::new();
        let mut spend = |count: fn(&mut Budget) -> &mut u8, change: &dyn Fn(&mut Self)| {
            let mut next = self.clone();
            let left = count(&mut next.budget);
            if *left > 0 {
                *left -= 1;
                change(&mut next);
                found.push(next);
            }
        };
        for at in 0..2 {
            if self.machines[at].is_up {
                spend(|budget| &mut budget.crashes, &|next| next.machines[at].go_down());
            } else {
                spend(|budget| &mut budget.rollbacks, &|next| next.machines[at].boot(true));
            }
            spend(|budget| &mut budget.pauses, &|next| {
                next.machines[at].is_paused = !next.machines[at].is_paused;
            });
        }
        spend(|budget| &mut budget.pool_pauses, &|next| next.is_pool_paused = !next.is_pool_paused);
        spend(|budget| &mut budget.retargets, &|next| next.target = if next.target == 2 { 3 } else { 1 });
        spend(|budget| &mut budget.closings, &|next| next.is_closed = !next.is_closed);
        found
    }

    fn check_safety(&self) {
        let in_slots = self.machines.iter().filter(|machine| machine.stage.holds_slot()).count();
        assert!(in_slots <= 1, "more nodes in slots than allowed: {self:?}");
        for machine in &self.machines {
            let is_at_rest = matches!(machine.stage, Stage::Idle | Stage::Paused);
            assert!(
                !is_at_rest || !machine.is_made && !machine.is_unschedulable,
                "a cordon is left: {self:?}"
            );
        }
    }

    /// Lets all participants make progress until nothing is left to do.
    ///
    /// A host that came back with the old image needs another one.
    fn check_liveness(&self) {
        let mut world = self.with(|next| {
            next.target = 4;
            next.is_closed = false;
            next.is_pool_paused = false;
            next.machines.iter_mut().for_each(|machine| machine.is_paused = false);
        });
        for _ in 0..200 {
            match world.progress().into_iter().next() {
                Some(next) => world = next,
                None => break,
            }
        }
        assert!(world.progress().is_empty(), "no end: {self:?}");
        for machine in &world.machines {
            let is_done = machine.stage == Stage::Idle && machine.booted == 4 && !machine.is_unschedulable;
            assert!(is_done && machine.staged.is_none(), "stuck in {world:?} from {self:?}");
        }
    }
}

/// Visits all worlds that a budget of events leads to, and returns their number.
fn explore(budget: Budget) -> usize {
    let first = World::new(budget);
    let (mut seen, mut next) = (HashSet::from([first.clone()]), VecDeque::from([first]));
    while let Some(world) = next.pop_front() {
        world.check_safety();
        if seen.len() % LIVENESS_SAMPLE == 0 || seen.len() < 1_000 {
            world.check_liveness();
        }
        for found in world.progress().into_iter().chain(world.interference()) {
            if seen.len() < MAX_WORLDS && seen.insert(found.clone()) {
                next.push_back(found);
            }
        }
    }
    seen.len()
}

/// The maximum number of worlds of one exploration.
const MAX_WORLDS: usize = 1_000_000;

/// Liveness is verified from one in so many worlds; safety from all.
const LIVENESS_SAMPLE: usize = 50;

const NONE: Budget =
    Budget { crashes: 0, rollbacks: 0, pauses: 0, pool_pauses: 0, retargets: 0, closings: 0 };

#[test]
fn crashes_and_failed_boots_leave_the_rollout_safe() {
    let count = explore(Budget { crashes: 3, rollbacks: 2, ..NONE });
    assert!((20_000..MAX_WORLDS).contains(&count), "{count}");
}

#[test]
fn pauses_leave_the_rollout_safe() {
    let count = explore(Budget { pauses: 2, pool_pauses: 1, crashes: 1, ..NONE });
    assert!((20_000..MAX_WORLDS).contains(&count), "{count}");
}

#[test]
fn other_images_and_windows_leave_the_rollout_safe() {
    let count = explore(Budget { retargets: 2, closings: 1, crashes: 1, ..NONE });
    assert!((20_000..MAX_WORLDS).contains(&count), "{count}");
}
