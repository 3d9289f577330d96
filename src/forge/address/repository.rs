//! The path of a git URL, read as that of a repository at a forge.

use super::host::one_label;
use super::{ForgeRepository, GivenApi, api_path};
use crate::forge::kind::ForgeKind;
use crate::git::{RemoteUrl, Transport};
use crate::net::Server;

/// Reads the path of a git URL as that of a repository.
///
/// Returns the parts above it too, if the forge is not at the root of its server.
pub(super) fn repository(
    kind: ForgeKind,
    url: &RemoteUrl,
    path: &[String],
    given: Option<&GivenApi>,
    server: &Server,
) -> Option<(ForgeRepository, Vec<String>)> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let is_ssh = url.transport() == Transport::Ssh;
    if kind == ForgeKind::AzureDevops {
        return azure_repository(&path, is_ssh, server);
    }
    let (path, context) = match kind {
        ForgeKind::BitbucketDataCenter if !is_ssh => match path.as_slice() {
            [context @ .., "scm", _, _] => {
                (&path[context.len() + 1..], context.iter().map(|&segment| segment.to_owned()).collect())
            }
            _ => return None,
        },
        _ => {
            (below_context(&path, kind, given.filter(|given| given.is_on_git_server && !is_ssh)), Vec::new())
        }
    };
    let (owner, name) = match kind {
        ForgeKind::Gitlab => match path {
            [groups @ .., name] if !groups.is_empty() => (groups.join("/"), *name),
            _ => return None,
        },
        _ => match *path {
            [owner, name] => (owner.to_owned(), name),
            _ => return None,
        },
    };
    let name = name.strip_suffix(".git").unwrap_or(name);
    if matches!(name, "" | "." | "..") {
        return None;
    }
    Some((ForgeRepository { owner, project: None, name: name.to_owned() }, context))
}

/// Returns the parts of a path below the root of the forge's web pages.
///
/// The URL of the API shows that root.
fn below_context<'p, 's>(path: &'p [&'s str], kind: ForgeKind, given: Option<&GivenApi>) -> &'p [&'s str] {
    let Some(given) = given else { return path };
    let api: Vec<&str> = api_path(kind).split('/').skip(1).collect();
    let above = given.path.len().saturating_sub(api.len());
    if given.path[above..] != api[..] {
        return path;
    }
    let context: Vec<&str> = given.path[..above].iter().map(String::as_str).collect();
    if path.starts_with(&context) { &path[context.len()..] } else { path }
}

/// Reads the path of a git URL of Azure DevOps.
///
/// A repository with the name of its project may omit the project.
fn azure_repository(path: &[&str], is_ssh: bool, server: &Server) -> Option<(ForgeRepository, Vec<String>)> {
    let made = |owner: &str, project: &str, name: &str, context: &[&str]| {
        let [owner, project, name] = [owner, project, name].map(str::to_owned);
        let context = context.iter().map(|segment| (*segment).to_owned()).collect();
        Some((ForgeRepository { owner, project: Some(project), name }, context))
    };
    if is_ssh {
        return match *path {
            ["v3", owner, project, name] => made(owner, project, name, &[owner]),
            _ => None,
        };
    }
    let at = path.iter().position(|segment| *segment == "_git")?;
    let (above, [name]) = (&path[..at], &path[at + 1..]) else { return None };
    if let Some(owner) = one_label(&server.host, ".visualstudio.com") {
        let is_collection = |first: &str| first.eq_ignore_ascii_case("DefaultCollection");
        return match *above {
            [] => made(owner, name, name, &[]),
            [first] if is_collection(first) => made(owner, name, name, &[]),
            [project] => made(owner, project, name, &[]),
            [first, project] if is_collection(first) => made(owner, project, name, &[]),
            _ => None,
        };
    }
    match *above {
        [owner] => made(owner, name, name, above),
        [ref context @ .., project] => {
            let owner = context.last()?;
            made(owner, project, name, context)
        }
        [] => None,
    }
}
