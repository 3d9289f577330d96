//! One repository, the manifests that refer to it, and runs of the program on both.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::bare_repository::BareRepository;
use crate::support::content::{Change, file};
use crate::support::fleet::{podinfo, tag_line};
use crate::support::git_host::{GitHost, Settings};
use crate::support::manifests::policy;
use crate::support::program::{Run, run, tagboat};

/// The maximum time of a run in these tests, with any fault.
/// Sources have a third of it as their timeout.
const LONGEST_RUN: Duration = Duration::from_secs(60);

/// A repository `fleet.git`, a directory of manifests, and the environment of a run.
///
/// The automation is `default/fleet`, its source the GitRepository `default/fleet`, its policy `default/podinfo`. Each
/// of them can be written again, with changes that are merged into its default.
pub(crate) struct Scene {
    root: TempDir,
    pub(crate) repository: BareRepository,
}

impl Scene {
    /// A repository with one marked file that is older than its policy's image.
    pub(crate) fn new() -> Self {
        Self::with_files(&[file("app.yaml", tag_line("4.0.6"))])
    }

    /// A repository with one commit on `main`.
    pub(crate) fn with_files(files: &[Change]) -> Self {
        let scene = Self::empty();
        scene.repository.commit("main", "Begin", files);
        scene
    }

    /// A repository without commits.
    pub(crate) fn empty() -> Self {
        Self::of(BareRepository::empty)
    }

    /// A repository that `make` creates at a path.
    pub(crate) fn of(make: impl FnOnce(&Path) -> BareRepository) -> Self {
        let root = tempfile::tempdir().unwrap();
        for name in ["served", "manifests", "tmp", "home"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        let repository = make(&root.path().join("served/fleet.git"));
        let scene = Self { root, repository };
        scene.write("policy.yaml", &podinfo());
        scene.automation(json!({}));
        scene
    }

    /// The directory of all files of this scene.
    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    /// The directory of the program's temporary files.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.root.path().join("tmp")
    }

    /// The state directory of [`Scene::run_with_state`].
    pub(crate) fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    /// Serves the repository over HTTP, and makes it the source.
    pub(crate) fn serve(&self, settings: Settings) -> GitHost {
        let host = GitHost::start(&self.root.path().join("served"), settings);
        self.source(json!({"url": host.url("fleet.git")}));
        host
    }

    /// Makes the repository's path on this machine the source.
    pub(crate) fn local(self) -> Self {
        self.source(json!({"url": self.repository.path()}));
        self
    }

    /// Writes a file of manifests.
    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.root.path().join("manifests").join(name), text).unwrap();
    }

    /// Writes the GitRepository; `spec` is merged into a branch `main` and a timeout.
    pub(crate) fn source(&self, spec: Value) {
        let mut object = object("source.toolkit.fluxcd.io/v1", "GitRepository", "fleet");
        object["spec"] = json!({"interval": "1m", "timeout": "20s", "ref": {"branch": "main"}});
        merge(&mut object["spec"], spec);
        self.write("source.yaml", &object.to_string());
    }

    /// Writes the automation; `spec` is merged into one that has an author.
    pub(crate) fn automation(&self, spec: Value) {
        let mut changes = json!({});
        changes["spec"] = spec;
        self.automation_with(changes);
    }

    /// Writes the automation; `object` is merged into the whole of one that has an author.
    pub(crate) fn automation_with(&self, changes: Value) {
        let mut object = object("image.toolkit.fluxcd.io/v1", "ImageUpdateAutomation", "fleet");
        object["spec"] = json!({
            "interval": "10m",
            "sourceRef": {"kind": "GitRepository", "name": "fleet"},
            "git": {"commit": {"author": {"name": "Flux", "email": "flux@example.com"}}},
        });
        merge(&mut object, changes);
        self.write("automation.yaml", &object.to_string());
    }

    /// Sets the latest tag of the policy.
    pub(crate) fn latest(&self, tag: &str) {
        let image = crate::support::fleet::IMAGE;
        self.write("policy.yaml", &policy("default", "podinfo", image, tag));
    }

    /// Writes a Secret; `fields` are `data` and `stringData`.
    pub(crate) fn secret(&self, name: &str, fields: Value) {
        let mut object = object("v1", "Secret", name);
        merge(&mut object, fields);
        self.write(&format!("secret-{name}.yaml"), &object.to_string());
    }

    /// Makes a directory with one file per key, for `--secret`.
    pub(crate) fn secret_directory(&self, keys: &[(&str, &str)]) -> PathBuf {
        let directory = self.root.path().join("secret");
        fs::create_dir(&directory).unwrap();
        for (key, value) in keys {
            fs::write(directory.join(key), value).unwrap();
        }
        directory
    }

    /// `tagboat run MANIFESTS`, with only PATH of the caller's environment.
    pub(crate) fn command(&self) -> Command {
        let mut command = tagboat();
        command.env_clear().env("LC_ALL", "C").env("HOME", self.root.path().join("home"));
        command.env("TMPDIR", self.temporary()).env("PATH", std::env::var_os("PATH").unwrap());
        command.current_dir(self.root.path()).arg("run").arg(self.root.path().join("manifests"));
        command
    }

    /// Runs the program without a state, in bounded time.
    #[track_caller]
    pub(crate) fn run<I>(&self, more: I) -> Run
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        run_in_time(self.command().args(more))
    }

    /// Runs the program with the state directory, in bounded time.
    #[track_caller]
    pub(crate) fn run_with_state<I>(&self, more: I) -> Run
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        let more = more.into_iter().map(|argument| argument.as_ref().to_owned());
        let state = [OsString::from("--state"), self.state().into()];
        self.run(state.into_iter().chain(more))
    }

    /// The automation's status in the state directory.
    #[track_caller]
    pub(crate) fn status(&self) -> Value {
        let place = self.state().join("objects/ImageUpdateAutomation/default/fleet.json");
        let content = fs::read(place).expect("a status was kept");
        serde_json::from_slice::<Value>(&content).unwrap()["status"].take()
    }

    /// The tag that a commit has in `app.yaml`.
    #[track_caller]
    pub(crate) fn tag(&self, revision: &str) -> String {
        let text = String::from_utf8(self.repository.file(revision, "app.yaml")).unwrap();
        text.split(' ').nth(1).unwrap().to_owned()
    }
}

/// Runs a command, which may take [`LONGEST_RUN`].
#[track_caller]
pub(crate) fn run_in_time(command: &mut Command) -> Run {
    let begin = Instant::now();
    let run = run(command);
    assert!(begin.elapsed() < LONGEST_RUN, "{:?}: {run:?}", begin.elapsed());
    run
}

fn object(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"namespace": "default", "name": name}})
}

/// Merges objects member by member; a null removes a member.
fn merge(into: &mut Value, changes: Value) {
    match (into, changes) {
        (Value::Object(into), Value::Object(changes)) => {
            for (key, change) in changes {
                if change.is_null() {
                    into.remove(&key);
                } else {
                    merge(into.entry(key).or_insert(Value::Null), change);
                }
            }
        }
        (into, changes) => *into = changes,
    }
}
