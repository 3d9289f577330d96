//! The token of the requests, from a file.

use std::io;
use std::path::{Path, PathBuf};

use reqwest::header::HeaderValue;

use crate::objects::{SmallFileError, read_small_file};
use crate::secrets::Secret;

/// The maximum size of the file, in bytes.
const MAX_SIZE: u64 = 16 * 1024;

/// A file with a token, which may be replaced while the program runs.
#[derive(Debug, Clone)]
pub struct TokenFile(PathBuf);

/// The error of a token that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("cannot read the token")]
    Unreadable(#[from] SmallFileError),
    /// The file has no token.
    #[error("the file is empty")]
    Empty,
    /// The content cannot be sent in a header.
    #[error("the token must be one line of visible ASCII characters")]
    Characters,
}

impl TokenFile {
    /// Creates the file of a path, after reading the token once.
    ///
    /// # Errors
    ///
    /// If the token cannot be used.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, TokenError> {
        let path = path.into();
        read(&path)?;
        Ok(Self(path))
    }

    /// Reads the token as the file has it now.
    ///
    /// It is read for each request: that is cheap, and no notification about a mounted Secret is needed.
    ///
    /// # Errors
    ///
    /// If the token cannot be used.
    pub(super) async fn token(&self) -> Result<Secret, TokenError> {
        let path = self.0.clone();
        let token = tokio::task::spawn_blocking(move || read(&path)).await;
        token.unwrap_or_else(|error| Err(SmallFileError::from(io::Error::other(error)).into()))
    }
}

/// Returns the header with a token.
pub(super) fn bearer(token: &Secret) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_bytes(&[b"Bearer ", token.expose()].concat()).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn read(path: &Path) -> Result<Secret, TokenError> {
    let content = read_small_file(path, MAX_SIZE)?;
    let token = content.expose().trim_ascii();
    match token {
        [] => Err(TokenError::Empty),
        _ if token.iter().all(u8::is_ascii_graphic) => Ok(Secret::new(token)),
        _ => Err(TokenError::Characters),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::error::chain;

    #[tokio::test]
    async fn a_token_is_read_anew_and_without_white_space() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        fs::write(&path, "hunter2\n").unwrap();
        let file = TokenFile::open(&path).unwrap();
        assert_eq!(file.token().await.unwrap().expose(), b"hunter2");
        fs::write(&path, " hunter3 ").unwrap();
        let token = file.token().await.unwrap();
        let header = bearer(&token).unwrap();
        assert_eq!((header.as_bytes(), header.is_sensitive()), (&b"Bearer hunter3"[..], true));
        fs::remove_file(&path).unwrap();
        assert!(matches!(file.token().await, Err(TokenError::Unreadable(_))));
    }

    #[test]
    fn a_file_without_a_token_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let refusal = |content: &[u8]| {
            fs::write(&path, content).unwrap();
            chain(&TokenFile::open(&path).unwrap_err())
        };
        assert_eq!(refusal(b" \n"), "the file is empty");
        let large = "cannot read the token: it has more than 16384 bytes";
        assert_eq!(refusal(&[b'a'; 16 * 1024 + 1]), large);
        for content in [&b"a b"[..], b"a\nb", b"a\0", "é".as_bytes()] {
            assert_eq!(refusal(content), "the token must be one line of visible ASCII characters");
        }
        let folder = TokenFile::open(directory.path());
        assert!(matches!(folder, Err(TokenError::Unreadable(SmallFileError::NotAFile))));
    }
}
