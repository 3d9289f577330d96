//! Entity tags, as in RFC 9110.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, ETAG, HeaderMap, IF_NONE_MATCH};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::secrets::Fingerprint;

/// The number of bytes of a fingerprint that an entity tag has.
const BYTES: usize = 16;

/// The tag of a content: equal for equal contents, also in another replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::web) struct EntityTag(String);

impl EntityTag {
    /// Returns the tag of a content that depends on these parts.
    ///
    /// It depends on the version of the program, too.
    pub(in crate::web) fn of<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Self {
        let content = Fingerprint::of(parts);
        let whole = Fingerprint::of([env!("CARGO_PKG_VERSION").as_bytes(), content.as_bytes()]);
        Self(format!("\"{}\"", whole.prefix(BYTES)))
    }

    /// Returns the tag in quotes.
    pub(in crate::web) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if the client has the content, by its `If-None-Match`.
    pub(in crate::web) fn is_known(&self, request: &HeaderMap) -> bool {
        let lines = request.get_all(IF_NONE_MATCH).iter().filter_map(|line| line.to_str().ok());
        let mut tags = lines.flat_map(|line| line.split(',')).map(str::trim);
        tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == self.0)
    }
}

/// Responds with a content, or with 304 if the client has it.
pub(in crate::web) fn respond(
    request: &HeaderMap,
    tag: &EntityTag,
    content_type: &'static str,
    content: impl FnOnce() -> Body,
) -> Response {
    let etag = HeaderValue::from_str(&tag.0).expect("a tag has hexadecimal digits and quotes");
    if tag.is_known(request) {
        return (StatusCode::NOT_MODIFIED, [(ETAG, etag)]).into_response();
    }
    let content_type = HeaderValue::from_static(content_type);
    ([(ETAG, etag), (CONTENT_TYPE, content_type)], content()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_knows_a_tag_that_its_header_has() {
        let tag = EntityTag::of(["a"]);
        assert_eq!(tag.0.len(), 34);
        assert_ne!(tag, EntityTag::of(["b"]));
        let weak = format!("W/{}", tag.0);
        let list = format!("\"x\" , {}", tag.0);
        for (header, expected) in
            [("*", true), (tag.0.as_str(), true), (&weak, true), (&list, true), ("\"x\"", false), ("", false)]
        {
            let mut headers = HeaderMap::new();
            headers.insert(IF_NONE_MATCH, header.parse().unwrap());
            assert_eq!(tag.is_known(&headers), expected, "{header}");
        }
        assert!(!tag.is_known(&HeaderMap::new()));
    }
}
