//! A fleet on a git server.
//! It has the manifests of `tagboat run`, and a state directory.
//!
//! ```text
//! let fleet = RemoteFleet::small();
//! fleet.host.once(Operation::Push, Fault::ResetAfterwards);
//! fleet.run().with_status(0);
//! fleet.assert_pushed_once();
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::bare_repository::{BareRepository, LoggedCommit};
use super::content::{Change, file};
use super::fleet::{podinfo, tag_line};
use super::git_host::{GitHost, Settings};
use super::manifests::automation;
use super::program::{Run, run, tagboat};

/// A repository `fleet.git` on a host, with manifests and a state directory.
pub(crate) struct RemoteFleet {
    pub(crate) repository: BareRepository,
    pub(crate) host: GitHost,
    root: TempDir,
}

/// Returns the fields of an automation with an author and a push spec.
/// An example of a push spec is `branch: main`.
pub(crate) fn git_fields(author: &str, push: &str) -> String {
    format!(
        "  git:\n    commit: {{author: {{name: {author}, email: bot@example.com}}}}\n    push: {{{push}}}\n  \
         update: {{strategy: Setters, path: ./}}\n"
    )
}

/// The GitRepository `default/fleet`; `fields` are further members of its `spec`, such as `timeout: 2s`.
pub(crate) fn git_repository(url: &str, fields: &str) -> String {
    let fields = if fields.is_empty() { String::new() } else { format!(", {fields}") };
    format!(
        "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\n\
         metadata: {{name: fleet, namespace: default}}\n\
         spec: {{interval: 1m, url: {url:?}, ref: {{branch: main}}{fields}}}\n"
    )
}

/// A Secret `default/NAME` with members of `stringData`.
pub(crate) fn secret(name: &str, members: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: default}}\n\
         stringData: {{{members}}}\n"
    )
}

impl RemoteFleet {
    /// One marked file, one policy, and one automation `default/fleet` that pushes to `main`.
    pub(crate) fn small() -> Self {
        Self::pushing("branch: main")
    }

    /// The small fleet with another push spec.
    pub(crate) fn pushing(push: &str) -> Self {
        let fleet = Self::of_files(&[file("app.yaml", tag_line("4.0.6"))], Settings::default());
        fleet.write_small_manifests(push, "");
        fleet
    }

    /// A fleet with these files, and without manifests yet.
    pub(crate) fn of_files(files: &[Change], settings: Settings) -> Self {
        let root = tempfile::tempdir().unwrap();
        for directory in ["served", "manifests", "temporary"] {
            fs::create_dir(root.path().join(directory)).unwrap();
        }
        let repository = BareRepository::with_files(&root.path().join("served/fleet.git"), files);
        let host = GitHost::start(&root.path().join("served"), settings);
        Self { repository, host, root }
    }

    /// Writes the manifests of a small fleet; `fields` are further members of the GitRepository's `spec`.
    pub(crate) fn write_small_manifests(&self, push: &str, fields: &str) {
        let url = self.host.url("fleet.git");
        let parts = [
            podinfo(),
            git_repository(&url, fields),
            automation("default", "fleet", &git_fields("Tagboat", push)),
        ];
        self.write_manifests(&parts.concat());
    }

    pub(crate) fn write_manifests(&self, text: &str) {
        fs::write(self.root.path().join("manifests/manifests.yaml"), text).unwrap();
    }

    /// The directory of all files; the host serves `served` below it.
    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    /// The state directory of runs.
    pub(crate) fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    /// `tagboat run` with the fleet's state.
    pub(crate) fn command(&self) -> Command {
        self.command_on(&self.root.path().join("manifests"), &self.state())
    }

    /// `tagboat run` with other manifests and another state.
    pub(crate) fn command_on(&self, manifests: &Path, state: &Path) -> Command {
        let mut command = tagboat();
        command.env("TMPDIR", self.root.path().join("temporary"));
        command.arg("run").arg(manifests).args(["--output", "json", "--state"]).arg(state);
        command
    }

