//! A fleet in a repository of Gitea, with the manifests of `tagboat run`.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::fleet::{IMAGE, tag_line};
use crate::support::gitea::GiteaRepository;
use crate::support::http_front::Front;
use crate::support::manifests::policy;
use crate::support::program::{Run, run, tagboat};

/// The branch of the automation `default/fleet` without a path.
pub(crate) const BRANCH: &str = "tagboat/default-fleet";

/// One marked file `app.yaml`, a policy, and automations that deliver by pull request.
pub(super) struct Fleet {
    pub(super) forge: GiteaRepository,
    root: TempDir,
}

impl Fleet {
    /// Makes a repository with the file at version 4.0.6.
    pub(super) async fn new(name: &str) -> Self {
        let forge = GiteaRepository::new(name).await;
        forge.write("main", "app.yaml", &tag_line("4.0.6")).await;
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("manifests")).unwrap();
        Self { forge, root }
    }

    /// Writes the manifests of one automation, and of the policy `podinfo` with a tag.
    pub(super) fn write(&self, annotations: &Value, tag: &str) {
        self.write_all(&[("fleet", annotations.clone())], tag);
    }

    /// Writes the manifests of several automations.
    pub(super) fn write_all(&self, automations: &[(&str, Value)], tag: &str) {
        self.write_with(automations, &policy("default", "podinfo", IMAGE, tag), GiteaRepository::token());
    }

    /// Writes the manifests with other policies, or another password.
    pub(super) fn write_with(&self, automations: &[(&str, Value)], policies: &str, password: &str) {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"namespace": "default", "name": "git"},
            "stringData": {"username": "bot", "password": password},
        });
        let source = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"namespace": "default", "name": "fleet", "annotations": {"tagboat.dev/forge": "gitea"}},
            "spec": {
                "interval": "1m", "url": self.forge.url(), "ref": {"branch": "main"}, "secretRef": {"name": "git"},
            },
        });
        let text = format!("{policies}---\n{secret}\n---\n{source}\n{}", automations_text(automations));
        fs::write(self.root.path().join("manifests/manifests.yaml"), text).unwrap();
    }

    /// Changes the text of the manifests.
    pub(super) fn edit_manifests(&self, edit: impl FnOnce(String) -> String) {
        let place = self.root.path().join("manifests/manifests.yaml");
        let text = edit(fs::read_to_string(&place).unwrap());
        fs::write(place, text).unwrap();
    }

    /// Runs with the fleet's state.
    pub(super) fn run_with(&self, arguments: &[&str]) -> Run {
        run(self.command().args(arguments))
    }

    /// Explains the automation with the fleet's state.
    pub(super) fn explain(&self) -> Run {
        let mut command = tagboat();
        command.args(["explain", "automation", "fleet", "--output", "json", "--policies"]);
        command.arg(self.root.path().join("manifests")).arg("--state").arg(self.root.path().join("state"));
        run(&mut command)
    }

    /// The command of a run with the fleet's state.
    pub(super) fn command(&self) -> Command {
        let mut command = tagboat();
        command.arg("run").arg(self.root.path().join("manifests")).args(["--output", "json", "--state"]);
        command.arg(self.root.path().join("state"));
        command
    }

    /// Runs, and returns the report of the first automation.
    #[track_caller]
    pub(super) fn run(&self) -> Value {
        let run = self.run_with(&[]);
        assert_eq!((run.status, run.errors.as_str()), (Some(0), ""), "{run:?}");
        run.json()["automations"][0].clone()
    }

    /// Forgets everything that earlier runs knew.
    pub(super) fn lose_state(&self) {
        fs::remove_dir_all(self.root.path().join("state")).unwrap();
    }

    /// The condition `Delivery` of an automation, as `Status Reason message`.
    #[track_caller]
    pub(super) fn delivery(&self) -> String {
        self.condition("Delivery")
    }

    /// A condition of an automation, as `Status Reason message`.
    #[track_caller]
    pub(super) fn condition(&self, type_: &str) -> String {
        self.condition_of("ImageUpdateAutomation/default/fleet", type_)
    }

    /// A condition of an object, as `Status Reason message`.
    #[track_caller]
    pub(super) fn condition_of(&self, object: &str, type_: &str) -> String {
        let place = self.root.path().join(format!("state/objects/{object}.json"));
        let object: Value = serde_json::from_slice(&fs::read(place).unwrap()).unwrap();
        let mut conditions = object["status"]["conditions"].as_array().unwrap().iter();
        let found = conditions.find(|condition| condition["type"] == type_).unwrap();
        let text = |member: &str| found[member].as_str().unwrap();
        format!("{} {} {}", text("status"), text("reason"), text("message"))
    }

    /// All pull requests, the oldest first.
    pub(super) async fn pulls(&self) -> Vec<Value> {
        self.forge.pulls().await
    }

    /// The only pull request.
    pub(super) async fn pull(&self) -> Value {
        let pulls = self.pulls().await;
        assert_eq!(pulls.len(), 1, "{pulls:#?}");
        pulls[0].clone()
    }

    /// Changes a pull request, as a person does.
    pub(super) async fn edit(&self, number: u64, change: Value) {
        self.forge.call("PATCH", &format!("pulls/{number}"), change).await;
    }
}

