//! Names of branches as messages show them.

use crate::git::BranchName;
use crate::printable::printable;
use crate::secrets::Redactor;

/// The maximum length of a name in a message, in characters.
const MAX_SHOWN: usize = 300;

/// Returns the name of a branch for messages: without secrets, printable, and of bounded length.
///
/// A template of a tenant or a server gives the name. Secrets are redacted first, so that none is cut in two.
pub(super) fn shown_branch(name: &BranchName, redactor: &Redactor) -> String {
    let redacted = redactor.redact(name.as_str());
    let name = printable(&redacted);
    match name.char_indices().nth(MAX_SHOWN) {
        None => name.into_owned(),
        Some((end, _)) => format!("{}…", &name[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_redacted_and_then_cut() {
        let mut redactor = Redactor::default();
        redactor.add_secret(b"hunter2");
        let long = "ä".repeat(MAX_SHOWN - 3);
        for (name, expected) in [
            ("images/web", "images/web".to_owned()),
            ("images/hunter2/web", "images/••••/web".to_owned()),
            ("a\u{202e}b", "a\\u{202e}b".to_owned()),
            (&format!("{long}abc"), format!("{long}abc")),
            (&format!("{long}abcd"), format!("{long}abc…")),
            (&format!("{long}hunter2"), format!("{long}•••…")),
        ] {
            assert_eq!(shown_branch(&name.parse().unwrap(), &redactor), expected, "{name}");
        }
    }
}
