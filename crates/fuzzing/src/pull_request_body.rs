//! The body of a pull request, with its last line.

use tagboat::reconcile::automation::delivery::Memory;

/// Reads any text as the body of a pull request.
///
/// A last line is written as it was read, and no text of people is lost.
pub fn pull_request_body(input: &[u8]) {
    let body = String::from_utf8_lossy(input);
    let (text, memory) = Memory::split(&body);
    assert_eq!(memory, Memory::of_body(&body));
    let Some(memory) = memory else {
        assert_eq!(text, body);
        return;
    };
    assert!(!memory.owners.is_empty());
    let line = memory.to_string();
    assert!(!line.contains('\n') && line.is_ascii(), "{line:?}");
    assert_eq!(Memory::of_body(&line).as_ref(), Some(&memory), "{line:?}");
    // All lines but one are there, in their order.
    let (kept, given) = (lines(&text), lines(&body));
    let mut rest = given.iter();
    assert!(kept.iter().all(|line| rest.any(|other| other == line)), "{text:?} of {body:?}");
    let count = |lines: &[&str]| lines.iter().filter(|line| !line.trim().is_empty()).count();
    assert_eq!(count(&kept) + 1, count(&given), "{text:?} of {body:?}");
    let (again, found) = Memory::split(&format!("{text}\n\n{line}"));
    assert_eq!((lines(&again), found), (kept, Some(memory)));
}

/// Returns the lines of a text without white space at their ends.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim_end).collect()
}
