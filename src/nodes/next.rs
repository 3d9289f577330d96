//! The transition table: the next step of a node.
//!
//! | from | condition | to |
//! |---|---|---|
//! | idle | the update is staged, a slot is granted | before-drain |
//! | idle | the node is paused, or its pool while an update is staged | paused |
//! | paused | neither | idle |
//! | before-drain | done | idle |
//! | before-drain | cancel | idle, paused |
//! | before-drain | the hooks confirmed | draining |
//! | draining, before-reboot | cancel | idle, paused |
//! | draining, before-reboot | done | before-uncordon |
//! | draining | no pod is left | before-reboot |
//! | before-reboot | the hooks confirmed | rebooting |
//! | rebooting | done, in another boot if the agent began one | before-uncordon |
//! | rebooting | cancel, unless the agent began the reboot or has ended it | idle, paused |
//! | before-uncordon | the hooks confirmed | idle |
//!
//! The first row that applies counts. A node that is not ready, or whose agent reports an error, is not promoted; a
//! cancellation is still possible.

use super::keys;
use super::pool::HookPoint;
use super::{AgentState, Node, Pool, Stage};

/// The facts about a node beside the node itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Situation {
    /// A slot is granted to the node.
    pub has_grant: bool,
    /// No pod is left that must leave the node.
    pub is_drained: bool,
    /// The time since which the node is in its stage is unknown, or to come.
    pub lacks_since: bool,
}

/// A step of a node: one patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The stage after the step, which may be the one before.
    pub to: Stage,
    /// The changes beside that of the stage.
    pub actions: Vec<Action>,
    /// The reason of a cancellation.
    pub canceled: Option<CancelReason>,
}

impl Step {
    /// Returns `true` if the step leads a node closer to its reboot.
    #[must_use]
    pub fn is_promotion(&self, node: &Node) -> bool {
        use Stage::{BeforeDrain, BeforeReboot, Draining, Rebooting};
        let leads_to_reboot = matches!(self.to, BeforeDrain | Draining | BeforeReboot | Rebooting);
        leads_to_reboot && node.stage() != Ok(self.to)
    }

    /// Returns `true` if the step records a deployment.
    #[must_use]
    pub fn is_deployment(&self) -> bool {
        self.actions.contains(&Action::RecordDeployment)
    }
}

/// A change of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Removes the keys of the hooks of a stage.
    ClearHooks(HookPoint),
    /// Removes the keys of all hooks.
    ClearAllHooks,
    /// Cordons the node, unless it is cordoned.
    Cordon,
    /// Uncordons the node, if Tagboat cordoned it.
    Uncordon,
    /// Sets the annotations that keep autoscalers away, where they are not set.
    SetGuards,
    /// Removes those of these annotations that Tagboat set.
    RemoveGuards,
    /// Sets the wanted image to that of the pool.
    SetImage,
    /// Wants the booted image, so that the agent stages no other.
    KeepBooted,
    /// Records that the booted image was deployed.
    RecordDeployment,
    /// Records that the stage begins now, so that its time limit counts.
    SetSince,
    /// Records the pool of a node that was in another one.
    JoinPool,
}

/// The reason of a cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelReason {
    /// The node or its pool is paused.
    Paused,
    /// The pool wants another image.
    Retargeted,
    /// The node is in no pool or another one, or the pool is deleted.
    Released,
}

/// Returns the next step of a node of a pool, if one is due.
#[must_use]
pub fn step(node: &Node, pool: &Pool, situation: Situation) -> Option<Step> {
    let Ok(stage) = node.stage() else { return Some(returned(node, pool, Stage::Idle, None)) };
    let set_since = || {
        let is_unlimited = situation.lacks_since && (stage.holds_slot() || node.awaits_agent());
        is_unlimited.then(|| to(stage, &[Action::SetSince]))
    };
    transition(node, pool, stage, situation).or_else(set_since)
}

/// Returns the step of a node whose pool has no valid settings or image.
///
/// If it came from another pool, its rollout is canceled, and the booted image is kept; otherwise the node stays as it is.
#[must_use]
pub fn stray_step(node: &Node, pool: &str) -> Option<Step> {
    let unknown = Pool { name: pool.to_owned(), ..Pool::default() };
    node.left_pool(&unknown)?;
    step(node, &unknown, Situation::default()).filter(|step| step.canceled.is_some())
}

