//! The files of a directory with kubeconfigs.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::objects::{SmallFileError, read_small_file};
use crate::secrets::Secret;

/// The maximum number of clusters; further files are ignored.
pub const MAX_CLUSTERS: usize = 64;

/// The maximum number of entries of the directory that are looked at.
const MAX_ENTRIES: usize = 4_096;

/// The maximum size of a kubeconfig, in bytes.
const MAX_SIZE: u64 = 256 * 1024;

/// The maximum length of a cluster's name, which is that of a DNS label.
const MAX_NAME: usize = 63;

/// The end of the names of kubeconfigs.
const SUFFIX: &str = ".kubeconfig";

/// The directory cannot be listed.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the directory {}", directory.display())]
pub struct DirectoryError {
    directory: PathBuf,
    #[source]
    source: io::Error,
}

/// The kubeconfigs of a directory.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// The content of each kubeconfig, by the name of its cluster.
    pub(super) files: BTreeMap<String, Result<Secret, SmallFileError>>,
    /// The reasons why other kubeconfigs are ignored, one sentence each.
    pub(super) ignored: Vec<String>,
}

/// Reads the kubeconfigs of a directory.
///
/// It blocks. `own_name` is the name of Tagboat's own cluster, which no other can have.
///
/// # Errors
///
/// If the directory cannot be listed.
pub(super) fn read(directory: &Path, own_name: &str) -> Result<Files, DirectoryError> {
    let failed = |source| DirectoryError { directory: directory.to_owned(), source };
    let mut paths: BTreeMap<String, PathBuf> = BTreeMap::new();
    for entry in fs::read_dir(directory).map_err(failed)?.take(MAX_ENTRIES) {
        let entry = entry.map_err(failed)?;
        let file_name = entry.file_name();
        let Some(name) = file_name.to_str().and_then(|name| name.strip_suffix(SUFFIX)) else { continue };
        paths.insert(name.to_owned(), entry.path());
    }
    let mut found = Files::default();
    for (name, path) in paths {
        if !is_label(&name) {
            let text = "is ignored: the name of a cluster has at most 63 small letters, digits and dashes";
            found.ignored.push(format!("{name:?}{SUFFIX} {text}"));
        } else if name == own_name {
            found.ignored.push(format!("{name}{SUFFIX} is ignored: Tagboat's own cluster has this name"));
        } else if found.files.len() >= MAX_CLUSTERS {
            found
                .ignored
                .push(format!("{name}{SUFFIX} is ignored: there are more than {MAX_CLUSTERS} clusters"));
        } else {
            found.files.insert(name, read_small_file(&path, MAX_SIZE));
        }
    }
    Ok(found)
}

/// Returns true for a DNS label, which no kind of an object can be.
fn is_label(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.len() <= MAX_NAME
        && bytes.iter().all(|&byte| is_plain(byte) || byte == b'-')
        && bytes.first().is_some_and(|&byte| is_plain(byte))
        && bytes.last().is_some_and(|&byte| is_plain(byte))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_names_of_files_are_those_of_clusters() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(root.path().join(name), text).unwrap();
        for name in ["edge", "own", "Edge", "-a", "a.b", ""] {
            write(&format!("{name}.kubeconfig"), name);
        }
        write("edge.txt", "");
        write("large.kubeconfig", &" ".repeat(256 * 1024 + 1));
        fs::create_dir(root.path().join("folder.kubeconfig")).unwrap();
        symlink("nowhere", root.path().join("broken.kubeconfig")).unwrap();
        let found = read(root.path(), "own").unwrap();
        let texts: Vec<(&str, String)> = found
            .files
            .iter()
            .map(|(name, file)| {
                let text = file.as_ref().map(|text| String::from_utf8(text.expose().to_vec()).unwrap());
                (name.as_str(), text.unwrap_or_else(ToString::to_string))
            })
            .collect();
        let expected = [
            ("broken", "No such file or directory (os error 2)"),
            ("edge", "edge"),
            ("folder", "it is not a regular file"),
            ("large", "it has more than 262144 bytes"),
        ];
        assert_eq!(texts, expected.map(|(name, text)| (name, text.to_owned())));
        assert_eq!(found.ignored.len(), 5, "{:?}", found.ignored);
        assert!(read(&root.path().join("none"), "own").is_err());
    }

    #[test]
    fn the_number_of_clusters_is_bounded() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..=MAX_CLUSTERS {
            fs::write(root.path().join(format!("c{number}.kubeconfig")), "").unwrap();
        }
        let found = read(root.path(), "own").unwrap();
        assert_eq!((found.files.len(), found.ignored.len()), (MAX_CLUSTERS, 1));
    }
}
