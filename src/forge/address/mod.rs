//! The address of a repository at its forge: the API, and the repository's place there.
//!
//! The forge follows from the exact host of the git URL, or from annotations of the GitRepository; nothing is guessed from a
//! part of a host name. Every part of the path is checked, so that no git URL leads to another resource of the API.
//!
//! | file | contents |
//! |---|---|
//! | `host` | the hosts of public forges |
//! | `segments`, `repository` | the parts of a path, and their meaning at each forge |

mod host;
mod repository;
mod segments;
#[cfg(test)]
mod tests;

use tagboat_api::settings::GitRepositorySettings;
use url::Url;

pub(super) use self::host::is_public_github;
use self::host::{ApiOrigin, api_origin, known_host, usual_port};
use self::repository::repository;
pub use self::segments::PathDefect;
use self::segments::segments;
use super::kind::ForgeKind;
use crate::git::{RemoteUrl, Transport};
use crate::net::{Server, percent};

/// The lines that name the Secret for the API.
const SECRET_LINES: &str = "metadata:\n  annotations:\n    tagboat.dev/forge-secret: NAME";

/// The address of a repository at its forge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForgeAddress {
    /// The forge.
    pub kind: ForgeKind,
    /// The base URL of the API, without a slash at its end.
    pub api: String,
    /// True if the annotation `tagboat.dev/forge-url` gives that URL.
    pub is_api_given: bool,
    /// The repository.
    pub repository: ForgeRepository,
}

/// The place of a repository at its forge, as decoded text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForgeRepository {
    /// The owner, workspace, key of a project, organization, or path of a group.
    ///
    /// Only the path of a group has slashes.
    pub owner: String,
    /// The project, which only Azure DevOps has between the owner and the repository.
    pub project: Option<String>,
    /// The name of the repository.
    pub name: String,
}

impl ForgeRepository {
    /// Returns the parts with slashes between them.
    pub fn full_name(&self) -> String {
        let parts = [Some(&self.owner), self.project.as_ref(), Some(&self.name)];
        parts.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join("/")
    }
}

/// The error of a repository that has no usable address at a forge.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The repository is a directory.
    #[error("the git URL is a path of this machine, and no forge serves it: use an https or ssh URL")]
    Local,
    /// The host belongs to no known forge.
    #[error(
        "the host {host} of the git URL is no known forge: add the annotation tagboat.dev/forge to the GitRepository, with one \
         of github, gitlab, gitea, forgejo, bitbucket, bitbucket-data-center, azure-devops"
    )]
    UnknownHost {
        /// The host, with its port if that is unusual.
        host: String,
    },
    /// The annotation contradicts the host.
    #[error("the annotation tagboat.dev/forge is {given}, and {host} is {known}: remove the annotation")]
    OtherForge {
        /// The host.
        host: String,
        /// The forge of the host.
        known: ForgeKind,
        /// The forge of the annotation.
        given: ForgeKind,
    },
    /// An SSH key is no login at an API.
    #[error(
        "the git URL uses ssh, whose key is no login at the API of {kind}: create a Secret with a `token` in the namespace \
         of the GitRepository, and add its name to the GitRepository:\n{SECRET_LINES}"
    )]
    NoSecret {
        /// The forge.
        kind: ForgeKind,
    },
    /// The path of the git URL is not that of a repository at this forge.
    #[error("the git URL is not that of a repository at {kind}, which has {form}")]
    Path {
        /// The forge.
        kind: ForgeKind,
        /// The form of its URLs.
        form: &'static str,
        /// The defect.
        #[source]
        cause: PathDefect,
    },
    /// The URL of the API cannot be used.
    #[error("the annotation tagboat.dev/forge-url cannot be used")]
    ApiUrl {
        /// The defect.
        #[source]
        cause: ApiUrlDefect,
    },
}

/// The defect of the URL of an API.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiUrlDefect {
    /// It is no URL of a server.
    #[error("it is no URL of a server: write https://HOST/PATH")]
    Malformed,
    /// It has a login.
    #[error("it has a login in it: remove it, and use tagboat.dev/forge-secret")]
    UserInfo,
    /// It is not encrypted, and the git URL is.
    #[error("it uses http, which is used only if the git URL uses it: write https://")]
    Http,
    /// The git URL has other parts above the repository.
    #[error("it does not match the path of the git URL, which has the API at {expected}: write {expected}")]
    Context {
        /// The path of the API.
        expected: String,
    },
    /// Its path cannot be used.
    #[error(transparent)]
    Path(PathDefect),
}