fn transition(node: &Node, pool: &Pool, stage: Stage, situation: Situation) -> Option<Step> {
    let is_held = node.is_held();
    let is_done = !is_held && node.is_done();
    let cancel = || {
        let moved = || node.left_pool(pool).map(|_| CancelReason::Released);
        cancel_reason(node, pool).or_else(moved).map(|reason| canceled(node, pool, reason))
    };
    let confirmed = |point| !is_held && node.has_confirmed(&pool.hooks, point);
    let done =
        || is_done.then(|| to(Stage::BeforeUncordon, &[Action::ClearHooks(HookPoint::BeforeUncordon)]));
    match stage {
        Stage::Idle | Stage::Paused => at_rest(node, pool, stage, situation),
        Stage::BeforeDrain if is_done => Some(returned(node, pool, Stage::Idle, None)),
        Stage::BeforeDrain => cancel().or_else(|| {
            confirmed(HookPoint::BeforeDrain)
                .then(|| to(Stage::Draining, &[Action::Cordon, Action::SetGuards]))
        }),
        Stage::Draining => cancel().or_else(done).or_else(|| {
            (!is_held && situation.is_drained)
                .then(|| to(Stage::BeforeReboot, &[Action::ClearHooks(HookPoint::BeforeReboot)]))
        }),
        Stage::BeforeReboot => cancel()
            .or_else(done)
            .or_else(|| confirmed(HookPoint::BeforeReboot).then(|| to(Stage::Rebooting, &[]))),
        Stage::Rebooting => {
            // A host that is back goes on: that is the shortest way back. It may not be ready yet.
            let is_begun = node.agent() == Some(AgentState::Rebooting) || node.is_done();
            let canceled = if is_begun { None } else { cancel() };
            canceled.or_else(|| done().filter(|_| !node.awaits_reboot()))
        }
        Stage::BeforeUncordon => confirmed(HookPoint::BeforeUncordon).then(|| {
            let mut step = returned(node, pool, Stage::Idle, None);
            let is_deployed = node.is_deployed() && node.left_pool(pool).is_none();
            step.actions.extend(is_deployed.then_some(Action::RecordDeployment));
            step
        }),
    }
}

/// Returns `true` if an idle node waits for nothing but a slot.
#[must_use]
pub fn is_candidate(node: &Node, pool: &Pool) -> bool {
    node.stage() == Ok(Stage::Idle)
        && node.is_labeled()
        && !node.is_held()
        && node.is_staged()
        && cancel_reason(node, pool).is_none()
        && leftovers(node, pool).is_empty()
}

/// Returns the reason to cancel the rollout of a node of the pool.
fn cancel_reason(node: &Node, pool: &Pool) -> Option<CancelReason> {
    if node.is_paused() || pool.is_paused {
        Some(CancelReason::Paused)
    } else {
        is_retargeted(node, pool).then_some(CancelReason::Retargeted)
    }
}

fn is_retargeted(node: &Node, pool: &Pool) -> bool {
    image_change(node, pool).is_some()
}

/// Returns the action that leads a node to the image of its pool.
///
/// From an image to none, the node first keeps its booted image: otherwise one that is staged would be a reason for a
/// reboot of the host itself, and be rolled out. Without an agent, none is staged.
fn image_change(node: &Node, pool: &Pool) -> Option<Action> {
    match (node.annotation(keys::DESIRED_IMAGE), pool.image.as_deref()) {
        (wanted, image) if wanted == image => None,
        (Some(""), None) => {
            matches!(node.agent(), None | Some(AgentState::UpToDate)).then_some(Action::SetImage)
        }
        (Some(_), None) => Some(Action::KeepBooted),
        (_, Some(_)) | (None, None) => Some(Action::SetImage),
    }
}

