//! Checks the update of one file; each failure panics.

use tagboat::update::MarkerOutcome;
use tagboat::update::file::{FileOutcome, update_file};
use tagboat::update::marker::{self, MarkerError};
use tagboat::yaml::{self, YamlError, YamlErrorKind};

use super::block::Block;
use super::mask;
use super::parsed::{self, Parsed};
use super::scalars::{self, Difference};
use super::setup::Setup;

/// An environment variable that turns rejected edits into failures.
///
/// Tagboat rejects its own edits if the new text would not read as intended. That is safe, but the update does not
/// happen.
const REFUSALS: &str = "TAGBOAT_FUZZ_REFUSALS";

/// Updates a file and checks the outcome.
pub(crate) fn check_update(content: &[u8], setup: &Setup) {
    let outcome = match update_file(content, &setup.setters, None, &setup.limits) {
        Ok(outcome) => outcome,
        Err(error) => return check_refusal(&error),
    };
    let source = std::str::from_utf8(content).expect("only UTF-8 is read");
    let old = Parsed::of(source);
    check_account(&outcome, &old);
    let Some(text) = &outcome.text else {
        assert!(outcome.changes.is_empty(), "changes without a new text");
        let has_changed = outcome.markers.iter().any(|marker| marker.outcome == MarkerOutcome::Changed);
        assert!(!has_changed, "a changed marker without a new text");
        return;
    };
    assert_eq!(*text, yaml::apply(source, &outcome.splices), "the splices make another text");
    let new = Parsed::of(text);
    let differences = scalars::differences(&old, &new);
    check_changes(&outcome, &differences, &old, setup);
    mask::assert_same_outside(&old, &new, &differences);
    let again = update_file(text.as_bytes(), &setup.setters, None, &setup.limits);
    let again = again.unwrap_or_else(|error| panic!("the second update fails: {error:?}\n{text:?}"));
    check_second(&outcome, &again, &old, &new);
}

fn check_refusal(error: &YamlError) {
    let is_refusal = error.cause == YamlErrorKind::EditNotFaithful;
    assert!(!is_refusal || std::env::var_os(REFUSALS).is_none(), "{error:?}");
}

/// Checks that every marker comment is reported once, with its line.
fn check_account(outcome: &FileOutcome, old: &Parsed<'_>) {
    let markers = old.comments.iter().filter(|comment| marker::parse(comment.text).is_ok());
    let lines: Vec<usize> = markers.map(|comment| comment.line).collect();
    let accounted: Vec<usize> = outcome.markers.iter().map(|marker| marker.line).collect();
    assert_eq!(lines, accounted, "not every marker is accounted for");
}

/// Checks that the reported changes are the differences between the texts.
///
/// Each new value must be the one that its marker asks for.
fn check_changes(outcome: &FileOutcome, differences: &[Difference<'_, '_>], old: &Parsed<'_>, setup: &Setup) {
    let changes: Vec<_> = outcome.changes.values().flatten().collect();
    for change in &changes {
        let wanted = setup.wanted(&change.setter);
        assert_eq!(wanted.as_deref(), Some(change.new_value.as_str()), "not what {} wants", change.setter);
    }
    let mut reported: Vec<_> = changes
        .iter()
        .map(|change| (change.line, change.old_value.as_str(), change.new_value.as_str()))
        .collect();
    let mut found: Vec<_> = differences
        .iter()
        .map(|difference| (line_of(difference, old), difference.old_value, difference.new_value))
        .collect();
    reported.sort_unstable();
    found.sort_unstable();
    assert_eq!(reported, found, "the changes reported are not the changes made");
    let changed = outcome.markers.iter().filter(|marker| marker.outcome == MarkerOutcome::Changed);
    assert_eq!(changed.count(), changes.len(), "not one change for each changed marker");
}

/// Returns the line of a scalar in the old text.
/// For a block, it is the line of the header.
fn line_of(difference: &Difference<'_, '_>, old: &Parsed<'_>) -> usize {
    if parsed::is_block(difference.old_style) {
        Block::of(old, difference.old).line
    } else {
        difference.old.1.start.line()
    }
}

/// Checks that a second update changes nothing and reports the same outcomes.
fn check_second(first: &FileOutcome, second: &FileOutcome, old: &Parsed<'_>, new: &Parsed<'_>) {
    let text = new.source;
    assert_eq!(second.text, None, "a second update changes something in {text:?}");
    let old_comments: Vec<&str> = old.comments.iter().map(|comment| comment.text).collect();
    let new_comments: Vec<&str> = new.comments.iter().map(|comment| comment.text).collect();
    assert_eq!(old_comments, new_comments, "the comments changed in {text:?}");
    assert_eq!(first.markers.len(), second.markers.len(), "the number of markers changed in {text:?}");
    for (before, after) in first.markers.iter().zip(&second.markers) {
        assert_eq!(before.marker, after.marker, "a marker changed in {text:?}");
        let expected = match before.outcome {
            MarkerOutcome::Changed => MarkerOutcome::Current,
            outcome => outcome,
        };
        assert_eq!(after.outcome, expected, "a marker's outcome changed in {text:?}");
        let comments = [old.comment_on(before.line), new.comment_on(after.line)];
        let [was, is] = comments.map(|comment| comment.map(|comment| comment.text));
        assert_eq!(was, is, "a marker's line lost it in {text:?}");
    }
    assert_eq!(near_misses(first), near_misses(second), "the near misses changed in {text:?}");
}

fn near_misses(outcome: &FileOutcome) -> Vec<MarkerError> {
    outcome.near_misses.iter().map(|(_, cause)| *cause).collect()
}
