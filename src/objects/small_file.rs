//! Small regular files, such as those of a mounted Secret.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use crate::secrets::Secret;

/// A small file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SmallFileError {
    /// It is a directory, a pipe or the like.
    #[error("it is not a regular file")]
    NotAFile,
    /// It is too large.
    #[error("it has more than {max} bytes")]
    TooLarge {
        /// The maximum size.
        max: u64,
    },
    /// It cannot be opened or read.
    #[error(transparent)]
    Unreadable(#[from] io::Error),
}

/// Reads a regular file of at most `max` bytes.
///
/// Symbolic links are followed, which a mounted Secret has. It blocks.
///
/// # Errors
///
/// If it is no regular file, is larger, or cannot be read.
pub fn read_small_file(path: &Path, max: u64) -> Result<Secret, SmallFileError> {
    // A pipe would block when it is opened.
    if !fs::metadata(path)?.is_file() {
        return Err(SmallFileError::NotAFile);
    }
    let mut content = Vec::new();
    let read = File::open(path)?.take(max.saturating_add(1)).read_to_end(&mut content);
    let content = Secret::new(content);
    read?;
    if content.expose().len() as u64 > max {
        return Err(SmallFileError::TooLarge { max });
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    #[test]
    fn only_a_regular_file_of_the_maximum_size_is_read() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        fs::write(path("full"), "1234").unwrap();
        fs::write(path("large"), "12345").unwrap();
        symlink("full", path("link")).unwrap();
        symlink("nowhere", path("broken")).unwrap();
        fs::create_dir(path("folder")).unwrap();
        // Opening it would wait for a writer.
        assert!(Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
        for (name, expected) in [
            ("full", Ok("1234")),
            ("link", Ok("1234")),
            ("large", Err("it has more than 4 bytes")),
            ("folder", Err("it is not a regular file")),
            ("pipe", Err("it is not a regular file")),
            ("broken", Err("No such file or directory (os error 2)")),
        ] {
            let found = read_small_file(&path(name), 4).map_err(|error| error.to_string());
            let found = found.map(|text| String::from_utf8(text.expose().to_vec()).unwrap());
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{name}");
        }
    }
}
