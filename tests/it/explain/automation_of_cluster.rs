//! `tagboat explain automation` on a real cluster.

use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tagboat_api::{ImagePolicy, ImageUpdateAutomation};

use super::program;
use crate::support::api_server::{ADMIN_TOKEN, Cluster, apply};
use crate::support::program::{Run, run};

/// A cluster with an automation and a policy, both of a unique name.
struct Scene {
    cluster: Cluster,
    name: String,
}

impl Scene {
    async fn new() -> Self {
        let cluster = Cluster::new().await;
        let name = format!("app-{}", cluster.namespace());
        let scene = Self { cluster, name };
        for (kind, spec) in [
            (
                "ImageUpdateAutomation",
                json!({"interval": "10m", "sourceRef": {"kind": "GitRepository", "name": "fleet"}}),
            ),
            (
                "ImagePolicy",
                json!({"imageRepositoryRef": {"name": "web"}, "policy": {"semver": {"range": "*"}}}),
            ),
        ] {
            scene
                .apply(&json!({
                    "apiVersion": "image.toolkit.fluxcd.io/v1",
                    "kind": kind,
                    "metadata": {"name": scene.name, "namespace": scene.cluster.namespace()},
                    "spec": spec,
                }))
                .await;
        }
        scene.choose("2.0.0").await;
        scene
    }

    async fn apply(&self, object: &Value) {
        apply(&self.cluster.client(), object, false).await.unwrap();
    }

