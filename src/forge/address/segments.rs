//! The parts of a path, checked so that they lead to no other resource.

use crate::net::percent;

/// The maximum length of a part of a path, in bytes.
const MAX_SEGMENT: usize = 255;

/// The maximum number of parts of a path.
const MAX_SEGMENTS: usize = 32;

/// The defect of a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathDefect {
    /// A part is empty.
    #[error("its path has an empty part, or a slash at its end")]
    Empty,
    /// A part is `.` or `..`.
    #[error("its path has the part `.` or `..`")]
    Dots,
    /// A character has a meaning in paths, or none at all.
    #[error(
        "its path has a backslash, a control character, bytes that are no text, an unfinished escape, or an escape of one of / ? # %"
    )]
    Escape,
    /// It has a query or a fragment.
    #[error("its path has a query or a fragment")]
    Query,
    /// A part is too long, or there are too many.
    #[error("its path is too long")]
    Long,
    /// It has too few or too many parts, or not those of the forge.
    #[error("its path has too few or too many parts")]
    Form,
}

/// Splits a path without its first slash into decoded parts.
pub(super) fn segments(path: &str) -> Result<Vec<String>, PathDefect> {
    if path.contains(['?', '#']) {
        return Err(PathDefect::Query);
    }
    let segments = path.split('/').map(segment).collect::<Result<Vec<String>, PathDefect>>()?;
    if segments.len() > MAX_SEGMENTS { Err(PathDefect::Long) } else { Ok(segments) }
}

fn segment(text: &str) -> Result<String, PathDefect> {
    let bytes = percent::decode(text).ok_or(PathDefect::Escape)?;
    let decoded = String::from_utf8(bytes).map_err(|_| PathDefect::Escape)?;
    if decoded.trim().is_empty() {
        return Err(PathDefect::Empty);
    }
    if matches!(decoded.as_str(), "." | "..") {
        return Err(PathDefect::Dots);
    }
    if decoded.chars().any(|c| c.is_control() || matches!(c, '/' | '\\' | '?' | '#' | '%')) {
        return Err(PathDefect::Escape);
    }
    if decoded.len() > MAX_SEGMENT { Err(PathDefect::Long) } else { Ok(decoded) }
}
