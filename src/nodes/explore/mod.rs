//! Explores every order of events of two nodes that share one slot.
//!
//! The participants are the controller, the agents, the hooks, users, and machines that reboot, crash or come back with
//! the old image. Each write depends on the version of the node, so a write that is based on an older node changes
//! nothing, and a participant that is killed before its write has not acted. So every event is one atomic change, and a
//! restart of a controller or an agent, which keep nothing, is no event at all.
//!
//! Users and machines may interfere a few times, in any mixture. Safety is verified in each world. Liveness is verified from
//! each world as well: without more interference, every order of the other events ends, and the nodes have their image.
//!
//! The next states of a machine are computed once for each of its states, so a world is two numbers and the pool.
//!
//! This file has a machine with its events, and `worlds` explores.

mod worlds;

use std::sync::Arc;

use jiff::Timestamp;

use super::testing::apply;
use super::*;

/// The image of a pool without one, and the empty wish of a node.
const NO_IMAGE: u8 = 0;

/// The images that a pool may want.
///
/// All nodes begin with image 1, and the pool wants 2 at first.
const IMAGES: [u8; 4] = [NO_IMAGE, 1, 2, 3];

/// The image that is wanted after one that a host did not boot.
const LAST_IMAGE: u8 = 4;

/// A machine and its node, with the parts that differ between worlds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Machine {
    is_labeled: bool,
    stage: Stage,
    agent: Option<AgentState>,
    desired: Option<u8>,
    booted_digest: Option<u8>,
    staged_digest: Option<u8>,
    /// The image of the attempt, and `true` until the next boot.
    attempt: Option<(u8, bool)>,
    is_unschedulable: bool,
    is_made: bool,
    is_paused: bool,
    /// The confirmations of the three kinds of hooks.
    confirmed: [bool; 3],
    /// The images of the host.
    booted: u8,
    staged: Option<u8>,
    is_up: bool,
    has_pods: bool,
    /// The programs of the host fail.
    fails: bool,
    /// `false` once the node has left the pool.
    is_member: bool,
    /// The first two kinds of hooks that confirmed since the node got its slot.
    has_run: [bool; 2],
    /// The host has booted the approved image, and its last hooks have not begun.
    owes_hooks: bool,
    /// The approved image in place of which the host booted another one.
    failed: Option<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PoolState {
    target: u8,
    is_paused: bool,
    is_closed: bool,
}

const HOOKS: [&str; 3] = ["h/drain", "h/reboot", "h/uncordon"];

fn now() -> Timestamp {
    "2026-11-23T12:00:00Z".parse().unwrap()
}

fn image(number: u8) -> String {
    if number == NO_IMAGE { String::new() } else { format!("r/os@sha256:{number}") }
}

fn digest(number: u8) -> String {
    if number == NO_IMAGE { String::new() } else { format!("sha256:{number}") }
}

fn number(text: &str) -> u8 {
    text.rsplit_once(':').map_or(NO_IMAGE, |(_, number)| number.parse().unwrap())
}

impl PoolState {
    fn pool(self) -> Pool {
        let [before_drain, before_reboot, before_uncordon] = HOOKS.map(|key| vec![key.to_owned()]);
        let closed = Window::new(&[], "20:00", std::time::Duration::from_hours(1), "").unwrap();
        Pool {
            image: Some(image(self.target)).filter(|image| !image.is_empty()),
            is_paused: self.is_paused,
            hooks: Hooks { before_drain, before_reboot, before_uncordon },
            windows: if self.is_closed { vec![closed] } else { Vec::new() },
            ..Pool::default()
        }
    }
}

impl Machine {
    fn new() -> Self {
        Self {
            is_labeled: true,
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
            booted: 1,
            staged: None,
            is_up: true,
            has_pods: true,
            fails: false,
            is_member: true,
            has_run: [false; 2],
            owes_hooks: false,
            failed: None,
        }
    }