/// The manifests of automations that deliver by pull request.
/// `path` is that of the update; all other members are annotations.
pub(crate) fn automations_text(automations: &[(&str, Value)]) -> String {
    let mut text = String::new();
    for (name, annotations) in automations {
        let mut all = json!({"tagboat.dev/delivery": "pull-request"});
        let path = annotations.get("path").cloned().unwrap_or_else(|| json!("./"));
        for (name, value) in annotations.as_object().unwrap().iter().filter(|(name, _)| *name != "path") {
            all[format!("tagboat.dev/{name}")] = value.clone();
        }
        let automation = json!({
            "apiVersion": "image.toolkit.fluxcd.io/v1", "kind": "ImageUpdateAutomation",
            "metadata": {"namespace": "default", "name": name, "annotations": all},
            "spec": {
                "interval": "10m",
                "sourceRef": {"kind": "GitRepository", "name": "fleet"},
                "git": {"commit": {"author": {"name": name, "email": "bot@example.com"}}},
                "update": {"strategy": "Setters", "path": path},
            },
        });
        text.push_str(&format!("---\n{automation}\n"));
    }
    text
}

/// The pull requests of a report, as `branch: action (reason)`.
pub(crate) fn actions(report: &Value) -> Vec<String> {
    let all = report["pullRequests"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |one: &Value| {
        let reason = one["reason"].as_str().map(|reason| format!(" ({reason})")).unwrap_or_default();
        format!("{}: {}{reason}", one["branch"].as_str().unwrap(), one["action"].as_str().unwrap())
    };
    all.iter().map(text).collect()
}

/// The only action of a report, on the branch of `default/fleet`.
#[track_caller]
pub(crate) fn action(report: &Value) -> String {
    let all = actions(report);
    assert_eq!(all.len(), 1, "{report:#}");
    all[0].strip_prefix(&format!("{BRANCH}: ")).unwrap_or(&all[0]).to_owned()
}

/// The labels of a pull request.
pub(super) fn labels(pull: &Value) -> Vec<&str> {
    pull["labels"].as_array().unwrap().iter().map(|label| label["name"].as_str().unwrap()).collect()
}

/// The tokens in the headers of all requests.
/// The second set has the ends of the paths of requests that write.
pub(crate) fn carried(front: &Front) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut tokens, mut writes) = (BTreeSet::new(), BTreeSet::new());
    for request in front.requests() {
        if let Some(header) = request.authorization() {
            let secret = header.split_once(' ').unwrap().1.to_owned();
            tokens.insert(match header.strip_prefix("Basic ") {
                Some(pair) => {
                    let pair = String::from_utf8(STANDARD.decode(pair).unwrap()).unwrap();
                    pair.split_once(':').unwrap().1.to_owned()
                }
                None => secret,
            });
        }
        if request.method == "POST" {
            writes.insert(request.path.rsplit('/').next().unwrap().to_owned());
        }
    }
    (tokens, writes)
}
