//! What a registry says when it refuses, in the words of Flux.

use std::fmt::Write;

use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

/// How much is shown of a body that is not what registries send.
const BODY_SHOWN: usize = 300;

/// The parts of a question that tell no secret.
const SHOWN: [&str; 7] = ["scope", "service", "mount", "from", "digest", "n", "last"];

/// An answer that is no success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The status.
    pub status: u16,
    /// The codes of the errors in the body, such as `NAME_UNKNOWN`.
    pub codes: Vec<String>,
    /// What the registry says, or else the status in words.
    pub words: String,
}

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    errors: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    detail: Value,
}

impl Refusal {
    /// Reads an answer; that to a HEAD has no body.
    pub fn read(status: StatusCode, is_head: bool, body: &[u8]) -> Self {
        let entries = serde_json::from_slice::<Body>(body).map(|body| body.errors).unwrap_or_default();
        let codes: Vec<String> = entries.iter().map(|entry| entry.code.clone()).collect();
        let words = match entries.as_slice() {
            [] => plain(status, is_head, body),
            [one] => one.to_words(),
            several => {
                let words: Vec<String> = several.iter().map(Entry::to_words).collect();
                format!("multiple errors returned: {}", words.join("; "))
            }
        };
        Self { status: status.as_u16(), codes, words: cleaned(&words) }
    }

    /// Whether there is nothing of that name.
    pub fn is_not_found(&self) -> bool {
        self.status == 404
    }

    /// Whether the registry wants fewer tags on a page.
    pub fn wants_smaller_pages(&self) -> bool {
        let codes = ["TOO_MANY_TAGS_REQUESTED", "PAGINATION_NUMBER_INVALID"];
        let is_named = self.codes.iter().any(|code| codes.contains(&code.as_str()));
        is_named || matches!(self.status, 400 | 413 | 422)
    }
}

impl Entry {
    fn to_words(&self) -> String {
        let detail = match &self.detail {
            Value::Null => String::new(),
            detail => format!("; {}", in_go(detail)),
        };
        format!("{}: {}{detail}", self.code, self.message)
    }
}

/// A JSON value as Go prints it.
fn in_go(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(in_go).collect::<Vec<_>>().join(" ")),
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| name.as_str());
            let texts: Vec<String> =
                members.iter().map(|(name, value)| format!("{name}:{}", in_go(value))).collect();
            format!("map[{}]", texts.join(" "))
        }
        other => other.to_string(),
    }
}

fn plain(status: StatusCode, is_head: bool, body: &[u8]) -> String {
    let mut words = format!("unexpected status code {}", in_words(status));
    let body = String::from_utf8_lossy(body);
    let body = body.trim();
    if is_head {
        words.push_str(" (HEAD responses have no body, use GET for details)");
    } else if !body.is_empty() {
        let end = body.char_indices().nth(BODY_SHOWN);
        let shown = end.map_or(body, |(end, _)| &body[..end]);
        let dots = if end.is_some() { "…" } else { "" };
        let _ = write!(words, ": {shown}{dots}");
    }
    words
}

/// A status with its name, as in `404 Not Found`.
pub(super) fn in_words(status: StatusCode) -> String {
    let name = status.canonical_reason().unwrap_or_default();
    format!("{} {name}", status.as_str()).trim_end().to_owned()
}

/// One line: what a server sends must not look like several messages.
pub(super) fn cleaned(words: &str) -> String {
    words.split(|c: char| c.is_control()).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// An address for messages: without a login, and without the parts of its question that may be secret.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let pairs: Vec<String> = url
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| match pair.split_once('=') {
            Some((name, _)) if !SHOWN.contains(&name) => format!("{name}=REDACTED"),
            _ => pair.to_owned(),
        })
        .collect();
    url.set_query((!pairs.is_empty()).then(|| pairs.join("&")).as_deref());
    url.to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_words_are_those_of_flux() {
        let name = r#"{"errors":[{"code":"NAME_UNKNOWN","message":"repository name not known to registry","detail":{"name":"a/b"}}]}"#;
        let two = r#"{"errors":[{"code":"A","message":"one","detail":null},{"code":"B","message":"two","detail":[{"Type":"x","Action":"pull"}]}]}"#;
        for (status, is_head, body, words) in [
            (404, false, name, "NAME_UNKNOWN: repository name not known to registry; map[name:a/b]"),
            (401, false, two, "multiple errors returned: A: one; B: two; [map[Action:pull Type:x]]"),
            (404, false, "404 page\nnot found\n", "unexpected status code 404 Not Found: 404 page not found"),
            (502, false, "", "unexpected status code 502 Bad Gateway"),
            (522, false, "{}", "unexpected status code 522: {}"),
            (
                404,
                true,
                "",
                "unexpected status code 404 Not Found (HEAD responses have no body, use GET for details)",
            ),
            (429, false, r#"{"errors":[{"message":"slow down"}]}"#, ": slow down"),
        ] {
            let refusal = Refusal::read(StatusCode::from_u16(status).unwrap(), is_head, body.as_bytes());
            assert_eq!((refusal.status, refusal.words.as_str()), (status, words));
        }
        let long = Refusal::read(StatusCode::BAD_GATEWAY, false, "é".repeat(1000).as_bytes());
        assert!(long.words.ends_with("é…") && long.words.chars().count() < 400);
    }

    #[test]
    fn smaller_pages_are_asked_for_in_several_ways() {
        let read = |status: u16, body: &str| {
            Refusal::read(StatusCode::from_u16(status).unwrap(), false, body.as_bytes()).wants_smaller_pages()
        };
        assert!(read(400, ""));
        assert!(read(403, r#"{"errors":[{"code":"TOO_MANY_TAGS_REQUESTED"}]}"#));
        assert!(!read(403, ""));
        assert!(!read(404, r#"{"errors":[{"code":"NAME_UNKNOWN"}]}"#));
    }

    #[test]
    fn an_address_shows_no_secret() {
        for (address, wanted) in [
            (
                "https://u:p@r.example/v2/?n=1&sig=x&last=a%20b",
                "https://r.example/v2/?n=1&sig=REDACTED&last=a%20b",
            ),
            (
                "http://r:5000/token?scope=a&service=b&account=c",
                "http://r:5000/token?scope=a&service=b&account=REDACTED",
            ),
            ("https://r/?x", "https://r/?x"),
            ("https://r/?", "https://r/"),
        ] {
            assert_eq!(shown(&Url::parse(address).unwrap()), wanted);
        }
    }

    proptest! {
        #[test]
        fn any_body_has_one_line_of_words(body in any::<Vec<u8>>(), status in 100_u16..600, is_head: bool) {
            let refusal = Refusal::read(StatusCode::from_u16(status).unwrap(), is_head, &body);
            prop_assert!(!refusal.words.contains('\n'));
        }
    }
}
