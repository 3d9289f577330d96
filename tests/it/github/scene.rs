//! A repository at a test server of GitHub, with manifests of automations.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::github::server::GithubServer;
use crate::run::scene::Scene;
use crate::support::content::Change;
use crate::support::git_host::{Access, GitHost, Settings};
use crate::support::manifests::{marker, policy_with_status};
use crate::support::program::Run;

/// The token of the App.
pub(super) const TOKEN: &str = "ghs_planted0123456789abcdef";

/// A scene whose repository is at GitHub.
pub(super) struct GithubScene {
    pub(super) github: GithubServer,
    pub(super) host: GitHost,
    pub(super) scene: Scene,
}

/// A line that follows the policy of an automation's name.
pub(super) fn line(name: &str) -> String {
    format!("{name}: 1.0.0 {}", marker(&format!("default:{name}:tag")))
}

impl GithubScene {
    /// A repository with files, and automations with values of `signed-by`.
    pub(super) fn new(files: &[Change], automations: &[(&str, &str)]) -> Self {
        Self::at(files, automations, "github.json")
    }

    /// The same at a server with one of the API's descriptions.
    pub(super) fn at(files: &[Change], automations: &[(&str, &str)], description: &str) -> Self {
        let scene = Scene::with_files(files);
        let served = scene.root().join("served");
        symlink(".", served.join("acme")).unwrap();
        let settings = Settings { access: Access::basic("x-access-token", TOKEN), tls: None };
        let host = GitHost::start(&served, settings);
        let github = GithubServer::start(&scene.repository, &host, TOKEN, description);
        let result = Self { github, host, scene };
        result.source(&json!({"tagboat.dev/forge": "github"}));
        result
            .scene
            .secret("login", json!({"stringData": {"username": "x-access-token", "password": TOKEN}}));
        for name in ["automation.yaml", "policy.yaml"] {
            std::fs::remove_file(result.scene.root().join("manifests").join(name)).unwrap();
        }
        for (name, signed_by) in automations {
            result.policy(name, "2.0.0");
            result.automation(name, signed_by, json!({}));
        }
        result
    }

    /// Writes the GitRepository with these annotations.
    pub(super) fn source(&self, annotations: &Value) {
        let source = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1",
            "kind": "GitRepository",
            "metadata": {"namespace": "default", "name": "fleet", "annotations": annotations},
            "spec": {
                "interval": "1m", "timeout": "20s", "ref": {"branch": "main"},
                "url": self.github.git_url(), "secretRef": {"name": "login"},
            },
        });
        self.scene.write("source.yaml", &source.to_string());
    }

    /// Writes a policy with its latest tag, for the automation of its name.
    pub(super) fn policy(&self, name: &str, tag: &str) {
        self.policy_of(name, name, tag);
    }

    /// Writes a policy with its latest tag, for an automation.
    pub(super) fn policy_of(&self, automation: &str, name: &str, tag: &str) {
        let status = format!("latestRef: {{name: ghcr.io/org/{name}, tag: {tag}}}");
        let policy = policy_with_status("default", name, &format!("app: {automation}"), &status);
        self.scene.write(&format!("policy-{name}.yaml"), &policy);
    }

    /// Writes an automation that selects the policy of its name.
    pub(super) fn automation(&self, name: &str, signed_by: &str, signing_key: Value) {
        let annotations = json!({"tagboat.dev/signed-by": signed_by});
        self.write_automation(name, &annotations, signing_key);
    }

    /// Writes an automation with these annotations.
    ///
    /// It selects the policies with its name as the label `app`.
    pub(super) fn write_automation(&self, name: &str, annotations: &Value, signing_key: Value) {
        let mut automation = json!({
            "apiVersion": "image.toolkit.fluxcd.io/v1",
            "kind": "ImageUpdateAutomation",
            "metadata": {"namespace": "default", "name": name, "annotations": annotations},
            "spec": {
                "interval": "10m",
                "sourceRef": {"kind": "GitRepository", "name": "fleet"},
                "git": {"commit": {
                    "author": {"name": name, "email": "bot@example.com"},
                    "messageTemplate": format!("Update {name}\n\nWith a body.\n"),
                }},
                "policySelector": {"matchLabels": {"app": name}},
            },
        });
        if signing_key.as_object().is_some_and(|key| !key.is_empty()) {
            automation["spec"]["git"]["commit"]["signingKey"] = signing_key;
        }
        self.scene.write(&format!("automation-{name}.yaml"), &automation.to_string());
    }

    /// Runs the program with a state; no output may have the token.
    #[track_caller]
    pub(super) fn run(&self, status: i32) -> Run {
        let run = self.scene.run_with_state([] as [&str; 0]).with_status(status);
        assert!(!format!("{run:?}").contains("planted"), "{run:?}");
        run
    }

    /// A condition of an automation in the state.
    #[track_caller]
    pub(super) fn condition(&self, name: &str, kind: &str) -> Option<(String, String, String)> {
        let path = self.scene.state().join(format!("objects/ImageUpdateAutomation/default/{name}.json"));
        let object: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let conditions = object["status"]["conditions"].as_array().unwrap();
        let found = conditions.iter().find(|condition| condition["type"] == kind)?;
        let text = |name: &str| found[name].as_str().unwrap().to_owned();
        Some((text("status"), text("reason"), text("message")))
    }

    /// The calls that made trees, files and commits so far.
    pub(super) fn calls(&self) -> (usize, usize, usize) {
        let of = |resource| self.github.calls(resource);
        (of("git/trees"), of("git/blobs"), of("git/commits"))
    }

    /// Asserts that git verifies the newest commits with GitHub's key.
    #[track_caller]
    pub(super) fn assert_signed(&self, count: usize) {
        self.assert_signed_on("main", count);
    }

    /// The same for the newest commits of a branch.
    #[track_caller]
    pub(super) fn assert_signed_on(&self, branch: &str, count: usize) {
        let log = self.scene.repository.log(branch);
        for commit in &log[..count] {
            self.github.home.assert_signed(&self.scene, &commit.id, &self.github.key);
            assert_eq!(commit.committer, "GitHub <noreply@github.com>");
        }
    }
}
