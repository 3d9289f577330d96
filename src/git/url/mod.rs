//! The address of a remote repository, parsed once at the edge.
//!
//! A server may distinguish `a//b` from `a/b` and `%7E` from `~`, so git gets the text as it was written, without the
//! user info. The host is checked strictly instead: no other reading than that of git, curl and ssh may be possible.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::net::{Server, percent};
use crate::secrets::{Secret, redact_url};

/// The transport of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Plain HTTP.
    Http,
    /// HTTP over TLS.
    Https,
    /// A shell on another machine.
    Ssh,
    /// A directory of this machine.
    Local,
}

impl Transport {
    /// Returns the word before `://`.
    pub fn scheme(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Ssh => "ssh",
            Self::Local => "file",
        }
    }

    fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
            Self::Ssh => 22,
            Self::Local => 0,
        }
    }
}

/// The policy for paths of this machine in place of a remote repository.
#[derive(Debug, Clone, Copy)]
pub enum LocalPaths<'a> {
    /// They are refused: the text comes from an object, which must not reach our files.
    Refused,
    /// They are allowed, and a relative one starts at this absolute directory.
    Under(&'a Path),
}

/// The URL of a remote repository.
///
/// It prints without user info, except the user name of SSH, which is no secret.
#[derive(Clone)]
pub struct RemoteUrl {
    argument: OsString,
    origin: Option<Origin>,
    user: Option<String>,
    password: Option<Secret>,
}

/// The server of a URL, to which a login may be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Origin {
    transport: Transport,
    host: String,
    port: u16,
}

/// The error of a text that is no URL of a repository.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RemoteUrlError {
    /// There is no text.
    #[error("the repository URL is empty: give an http, https or ssh URL")]
    Empty,
    /// A scheme that git may not use.
    #[error("the repository URL '{redacted}' has the scheme '{scheme}': use http, https or ssh")]
    Scheme {
        /// The URL without user info.
        redacted: String,
        /// Its scheme, or its transport helper.
        scheme: String,
    },
    /// The short form of SSH.
    #[error("the repository URL '{redacted}' is the short form of SSH: write {suggestion}")]
    ShortForm {
        /// The URL, or the part of it that may be shown.
        redacted: String,
        /// The same as a URL.
        suggestion: String,
    },
    /// A local path, which is refused here.
    #[error("the repository URL '{redacted}' is a path of this machine: use http, https or ssh")]
    Local {
        /// The path.
        redacted: String,
    },
    /// Any other defect.
    #[error("the repository URL '{redacted}' {defect}")]
    Malformed {
        /// The URL without user info.
        redacted: String,
        /// The defect, and its remedy.
        defect: String,
    },
    /// A redirect to something else than a repository.
    #[error(
        "the server redirects to '{redacted}', which is not a git repository: correct the repository URL"
    )]
    NoRepository {
        /// The target without user info.
        redacted: String,
    },
}