    fn node(&self, name: &str) -> Node {
        let mut node = Node {
            name: name.to_owned(),
            resource_version: "1".to_owned(),
            is_ready: self.is_up,
            is_unschedulable: self.is_unschedulable,
            boot_id: "now".to_owned(),
            ..Node::default()
        };
        let labels = [
            (keys::STATE, self.is_labeled.then(|| self.stage.to_string())),
            (keys::AGENT, self.agent.map(|agent| agent.as_str().to_owned())),
            (keys::PAUSE, self.is_paused.then(|| "true".to_owned())),
        ];
        Arc::make_mut(&mut node.labels)
            .extend(labels.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
        let boot = |is_current: bool| if is_current { "now" } else { "before" };
        let attempt =
            self.attempt.map(|(image, is_current)| format!("{} {}", digest(image), boot(is_current)));
        let annotations = [
            (keys::STATE_SINCE, self.is_labeled.then(|| now().to_string())),
            (keys::DESIRED_IMAGE, self.desired.map(image)),
            (keys::BOOTED_DIGEST, self.booted_digest.map(digest)),
            (keys::STAGED_DIGEST, self.staged_digest.map(digest)),
            (keys::ATTEMPTED, attempt),
            (keys::MADE_UNSCHEDULABLE, self.is_made.then(|| "true".to_owned())),
        ];
        let hooks = HOOKS.into_iter().zip(self.confirmed.map(|is_true| is_true.then(|| "true".to_owned())));
        let all = annotations.into_iter().chain(hooks);
        Arc::make_mut(&mut node.annotations)
            .extend(all.filter_map(|(key, value)| Some((key.to_owned(), value?))));
        node
    }

    /// Returns the machine after a patch of its node.
    fn patched(&self, patch: &serde_json::Value) -> Self {
        let mut node = self.node("");
        assert!(apply(&mut node, patch));
        let digest = |key: &str| node.annotation(key).map(number);
        let attempt = node.attempt();
        let stage = node.stage().unwrap();
        let is_unschedulable = node.is_unschedulable;
        Self {
            is_labeled: node.is_labeled(),
            stage,
            agent: node.agent(),
            desired: digest(keys::DESIRED_IMAGE),
            booted_digest: digest(keys::BOOTED_DIGEST),
            staged_digest: digest(keys::STAGED_DIGEST),
            attempt: attempt.map(|attempt| (number(&attempt.digest), attempt.boot_id == "now")),
            is_unschedulable,
            is_made: node.is_made_unschedulable(),
            confirmed: HOOKS.map(|hook| node.annotations.contains_key(hook)),
            // Pods come back to a node that is not cordoned.
            has_pods: self.has_pods || !is_unschedulable,
            has_run: if stage.holds_slot() { self.has_run } else { [false; 2] },
            ..self.clone()
        }
    }

    fn with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut next = self.clone();
        change(&mut next);
        next
    }

    /// The host, for which a staged image is a reason for a reboot.
    fn host(&self) -> Host {
        let host_image = |number: u8| HostImage { reference: image(number), digest: digest(number) };
        let other = self.staged.filter(|staged| *staged != self.booted);
        Host {
            booted: Some(host_image(self.booted)),
            staged: self.staged.map(host_image),
            own_update: other.map_or(OwnUpdate::None, |_| OwnUpdate::NeedsReboot(String::new())),
            boot_id: "now".to_owned(),
            ..Host::default()
        }
    }

    /// Boots the staged image, unless the host rolls back.
    fn boot(&mut self, is_rolled_back: bool) {
        let staged = self.staged.take().filter(|_| !is_rolled_back);
        self.booted = staged.unwrap_or(self.booted);
        self.is_up = true;
        self.failed = self.failed.filter(|failed| *failed != self.booted);
        if let Some((image, true)) = self.attempt {
            self.attempt = Some((image, false));
            if image == self.booted {
                self.owes_hooks = self.is_member && self.stage == Stage::Rebooting;
            } else if image != NO_IMAGE {
                self.failed = Some(image);
            }
        }
    }

    /// The step of the controller for the node.
    fn controller(&self, pool: &Pool, has_grant: bool) -> Option<Self> {
        let node = self.node("");
        if !self.is_member {
            return self.released(&node, pool);
        }
        let situation = Situation { has_grant, is_drained: !self.has_pods, ..Situation::default() };
        let step = step(&node, pool, situation)?;
        // An approval needs a drain before it.
        assert!(step.to != Stage::Rebooting || !self.has_pods, "{self:?}");
        let mut next = self.patched(&patch(&node, pool, &step, now()));
        if next.stage != self.stage {
            let is_at_rest = !next.stage.holds_slot();
            let is_canceled = self.owes_hooks && is_at_rest && self.agent != Some(AgentState::Error);
            assert!(!is_canceled, "the hooks after the reboot do not run: {self:?}");
            next.owes_hooks = false;
        }
        Some(next)
    }

