//! The hosts of public forges, and the place of an API beside a git server.

use crate::forge::kind::ForgeKind;
use crate::git::{RemoteUrl, Transport};
use crate::net::Server;

/// The place of an API, from the host of a git URL.
pub(super) enum ApiOrigin {
    /// This URL.
    Fixed(String),
    /// The git server itself.
    GitServer,
    /// A path for each organization.
    AzureDevops,
}

/// A host that belongs to one forge.
pub(super) struct KnownHost {
    pub(super) kind: ForgeKind,
    pub(super) origin: ApiOrigin,
}

/// Returns the forge of a public host, for the usual ports of https and ssh.
pub(super) fn known_host(url: &RemoteUrl, server: &Server) -> Option<KnownHost> {
    let is_ssh = match url.transport() {
        Transport::Https if server.port == 443 => false,
        Transport::Ssh if server.port == 22 => true,
        Transport::Ssh if (server.host.as_str(), server.port) == ("ssh.github.com", 443) => true,
        _ => return None,
    };
    let fixed = |kind, api: &str| Some(KnownHost { kind, origin: ApiOrigin::Fixed(api.to_owned()) });
    let itself = |kind| Some(KnownHost { kind, origin: ApiOrigin::GitServer });
    let azure = || Some(KnownHost { kind: ForgeKind::AzureDevops, origin: ApiOrigin::AzureDevops });
    match server.host.as_str() {
        "github.com" => fixed(ForgeKind::Github, "https://api.github.com"),
        "ssh.github.com" if is_ssh && server.port == 443 => {
            fixed(ForgeKind::Github, "https://api.github.com")
        }
        "gitlab.com" => itself(ForgeKind::Gitlab),
        "gitea.com" => itself(ForgeKind::Gitea),
        "codeberg.org" => itself(ForgeKind::Forgejo),
        "bitbucket.org" => fixed(ForgeKind::Bitbucket, "https://api.bitbucket.org/2.0"),
        "dev.azure.com" if !is_ssh => azure(),
        "ssh.dev.azure.com" if is_ssh => azure(),
        host => match (one_label(host, ".ghe.com"), one_label(host, ".visualstudio.com")) {
            (Some(subdomain), _) => fixed(ForgeKind::Github, &format!("https://api.{subdomain}.ghe.com")),
            (None, Some(_)) => azure(),
            (None, None) => None,
        },
    }
}

/// Returns true for the host of the API of a GitHub that GitHub runs.
pub(in crate::forge) fn is_public_github(host: &str) -> bool {
    host == "api.github.com"
        || host.strip_prefix("api.").is_some_and(|host| one_label(host, ".ghe.com").is_some())
}

/// Returns the label before a suffix of a host, if it is a single one.
pub(super) fn one_label<'h>(host: &'h str, suffix: &str) -> Option<&'h str> {
    host.strip_suffix(suffix).filter(|label| !label.is_empty() && !label.contains('.'))
}

pub(super) fn usual_port(transport: Transport) -> u16 {
    match transport {
        Transport::Http => 80,
        Transport::Https => 443,
        Transport::Ssh => 22,
        Transport::Local => 0,
    }
}

/// Returns scheme, host and port of an API on the git server.
///
/// For an ssh URL, it is https on the default port.
pub(super) fn api_origin(url: &RemoteUrl, server: &Server) -> String {
    let Server { host, port } = server;
    match url.transport() {
        Transport::Http if *port == 80 => format!("http://{host}"),
        Transport::Http => format!("http://{host}:{port}"),
        Transport::Https if *port != 443 => format!("https://{host}:{port}"),
        _ => format!("https://{host}"),
    }
}
