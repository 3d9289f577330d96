//! SSH keys that sign, and the verification of their signatures by git.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::run::scene::Scene;
use crate::support::git_program::{harden, output};
use crate::support::program::{installed, run};

/// A key that ssh-keygen made.
pub(crate) struct SshSigner {
    pub(crate) private: String,
    pub(super) public: String,
}

impl SshSigner {
    /// Makes a key; `options` of ssh-keygen choose the algorithm.
    #[track_caller]
    pub(crate) fn new(options: &[&str], passphrase: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("key");
        let mut command = Command::new(installed("ssh-keygen"));
        harden(&mut command).args(["-q", "-N", passphrase, "-C", "signer", "-f"]).arg(&file).args(options);
        output(&mut command, b"");
        let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
        Self { private: read("key"), public: read("key.pub") }
    }

    /// The private key as `ssh-keygen -p` rewrites it, with the same passphrase.
    #[track_caller]
    pub(super) fn rewritten(&self, passphrase: &str) -> String {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(self.private.as_bytes()).unwrap();
        let mut command = Command::new(installed("ssh-keygen"));
        harden(&mut command).args(["-q", "-p", "-P", passphrase, "-N", passphrase, "-f"]).arg(file.path());
        output(&mut command, b"");
        fs::read_to_string(file.path()).unwrap()
    }
}

/// Asserts that git finds a good signature by a public key on a commit.
#[track_caller]
pub(super) fn assert_signed(scene: &Scene, revision: &str, public: &str) {
    let place = scene.root().join("allowed_signers");
    fs::write(&place, format!("signer@example.com namespaces=\"git\" {public}\n")).unwrap();
    let check = verify(scene.repository.path(), &place, revision);
    assert_eq!(check.status, Some(0), "{check:?}");
    assert!(check.errors.starts_with("Good \"git\" signature for signer@example.com"), "{check:?}");
    scene.repository.assert_sound();
}

fn verify(repository: &Path, signers: &Path, revision: &str) -> crate::support::program::Run {
    let mut command = Command::new(installed("git"));
    harden(&mut command).current_dir(repository);
    let setting = format!("gpg.ssh.allowedSignersFile={}", signers.display());
    run(command.args(["-c", &setting, "verify-commit", revision]))
}
