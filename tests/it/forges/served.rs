//! A fleet at the test server of a forge, for `tagboat run`.

use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::pull_requests::fleet::automations_text;
use crate::support::content::file;
use crate::support::fleet::{IMAGE, tag_line};
use crate::support::forges::hub::{Call, GIT_USER, Hub, Pull, TOKEN, USER};
use crate::support::forges::{azure_devops, bitbucket, bitbucket_data_center, github, gitlab};
use crate::support::git_host::GitHost;
use crate::support::http_front::{Front, Reply};
use crate::support::manifests::policy;
use crate::support::program::{Run, run, tagboat};

/// A forge with a test server.
pub(super) struct Served {
    /// The name of the annotation.
    pub(super) forge: &'static str,
    /// The path of the repository for git.
    pub(super) path: &'static str,
    /// The path of the API.
    pub(super) api: &'static str,
    /// The owner, the project and the name of the repository; most forges have no project.
    pub(super) place: [&'static str; 3],
    pub(super) respond: fn(&Hub, &Call) -> Reply,
    /// The name of the user `USER` there.
    pub(super) reviewer: &'static str,
    pub(super) has_labels: bool,
    pub(super) has_assignees: bool,
    pub(super) has_auto_merge: bool,
}

pub(super) static GITHUB: Served = Served {
    forge: "github",
    path: "acme/fleet",
    api: "/api/v3",
    place: ["acme", "", "fleet"],
    respond: github::respond,
    reviewer: USER,
    has_labels: true,
    has_assignees: true,
    has_auto_merge: true,
};
pub(super) static GITLAB: Served = Served {
    forge: "gitlab",
    path: gitlab::PROJECT,
    api: "/api/v4",
    place: ["team/apps", "", "fleet"],
    respond: gitlab::respond,
    ..GITHUB
};
pub(super) static BITBUCKET: Served = Served {
    forge: "bitbucket",
    path: "team/fleet",
    api: "/2.0",
    place: ["team", "", "fleet"],
    respond: bitbucket::respond,
    has_labels: false,
    has_assignees: false,
    has_auto_merge: false,
    ..GITHUB
};
pub(super) static BITBUCKET_DATA_CENTER: Served = Served {
    forge: "bitbucket-data-center",
    path: "code/scm/OPS/fleet.git",
    api: "/code/rest/api/latest",
    place: ["OPS", "", "fleet"],
    respond: bitbucket_data_center::respond,
    has_labels: false,
    has_assignees: false,
    ..GITHUB
};
pub(super) static AZURE_DEVOPS: Served = Served {
    forge: "azure-devops",
    path: "acme/Web Shop/_git/fleet",
    api: "/acme",
    place: ["acme", "Web Shop", "fleet"],
    respond: azure_devops::respond,
    reviewer: azure_devops::USER_ID,
    has_assignees: false,
    ..GITHUB
};

/// One marked file `app.yaml`, a policy, and an automation that delivers by pull request.
pub(super) struct ServedFleet {
    pub(super) hub: Arc<Hub>,
    front: Front,
    _git: GitHost,
    served: &'static Served,
    root: TempDir,
}

impl ServedFleet {
    /// Makes a repository with the file at version 4.0.6.
    pub(super) fn new(served: &'static Served) -> Self {
        Self::with(served, served.respond)
    }

    /// The same at a server that answers in another way.
    pub(super) fn with(
        served: &'static Served,
        respond: impl Fn(&Hub, &Call) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let hub = Hub::new();
        hub.repository.commit("main", "Begin", &[file("app.yaml", tag_line("4.0.6"))]);
        let (front, git) = hub.serve_with_git(served.path, respond);
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("manifests")).unwrap();
        Self { hub, front, _git: git, served, root }
    }

    /// Writes the manifests of one automation, and of the policy `podinfo` with a tag.
    pub(super) fn write(&self, annotations: &Value, tag: &str) {
        let secret = |name: &str, data: Value| {
            let metadata = json!({"namespace": "default", "name": name});
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data})
        };
        let git = secret("git", json!({"username": GIT_USER, "password": TOKEN}));
        let forge = secret("forge", json!({"token": TOKEN}));
        let url = self.front.url(&format!("/{}", self.served.path.replace(' ', "%20")));
        let source = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"namespace": "default", "name": "fleet", "annotations": {
                "tagboat.dev/forge": self.served.forge, "tagboat.dev/forge-secret": "forge",
            }},
            "spec": {"interval": "1m", "url": url, "ref": {"branch": "main"}, "secretRef": {"name": "git"}},
        });
        let policy = policy("default", "podinfo", IMAGE, tag);
        let automation = automations_text(&[("fleet", annotations.clone())]);
        let text = format!("{policy}---\n{git}\n---\n{forge}\n---\n{source}\n{automation}");
        fs::write(self.root.path().join("manifests/manifests.yaml"), text).unwrap();
    }

    /// Runs with the fleet's state.
    pub(super) fn run_any(&self) -> Run {
        let mut command = tagboat();
        command.arg("run").arg(self.root.path().join("manifests")).args(["--output", "json", "--state"]);
        run(command.arg(self.root.path().join("state")))
    }

    /// Runs without an error, and returns the report of the automation.
    #[track_caller]
    pub(super) fn run(&self) -> Value {
        let run = self.run_any();
        assert_eq!((run.status, run.errors.as_str()), (Some(0), ""), "{}: {run:?}", self.served.forge);
        run.json()["automations"][0].clone()
    }

    /// Forgets everything that earlier runs knew.
    pub(super) fn lose_state(&self) {
        fs::remove_dir_all(self.root.path().join("state")).unwrap();
    }

    /// The newest pull request, and their number.
    pub(super) fn newest(&self) -> (Pull, usize) {
        let mut pulls = self.hub.pulls();
        let count = pulls.len();
        (pulls.pop().expect("a pull request"), count)
    }
}