    async fn choose(&self, tag: &str) {
        let api: Api<ImagePolicy> = Api::default_namespaced(self.cluster.client());
        let status = json!({"status": {"latestRef": {"name": "ghcr.io/org/web", "tag": tag}}});
        api.patch_status(&self.name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    /// Writes the status of the automation, as a controller does.
    async fn report(&self, tag: &str, condition: [&str; 4]) {
        let [type_, status, reason, message] = condition;
        let api: Api<ImageUpdateAutomation> = Api::default_namespaced(self.cluster.client());
        let status = json!({"status": {
            "observedPolicies": {self.name.as_str(): {"name": "ghcr.io/org/web", "tag": tag}},
            "lastAutomationRunTime": "2026-01-01T00:00:00Z",
            "conditions": [{
                "type": type_, "status": status, "reason": reason, "message": message,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }],
        }});
        api.patch_status(&self.name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    async fn annotate(&self, namespace: &str, annotations: &Value) {
        let api: Api<Namespace> = Api::all(self.cluster.client());
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        api.patch(namespace, &PatchParams::default(), &patch).await.unwrap();
    }

    fn explain(&self, arguments: &[&str]) -> Run {
        self.explain_as(&self.cluster.kubeconfig(ADMIN_TOKEN), arguments)
    }

    fn explain_as(&self, kubeconfig: &Path, arguments: &[&str]) -> Run {
        let mut command = program();
        command.env_remove("RUNTIME_NAMESPACE");
        command.args(["explain", "automation", &self.name, "--output", "json", "--kubeconfig"]);
        run(command.arg(kubeconfig).args(arguments))
    }
}

/// The state and the reason of the policy.
fn policy(ended: &Run) -> (String, String) {
    let policy = ended.json()["policies"][0].take();
    let text = |member: &str| policy[member].as_str().unwrap().to_owned();
    (text("state"), text("reason"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_automation_of_the_cluster_is_explained_by_its_status_and_its_namespace() {
    let scene = Scene::new().await;
    let namespace = scene.cluster.namespace().to_owned();
    let own = ["--controller-namespace", namespace.as_str()];
    let ended = scene.explain(&own).with_status(0);
    assert_eq!(ended.errors, "");
    assert_eq!(policy(&ended).1, "not written yet: the automation has not run yet");
    scene.report("2.0.0", ["Ready", "True", "Succeeded", "repository up-to-date"]).await;
    let ended = scene.explain(&own).with_status(0);
    assert_eq!(policy(&ended).1, "the last run that read the files wrote it, or found it there");
    let message = format!("1 value of {} waits: x; until 2200-01-01T00:00:00Z", scene.name);
    scene.report("1.0.0", ["UpdatesWaiting", "True", "WindowClosed", &message]).await;
    let ended = scene.explain(&own).with_status(1);
    assert_eq!(policy(&ended), ("waiting".to_owned(), "x; until 2200-01-01T00:00:00Z".to_owned()));
    assert_eq!(ended.json()["waiting"][0]["reason"], "WindowClosed");
    scene.report("1.0.0", ["Ready", "False", "GitOperationFailed", "no host"]).await;
    let ended = scene.explain(&own).with_status(1);
    let failed = "the last run failed: no host (GitOperationFailed)";
    assert_eq!(ended.json()["error"], failed);
    assert_eq!(policy(&ended).1, format!("not written yet: {failed}"));
    // A freeze counts on the Namespace of the automation, and on that of the controller.
    scene.report("1.0.0", ["Ready", "True", "Succeeded", "repository up-to-date"]).await;
    let other = scene.cluster.another_namespace().await;
    let elsewhere = ["--controller-namespace", other.as_str()];
    scene.explain(&elsewhere).with_status(0);
    for (frozen, annotation) in [(&namespace, "tagboat.dev/freeze"), (&other, "tagboat.dev/freeze-all")] {
        scene.annotate(frozen, &json!({annotation: "incident 4711"})).await;
        let ended = scene.explain(&elsewhere).with_status(1);
        let (state, reason) = policy(&ended);
        assert_eq!(state, "waiting");
        assert!(reason.ends_with(": incident 4711; no end is known"), "{reason}");
        assert_eq!(ended.json()["open"], false);
        scene.annotate(frozen, &json!({annotation: null})).await;
    }
    let ended = scene.explain(&["--controller-namespace", "nowhere"]).with_status(0);
    assert!(ended.only_error().starts_with("note: the cluster has no Namespace nowhere; "), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_usage_of_a_cluster_exits_with_2() {
    let scene = Scene::new().await;
    let kubeconfig = scene.cluster.kubeconfig(ADMIN_TOKEN);
    for (arguments, words) in [
        (&["nope"][..], "the cluster has no ImageUpdateAutomation nope"),
        (&[scene.name.as_str(), "-n", "default"], "in the namespace default"),
        (&[scene.name.as_str(), "--controller-namespace", "../x"], "cannot be the name of a namespace"),
    ] {
        let mut command = program();
        command.args(["explain", "automation", "--kubeconfig"]).arg(&kubeconfig).args(arguments);
        let ended = run(&mut command).with_status(2);
        assert!(ended.only_error().contains(words), "{ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_permission_to_read_namespaces_the_error_says_so() {
    let scene = Scene::new().await;
    let namespace = scene.cluster.namespace();
    scene.report("2.0.0", ["Ready", "True", "Succeeded", "repository up-to-date"]).await;
    let token = scene.cluster.token("reader").await;
    let (group, resources) = ("image.toolkit.fluxcd.io", ["imagepolicies", "imageupdateautomations"]);
    let rule = json!({"apiGroups": [group], "resources": resources, "verbs": ["get", "list"]});
    scene.cluster.grant("reader", rule).await;
    // A role is in force a moment after it is created.
    let policies: Api<ImagePolicy> = Api::default_namespaced(scene.cluster.client_with(&token).await);
    let begin = std::time::Instant::now();
    while let Err(error) = policies.get(&scene.name).await {
        assert!(begin.elapsed().as_secs() < 60, "{error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let kubeconfig = scene.cluster.kubeconfig(&token);
    let arguments = ["-n", namespace, "--controller-namespace", namespace];
    let ended = scene.explain_as(&kubeconfig, &arguments).with_status(1);
    let error = ended.json()["error"].as_str().unwrap().to_owned();
    let words = format!(
        "the annotations of namespace {namespace} cannot be read, so its windows and freezes are not known: "
    );
    assert!(error.starts_with(&words) && error.contains("is forbidden"), "{error}");
    assert_eq!(policy(&ended).0, "written");
}
