//! The temporary failures of one kind's watch. The time comes in as an argument.
//!
//! While a cluster does not answer or refuses the login, its probe logs that, once for all kinds. So a failure of a
//! kind in another cluster is logged only if the cluster answers probes meanwhile.

/// The failures of a kind since its last event.
#[derive(Debug, Default)]
pub(super) struct Failures {
    /// The numbers of answers to probes at the first failure and at the last two.
    answers: Option<[u64; 3]>,
    /// The last message in the log.
    logged: Option<String>,
}

impl Failures {
    /// Adds a failure, and returns true if it must be logged.
    ///
    /// `answers` is the number of the cluster's answers to probes so far. Without it, each new message is logged.
    ///
    /// The attempt that failed began after the failure before. So if the cluster has answered between the two failures
    /// before this one, it did before this attempt. A single answer may have been under way when an outage began.
    pub(super) fn add(&mut self, message: &str, answers: Option<u64>) -> bool {
        let is_of_kind = answers.is_none_or(|answers| {
            let [first, before, last] = self.answers.unwrap_or([answers; 3]);
            self.answers = Some([first, last, answers]);
            last > before && last >= first + 2
        });
        if !is_of_kind || self.logged.as_deref() == Some(message) {
            return false;
        }
        self.logged = Some(message.to_owned());
        true
    }

    /// Returns true if a failure was logged.
    pub(super) fn are_logged(&self) -> bool {
        self.logged.is_some()
    }

    /// Ends the failures, and returns true if the end must be logged.
    pub(super) fn end(&mut self) -> bool {
        std::mem::take(self).are_logged()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds failures with these numbers of answers, and returns which of them are logged.
    fn logged<const N: usize>(failures: &mut Failures, answers: [Option<u64>; N]) -> [bool; N] {
        answers.map(|answers| failures.add("reset", answers))
    }

    #[test]
    fn a_failure_of_the_own_cluster_is_logged_at_once_and_once() {
        let mut failures = Failures::default();
        assert_eq!(logged(&mut failures, [None; 3]), [true, false, false]);
        assert!(failures.add("refused", None), "another message is news");
        assert!(failures.end());
        assert_eq!(logged(&mut failures, [None; 2]), [true, false]);
    }

    #[test]
    fn a_failure_in_another_cluster_is_logged_once_if_the_cluster_answers_meanwhile() {
        for (answers, expected) in [
            // The cluster does not answer.
            ([7, 7, 7, 7, 7], [false; 5]),
            // The answer was under way when the outage began.
            ([7, 7, 8, 8, 8], [false; 5]),
            // The second answer arrives while the third attempt waits, which may have begun before it.
            ([7, 8, 9, 9, 9], [false, false, false, true, false]),
            ([7, 9, 9, 9, 9], [false, false, true, false, false]),
            ([7, 8, 9, 10, 11], [false, false, false, true, false]),
        ] {
            let mut failures = Failures::default();
            assert_eq!(logged(&mut failures, answers.map(Some)), expected, "{answers:?}");
            assert_eq!(failures.end(), expected.contains(&true), "{answers:?}");
            assert!(!failures.end());
        }
    }

    /// The kind failed for a reason of its own before.
    #[test]
    fn an_outage_of_the_cluster_is_no_news_of_a_kind_that_fails_already() {
        let mut failures = Failures::default();
        assert_eq!(logged(&mut failures, [Some(1), Some(3), Some(3)]), [false, false, true]);
        for _ in 0..5 {
            assert!(!failures.add("connection refused", Some(3)));
        }
        assert!(failures.end());
    }
}
