//! Where the tags come from that a policy is explained with.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use kube::ResourceExt;
use tagboat_api::{ImagePolicy, ImageRepository};

use crate::cli::Failure;
use crate::cli::given::policy_name;
use crate::cli::registry_login::{self, RegistryLogin};
use crate::cli::scan;
use crate::cli::terminal::say;
use crate::objects::manifests::ManifestStore;
use crate::reconcile::repository::access::access;
use crate::reconcile::repository::exclusion::Exclusion;
use crate::reference::TagList;
use crate::registry::{Registries, RegistryOptions};
use crate::sentence::chain;

/// Where tags come from. A cluster will stand beside them.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TagSource<'a> {
    /// A file with a tag on each line.
    File(&'a Path),
    /// Lines of standard input.
    StandardInput,
    /// The registry of the policy's ImageRepository.
    Registry(RegistryLogin),
}

impl<'a> TagSource<'a> {
    /// Chooses by what is given on the command line.
    pub(super) fn choose(
        tags: Option<&'a Path>,
        policies: &[PathBuf],
        login: RegistryLogin,
    ) -> Result<Self, Failure> {
        let is_input = |path: &Path| path.as_os_str() == "-";
        match tags {
            None => Ok(Self::Registry(login)),
            Some(path) if !is_input(path) => Ok(Self::File(path)),
            Some(_) if policies.iter().any(|path| is_input(path)) => Err(Failure::Usage(
                "standard input cannot hold both the manifests (--policies -) and the tags (--tags -)"
                    .to_owned(),
            )),
            Some(_) => Ok(Self::StandardInput),
        }
    }

    /// Reads the tags that a policy chooses from.
    pub(super) fn read(&self, store: &ManifestStore, policy: &ImagePolicy) -> Result<TagList, Failure> {
        let (name, bytes) = match self {
            Self::File(path) => (path.display().to_string(), fs::read(path)),
            Self::StandardInput => ("standard input".to_owned(), read_input()),
            Self::Registry(login) => return listed(store, repository(store, policy)?, *login),
        };
        let bytes =
            bytes.map_err(|error| Failure::new(format!("cannot read the tags from {name}: {error}")))?;
        lines(&bytes).map_err(|line| Failure::new(format!("{name}:{line}: the tag there is not UTF-8")))
    }
}

/// The ImageRepository that a policy names.
fn repository<'s>(store: &'s ManifestStore, policy: &ImagePolicy) -> Result<&'s ImageRepository, Failure> {
    let reference = &policy.spec.image_repository_ref;
    let namespace = reference.namespace.clone().filter(|namespace| !namespace.is_empty());
    let namespace = namespace.or_else(|| policy.namespace()).unwrap_or_default();
    let is_meant = |repository: &&ImageRepository| {
        repository.name_any() == reference.name
            && repository.namespace().as_deref() == Some(namespace.as_str())
    };
    store.manifests.repositories().find(is_meant).ok_or_else(|| {
        Failure::Usage(format!(
            "the ImageRepository {namespace}/{}, from whose tags {} chooses, is not among the manifests: add it, or \
             give the tags by --tags FILE",
            reference.name,
            policy_name(policy)
        ))
    })
}

/// The tags that the registry lists, less those that the ImageRepository leaves out.
fn listed(
    store: &ManifestStore,
    repository: &ImageRepository,
    login: RegistryLogin,
) -> Result<TagList, Failure> {
    let name = format!("{}/{}", repository.namespace().unwrap_or_default(), repository.name_any());
    let failed = |error: String| Failure::new(format!("ImageRepository {name}: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(format!("cannot begin: {error}")))?;
    let mut asked = repository.clone();
    if login == RegistryLogin::User {
        asked.spec.secret_ref = None;
    }
    let found = runtime.block_on(access(store, &asked)).map_err(|error| failed(chain(&error)))?;
    for note in found.notes {
        say(&format!("warning: ImageRepository {name}: {note}"));
    }
    let mut access = found.access;
    if login == RegistryLogin::User {
        access.credential = registry_login::of_the_user(&access.address)?;
    }
    let registries = Registries::new(RegistryOptions::default());
    let tags = runtime.block_on(scan::list(&registries, access));
    let tags = tags.map_err(|error| failed(format!("scan failed: {}", chain(&error))))?;
    let exclusion = Exclusion::parse(&repository.spec.effective_exclusion_list());
    let exclusion = exclusion.map_err(|error| failed(format!("scan failed: {}", chain(&error))))?;
    Ok(exclusion.apply(&tags))
}

fn read_input() -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// One tag a line, blanks around it and empty lines left out; or the number of a line that is no text.
fn lines(bytes: &[u8]) -> Result<TagList, usize> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let lines = bytes.split(|&byte| byte == b'\n').enumerate();
    let texts = lines.map(|(index, line)| std::str::from_utf8(line).map(str::trim).map_err(|_| index + 1));
    texts.filter(|text| *text != Ok("")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_tag() {
        let tags = lines(b"\xef\xbb\xbf1.0\r\n\n  v2 \n1.0\nlatest").unwrap();
        assert_eq!(tags.iter().collect::<Vec<_>>(), ["v2", "latest", "1.0"]);
        assert!(lines(b" \n\n").unwrap().is_empty());
        assert_eq!(lines(b"1\n2\n\xff\n"), Err(3));
    }
}
