//! JSON that is safe on a terminal.

use serde::Serialize;

use crate::printable::printable_json;

/// The content type of JSON.
pub(in crate::web) const JSON: &str = "application/json";

/// Returns a document as JSON on one line.
///
/// Characters that a terminal would obey are escaped; parsers read the same document.
pub(in crate::web) fn json(document: &impl Serialize) -> String {
    let text = serde_json::to_string(document).expect("the documents have texts as keys");
    printable_json(text)
}