    fn released(&self, node: &Node, pool: &Pool) -> Option<Self> {
        match release(node, now()) {
            Release::Step(step) => Some(self.patched(&patch(node, pool, &step, now()))),
            Release::Wait(_) => None,
            Release::RemoveKeys => Some(self.patched(&removal(node, pool))).filter(|next| next != self),
        }
    }

    /// The step of the agent of the node.
    fn agent(&self) -> Option<Self> {
        if !self.is_up {
            return None;
        }
        let (node, host) = (self.node(""), self.host());
        let failure = self.fails.then_some("failed");
        // Messages decide nothing, and worlds do not have them.
        let report = AgentReport { message: String::new(), ..agent_report(&node, &host, failure) };
        Some(match agent_step(&node, &host, &report)? {
            AgentStep::Publish => self.patched(&report_patch(&node, &report)),
            AgentStep::Acknowledge(attempt) => self.patched(&acknowledgment_patch(&node, &attempt)),
            AgentStep::Stage(reference) => self.with(|next| {
                let image = number(&reference);
                next.staged = Some(image).filter(|image| *image != next.booted);
            }),
            AgentStep::Reboot => {
                assert!(self.stage == Stage::Rebooting && !self.has_pods, "{self:?}");
                assert!(self.is_unschedulable && self.has_run == [true; 2], "{self:?}");
                let is_approved = self.staged.is_some() && self.staged == self.desired;
                assert!(is_approved, "another image is booted: {self:?}");
                self.with(|next| next.is_up = false)
            }
        })
    }

    /// The events by which a rollout proceeds, beside those of the controller.
    fn progress(&self) -> Vec<Self> {
        let mut found = Vec::from_iter(self.agent());
        if !self.is_up {
            found.push(self.with(|next| next.boot(false)));
        }
        let hook = match self.stage {
            Stage::BeforeDrain => Some(0),
            Stage::BeforeReboot => Some(1),
            Stage::BeforeUncordon => Some(2),
            _ => None,
        };
        if let Some(hook) = hook.filter(|hook| !self.confirmed[*hook]) {
            found.push(self.with(|next| {
                next.confirmed[hook] = true;
                next.has_run.iter_mut().skip(hook).take(1).for_each(|has_run| *has_run = true);
            }));
        }
        if self.stage == Stage::Draining && self.has_pods {
            found.push(self.with(|next| next.has_pods = false));
        }
        found
    }

    /// The events by which users and the machine interfere.
    fn interference(&self) -> Vec<Self> {
        let mut found = vec![
            self.with(|next| if next.is_up { next.is_up = false } else { next.boot(true) }),
            self.with(|next| next.is_paused = !next.is_paused),
            self.with(|next| next.fails = !next.fails),
        ];
        if self.is_member {
            found.push(self.with(|next| (next.is_member, next.owes_hooks) = (false, false)));
        }
        found
    }

    fn check_safety(&self) {
        assert!(
            self.stage.holds_slot() || !self.is_made && !self.is_unschedulable,
            "a cordon is left: {self:?}"
        );
    }

    /// Returns `true` if the agent reports a rollback, and there was one.
    fn has_failed(&self) -> bool {
        self.is_member
            && self.agent == Some(AgentState::Error)
            && self.failed.is_some()
            && self.failed == self.desired
    }

    /// Returns `true` if nothing is left to do.
    fn is_at_rest(&self, target: u8) -> bool {
        let is_clean = !self.is_unschedulable && self.staged.is_none() && self.is_up;
        let wanted = Some(target).filter(|target| *target != NO_IMAGE);
        if self.is_member {
            let is_booted = target == NO_IMAGE || self.booted == target;
            is_clean && is_booted && self.stage == Stage::Idle && self.desired == wanted
        } else {
            is_clean && !self.is_labeled && self.desired.is_none() && self.attempt.is_none()
        }
    }
}