/// Returns the step of a node without a slot.
fn at_rest(node: &Node, pool: &Pool, stage: Stage, situation: Situation) -> Option<Step> {
    let wants_pause = node.is_paused() || (pool.is_paused && node.is_staged());
    let next = if wants_pause { Stage::Paused } else { Stage::Idle };
    if next == Stage::Idle && situation.has_grant && is_candidate(node, pool) {
        return Some(to(Stage::BeforeDrain, &[Action::ClearAllHooks, Action::SetGuards]));
    }
    let actions = leftovers(node, pool);
    (next != stage || !node.is_labeled() || !actions.is_empty()).then(|| to(next, &actions))
}

/// Returns the actions that a node without a slot needs.
///
/// A user may have edited what an earlier step did.
fn leftovers(node: &Node, pool: &Pool) -> Vec<Action> {
    let made = node.is_made_unschedulable().then_some(Action::Uncordon);
    let guarded = node.annotation(keys::MADE_ANNOTATIONS).is_some().then_some(Action::RemoveGuards);
    let has_moved = node.is_of_another_pool(&pool.name);
    let moved = [Action::ClearAllHooks, Action::JoinPool].map(|action| has_moved.then_some(action));
    [made, guarded].into_iter().chain(moved).chain([image_change(node, pool)]).flatten().collect()
}

fn to(stage: Stage, actions: &[Action]) -> Step {
    Step { to: stage, actions: actions.to_vec(), canceled: None }
}

/// Returns the step that cancels the rollout of a node.
fn canceled(node: &Node, pool: &Pool, reason: CancelReason) -> Step {
    let stage = if reason == CancelReason::Paused { Stage::Paused } else { Stage::Idle };
    returned(node, pool, stage, Some(reason))
}

/// Returns the step that gives the slot back.
fn returned(node: &Node, pool: &Pool, stage: Stage, canceled: Option<CancelReason>) -> Step {
    let mut actions = vec![Action::ClearAllHooks, Action::Uncordon, Action::RemoveGuards];
    actions.extend(image_change(node, pool));
    Step { to: stage, actions, canceled }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::testing::node_of;
    use super::*;

    fn of_pool(stage: Stage, agent: AgentState, pool: &str) -> Node {
        let mut node = node_of(stage, agent);
        Arc::make_mut(&mut node.annotations).insert(keys::POOL.to_owned(), pool.to_owned());
        node
    }

    #[test]
    fn a_node_that_moves_to_a_pool_without_valid_settings_is_canceled() {
        let staged = AgentState::UpdateStaged;
        for stage in [Stage::BeforeDrain, Stage::Draining, Stage::BeforeReboot, Stage::Rebooting] {
            let step = stray_step(&of_pool(stage, staged, "a"), "b").unwrap();
            let kept = [Action::ClearAllHooks, Action::Uncordon, Action::RemoveGuards, Action::KeepBooted];
            assert_eq!((step.to, &step.actions[..]), (Stage::Idle, &kept[..]), "{stage}");
            assert_eq!(stray_step(&of_pool(stage, staged, "b"), "b"), None, "{stage}");
            assert_eq!(stray_step(&node_of(stage, staged), "b"), None, "{stage}");
        }
        for (stage, agent) in [
            (Stage::Idle, staged),
            (Stage::Rebooting, AgentState::Rebooting),
            (Stage::BeforeUncordon, AgentState::UpToDate),
        ] {
            assert_eq!(stray_step(&of_pool(stage, agent, "a"), "b"), None, "{stage}");
        }
    }

    /// They are taken only while the pool has the spec that was read.
    #[test]
    fn the_steps_up_to_the_approval_of_a_reboot_are_promotions() {
        let step = |to| Step { to, actions: Vec::new(), canceled: None };
        for (from, to, expected) in [
            (Stage::Idle, Stage::BeforeDrain, true),
            (Stage::BeforeDrain, Stage::Draining, true),
            (Stage::Draining, Stage::BeforeReboot, true),
            (Stage::BeforeReboot, Stage::Rebooting, true),
            (Stage::BeforeReboot, Stage::BeforeReboot, false),
            (Stage::Rebooting, Stage::BeforeUncordon, false),
            (Stage::BeforeUncordon, Stage::Idle, false),
            (Stage::Draining, Stage::Paused, false),
        ] {
            let node = node_of(from, AgentState::UpdateStaged);
            assert_eq!(step(to).is_promotion(&node), expected, "{from} {to}");
        }
    }
}