impl ForgeAddress {
    /// Finds the forge of a repository, and the repository's place there.
    ///
    /// # Errors
    ///
    /// If the host is unknown, the URLs have an unusable part, or the API has no login.
    pub fn of(url: &RemoteUrl, settings: &GitRepositorySettings) -> Result<Self, AddressError> {
        if url.transport() == Transport::Ssh && settings.forge_secret.name().is_none() {
            let server = url.server().ok_or(AddressError::Local)?;
            return Err(AddressError::NoSecret { kind: kind_of(url, &server, settings)? });
        }
        Self::without_login(url, settings)
    }

    /// Finds the forge of a repository whose API may have no login.
    ///
    /// # Errors
    ///
    /// If the host is unknown, or the URLs have an unusable part.
    pub fn without_login(url: &RemoteUrl, settings: &GitRepositorySettings) -> Result<Self, AddressError> {
        let server = url.server().ok_or(AddressError::Local)?;
        let kind = kind_of(url, &server, settings)?;
        let in_path = |cause| AddressError::Path { kind, form: form(kind), cause };
        let path = segments(path_of(url).strip_prefix('/').unwrap_or_default()).map_err(in_path)?;
        let given = settings.forge_url.text().map(|text| given_api(text, url, &server)).transpose();
        let given = given.map_err(|cause| AddressError::ApiUrl { cause })?;
        let known = known_host(url, &server).map(|host| host.origin);
        let read = repository(kind, url, &path, given.as_ref(), &server);
        let (repository, context) = read.ok_or_else(|| {
            let expected = given.as_ref().and_then(|given| given.expected_for(kind, url, &path));
            match expected {
                Some(expected) => AddressError::ApiUrl { cause: ApiUrlDefect::Context { expected } },
                None => in_path(PathDefect::Form),
            }
        })?;
        let is_api_given = given.is_some();
        let api = match (given, known) {
            (Some(given), _) => given.url,
            (None, Some(ApiOrigin::Fixed(api))) => api,
            (None, Some(ApiOrigin::AzureDevops)) => {
                format!("https://dev.azure.com/{}", percent::encode(repository.owner.as_bytes()))
            }
            (None, Some(ApiOrigin::GitServer) | None) => {
                let context =
                    context.iter().map(|segment| format!("/{}", percent::encode(segment.as_bytes())));
                format!("{}{}{}", api_origin(url, &server), context.collect::<String>(), api_path(kind))
            }
        };
        Ok(Self { kind, api, is_api_given, repository })
    }

    /// Returns the URL of GitHub's GraphQL API; other forges have none.
    pub fn graphql(&self) -> Option<String> {
        if self.kind != ForgeKind::Github {
            return None;
        }
        let above = self.api.strip_suffix("/api/v3").map(|above| format!("{above}/api"));
        Some(format!("{}/graphql", above.as_ref().unwrap_or(&self.api)))
    }
}

/// Finds the forge that serves a repository, by its host or its annotation.
///
/// # Errors
///
/// If the host is unknown and there is no annotation, or if the two contradict each other.
fn kind_of(
    url: &RemoteUrl,
    server: &Server,
    settings: &GitRepositorySettings,
) -> Result<ForgeKind, AddressError> {
    let given = settings.forge.name().map(|name| name.parse().expect("settings have names of forges only"));
    match (known_host(url, server), given) {
        (Some(known), Some(given)) if known.kind != given => {
            Err(AddressError::OtherForge { host: server.host.clone(), known: known.kind, given })
        }
        (Some(known), _) => Ok(known.kind),
        (None, Some(given)) => Ok(given),
        (None, None) => {
            let is_usual = server.port == usual_port(url.transport());
            let port = if is_usual { String::new() } else { format!(":{}", server.port) };
            Err(AddressError::UnknownHost { host: format!("{}{port}", server.host) })
        }
    }
}

