//! A gpg home directory with keys.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::run::scene::Scene;
use crate::support::bare_repository::BareRepository;
use crate::support::git_program::{harden, output};
use crate::support::program::{installed, run};

/// A gpg home directory; its agent ends with it.
pub(crate) struct GpgHome {
    directory: TempDir,
}

impl GpgHome {
    pub(crate) fn new() -> Self {
        // The sockets of an agent need a short path.
        Self { directory: tempfile::Builder::new().prefix("gpg").tempdir_in("/tmp").unwrap() }
    }

    /// Makes a key of a kind for a use, and returns its fingerprint.
    /// The use is `sign`, `cert` or another one of gpg.
    #[track_caller]
    pub(crate) fn key(&self, kind: &str, usage: &str, passphrase: &str) -> String {
        self.dated_key(kind, usage, passphrase, ("", "never"))
    }

    /// Makes a key at another time (such as `20200101T000000`, or none) and with an expiry.
    #[track_caller]
    pub(crate) fn dated_key(
        &self,
        kind: &str,
        usage: &str,
        passphrase: &str,
        (time, end): (&str, &str),
    ) -> String {
        let number = self.fingerprints().len();
        let user = format!("Signer {number} <signer{number}@example.com>");
        self.gpg_at(time, &["--passphrase", passphrase, "--quick-gen-key", &user, kind, usage, end], b"");
        let fingerprints = self.fingerprints();
        fingerprints.last().unwrap().clone()
    }

    /// Adds a subkey to a key, and returns its fingerprint.
    #[track_caller]
    pub(crate) fn subkey(&self, key: &str, kind: &str, usage: &str, passphrase: &str) -> String {
        self.dated_subkey(key, kind, usage, passphrase, ("", "never"))
    }

    #[track_caller]
    pub(crate) fn dated_subkey(
        &self,
        key: &str,
        kind: &str,
        usage: &str,
        passphrase: &str,
        (time, end): (&str, &str),
    ) -> String {
        let before = self.fingerprints();
        self.gpg_at(time, &["--passphrase", passphrase, "--quick-add-key", key, kind, usage, end], b"");
        let new = |fingerprint: &String| !before.contains(fingerprint);
        self.fingerprints().into_iter().find(new).unwrap()
    }

    /// The fingerprints of all keys and subkeys, in order.
    fn fingerprints(&self) -> Vec<String> {
        let listed = self.gpg(&["--with-colons", "--with-subkey-fingerprint", "--list-secret-keys"], b"");
        let listed = String::from_utf8(listed).unwrap();
        let lines = listed.lines().filter(|line| line.starts_with("fpr:"));
        lines.map(|line| line.split(':').nth(9).unwrap().to_owned()).collect()
    }

    /// Returns the output of gpg for an export of a key.
    /// It is text unless the arguments ask for bytes.
    #[track_caller]
    pub(crate) fn export(&self, how: &[&str], key: &str, passphrase: &str) -> Vec<u8> {
        let mut arguments = vec!["--passphrase", passphrase];
        arguments.extend(how);
        arguments.push(key);
        self.gpg(&arguments, b"")
    }

    /// The secret key as text.
    #[track_caller]
    pub(crate) fn secret_key(&self, key: &str, passphrase: &str) -> String {
        String::from_utf8(self.export(&["--armor", "--export-secret-keys"], key, passphrase)).unwrap()
    }

    /// Revokes a whole key.
    #[track_caller]
    pub(crate) fn revoke(&self, key: &str) {
        let place = self.path().join("openpgp-revocs.d").join(format!("{key}.rev"));
        // gpg puts a colon in front, against imports by mistake.
        let certificate = std::fs::read_to_string(place).unwrap().replace("\n:-----BEGIN", "\n-----BEGIN");
        self.gpg(&["--import"], certificate.as_bytes());
    }

    /// Revokes the first subkey of a key.
    #[track_caller]
    pub(crate) fn revoke_subkey(&self, key: &str) {
        self.gpg(
            &["--no-tty", "--passphrase", "", "--command-fd", "0", "--edit-key", key],
            b"key 1\nrevkey\ny\n0\n\ny\nsave\n",
        );
    }

    #[track_caller]
    pub(crate) fn gpg(&self, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        self.gpg_at("", arguments, input)
    }

    #[track_caller]
    fn gpg_at(&self, time: &str, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        let mut command = Command::new(installed("gpg"));
        harden(&mut command).env("GNUPGHOME", self.path());
        command.args(["--quiet", "--yes", "--pinentry-mode", "loopback"]);
        if !arguments.contains(&"--command-fd") {
            command.arg("--batch");
        }
        if !time.is_empty() {
            // It stands still: a key that is made in the next second would expire a second early.
            command.args(["--faked-system-time", &format!("{time}!")]);
        }
        output(command.args(arguments), input)
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Asserts that git finds a good signature on a commit.
    /// The signature must be made by the key part with the fingerprint.
    #[track_caller]
    pub(crate) fn assert_signed(&self, scene: &Scene, revision: &str, fingerprint: &str) {
        self.assert_signed_in(&scene.repository, revision, fingerprint);
    }

    /// The same in any repository.
    #[track_caller]
    pub(crate) fn assert_signed_in(&self, repository: &BareRepository, revision: &str, fingerprint: &str) {
        let mut command = Command::new(installed("git"));
        harden(&mut command).env("GNUPGHOME", self.path()).current_dir(repository.path());
        let check = run(command.args(["verify-commit", "--raw", revision]));
        assert_eq!(check.status, Some(0), "{check:?}");
        let says =
            |word: &str| check.errors.lines().any(|line| line.starts_with(&format!("[GNUPG:] {word} ")));
        assert!(says("GOODSIG") && says(&format!("VALIDSIG {fingerprint}")), "{fingerprint}: {check:?}");
        repository.assert_sound();
    }
}

impl Drop for GpgHome {
    fn drop(&mut self) {
        let mut command = Command::new(installed("gpgconf"));
        harden(&mut command).env("GNUPGHOME", self.path()).args(["--kill", "all"]);
        let _ = command.output();
    }
}
