//! Labels for which the login at a forge lacks the permission.

use std::time::Instant;

use super::merges::REFUSAL_AGE;

/// The last refusal of labels for lack of a permission.
///
/// It counts for all pull requests of the repository, as they have one login.
#[derive(Clone, Debug, Default)]
pub(super) struct RefusedLabels(Option<(Instant, String)>);

impl RefusedLabels {
    /// Returns the reason of a refusal that is not old.
    pub(super) fn recent(&self, now: Instant) -> Option<&str> {
        let (at, reason) = self.0.as_ref()?;
        (now.saturating_duration_since(*at) < REFUSAL_AGE).then_some(reason.as_str())
    }

    /// Records a refusal.
    pub(super) fn set(&mut self, reason: String, now: Instant) {
        self.0 = Some((now, reason));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_labels_counts_for_ten_minutes() {
        let (mut refused, now) = (RefusedLabels::default(), Instant::now());
        assert_eq!(refused.recent(now), None);
        refused.set("no permission".to_owned(), now);
        assert_eq!(refused.recent(now + REFUSAL_AGE / 2), Some("no permission"));
        assert_eq!(refused.recent(now + REFUSAL_AGE), None);
    }
}
