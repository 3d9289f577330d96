//! A registry, a git server, and the manifests that connect them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::bare_repository::LoggedCommit;
use crate::support::content::file;
use crate::support::git_host::Settings;
use crate::support::manifests::marker;
use crate::support::program::{Run, run, tagboat};
use crate::support::registry::Registry;
use crate::support::remote_fleet::{RemoteFleet, only_outcome};

/// Creation time of the images of these tests.
pub(super) const MADE: &str = "2020-01-02T03:04:05Z";

/// The policy `default/web` selects from the ImageRepository `default/web`, and the automation `default/fleet` writes
/// its image into `app.yaml`. Each object can be written again, with changes that are merged into its default.
pub(super) struct Scene {
    pub(super) registry: Registry,
    pub(super) fleet: RemoteFleet,
}

impl Scene {
    /// A registry with `app/web:1.0.0`, and a fleet that runs `0.9.0`.
    pub(super) fn new() -> Self {
        let registry = Registry::start();
        registry.push("app/web", "1.0.0", MADE);
        let address = registry.address();
        let line = format!("image: {address}/app/web:0.9.0 {}\n", marker("default:web"));
        let fleet = RemoteFleet::of_files(&[file("app.yaml", line)], Settings::default());
        let scene = Self { registry, fleet };
        scene.source("default");
        scene.automation("default", json!({}));
        scene.repository("web", json!({}));
        scene.policy("web", json!({}));
        scene
    }

    /// The image of a repository of the registry.
    pub(super) fn image(&self, repository: &str) -> String {
        format!("{}/{repository}", self.registry.address())
    }

    /// Writes a manifest, in place of an earlier one of the same kind and name.
    pub(super) fn write(&self, object: &Value) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
        let name =
            format!("{}-{}-{}.yaml", text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
        fs::write(self.manifests().join(name), object.to_string()).unwrap();
    }

    pub(super) fn manifests(&self) -> PathBuf {
        self.fleet.root().join("manifests")
    }

    /// Writes the GitRepository of a namespace.
    pub(super) fn source(&self, namespace: &str) {
        let mut object = object("source.toolkit.fluxcd.io/v1", "GitRepository", namespace, "fleet");
        object["spec"] =
            json!({"interval": "1m", "url": self.fleet.host.url("fleet.git"), "ref": {"branch": "main"}});
        self.write(&object);
    }

    /// Writes the automation of a namespace.
    pub(super) fn automation(&self, namespace: &str, spec: Value) {
        let mut object = object("image.toolkit.fluxcd.io/v1", "ImageUpdateAutomation", namespace, "fleet");
        object["spec"] = json!({
            "interval": "10m",
            "sourceRef": {"kind": "GitRepository", "name": "fleet"},
            "git": {"commit": {"author": {"name": "Tagboat", "email": "bot@example.com"}}},
        });
        merge(&mut object["spec"], spec);
        self.write(&object);
    }

    /// Writes the ImageRepository `default/NAME` of `app/NAME`.
    pub(super) fn repository(&self, name: &str, changes: Value) {
        let mut object = object("image.toolkit.fluxcd.io/v1", "ImageRepository", "default", name);
        object["spec"] = json!({"image": self.image(&format!("app/{name}")), "interval": "10m"});
        merge(&mut object, changes);
        self.write(&object);
    }

    /// Writes the ImagePolicy `default/NAME`, which selects the highest version of the repository of its name.
    pub(super) fn policy(&self, name: &str, changes: Value) {
        let mut object = object("image.toolkit.fluxcd.io/v1", "ImagePolicy", "default", name);
        object["spec"] = json!({"imageRepositoryRef": {"name": name}, "policy": {"semver": {"range": "*"}}});
        merge(&mut object, changes);
        self.write(&object);
    }

    /// Writes another policy with a repository and a file of its own, which shows `0.1.0`.
    pub(super) fn another(&self, name: &str) {
        self.repository(name, json!({}));
        self.policy(name, json!({}));
        let image = self.image(&format!("app/{name}"));
        let line = format!("image: {image}:0.1.0 {}\n", marker(&format!("default:{name}")));
        self.fleet.repository.commit("main", "More", &[file(format!("{name}.yaml"), line)]);
    }

    /// `tagboat run` with the state of this scene, without the caller's proxies.
    pub(super) fn command(&self) -> Command {
        let mut command = self.fleet.command();
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "DOCKER_CONFIG"] {
            command.env_remove(name).env_remove(name.to_lowercase());
        }
        command
    }

    pub(super) fn run(&self, more: &[&str]) -> Run {
        run(self.command().args(more))
    }

    /// Runs without a state.
    pub(super) fn run_without_state(&self, more: &[&str]) -> Run {
        let mut command = tagboat();
        command.env("TMPDIR", self.fleet.root().join("temporary"));
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "DOCKER_CONFIG"] {
            command.env_remove(name).env_remove(name.to_lowercase());
        }
        command.arg("run").arg(self.manifests()).args(["--output", "json"]).args(more);
        run(&mut command)
    }

    /// Runs, asserts success, and returns the outcome.
    #[track_caller]
    pub(super) fn outcome(&self, more: &[&str]) -> Value {
        only_outcome(&self.run(more).with_status(0))
    }

    /// The outcome of a run that succeeds, in a word.
    #[track_caller]
    pub(super) fn outcome_name(&self, more: &[&str]) -> String {
        self.outcome(more)["outcome"].as_str().unwrap().to_owned()
    }

    /// The value of a file on `main`, without the registry's address.
    pub(super) fn value(&self, name: &str) -> String {
        let text = String::from_utf8(self.fleet.repository.file("main", &format!("{name}.yaml"))).unwrap();
        let value = text.split(' ').nth(1).unwrap();
        value.strip_prefix(&format!("{}/", self.registry.address())).unwrap_or(value).to_owned()
    }

    /// The commits that the program made, the newest first.
    pub(super) fn commits(&self) -> Vec<LoggedCommit> {
        self.fleet.own_commits()
    }

    /// The state of an object.
    pub(super) fn state_of(&self, kind: &str, name: &str) -> Value {
        let place = self.fleet.state().join(format!("objects/{kind}/default/{name}.json"));
        serde_json::from_slice(&fs::read(place).unwrap()).unwrap()
    }
}

pub(super) fn object(api_version: &str, kind: &str, namespace: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"namespace": namespace, "name": name}})
}

/// Merges objects member by member; a null removes a member.
pub(super) fn merge(into: &mut Value, changes: Value) {
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
