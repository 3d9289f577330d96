//! Error responses, as messages show them.

use reqwest::StatusCode;
use url::{Origin, Url};

use super::error_document::{self, OciError};

/// The maximum number of characters of a response in a message.
const MAX_TEXT: usize = 300;

/// The maximum number of characters of an address in a message.
const MAX_ADDRESS: usize = 500;

/// The query parameters that are never secret.
const PUBLIC_PARAMETERS: [&str; 7] = ["scope", "service", "mount", "from", "digest", "n", "last"];

/// A response other than success.
///
/// Of its body only the codes and messages of an error document are shown: an object can name any server of the
/// cluster's network, and its status must not become a way to read that server's responses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorResponse {
    /// The status.
    pub status: u16,
    /// The codes of the errors in the body, such as `NAME_UNKNOWN`.
    pub codes: Vec<String>,
    /// The codes and messages of the errors, or else the status and its reason.
    pub message: String,
}

impl ErrorResponse {
    /// Parses a response; a response to HEAD has no body.
    pub fn read(status: StatusCode, is_head: bool, body: &[u8]) -> Self {
        Self::of(status, is_head, &error_document::parse(body))
    }

    /// Creates an error response from the errors of an OCI document.
    pub(super) fn of(status: StatusCode, is_head: bool, errors: &[OciError]) -> Self {
        let codes = errors.iter().map(|error| error.code.clone()).collect();
        let text = |error: &OciError| format!("{}: {}", error.code, error.message);
        let message = match errors {
            [] if is_head => format!(
                "unexpected status code {} (HEAD responses have no body, use GET for details)",
                status_text(status)
            ),
            [] => format!("unexpected status code {}", status_text(status)),
            [one] => text(one),
            several => {
                let message: Vec<String> = several.iter().map(text).collect();
                format!("multiple errors returned: {}", message.join("; "))
            }
        };
        Self { status: status.as_u16(), codes, message: truncate(&single_line(&message)) }
    }

    /// Returns `true` if the requested name does not exist.
    pub fn is_not_found(&self) -> bool {
        self.status == 404
    }

    /// Returns `true` if the registry asks for smaller pages of tags.
    pub fn wants_smaller_pages(&self) -> bool {
        let codes = ["TOO_MANY_TAGS_REQUESTED", "PAGINATION_NUMBER_INVALID"];
        let is_named = self.codes.iter().any(|code| codes.contains(&code.as_str()));
        is_named || matches!(self.status, 400 | 413 | 422)
    }
}

/// Formats a status with its name, as in `404 Not Found`.
pub(super) fn status_text(status: StatusCode) -> String {
    let name = status.canonical_reason().unwrap_or_default();
    format!("{} {name}", status.as_str()).trim_end().to_owned()
}

/// Joins lines: the text of a server must not look like several messages.
pub(super) fn single_line(message: &str) -> String {
    message.split(|c: char| c.is_control()).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Truncates the text of a server for messages.
pub(super) fn truncate(text: &str) -> String {
    truncate_to(text, MAX_TEXT)
}

fn truncate_to(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Formats scheme, host and port of an address that a server names.
///
/// An address of another scheme than HTTP has no origin, which would be shown as `null`.
pub(super) fn origin(url: &Url) -> String {
    let origin = match url.origin() {
        origin @ Origin::Tuple(..) => origin.ascii_serialization(),
        Origin::Opaque(_) => match url.cannot_be_a_base() {
            true => format!("{}:", url.scheme()),
            false => format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default()),
        },
    };
    truncate_to(&origin, MAX_ADDRESS)
}

/// Formats an address for messages, without a login or secret query parameters.
pub(super) fn redacted_url(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let pairs: Vec<String> = url
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| match pair.split_once('=') {
            Some((name, _)) if !PUBLIC_PARAMETERS.contains(&name) => format!("{name}=REDACTED"),
            _ => pair.to_owned(),
        })
        .collect();
    url.set_query((!pairs.is_empty()).then(|| pairs.join("&")).as_deref());
    truncate_to(url.as_str(), MAX_ADDRESS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_codes_and_messages_of_an_error_document_are_shown() {
        let name = r#"{"errors":[{"code":"NAME_UNKNOWN","message":"repository name not known to registry","detail":{"name":"a/b"}}]}"#;
        let two = r#"{"errors":[{"code":"A","message":"one","detail":null},{"code":"B","message":"two","detail":[{"Type":"x","Action":"pull"}]}]}"#;
        for (status, is_head, body, message) in [
            (404, false, name, "NAME_UNKNOWN: repository name not known to registry"),
            (401, false, two, "multiple errors returned: A: one; B: two"),
            (404, false, "404 page\nnot found\n", "unexpected status code 404 Not Found"),
            (500, false, r#"{"error":"secret"}"#, "unexpected status code 500 Internal Server Error"),
            (
                500,
                false,
                r#"{"errors":["secret"],"message":"secret"}"#,
                "unexpected status code 500 Internal Server Error",
            ),
            (502, false, "", "unexpected status code 502 Bad Gateway"),
            (522, false, "{}", "unexpected status code 522"),
            (
                404,
                true,
                "",
                "unexpected status code 404 Not Found (HEAD responses have no body, use GET for details)",
            ),
            (429, false, r#"{"errors":[{"message":"slow down"}]}"#, ": slow down"),
        ] {
            let response =
                ErrorResponse::read(StatusCode::from_u16(status).unwrap(), is_head, body.as_bytes());
            assert_eq!((response.status, response.message.as_str()), (status, message));
        }
        let long = format!(r#"{{"errors":[{{"code":"A","message":"{}"}}]}}"#, "é".repeat(1000));
        let long = ErrorResponse::read(StatusCode::BAD_GATEWAY, false, long.as_bytes());
        assert!(long.message.ends_with("é…") && long.message.chars().count() == MAX_TEXT + 1);
    }

    #[test]
    fn smaller_pages_are_asked_for_in_several_ways() {
        let read = |status: u16, body: &str| {
            ErrorResponse::read(StatusCode::from_u16(status).unwrap(), false, body.as_bytes())
                .wants_smaller_pages()
        };
        assert!(read(400, ""));
        assert!(read(403, r#"{"errors":[{"code":"TOO_MANY_TAGS_REQUESTED"}]}"#));
        assert!(!read(403, ""));
        assert!(!read(404, r#"{"errors":[{"code":"NAME_UNKNOWN"}]}"#));
    }

    /// A realm or a redirect of another scheme was said to lead to "null".
    #[test]
    fn an_address_without_an_origin_is_named_by_its_scheme() {
        for (url, expected) in [
            ("https://u:p@r.example/x?y", "https://r.example"),
            ("http://r.example:5000/x", "http://r.example:5000"),
            ("file:///etc/passwd", "file://"),
            ("file://host/etc/passwd", "file://host"),
            ("gopher://u:p@r.example:70/x", "gopher://r.example"),
            ("data:text/plain,secret", "data:"),
            ("mailto:u@r.example", "mailto:"),
        ] {
            assert_eq!(origin(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }

    #[test]
    fn an_address_shows_no_secret() {
        for (address, expected) in [
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
            assert_eq!(redacted_url(&Url::parse(address).unwrap()), expected);
        }
    }

    proptest! {
        #[test]
        fn any_body_gives_a_one_line_message(body in any::<Vec<u8>>(), status in 100_u16..600, is_head: bool) {
            let response = ErrorResponse::read(StatusCode::from_u16(status).unwrap(), is_head, &body);
            prop_assert!(!response.message.contains('\n') && response.message.chars().count() <= MAX_TEXT + 1);
        }
    }
}
