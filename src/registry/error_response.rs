//! Error responses, as messages show them.

use reqwest::StatusCode;

use super::error_document::{self, OciError};
use crate::net::http::{single_line, status_text, truncate};

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::net::http::MAX_TEXT;

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

    proptest! {
        #[test]
        fn any_body_gives_a_one_line_message(body in any::<Vec<u8>>(), status in 100_u16..600, is_head: bool) {
            let response = ErrorResponse::read(StatusCode::from_u16(status).unwrap(), is_head, &body);
            prop_assert!(!response.message.contains('\n') && response.message.chars().count() <= MAX_TEXT + 1);
        }
    }
}
