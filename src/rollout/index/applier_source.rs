//! The directory of a git repository that an applier applies.

use tagboat_api::ObjectName;

use super::GitAddress;
use crate::rollout::objects::ApplicationSource;
use crate::rollout::watched::WatchedObject;

/// A directory of a git repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Directory {
    pub(super) source: Source,
    /// The path from the root of the repository; empty for the root.
    ///
    /// It has no `.` and no slashes at its ends.
    pub(super) path: String,
}

/// The git repository of an applier.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// An address.
    Address(GitAddress),
    /// A GitRepository, which has the address.
    GitRepository(ObjectName),
}

/// Returns the directories that an applier applies, in the order of its sources.
///
/// An unreadable applier, and any other object, has none.
pub(super) fn directories(object: &WatchedObject) -> Vec<Directory> {
    match object {
        WatchedObject::Kustomization(kustomization) => {
            let Ok(spec) = kustomization.spec.get() else { return Vec::new() };
            if spec.source_ref.kind != "GitRepository" {
                return Vec::new();
            }
            let namespace = spec.source_ref.namespace.as_ref().or(kustomization.metadata.namespace.as_ref());
            let name = ObjectName {
                namespace: namespace.cloned().unwrap_or_default(),
                name: spec.source_ref.name.clone(),
            };
            let path = normalized(spec.path.as_deref().unwrap_or_default());
            vec![Directory { source: Source::GitRepository(name), path }]
        }
        WatchedObject::Application(application) => {
            let Ok(spec) = application.spec.get() else { return Vec::new() };
            let sources = spec.sources().iter();
            // A source without a path is a Helm chart.
            let directory = |source: &ApplicationSource| Directory {
                source: Source::Address(GitAddress::new(&source.repo_url)),
                path: normalized(source.path.as_deref().unwrap_or_default()),
            };
            sources.map(directory).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns a path without empty and `.` components.
fn normalized(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    parts.join("/")
}

/// Returns the directories above a file, the nearest first and the root last.
pub(super) fn above(file: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(file), |path| {
        (!path.is_empty()).then(|| path.rsplit_once('/').map_or("", |(directory, _)| directory))
    })
    .skip(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_no_empty_and_dot_components() {
        for (path, expected) in
            [("", ""), (".", ""), ("./", ""), ("/", ""), ("./apps/", "apps"), ("apps//x/./y", "apps/x/y")]
        {
            assert_eq!(normalized(path), expected, "{path}");
        }
    }

    #[test]
    fn the_root_is_above_each_file() {
        assert_eq!(above("a/b/c.yaml").collect::<Vec<_>>(), ["a/b", "a", ""]);
        assert_eq!(above("c.yaml").collect::<Vec<_>>(), [""]);
        assert_eq!(above("").count(), 0);
    }
}
