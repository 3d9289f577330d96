//! Addresses and texts of servers, as messages show them.

use reqwest::StatusCode;
use url::{Origin, Url};

/// The maximum number of characters of a response in a message.
pub(crate) const MAX_TEXT: usize = 300;

/// The maximum number of characters of an address in a message.
const MAX_ADDRESS: usize = 500;

/// The query parameters that are never secret.
const PUBLIC_PARAMETERS: [&str; 7] = ["scope", "service", "mount", "from", "digest", "n", "last"];

/// Formats a status with its name, as in `404 Not Found`.
pub(crate) fn status_text(status: StatusCode) -> String {
    let name = status.canonical_reason().unwrap_or_default();
    format!("{} {name}", status.as_str()).trim_end().to_owned()
}

/// Joins lines: the text of a server must not look like several messages.
pub(crate) fn single_line(message: &str) -> String {
    message.split(|c: char| c.is_control()).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Truncates the text of a server for messages.
pub(crate) fn truncate(text: &str) -> String {
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
pub(crate) fn origin(url: &Url) -> String {
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
pub(crate) fn redacted_url(url: &Url) -> String {
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
    use super::*;

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
}
