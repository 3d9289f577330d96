//! An automation that delivers by pull request to the real Gitea.

use std::path::PathBuf;

use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use super::scene::{Kind, Scene, condition, line};
use crate::support::gitea::GiteaRepository;

/// A scene whose automation `app` delivers by pull request to a repository of Gitea.
pub(super) struct Delivery {
    pub(super) scene: Scene,
    pub(super) forge: GiteaRepository,
}

/// The condition `Delivery`, as `Status Reason message`.
pub(super) fn delivery(status: &Value) -> Option<String> {
    let found = condition(status, "Delivery")?;
    let text = |member: &str| found[member].as_str().unwrap();
    Some(format!("{} {} {}", text("status"), text("reason"), text("message")))
}

impl Delivery {
    pub(super) async fn new(name: &str) -> Self {
        Self::of(name, &["app"]).await
    }

    /// Creates it with several automations, each with a policy and a line of its name.
    pub(super) async fn of(name: &str, members: &[&str]) -> Self {
        let (scene, forge) = (Scene::new(members).await, GiteaRepository::new(name).await);
        let namespace = scene.cluster.namespace().to_owned();
        let lines: String = members.iter().map(|member| line(&namespace, member, "1.0.0")).collect();
        forge.write("main", "fleet.yaml", &lines).await;
        let login = [("username", "bot"), ("password", GiteaRepository::token())];
        scene.create_secret(&namespace, "git", &login).await;
        let source = json!({
            "metadata": {"annotations": {"tagboat.dev/forge": "gitea"}},
            "spec": {"url": forge.url(), "secretRef": {"name": "git"}},
        });
        scene.patch(Kind::Source, "fleet", &source).await;
        let own = Self { scene, forge };
        for member in members {
            own.annotate_member(member, json!({"tagboat.dev/delivery": "pull-request"})).await;
        }
        own
    }

    pub(super) async fn annotate(&self, annotations: Value) {
        self.annotate_member("app", annotations).await;
    }

    pub(super) async fn annotate_member(&self, member: &str, annotations: Value) {
        let patch = json!({"metadata": {"annotations": annotations}});
        self.scene.patch(Kind::Automation, member, &patch).await;
    }

    /// Waits until the condition `Delivery` has a text.
    pub(super) async fn until(&self, expected: &str) -> Value {
        self.member_until("app", expected).await
    }

    pub(super) async fn member_until(&self, member: &str, expected: &str) -> Value {
        let is = |status: &Value| delivery(status).is_some_and(|found| found.starts_with(expected));
        self.scene.until(member, expected, |object| is(&object.data["status"])).await
    }

    /// All pull requests, the oldest first.
    pub(super) async fn pulls(&self) -> Vec<Value> {
        self.forge.pulls().await
    }

    /// The events about pull requests, as reasons with numbers.
    pub(super) async fn events(&self) -> Vec<String> {
        let events = self.scene.events("app").await;
        let of_pull_request = |event: &String| {
            let (reason, message) = event.strip_prefix("Normal ")?.split_once(": ")?;
            let number = message.split_whitespace().find(|word| word.starts_with('#'))?;
            reason.starts_with("PullRequest").then(|| format!("{reason} {number}"))
        };
        events.iter().filter_map(of_pull_request).collect()
    }

    /// The events about pull requests, with the numbers of pull requests and of repetitions, sorted.
    pub(super) async fn counted_events(&self) -> Vec<String> {
        let api: Api<Event> = Api::namespaced(self.scene.cluster.client(), self.scene.cluster.namespace());
        let all = api.list(&ListParams::default()).await.unwrap().items;
        let text = |event: &Event| {
            let reason = event.reason.clone().filter(|reason| reason.starts_with("PullRequest"))?;
            let message = event.message.clone()?;
            let number = message.split_whitespace().find(|word| word.starts_with('#'))?;
            Some(format!("{reason} {number} {}", event.count.unwrap_or_default()))
        };
        let mut found: Vec<String> = all.iter().filter_map(text).collect();
        found.sort();
        found
    }

    /// Sends the requests of the controller to another address, such as that of a front.
    pub(super) async fn reach_by(&self, address: &str) {
        let behind = format!("127.0.0.1:{}", self.forge.port());
        let source = json!({"spec": {"url": self.forge.url().replace(&behind, address), "timeout": "20s"}});
        self.scene.patch(Kind::Source, "fleet", &source).await;
    }

    /// The branch of the automation.
    pub(super) fn branch(&self) -> String {
        format!("tagboat/{}-app", self.scene.cluster.namespace())
    }

    /// The line of the file with a tag.
    pub(super) fn line(&self, tag: &str) -> String {
        line(self.scene.cluster.namespace(), "app", tag)
    }

    /// Forgets everything that controllers keep on the disk.
    pub(super) fn lose_state(&self) {
        let place: PathBuf = self.scene.root().join("temporary");
        std::fs::remove_dir_all(place).unwrap();
    }
}
