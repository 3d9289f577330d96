//! SSH keys, made at run time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::git_program::{harden, output};
use super::program::installed;

/// A pair of keys in files.
pub(crate) struct SshKey {
    private: PathBuf,
}

impl SshKey {
    /// Makes a pair of the kind `ed25519`, `ecdsa` or `rsa`.
    /// The kind `rsa` is slow. An empty passphrase is none.
    pub(crate) fn generate(directory: &Path, name: &str, kind: &str, passphrase: &str) -> Self {
        let private = directory.join(name);
        let mut command = Command::new(installed("ssh-keygen"));
        harden(&mut command).args(["-q", "-t", kind, "-N", passphrase, "-C", name, "-f"]).arg(&private);
        output(&mut command, b"");
        Self { private }
    }

    /// The file of the private key, of mode 0600.
    pub(crate) fn private_file(&self) -> &Path {
        &self.private
    }

    /// The private key as text.
    pub(crate) fn private(&self) -> String {
        fs::read_to_string(&self.private).expect("the key was just made")
    }

    /// The public key as text: kind, key and name on one line.
    pub(crate) fn public(&self) -> String {
        let file = self.private.with_extension("pub");
        fs::read_to_string(file).expect("the key was just made").trim_end().to_owned()
    }
}
