//! The name of a mirror, and of its folder.

use std::io::{self, Write};
use std::path::Path;

use git2::Oid;
use serde::{Deserialize, Serialize};

use crate::directory;

/// The name of a mirror: the remote of one GitRepository, for one namespace.
/// Two namespaces never share a mirror, because they may have different rights.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MirrorKey {
    /// The namespace of the automations that work on it.
    pub namespace: String,
    /// The name of the GitRepository, with its namespace if that differs.
    pub name: String,
    /// Its URL, without credentials.
    pub url: String,
}

impl MirrorKey {
    /// The file within a mirror's folder that holds its key.
    pub(super) const FILE: &str = "key.json";

    /// Reads the key of the mirror in a folder.
    /// The result is `None` if the key is missing or malformed.
    pub(super) fn load(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&directory::read(&folder.join(Self::FILE)).ok()?).ok()
    }

    /// Writes the key into the folder of its mirror.
    pub(super) fn store(&self, folder: &Path) -> io::Result<()> {
        let content = serde_json::to_vec_pretty(self).expect("a key is plain JSON");
        let mut new = tempfile::Builder::new().prefix("tmp_").tempfile_in(folder)?;
        new.write_all(&content)?;
        new.persist(folder.join(Self::FILE)).map_err(|error| error.error)?;
        Ok(())
    }

    /// Returns the name of the mirror's folder.
    /// It is readable, and hardly ever the same for different keys.
    pub(super) fn folder(&self) -> String {
        let Self { namespace, name, url } = self;
        let whole = format!("{namespace}\0{name}\0{url}");
        let hash = Oid::hash_object(git2::ObjectType::Blob, whole.as_bytes()).map(|id| id.to_string());
        let hash = hash.expect("hashing needs no repository");
        let readable = |text: &str| -> String {
            let kept = text.chars().take(40);
            kept.map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
        };
        format!("{}.{}.{}", readable(namespace), readable(name), &hash[..16])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_folder_of_its_own() {
        let key = |namespace: &str, name: &str, url: &str| {
            MirrorKey { namespace: namespace.to_owned(), name: name.to_owned(), url: url.to_owned() }.folder()
        };
        let folders = [
            key("a", "b", "u"),
            key("a", "b", "v"),
            key("c", "b", "u"),
            key("a/../b", "b", "u"),
            key("a", "b.", "u"),
        ];
        for (index, folder) in folders.iter().enumerate() {
            assert!(!folders[..index].contains(folder) && !folder.contains('/'), "{folder}");
        }
    }
}
