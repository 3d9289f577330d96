//! The reasons for which our result differs from that of a judge.
//!
//! A reason is about the state, not about the answers: if it holds, the answers differ.

mod any_kind;
mod deployment;
mod jobs;
mod other_kinds;
mod reason;
mod replicated;
mod rollout;

pub(super) use reason::DifferenceReason;

/// Returns all reasons; the first one that applies counts.
pub(super) fn all() -> impl Iterator<Item = &'static DifferenceReason> {
    [
        any_kind::REASONS,
        deployment::REASONS,
        replicated::REASONS,
        jobs::REASONS,
        rollout::REASONS,
        other_kinds::REASONS,
    ]
    .into_iter()
    .flatten()
}
