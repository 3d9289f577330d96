//! The address of a git repository, in any of its forms.

/// The default ports of the protocols of git.
const DEFAULT_PORTS: [&str; 4] = ["22", "80", "443", "9418"];

/// Host and path of a git repository.
///
/// The user, the protocol, its default port and any port of SSH do not count: an automation may push over SSH to the
/// repository that an applier reads over HTTPS.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GitAddress(String);

impl GitAddress {
    /// Reads an address: a URL, or `[user@]host:path`.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let text = text.trim();
        let url = text.split_once("://");
        let (host, path) = match url {
            Some((_, rest)) => rest.split_once('/').unwrap_or((rest, "")),
            None => text.split_once(':').unwrap_or(("", text)),
        };
        let host = host.rsplit('@').next().unwrap_or(host).to_ascii_lowercase();
        let is_ssh = url.is_some_and(|(protocol, _)| protocol.eq_ignore_ascii_case("ssh"));
        let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let host = match host.rsplit_once(':') {
            Some((name, port)) if DEFAULT_PORTS.contains(&port) || is_ssh && is_port(port) => name.to_owned(),
            _ => host,
        };
        let path = path.trim_matches('/');
        Self(format!("{host}/{}", path.strip_suffix(".git").unwrap_or(path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_one_address_are_equal() {
        let forms = [
            "https://github.com/org/fleet",
            "https://github.com/org/fleet.git",
            "https://bob:secret@GitHub.com:443/org/fleet/",
            "ssh://git@github.com/org/fleet.git",
            "ssh://git@github.com:22/org/fleet",
            "ssh://git@github.com:2222/org/fleet.git",
            "git@github.com:org/fleet.git",
        ];
        for form in forms {
            assert_eq!(GitAddress::new(form), GitAddress::new(forms[0]), "{form}");
        }
        for other in
            ["https://github.com/org/fleet2", "https://github.com:8443/org/fleet", "", "file:///org/fleet"]
        {
            assert_ne!(GitAddress::new(other), GitAddress::new(forms[0]), "{other}");
        }
    }
}
