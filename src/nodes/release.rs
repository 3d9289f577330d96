//! The steps of a node that left its pool, or whose pool is deleted.

use jiff::{SignedDuration, Timestamp};

use super::keys;
use super::{Action, AgentState, CancelReason, Node, Stage, Step};

/// The time that the agent has to remove an unwanted staged image.
const UNSTAGE_TIMEOUT: SignedDuration = SignedDuration::from_mins(5);

/// The time that a host has to come back from an acknowledged reboot.
const REBOOT_TIMEOUT: SignedDuration = SignedDuration::from_hours(1);

/// The next step of a node that left its pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Release {
    /// A step, before all keys are removed.
    Step(Step),
    /// The agent has something to finish; at the latest until the given time.
    Wait(Timestamp),
    /// Uncordons the node if Tagboat cordoned it, and removes all keys of Tagboat.
    RemoveKeys,
}

/// Returns the next step of a node that left its pool.
///
/// A reboot that the agent acknowledged is awaited, but not for ever. If another image than the booted one is staged,
/// the agent removes it first: any reboot would boot it, and most of all that of a node which is not ready. Both times begin
/// now if the node has no time of its own.
#[must_use]
pub fn release(node: &Node, now: Timestamp) -> Release {
    let stage = node.stage().unwrap_or(Stage::Idle);
    let wait = |limit: SignedDuration| match node.since().and_then(|since| since.checked_add(limit).ok()) {
        _ if node.lacks_since(now) => {
            Release::Step(Step { to: stage, actions: vec![Action::SetSince], canceled: None })
        }
        Some(deadline) if deadline > now => Release::Wait(deadline),
        _ => Release::RemoveKeys,
    };
    if stage == Stage::Rebooting && node.agent() == Some(AgentState::Rebooting) {
        return wait(REBOOT_TIMEOUT);
    }
    let has_staged = match node.agent() {
        Some(AgentState::Staging | AgentState::UpdateStaged) => true,
        Some(AgentState::Error) => {
            let staged = node.annotation(keys::STAGED_DIGEST);
            staged.is_some() && staged != node.annotation(keys::BOOTED_DIGEST)
        }
        Some(AgentState::UpToDate | AgentState::Rebooting) | None => false,
    };
    match node.annotation(keys::DESIRED_IMAGE) {
        Some("") if has_staged => wait(UNSTAGE_TIMEOUT),
        Some(image) if !image.is_empty() && has_staged => Release::Step(Step {
            to: Stage::Idle,
            actions: vec![Action::ClearAllHooks, Action::Uncordon, Action::RemoveGuards, Action::KeepBooted],
            canceled: Some(CancelReason::Released),
        }),
        _ => Release::RemoveKeys,
    }
}