impl RemoteUrl {
    /// Reads a URL.
    ///
    /// # Errors
    ///
    /// If git would misread it, could take it for an option, or may not use it.
    pub fn parse(text: &str, locals: LocalPaths<'_>) -> Result<Self, RemoteUrlError> {
        let redacted = redact_url(text);
        let malformed = |defect: &str| RemoteUrlError::Malformed {
            redacted: redacted.clone(),
            defect: defect.to_owned(),
        };
        if text.is_empty() {
            return Err(RemoteUrlError::Empty);
        }
        if text.starts_with('-') {
            return Err(malformed("begins with '-', which reads as an option"));
        }
        if text.chars().any(char::is_control) {
            return Err(malformed("has a control character: remove it"));
        }
        let Some((scheme, rest)) = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) else {
            return Self::parse_without_scheme(text, &redacted, locals);
        };
        let transport = match scheme {
            "http" => Transport::Http,
            "https" => Transport::Https,
            "ssh" => Transport::Ssh,
            "file" => {
                let LocalPaths::Under(_) = locals else { return Err(RemoteUrlError::Local { redacted }) };
                if !rest.starts_with('/') {
                    return Err(malformed("names a host, which a file URL cannot: write file:///PATH"));
                }
                return Ok(Self::local(text));
            }
            _ => return Err(RemoteUrlError::Scheme { redacted, scheme: scheme.to_owned() }),
        };
        Self::parse_network(transport, rest)
            .map_err(|defect| RemoteUrlError::Malformed { redacted, defect: defect.into_owned() })
    }

    fn parse_without_scheme(
        text: &str,
        redacted: &str,
        locals: LocalPaths<'_>,
    ) -> Result<Self, RemoteUrlError> {
        let redacted = redacted.to_owned();
        // As git distinguishes them: a colon before the first slash is no path of this machine.
        let first = text.split('/').next().unwrap_or_default();
        if let Some((helper, _)) = first.split_once("::").filter(|(helper, _)| is_scheme(helper)) {
            return Err(RemoteUrlError::Scheme { redacted, scheme: format!("{helper}::") });
        }
        if let Some((place, path)) = text.split_once(':').filter(|_| first.contains(':')) {
            let suggestion = format!("ssh://{place}/{}", path.trim_start_matches('/'));
            // With a later `@` it may as well be USER:PASSWORD@HOST.
            let is_certain = !path.contains('@') && Self::parse(&suggestion, LocalPaths::Refused).is_ok();
            return Err(match is_certain {
                true => RemoteUrlError::ShortForm { redacted: text.to_owned(), suggestion },
                false => {
                    RemoteUrlError::ShortForm { redacted, suggestion: "ssh://USER@HOST/PATH".to_owned() }
                }
            });
        }
        match locals {
            LocalPaths::Refused => Err(RemoteUrlError::Local { redacted }),
            // The components leave out redundant parts: `./` and doubled slashes.
            LocalPaths::Under(base) => Ok(Self::local(base.join(text).components().collect::<PathBuf>())),
        }
    }

    fn local(argument: impl Into<OsString>) -> Self {
        Self { argument: argument.into(), origin: None, user: None, password: None }
    }

    fn parse_network(transport: Transport, rest: &str) -> Result<Self, Defect> {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (user_info, server) = match authority.rsplit_once('@') {
            Some((user_info, server)) => (Some(user_info), server),
            None => (None, authority),
        };
        let (host, port) = parse_server(server)?;
        check_path(transport, path)?;
        if transport == Transport::Ssh {
            check_ssh_user_info(user_info.unwrap_or_default())?;
        }
        let (user_text, password_text) = match user_info.map(|text| text.split_once(':').ok_or(text)) {
            None => ("", ""),
            Some(Ok(both)) => both,
            Some(Err(user)) => (user, ""),
        };
        let user = String::from_utf8(user_info_part(user_text)?)
            .map_err(|_| Defect::from("has a user name that is not UTF-8: remove it"))?;
        let password = user_info_part(password_text)?;
        let scheme = transport.scheme();
        let argument = if transport == Transport::Ssh && !user.is_empty() {
            check_ssh_user(&user)?;
            format!("{scheme}://{user_text}@{server}{path}")
        } else {
            format!("{scheme}://{server}{path}")
        };
        Ok(Self {
            argument: argument.into(),
            origin: Some(Origin { transport, host, port: port.unwrap_or(transport.default_port()) }),
            user: (!user.is_empty()).then_some(user),
            password: (!password.is_empty()).then(|| Secret::new(password)),
        })
    }

    /// Returns the transport.
    pub fn transport(&self) -> Transport {
        self.origin.as_ref().map_or(Transport::Local, |origin| origin.transport)
    }

    /// Returns the user in the URL.
    /// For HTTP it may be a token, and must not be shown.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Returns the password in the URL.
    pub fn password(&self) -> Option<&Secret> {
        self.password.as_ref()
    }

    /// Returns the text of the URL for git's arguments.
    /// It has no password, and for HTTP no user info at all.
    pub fn to_argument(&self) -> &OsStr {
        &self.argument
    }

    /// Returns the server; `None` for a local path.
    pub fn server(&self) -> Option<Server> {
        self.origin.as_ref().map(|origin| Server { host: origin.host.clone(), port: origin.port })
    }

    /// Returns true if the path has a segment.
    ///
    /// Messages show the path, so its segments, such as the owner of the repository, are no secrets.
    pub(super) fn has_segment(&self, segment: &[u8]) -> bool {
        let shown = self.to_string();
        let path = shown.split_once("://").map_or("", |(_, rest)| rest).split('/').skip(1);
        !segment.is_empty() && path.map(str::as_bytes).any(|part| part == segment)
    }

    /// Returns scheme, host and port as a URL, for settings of git.
    /// The result is `None` for a local path.
    pub(super) fn to_origin(&self) -> Option<String> {
        let origin = self.origin.as_ref()?;
        Some(format!("{}://{}:{}", origin.transport.scheme(), origin.host, origin.port))
    }

    /// Returns true if both URLs have the same scheme, host and port.
    /// A login for one may then be sent to the other.
    pub fn is_same_origin(&self, other: &Self) -> bool {
        self.origin.is_some() && self.origin == other.origin
    }

    /// Returns the first address that git requests, and so the one that a redirect replaces.
    pub(super) fn to_location(&self) -> String {
        format!("{}/info/refs", self.to_string().trim_end_matches('/'))
    }

    /// Returns the repository that the server means when it redirects `URL/info/refs?service=…` to `location`.
    ///
    /// It has this URL's user info if it is on the same server, and none otherwise.
    ///
    /// # Errors
    ///
    /// If the target is no address of a repository.
    pub fn redirected(&self, location: &str) -> Result<Self, RemoteUrlError> {
        let redacted = redact_url(location);
        let no_repository = || RemoteUrlError::NoRepository { redacted: redacted.clone() };
        if location.is_empty() || location.chars().any(char::is_control) {
            return Err(no_repository());
        }
        let mut target = url::Url::parse(&self.to_location())
            .and_then(|asked| asked.join(location))
            .map_err(|_| no_repository())?;
        if !matches!(target.scheme(), "http" | "https") {
            return Err(RemoteUrlError::Scheme { redacted, scheme: target.scheme().to_owned() });
        }
        target.set_query(None);
        target.set_fragment(None);
        let target = target.as_str().strip_suffix("/info/refs").ok_or_else(no_repository)?;
        let mut target = Self::parse(target, LocalPaths::Refused)?;
        let is_same_origin = self.is_same_origin(&target);
        target.user = self.user.clone().filter(|_| is_same_origin);
        target.password = self.password.clone().filter(|_| is_same_origin);
        Ok(target)
    }
}