    pub(crate) fn run(&self) -> Run {
        run(&mut self.command())
    }

    /// Runs with another latest image of the policy `podinfo`.
    pub(crate) fn run_with_tag(&self, tag: &str) -> Run {
        run(self.command().arg("--latest").arg(format!("podinfo={}:{tag}", super::fleet::IMAGE)))
    }

    pub(crate) fn tip(&self) -> String {
        self.repository.id("refs/heads/main").expect("there is a branch main")
    }

    /// The commits on `main` that the program made, the newest first.
    pub(crate) fn own_commits(&self) -> Vec<LoggedCommit> {
        let mut commits = self.repository.log("main");
        commits.retain(|commit| commit.author.ends_with("<bot@example.com>"));
        commits
    }

    /// An automation's status in the state directory.
    #[track_caller]
    pub(crate) fn status(&self, name: &str) -> Value {
        let place = self.state().join(format!("objects/ImageUpdateAutomation/default/{name}.json"));
        let object: Value = serde_json::from_slice(&fs::read(place).expect("a run has left it")).unwrap();
        object["status"].clone()
    }

    /// Asserts that there is exactly one commit of ours, with the policy's tag.
    /// The commit's id must be in the status of `default/fleet`.
    #[track_caller]
    pub(crate) fn assert_pushed_once(&self) {
        let own = self.own_commits();
        assert_eq!(own.len(), 1, "{:?}", self.repository.log("main"));
        assert_eq!(self.repository.file("main", "app.yaml"), tag_line("5.0.3").as_bytes());
        let status = self.status("fleet");
        assert_eq!(status["lastPushCommit"], own[0].id.as_str(), "{status:#}");
        assert_eq!(ready(&status)["status"], "True", "{status:#}");
        self.assert_sound();
    }

    /// Asserts that the repository, and every mirror of it, is sound.
    #[track_caller]
    pub(crate) fn assert_sound(&self) {
        self.repository.assert_sound();
        let Ok(mirrors) = fs::read_dir(self.state().join("mirrors")) else { return };
        for mirror in mirrors {
            BareRepository::existing(&mirror.unwrap().path().join("repository.git")).assert_sound();
        }
    }

    /// Returns the ids of the processes that have this server's address among their arguments.
    /// These are processes other than the program.
    pub(crate) fn git_processes(&self) -> Vec<i32> {
        let address = self.host.url("");
        let mut found = Vec::new();
        for item in fs::read_dir("/proc").unwrap().flatten() {
            let Some(id) = item.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let arguments = fs::read(item.path().join("cmdline")).unwrap_or_default();
            if String::from_utf8_lossy(&arguments).contains(&address) {
                found.push(id);
            }
        }
        found
    }

    /// Asserts that no git process is left.
    /// The kernel may need a moment to remove killed ones.
    #[track_caller]
    pub(crate) fn assert_no_processes(&self) {
        let begin = Instant::now();
        while !self.git_processes().is_empty() {
            assert!(begin.elapsed() < Duration::from_secs(30), "{:?} are left", self.git_processes());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The condition Ready of a status.
pub(crate) fn ready(status: &Value) -> &Value {
    let conditions = status["conditions"].as_array().expect("a status has conditions");
    conditions.iter().find(|condition| condition["type"] == "Ready").expect("a run sets Ready")
}

/// The outcome of the only automation of a run.
#[track_caller]
pub(crate) fn only_outcome(run: &Run) -> Value {
    let outcomes = run.json()["automations"].clone();
    assert_eq!(outcomes.as_array().map(Vec::len), Some(1), "{run:?}");
    outcomes[0].clone()
}

/// The outcome's name and the commit of the only automation.
#[track_caller]
pub(crate) fn outcome_and_commit(run: &Run) -> (String, Option<String>) {
    let outcome = only_outcome(run);
    let word = outcome["outcome"].as_str().expect("an outcome has a name").to_owned();
    (word, outcome["commit"]["id"].as_str().map(str::to_owned))
}
