//! The result of a scan as the status has it.
//!
//! Source: `docs/flux-behaviour.md`, Images and scans of a repository.

use jiff::Timestamp;
use tagboat_api::repository::ScanResult;

use crate::reconcile::conditions::whole_seconds;
use crate::reference::TagList;

/// The maximum number of tags in the status.
const SHOWN: usize = 10;

/// Creates the result of a scan that found and stored these tags.
///
/// `revision` is the checksum under which they are stored.
pub fn result(tags: &TagList, revision: String, now: Timestamp) -> ScanResult {
    ScanResult {
        revision,
        tag_count: i64::try_from(tags.len()).unwrap_or(i64::MAX),
        scan_time: Some(whole_seconds(now)),
        latest_tags: tags.iter().take(SHOWN).map(str::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in Flux, but that a tag which a registry lists twice counts once.
    #[test]
    fn the_first_ten_of_the_falling_order_are_shown() {
        for (tags, expected) in [
            ("", ""),
            ("1.0.0 0.0.8 1.2.5 3.0.1 1.0.1", "3.0.1 1.2.5 1.0.1 1.0.0 0.0.8"),
            (
                "1.0.0 0.0.8 1.2.5 3.0.1 1.0.1 5.1.1 4.1.0 4.5.0 4.0.3 2.2.2 0.5.1 0.1.0",
                "5.1.1 4.5.0 4.1.0 4.0.3 3.0.1 2.2.2 1.2.5 1.0.1 1.0.0 0.5.1",
            ),
            ("-62 -88 73 72 15", "73 72 15 -88 -62"),
            ("a b c d e f g h i j k", "k j i h g f e d c b"),
        ] {
            let list: TagList = tags.split_whitespace().collect();
            let now = "2026-01-01T00:00:00.9Z".parse().unwrap();
            let result = result(&list, "7".to_owned(), now);
            assert_eq!(result.latest_tags, expected.split_whitespace().collect::<Vec<_>>());
            assert_eq!(result.tag_count, i64::try_from(list.len()).unwrap());
            assert_eq!(result.scan_time, Some(whole_seconds(now)));
        }
    }
}
