//! Reads responses of forges, which are not trusted: bounded, printable, and without assumptions.

use serde_json::Value;
use url::Url;

use super::exchange::ApiResponse;
use crate::git::{BranchName, CommitId};
use crate::net::tells_archived;
use crate::printable::printable;

/// The maximum length of a message of a forge, in characters.
const MAX_MESSAGE: usize = 300;

/// The maximum length of the address of a page, in bytes.
const MAX_URL: usize = 2_048;

/// A part that a response lacks, or that has another form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Defect(pub(super) &'static str);

/// Returns the text at a JSON pointer.
pub(super) fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer)?.as_str()
}

/// Returns the number at a JSON pointer, written as a number or as digits.
pub(super) fn number(value: &Value, pointer: &str) -> Option<u64> {
    let value = value.pointer(pointer)?;
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// Returns true if a JSON pointer leads to `true`.
pub(super) fn flag(value: &Value, pointer: &str) -> bool {
    value.pointer(pointer).and_then(Value::as_bool).unwrap_or(false)
}

/// Returns the list at a JSON pointer; empty if there is none.
pub(super) fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the texts at a JSON pointer in each element of a list.
pub(super) fn texts(values: &[Value], pointer: &str) -> Vec<String> {
    values.iter().filter_map(|value| text(value, pointer)).map(str::to_owned).collect()
}

/// Returns the branch at a JSON pointer, with or without `refs/heads/`.
pub(super) fn branch(value: &Value, pointer: &str) -> Option<BranchName> {
    let name = text(value, pointer)?;
    name.strip_prefix("refs/heads/").unwrap_or(name).parse().ok()
}

/// Returns the commit at a JSON pointer, if its id is not shortened.
pub(super) fn commit(value: &Value, pointer: &str) -> Option<CommitId> {
    text(value, pointer)?.parse().ok()
}

/// Returns the address of a page at a JSON pointer, if it is one.
pub(super) fn page_url(value: &Value, pointer: &str) -> Result<String, Defect> {
    let address = text(value, pointer).filter(|address| address.len() <= MAX_URL);
    let url = address.and_then(|address| Url::parse(address).ok());
    let is_page = |url: &Url| {
        matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none()
    };
    let mut url = url.filter(is_page).ok_or(Defect("no address of the pull request's page"))?;
    // No page needs them, and a server could put a token there.
    url.set_query(None);
    url.set_fragment(None);
    // The parsed form has no unprintable characters.
    Ok(url.into())
}

/// The end of the message about an answer that no API gives.
pub(super) const NO_JSON: &str = "instead of JSON";

/// Returns the forge's message about a failure, or else the status, on one line.
pub(super) fn message(response: &ApiResponse) -> String {
    said(response).unwrap_or_else(|| format!("status {}", response.status))
}

/// Returns the forge's message about a failure, if there is one, on one line.
///
/// It has no `; `, which divides the parts of a condition.
pub(super) fn said(response: &ApiResponse) -> Option<String> {
    let mut parts = Vec::new();
    collect_messages(&response.body, &mut parts, 0);
    parts.dedup();
    let joined = parts.join(", ");
    (!joined.is_empty()).then(|| one_line(&joined).replace("; ", ", "))
}

/// Returns a foreign text on one line of bounded length.
pub(super) fn one_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = words.chars().take(MAX_MESSAGE).collect();
    let mark = if cut.len() < words.len() { "…" } else { "" };
    format!("{}{mark}", printable(&cut))
}

/// Adds to a forge's message what can be done, if that is known.
pub(super) fn with_remedy(message: String) -> String {
    if tells_archived(&message) {
        return format!("{message}: unarchive the repository, or suspend the automation");
    }
    message
}

/// Collects the texts of a failure, in all the forms that forges have for them.
fn collect_messages(value: &Value, parts: &mut Vec<String>, depth: usize) {
    if parts.len() >= 4 || depth > 4 {
        return;
    }
    match value {
        Value::String(text) if !text.trim().is_empty() => parts.push(one_line(text)),
        Value::Array(values) => values.iter().for_each(|value| collect_messages(value, parts, depth + 1)),
        Value::Object(members) => {
            let named =
                ["message", "error", "error_description", "errors", "detail", "required", "scope", "base"];
            for name in named {
                if let Some(value) = members.get(name) {
                    collect_messages(value, parts, depth + 1);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_are_found_in_all_forms() {
        let cases = [
            (json!({"message": "no", "url": "https://x"}), "no"),
            (json!({"message": ["a", "b"]}), "a, b"),
            (json!({"message": {"base": ["blocked"]}}), "blocked"),
            (json!({"error": "insufficient_scope", "scope": "api"}), "insufficient_scope, api"),
            (
                json!({"error": {"message": "lacks scopes", "detail": {"required": ["pullrequest:write"]}}}),
                "lacks scopes, pullrequest:write",
            ),
            (json!({"errors": [{"context": null, "message": "only one"}]}), "only one"),
            // It was read back from a condition as parts of ours.
            (
                json!({"message": "down;\n2 open: #1; not delivered: web"}),
                "down, 2 open: #1, not delivered: web",
            ),
            (json!({"message": "two\nlines\u{202e}"}), "two lines\\u{202e}"),
            (json!(null), "status 418"),
            (json!({"message": 3}), "status 418"),
        ];
        for (body, wanted) in cases {
            let response = ApiResponse::new(418, Vec::new(), body);
            assert_eq!(message(&response), wanted, "{:?}", response.body);
        }
    }

    /// Gitea's words, which git knew, had none.
    #[test]
    fn an_archived_repository_has_a_remedy() {
        for (said, has_remedy) in [
            ("Repository was archived so is read-only.", true),
            ("This repo is archived", true),
            ("archive/fleet: no", false),
        ] {
            let told = with_remedy(said.to_owned());
            assert!(told.starts_with(said) && (told != said) == has_remedy, "{told}");
        }
    }

    #[test]
    fn messages_are_bounded() {
        let mut body = json!("deep");
        for _ in 0..100 {
            body = json!({ "message": body });
        }
        let deep = ApiResponse::new(400, Vec::new(), body);
        assert_eq!(message(&deep), "status 400");
        let long = json!({"errors": vec!["é".repeat(100_000); 50]});
        let long = ApiResponse::new(400, Vec::new(), long);
        assert!(message(&long).chars().count() <= MAX_MESSAGE + 1);
    }

    /// The query of an address could hold a token.
    #[test]
    fn an_address_is_one_of_a_web_page() {
        let read = |text: &str| page_url(&json!({ "url": text }), "/url").ok();
        assert_eq!(read("https://forge.example/a/b/1").as_deref(), Some("https://forge.example/a/b/1"));
        for with_more in ["https://forge.example/a/b/1?private_token=x", "https://forge.example/a/b/1#token"]
        {
            assert_eq!(read(with_more).as_deref(), Some("https://forge.example/a/b/1"));
        }
        for bad in [
            "",
            "javascript:alert(1)",
            "https://user@forge.example/",
            "https://:x@forge.example/",
            "/a",
            &"https://a/".repeat(300),
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
