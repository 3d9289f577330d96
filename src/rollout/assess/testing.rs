//! Assessments as text, for tables of tests.

use super::{Assessment, Counts, Progress};

/// Returns an assessment as one line.
pub(in crate::rollout) fn summary(assessment: &Assessment) -> String {
    let Assessment { progress, counts, finished, message } = assessment;
    let Counts { desired, updated, ready, .. } = counts;
    let counts = format!("{desired}/{updated}/{ready}");
    match progress {
        Progress::Complete => {
            assert_eq!(*message, None);
            format!("complete {counts} {}", finished.map_or_else(|| "-".to_owned(), |time| time.to_string()))
        }
        Progress::InProgress => {
            assert_eq!(*finished, None);
            format!("in progress {counts} {}", message.as_deref().unwrap_or("-"))
        }
        Progress::Failed(failure) => format!("failed {counts} {}: {}", failure.code, failure.message),
    }
}

/// Returns the line of a complete rollout.
pub(in crate::rollout) fn complete(desired: i64, updated: i64, ready: i64, finished: Option<&str>) -> String {
    format!("complete {desired}/{updated}/{ready} {}", finished.unwrap_or("-"))
}

/// Returns the line of a rollout in progress.
pub(in crate::rollout) fn in_progress(desired: i64, updated: i64, ready: i64, message: &str) -> String {
    format!("in progress {desired}/{updated}/{ready} {message}")
}

/// Returns the line of a failed rollout.
pub(in crate::rollout) fn failed(
    desired: i64,
    updated: i64,
    ready: i64,
    code: &str,
    message: &str,
) -> String {
    format!("failed {desired}/{updated}/{ready} {code}: {message}")
}