/// Prints the argument for git.
impl fmt::Display for RemoteUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.argument.display())
    }
}

/// Prints the argument for git.
impl fmt::Debug for RemoteUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RemoteUrl({:?})", self.argument)
    }
}

/// The defect of a URL, as the end of a sentence.
/// It must not quote any text in front of an `@`.
type Defect = std::borrow::Cow<'static, str>;

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// Parses host and port.
/// The host is returned in canonical form, so that hosts can be compared.
fn parse_server(server: &str) -> Result<(String, Option<u16>), Defect> {
    let end = match server.strip_prefix('[') {
        Some(_) => server.find(']').map_or(server.len(), |at| at + 1),
        None => server.find(':').unwrap_or(server.len()),
    };
    let (host, port) = server.split_at(end);
    if host.is_empty() {
        return Err("names no host".into());
    }
    if host.starts_with('-') {
        return Err("has a host that begins with '-', which reads as an option".into());
    }
    let port = match port {
        "" => None,
        port => Some(parse_port(port).ok_or(
            "has no port number after the host's ':': \
             the path begins with '/', as in ssh://git@HOST/PATH",
        )?),
    };
    if !host.is_ascii() {
        return Err("has a host name beyond ASCII: write its form that begins with 'xn--'".into());
    }
    let is_plain = match host.strip_prefix('[') {
        Some(inner) => inner.bytes().all(|byte| byte.is_ascii_hexdigit() || b":.]".contains(&byte)),
        None => host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)),
    };
    match url::Host::parse(host) {
        Ok(parsed) if is_plain => Ok((parsed.to_string(), port)),
        _ => Err("has a host that is neither a name nor an address: correct it".into()),
    }
}

fn parse_port(text: &str) -> Option<u16> {
    let digits = text.strip_prefix(':')?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|&port| is_number && port != 0)
}

fn check_path(transport: Transport, path: &str) -> Result<(), Defect> {
    if transport == Transport::Ssh {
        if !path.starts_with('/') {
            return Err("has no path: write ssh://USER@HOST/PATH".into());
        }
        // Git decodes the whole URL first, and takes the first "@[" for the end of the user, even in the path.
        let decoded = percent::decode_leniently(path);
        return match memchr::memmem::find(&decoded, b"@[") {
            None => Ok(()),
            Some(_) => {
                Err("has '@[' in its path, which git reads as the start of a host: rename the repository"
                    .into())
            }
        };
    }
    // Git appends to the text, so the appended part would become part of a `?` or `#`.
    if path.contains(['?', '#']) {
        return Err("has a query or a fragment: remove it".into());
    }
    if path.contains(char::is_whitespace) {
        return Err("has a space: write it as %20".into());
    }
    if path.split('/').any(|segment| segment == "..") {
        return Err("has '..' in its path: write the path that is meant".into());
    }
    match percent::decode(path) {
        Some(_) => Ok(()),
        None => Err("has a '%' that does not begin an escape: write it as %25".into()),
    }
}

fn user_info_part(text: &str) -> Result<Vec<u8>, Defect> {
    let bytes = percent::decode(text).ok_or_else(|| {
        Defect::from("has a '%' in its user info that does not begin an escape: write it as %25")
    })?;
    match bytes.iter().any(u8::is_ascii_control) {
        true => Err("has a control character in its user info: remove it".into()),
        false => Ok(bytes),
    }
}

/// Checks the user info of an SSH URL.
/// Git takes the first `@[` for the end of the user, and would go to another host than the one behind the last `@`.
fn check_ssh_user_info(text: &str) -> Result<(), Defect> {
    match user_info_part(text)?.iter().any(|byte| b"@[]".contains(byte)) {
        true => Err("has '@', '[' or ']' in its user info, where ssh or git may look for the host: \
                     write ssh://USER@HOST/PATH with a plain user name"
            .into()),
        false => Ok(()),
    }
}

/// Checks an SSH user name for characters that newer ssh versions refuse.
/// A user's own configuration may pass them to a shell.
fn check_ssh_user(user: &str) -> Result<(), Defect> {
    let is_odd = |c: char| c.is_whitespace() || "'`\"\\;&<>|(){}$%/:".contains(c);
    match user.starts_with('-') || user.contains(is_odd) {
        true => Err("has a user name with a character that ssh refuses: correct it".into()),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;
