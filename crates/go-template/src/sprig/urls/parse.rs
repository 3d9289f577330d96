//! Parses URLs into their parts.

use std::net::Ipv6Addr;

use super::escape::{Part, escape, unescape};
use crate::format::quote_bytes;
use crate::text::{find, find_last};

/// A parsed URL; all parts but the query are unescaped.
#[derive(Debug, Default)]
pub(super) struct Url {
    pub(super) scheme: Vec<u8>,
    pub(super) host: Vec<u8>,
    pub(super) path: Vec<u8>,
    pub(super) query: Vec<u8>,
    pub(super) opaque: Vec<u8>,
    pub(super) fragment: Vec<u8>,
    pub(super) user: Option<User>,
}

/// The user name and password of a URL.
#[derive(Debug)]
pub(super) struct User {
    name: Vec<u8>,
    password: Option<Vec<u8>>,
}

/// A parse error, with the part of the URL that was read before it.
#[derive(Debug)]
pub(super) struct ParseError {
    pub(super) url: Vec<u8>,
    pub(super) message: String,
}

impl User {
    /// Formats name and password as in a URL.
    pub(super) fn text(&self) -> Vec<u8> {
        let mut text = escape(&self.name, Part::User);
        if let Some(password) = &self.password {
            text.push(b':');
            text.extend(escape(password, Part::User));
        }
        text
    }
}

/// Parses a URL.
pub(super) fn parse(text: &[u8]) -> Result<Url, ParseError> {
    let (before, fragment) = cut(text, b'#');
    let mut url = without_fragment(before).map_err(|message| ParseError { url: before.to_vec(), message })?;
    url.fragment =
        unescape(fragment, Part::Fragment).map_err(|message| ParseError { url: text.to_vec(), message })?;
    Ok(url)
}

/// Splits a text at a byte.
fn cut(text: &[u8], byte: u8) -> (&[u8], &[u8]) {
    match text.iter().position(|&other| other == byte) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &[]),
    }
}

fn without_fragment(text: &[u8]) -> Result<Url, String> {
    if text.iter().any(|byte| *byte < b' ' || *byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    let mut url = Url::default();
    if text == b"*" {
        url.path = b"*".to_vec();
        return Ok(url);
    }
    let (scheme, rest) = scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (mut rest, query) = cut(rest, b'?');
    url.query = query.to_vec();
    if !rest.starts_with(b"/") {
        if !url.scheme.is_empty() {
            url.opaque = rest.to_vec();
            return Ok(url);
        }
        if cut(rest, b'/').0.contains(&b':') {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    if rest.starts_with(b"//") && (!url.scheme.is_empty() || !rest.starts_with(b"///")) {
        let authority = &rest[2..];
        let end = find(authority, b"/").unwrap_or(authority.len());
        rest = &authority[end..];
        (url.user, url.host) = parse_authority(&url.scheme, &authority[..end])?;
    }
    url.path = unescape(rest, Part::Path)?;
    Ok(url)
}

fn scheme(text: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let end = text
        .iter()
        .position(|byte| !matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'+' | b'-' | b'.'));
    match end {
        Some(0) if text[0] == b':' => Err("missing protocol scheme".to_owned()),
        Some(end) if text[end] == b':' && text[0].is_ascii_alphabetic() => {
            Ok((&text[..end], &text[end + 1..]))
        }
        _ => Ok((&[], text)),
    }
}

fn parse_authority(scheme: &[u8], authority: &[u8]) -> Result<(Option<User>, Vec<u8>), String> {
    let Some(at) = find_last(authority, b"@") else { return Ok((None, parse_host(scheme, authority)?)) };
    let host = parse_host(scheme, &authority[at + 1..])?;
    let user = &authority[..at];
    let is_valid = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(byte);
    if !user.iter().all(is_valid) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let (name, password) = cut(user, b':');
    let name = unescape(name, Part::User)?;
    let password = if user.contains(&b':') { Some(unescape(password, Part::User)?) } else { None };
    Ok((Some(User { name, password }), host))
}

fn parse_host(scheme: &[u8], host: &[u8]) -> Result<Vec<u8>, String> {
    match find_last(host, b"[") {
        Some(0) => return parse_literal(host),
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    if let (Some(first), Some(last)) = (find(host, b":"), find_last(host, b":")) {
        let is_strict = scheme == b"http" || scheme == b"https";
        check_port(&host[if is_strict { first } else { last }..])?;
    }
    unescape(host, Part::Host)
}

/// Parses an address in brackets, with an optional port.
fn parse_literal(host: &[u8]) -> Result<Vec<u8>, String> {
    let Some(end) = find_last(host, b"]") else { return Err("missing ']' in host".to_owned()) };
    let port = &host[end + 1..];
    check_port(port)?;
    let name = &host[1..end];
    let zone = find(name, b"%25").unwrap_or(name.len());
    let mut address = unescape(&name[..zone], Part::Host)?;
    let plain = address.clone();
    address.extend(unescape(&name[zone..], Part::Zone)?);
    let is_address = std::str::from_utf8(&plain).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok());
    if !is_address {
        let shown = quote_bytes(&address);
        return Err(format!("invalid host: ParseAddr({shown}): unable to parse IP"));
    }
    Ok([b"[", address.as_slice(), b"]", port].concat())
}

fn check_port(port: &[u8]) -> Result<(), String> {
    if is_optional_port(port) {
        return Ok(());
    }
    Err(format!("invalid port {} after host", quote_bytes(port)))
}

fn is_optional_port(port: &[u8]) -> bool {
    port.split_first().is_none_or(|(colon, digits)| *colon == b':' && digits.iter().all(u8::is_ascii_digit))
}

/// Returns a host without port and brackets.
pub(super) fn host_name(host: &[u8]) -> &[u8] {
    let end = find_last(host, b":").filter(|&at| is_optional_port(&host[at..])).unwrap_or(host.len());
    let host = &host[..end];
    host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]")).unwrap_or(host)
}