/// Returns the path of an API below the root of a forge's web pages.
fn api_path(kind: ForgeKind) -> &'static str {
    match kind {
        ForgeKind::Github => "/api/v3",
        ForgeKind::Gitlab => "/api/v4",
        ForgeKind::Gitea | ForgeKind::Forgejo => "/api/v1",
        ForgeKind::Bitbucket => "/2.0",
        ForgeKind::BitbucketDataCenter => "/rest/api/latest",
        ForgeKind::AzureDevops => "",
    }
}

fn form(kind: ForgeKind) -> &'static str {
    match kind {
        ForgeKind::Github | ForgeKind::Gitea | ForgeKind::Forgejo => {
            "URLs like https://HOST/OWNER/REPOSITORY"
        }
        ForgeKind::Gitlab => "URLs like https://HOST/GROUP/PROJECT, with any number of groups",
        ForgeKind::Bitbucket => "URLs like https://HOST/WORKSPACE/REPOSITORY",
        ForgeKind::BitbucketDataCenter => {
            "URLs like https://HOST/scm/PROJECT/REPOSITORY and ssh://git@HOST/PROJECT/REPOSITORY"
        }
        ForgeKind::AzureDevops => {
            "URLs like https://dev.azure.com/ORG/PROJECT/_git/REPOSITORY, \
             https://ORG.visualstudio.com/PROJECT/_git/REPOSITORY and \
             ssh://git@ssh.dev.azure.com/v3/ORG/PROJECT/REPOSITORY"
        }
    }
}

/// Returns the text of a URL from its path on.
fn path_of(url: &RemoteUrl) -> String {
    let text = url.to_string();
    let rest = text.split_once("://").map_or("", |(_, rest)| rest);
    rest.find(['/', '?', '#']).map(|at| rest[at..].to_owned()).unwrap_or_default()
}

/// A URL of an API that the GitRepository names.
struct GivenApi {
    url: String,
    /// True if it is on the git server.
    is_on_git_server: bool,
    /// The decoded parts of its path.
    path: Vec<String>,
}

impl GivenApi {
    /// Returns the path of the API that the git URL shows.
    ///
    /// The last two parts of the git URL are the repository. There is none if the parts above them do not show it.
    fn expected_for(&self, kind: ForgeKind, url: &RemoteUrl, path: &[String]) -> Option<String> {
        use ForgeKind::{Bitbucket, Forgejo, Gitea, Github};
        let is_below_context = matches!(kind, Github | Gitea | Forgejo | Bitbucket) && path.len() > 2;
        if !is_below_context || !self.is_on_git_server || url.transport() == Transport::Ssh {
            return None;
        }
        let above = path[..path.len() - 2].iter();
        let above = above.map(|segment| format!("/{}", percent::encode(segment.as_bytes())));
        Some(format!("{}{}", above.collect::<String>(), api_path(kind)))
    }
}

/// Reads the URL of an API, or its path on the git server.
fn given_api(text: &str, url: &RemoteUrl, server: &Server) -> Result<GivenApi, ApiUrlDefect> {
    let origin = api_origin(url, server);
    let text = if text.starts_with('/') { format!("{origin}{text}") } else { text.to_owned() };
    // The parser would resolve dots, and read a backslash as a slash.
    let (_, rest) = text.split_once("://").ok_or(ApiUrlDefect::Malformed)?;
    let (authority, path) = rest.split_at(rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len()));
    if authority.contains('@') {
        return Err(ApiUrlDefect::UserInfo);
    }
    // The parser would take the first part of the path for the host.
    if authority.is_empty() {
        return Err(ApiUrlDefect::Malformed);
    }
    let path = match path.strip_suffix('/').unwrap_or(path) {
        "" => Vec::new(),
        path => segments(path.strip_prefix('/').unwrap_or(path)).map_err(ApiUrlDefect::Path)?,
    };
    let parsed = Url::parse(&text).map_err(|_| ApiUrlDefect::Malformed)?;
    if !parsed.has_host() || parsed.port() == Some(0) {
        return Err(ApiUrlDefect::Malformed);
    }
    if parsed.scheme() == "http" && url.transport() != Transport::Http {
        return Err(ApiUrlDefect::Http);
    }
    let given_origin = parsed.origin().ascii_serialization();
    let encoded = path.iter().map(|segment| format!("/{}", percent::encode(segment.as_bytes())));
    Ok(GivenApi {
        url: format!("{given_origin}{}", encoded.collect::<String>()),
        is_on_git_server: given_origin == origin,
        path,
    })
}
