//! URLs, as Go's `net/url` parses and joins them.

mod escape;
mod parse;

use crate::budget::{Budget, Failure};
use crate::format::quote_bytes;
use crate::functions::{Arguments, Function};
use crate::text::{Text, find};
use crate::value::{DICT, Map, Type, Value};

use escape::{Part, escape};
use parse::{Url, host_name, parse};

const TEXT: Type = Type::String;

pub(super) const FUNCTIONS: &[Function] =
    &[Function::new("urlParse", &[TEXT], url_parse), Function::new("urlJoin", &[DICT], url_join)];

fn url_parse(arguments: Arguments<'_>, _: &mut Budget<'_>) -> Result<Value, Failure> {
    let url = parse(arguments.bytes(0)).map_err(|wrong| {
        format!("unable to parse url: parse {}: {}", quote_bytes(&wrong.url), wrong.message)
    })?;
    let user = url.user.as_ref().map_or_else(Vec::new, parse::User::text);
    let members: [(&str, Vec<u8>); 8] = [
        ("hostname", host_name(&url.host).to_vec()),
        ("scheme", url.scheme),
        ("host", url.host),
        ("path", url.path),
        ("query", url.query),
        ("opaque", url.opaque),
        ("fragment", url.fragment),
        ("userinfo", user),
    ];
    Ok(Map::dict(members.map(|(name, text)| (name.into(), text.into()))).into())
}

fn url_join(arguments: Arguments<'_>, _: &mut Budget<'_>) -> Result<Value, Failure> {
    let dict = arguments.dict(0);
    let mut url = Url {
        scheme: member(dict, "scheme")?,
        host: member(dict, "host")?,
        path: member(dict, "path")?,
        query: member(dict, "query")?,
        opaque: member(dict, "opaque")?,
        fragment: member(dict, "fragment")?,
        user: None,
    };
    let user = member(dict, "userinfo")?;
    if !user.is_empty() {
        let whole = [b"proto://", user.as_slice(), b"@host"].concat();
        let parsed = parse(&whole).map_err(|wrong| {
            format!("unable to parse userinfo in dict: parse {}: {}", quote_bytes(&wrong.url), wrong.message)
        })?;
        url.user = parsed.user;
    }
    Ok(joined(&url).into())
}

fn member(dict: &Map, key: &str) -> Result<Vec<u8>, Failure> {
    match dict.at(&Text::from(key)) {
        None => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(text.as_bytes().to_vec()),
        Some(Value::Nil) => Err("runtime error: invalid memory address or nil pointer dereference".into()),
        Some(other) => {
            let kind = other.kind_name();
            Err(format!("unable to parse {key} key, must be of type string, but {kind} found").into())
        }
    }
}

fn joined(url: &Url) -> Vec<u8> {
    let mut out = Vec::new();
    if !url.scheme.is_empty() {
        out.extend_from_slice(&url.scheme);
        out.push(b':');
    }
    if url.opaque.is_empty() {
        push_host_and_path(&mut out, url);
    } else {
        out.extend_from_slice(&url.opaque);
    }
    if !url.query.is_empty() {
        out.push(b'?');
        out.extend_from_slice(&url.query);
    }
    if !url.fragment.is_empty() {
        out.push(b'#');
        out.extend(escape(&url.fragment, Part::Fragment));
    }
    out
}

fn push_host_and_path(out: &mut Vec<u8>, url: &Url) {
    let has_authority = !url.host.is_empty() || url.user.is_some();
    if has_authority || !url.scheme.is_empty() && !url.path.is_empty() {
        out.extend_from_slice(b"//");
    }
    if let Some(user) = &url.user {
        out.extend(user.text());
        out.push(b'@');
    }
    out.extend(escape(&url.host, Part::Host));
    let path = if url.path == b"*" { b"*".to_vec() } else { escape(&url.path, Part::Path) };
    if !path.is_empty() && !path.starts_with(b"/") && !url.host.is_empty() {
        out.push(b'/');
    }
    // A colon in the first segment would be read as the end of a scheme.
    let segment = &path[..find(&path, b"/").unwrap_or(path.len())];
    if out.is_empty() && segment.contains(&b':') {
        out.extend_from_slice(b"./");
    }
    out.extend(path);
}
