//! The refusals of the watch of one kind, as a value without a clock.
//!
//! A refusal is confirmed by repeated requests, because an API server that starts does not know all roles and kinds
//! yet. After that, a kind is tried again every five minutes.

use std::time::Duration;

/// The pauses after the first refusals, which need not last.
const CONFIRMATIONS: [Duration; 3] =
    [Duration::from_secs(5), Duration::from_secs(15), Duration::from_secs(60)];

/// The time between two attempts to watch a kind that is skipped.
const PROBE_INTERVAL: Duration = Duration::from_secs(300);

/// The refusals of a kind since its last list.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    count: usize,
}

/// The consequence of a refusal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// True if the refusal lasts, so that the kind is skipped.
    pub(crate) is_confirmed: bool,
    /// The time until the next attempt.
    pub(crate) pause: Duration,
}

impl Refusals {
    /// Adds a refusal.
    pub(crate) fn add(&mut self) -> Refusal {
        let pause = CONFIRMATIONS.get(self.count).copied();
        self.count = self.count.saturating_add(1);
        Refusal { is_confirmed: pause.is_none(), pause: pause.unwrap_or(PROBE_INTERVAL) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_confirmed_by_the_fourth_attempt() {
        let mut refusals = Refusals::default();
        let found: Vec<(bool, u64)> =
            (0..5).map(|_| refusals.add()).map(|next| (next.is_confirmed, next.pause.as_secs())).collect();
        assert_eq!(found, [(false, 5), (false, 15), (false, 60), (true, 300), (true, 300)]);
    }
}
