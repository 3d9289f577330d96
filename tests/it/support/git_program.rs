//! The git program without the caller's configuration, and persons who clone and push with it.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::bare_repository::BareRepository;
use super::certificates::Identity;
use super::program::{Run, installed, run};

/// The time of every commit and tag of the tests.
/// It is fixed so that equal content has equal ids.
pub(crate) const SECOND: &str = "1767323045 +0000";

/// Replaces a command's environment by the one that git needs, without the caller's configuration.
pub(crate) fn harden(command: &mut Command) -> &mut Command {
    command.env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
        .env("LC_ALL", "C")
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
}

/// `git` in a directory.
pub(crate) fn git(directory: &Path) -> Command {
    let mut command = Command::new(installed("git"));
    harden(&mut command).current_dir(directory).stdin(Stdio::null());
    for role in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{role}_NAME"), "Tester")
            .env(format!("GIT_{role}_EMAIL"), "tester@example.com")
            .env(format!("GIT_{role}_DATE"), SECOND);
    }
    command
}

/// Runs git with `input` and returns its output; anything but success fails the test.
#[track_caller]
pub(crate) fn output(command: &mut Command, input: &[u8]) -> Vec<u8> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("git starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    let output = std::thread::scope(|scope| {
        // A git that fails early stops reading; its message matters more than the broken pipe.
        scope.spawn(move || pipe.write_all(input));
        child.wait_with_output().expect("git ends")
    });
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// A person with a git program of their own.
/// It has the login and the trusted certificate authority.
///
/// ```text
/// let person = Person::basic("bot", "secret").trusting(authority.certificate_file());
/// let clone = person.clone_bare(&host.url("fleet.git"), &directory.join("clone.git"));
/// clone.commit("main", "Change", &[file("app.yaml", "tag: 2\n")]);
/// person.push(&clone, "main").with_status(0);
/// ```
#[derive(Clone, Default)]
pub(crate) struct Person {
    environment: Vec<(OsString, OsString)>,
    settings: Vec<(String, OsString)>,
}

impl Person {
    /// A person without credentials.
    pub(crate) fn anonymous() -> Self {
        Self::default()
    }

    /// A person with user name and password.
    pub(crate) fn basic(user: &str, password: &str) -> Self {
        let helper =
            r#"!f() { test "$1" = get && echo "username=$TEST_USER" && echo "password=$TEST_PASSWORD"; }; f"#;
        Self::default()
            .with("TEST_USER", user)
            .with("TEST_PASSWORD", password)
            .setting("credential.helper", helper)
    }

    /// A person who sends a bearer token with every request.
    pub(crate) fn bearer(token: &str) -> Self {
        Self::default().setting("http.extraHeader", format!("Authorization: Bearer {token}"))
    }

    /// A person who connects with this SSH command.
    pub(crate) fn ssh(command: &str) -> Self {
        Self::default().with("GIT_SSH_COMMAND", command)
    }

    /// Trusts the certificates of this authority only.
    pub(crate) fn trusting(self, authority: &Path) -> Self {
        self.setting("http.sslCAInfo", authority)
    }

    /// Adds a client certificate.
    pub(crate) fn showing(self, identity: &Identity) -> Self {
        self.setting("http.sslCert", identity.certificate_file()).setting("http.sslKey", identity.key_file())
    }

    /// Adds an environment variable.
    pub(crate) fn with(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.into(), value.as_ref().into()));
        self
    }

    /// Adds a line of configuration.
    pub(crate) fn setting(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.settings.push((name.to_owned(), value.as_ref().into()));
        self
    }

    /// Runs `git ARGUMENTS…` in a directory.
    pub(crate) fn git<I>(&self, directory: &Path, arguments: I) -> Run
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        let mut command = git(directory);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.env("GIT_CONFIG_COUNT", self.settings.len().to_string());
        for (place, (name, value)) in self.settings.iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{place}"), name);
            command.env(format!("GIT_CONFIG_VALUE_{place}"), value);
        }
        run(command.args(arguments))
    }

    /// Makes a clone without a work tree; it must succeed.
    #[track_caller]
    pub(crate) fn clone_bare(&self, url: &str, to: &Path) -> BareRepository {
        let around = to.parent().expect("a clone has a directory around it");
        let arguments = ["clone", "--quiet", "--bare", url].map(OsStr::new);
        self.git(around, arguments.into_iter().chain([to.as_os_str()])).with_status(0);
        BareRepository::existing(to)
    }

    /// Pushes a branch of a clone to its origin.
    pub(crate) fn push(&self, clone: &BareRepository, branch: &str) -> Run {
        self.git(clone.path(), ["push", "--porcelain", "origin", branch])
    }

    /// Lists the references of a server.
    pub(crate) fn list(&self, url: &str) -> Run {
        self.git(Path::new("/"), ["ls-remote", url])
    }
}
