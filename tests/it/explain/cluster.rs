//! `tagboat explain policy` on a real cluster, with a real registry.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tagboat_api::ImagePolicy;

use super::{outcomes, program, reason};
use crate::support::api_server::{Cluster, apply};
use crate::support::http_front::{Front, Reply};
use crate::support::program::{Run, run};
use crate::support::registry::{PASSWORD, Registry, USER};

const MADE: &str = "2020-01-02T03:04:05Z";
const ADMIN: &str = "admin-token";

/// A cluster with a policy of a unique name.
/// The name is unique because the search is over all namespaces.
struct Scene {
    cluster: Cluster,
    name: String,
    kubeconfig: PathBuf,
}

impl Scene {
    /// Creates a policy in the cluster's namespace, on the repository of this image.
    async fn new(image: &str, spec: &Value) -> Self {
        let cluster = Cluster::new().await;
        let name = format!("web-{}", cluster.namespace());
        let kubeconfig = cluster.kubeconfig(ADMIN);
        let scene = Self { cluster, name, kubeconfig };
        scene.repository(scene.cluster.namespace(), image, spec).await;
        scene.policy(scene.cluster.namespace(), &json!({})).await;
        scene
    }

    async fn repository(&self, namespace: &str, image: &str, more: &Value) {
        let mut spec = json!({"image": image, "interval": "1m"});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.apply("ImageRepository", namespace, &json!({}), &spec).await;
    }

    async fn policy(&self, namespace: &str, more: &Value) {
        let mut spec =
            json!({"imageRepositoryRef": {"name": self.name}, "policy": {"semver": {"range": "1.x"}}});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.apply("ImagePolicy", namespace, &json!({}), &spec).await;
    }

    async fn apply(&self, kind: &str, namespace: &str, annotations: &Value, spec: &Value) {
        let object = json!({
            "apiVersion": "image.toolkit.fluxcd.io/v1",
            "kind": kind,
            "metadata": {"name": self.name, "namespace": namespace, "annotations": annotations},
            "spec": spec,
        });
        apply(&self.cluster.client(), &object, false).await.unwrap();
    }

    async fn status(&self, status: &Value) {
        let api: Api<ImagePolicy> = Api::namespaced(self.cluster.client(), self.cluster.namespace());
        let patch = Patch::Merge(json!({ "status": status }));
        api.patch_status(&self.name, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn secret(&self, server: &str) {
        let config = json!({"auths": {server: {"username": USER, "password": PASSWORD}}}).to_string();
        let secret: Secret = serde_json::from_value(json!({
            "metadata": {"name": "login"},
            "type": "kubernetes.io/dockerconfigjson",
            "stringData": {".dockerconfigjson": config},
        }))
        .unwrap();
        let api: Api<Secret> = Api::default_namespaced(self.cluster.client());
        api.create(&PostParams::default(), &secret).await.unwrap();
    }

    fn explain(&self, arguments: &[&str]) -> Run {
        self.explain_as(&self.kubeconfig, arguments)
    }

    fn explain_as(&self, kubeconfig: &Path, arguments: &[&str]) -> Run {
        let mut command = program();
        command.args(["explain", "policy", &self.name, "--output", "json", "--kubeconfig"]).arg(kubeconfig);
        run(command.args(arguments))
    }
}

fn registry() -> Registry {
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", MADE);
    registry.tag("app/web", "1.0.0", ["1.4.2", "2.0.0", "1.5.0.sig"].map(str::to_owned));
    registry
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_of_the_cluster_is_explained_with_the_login_of_its_repository() {
    let registry = registry();
    let guarded = registry.guarded_by_password();
    let image = format!("{}/app/web", guarded.address());
    let scene = Scene::new(&image, &json!({"secretRef": {"name": "login"}})).await;
    let namespace = scene.cluster.namespace();
    let ended = scene.explain(&[]).with_status(1);
    let words = format!("error: ImageRepository {namespace}/{}: secrets \"login\" not found", scene.name);
    assert_eq!(ended.only_error(), words);
    scene.secret(&guarded.address()).await;
    let ended = scene.explain(&[]).with_status(0);
    assert_eq!(ended.errors, "");
    let document = ended.json();
    assert_eq!(
        document,
        json!({
            "policy": {"namespace": namespace, "name": scene.name},
            "latest": "1.4.2",
            "error": null,
            "tags": [
                {"tag": "1.4.2", "value": "1.4.2", "outcome": "latest", "reason": "the greatest of 2 candidates"},
                {"tag": "1.0.0", "value": "1.0.0", "outcome": "candidate", "reason": "1.4.2 is greater"},
                {
                    "tag": "2.0.0",
                    "value": "2.0.0",
                    "outcome": "out-of-range",
                    "reason": "\"1.x\" does not include it: it does not satisfy 1.x",
                },
            ],
        })
    );
    // The flags of kubectl.
    for arguments in [&["--context", "test"][..], &["-n", namespace], &["--namespace", namespace]] {
        assert_eq!(scene.explain(arguments).with_status(0).json(), document);
    }
    let by_environment = || {
        let mut command = program();
        command.args(["explain", "policy", &scene.name]).env("KUBECONFIG", &scene.kubeconfig);
        command
    };
    let text = run(by_environment().args(["--context", "test"])).with_status(0).output;
    assert!(text.starts_with(&format!("Policy: {namespace}/{}\nLatest: 1.4.2\n", scene.name)), "{text}");
    run(&mut by_environment()).with_status(0);
    // A list of tags works here, too.
    let directory = tempfile::tempdir().unwrap();
    let tags = directory.path().join("tags");
    std::fs::write(&tags, "1.9.0\n").unwrap();
    assert_eq!(scene.explain(&["--tags", tags.to_str().unwrap()]).with_status(0).json()["latest"], "1.9.0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_must_be_unique_in_all_namespaces() {
    let registry = registry();
    let image = format!("{}/app/web", registry.address());
    let scene = Scene::new(&image, &json!({})).await;
    let (one, other) = (scene.cluster.namespace().to_owned(), scene.cluster.another_namespace().await);
    scene.policy(&other, &json!({})).await;
    let ended = scene.explain(&[]).with_status(2);
    let name = &scene.name;
    let [first, second] = if one < other { [&one, &other] } else { [&other, &one] };
    let words =
        format!("error: {first}/{name} and {second}/{name} have that name; choose one with --namespace");
    assert_eq!((ended.only_error(), ended.output.as_str()), (words.as_str(), ""));
    scene.explain(&["--namespace", &one]).with_status(0);
    let ended = scene.explain(&["--namespace", &other]).with_status(1);
    let words = format!(
        "failed to get the referred ImageRepository: referenced ImageRepository does not exist: \
         ImageRepository.image.toolkit.fluxcd.io \"{name}\" not found"
    );
    let document = ended.json();
    assert_eq!((&document["error"], &document["latest"]), (&json!(words), &Value::Null));
    assert_eq!(document["policy"]["namespace"], json!(other));
    let ended = scene.explain(&["--namespace", "default"]).with_status(2);
    assert_eq!(
        ended.only_error(),
        format!("error: the cluster has no ImagePolicy {name} in the namespace default")
    );
    for odd in ["../../default", "a,metadata.namespace=b", "no such"] {
        let mut command = program();
        command.args(["explain", "policy", "--kubeconfig"]).arg(&scene.kubeconfig).args(["--", odd]);
        let ended = run(&mut command).with_status(2);
        assert!(ended.only_error().contains("has no ImagePolicy"), "{ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_permission_for_all_namespaces_that_of_the_kubeconfig_is_used() {
    let registry = registry();
    let scene = Scene::new(&format!("{}/app/web", registry.address()), &json!({})).await;
    let namespace = scene.cluster.namespace();
    let token = scene.cluster.token("reader").await;
    let kubeconfig = scene.cluster.kubeconfig(&token);
    let ended = scene.explain_as(&kubeconfig, &[]).with_status(1);
    assert!(ended.errors.contains("error: cannot read ImagePolicies: "), "{ended:?}");
    assert!(ended.errors.contains("is forbidden"), "{ended:?}");
    let (group, resources) = ("image.toolkit.fluxcd.io", ["imagepolicies", "imagerepositories"]);
    let rule = json!({"apiGroups": [group], "resources": resources, "verbs": ["get"]});
    scene.cluster.grant("reader", rule).await;
    // A role is in force a moment after it is created.
    let policies: Api<ImagePolicy> = Api::default_namespaced(scene.cluster.client_with(&token).await);
    let begin = std::time::Instant::now();
    while let Err(error) = policies.get(&scene.name).await {
        assert!(begin.elapsed().as_secs() < 60, "{error}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let ended = scene.explain_as(&kubeconfig, &[]).with_status(0);
    let note = format!(
        "note: you may not list ImagePolicies in all namespaces, so {} is searched in {namespace}, the namespace of the \
         kubeconfig; --namespace names another",
        scene.name
    );
    assert_eq!(ended.only_error(), note);
    assert_eq!(ended.json()["latest"], "1.4.2");
    assert_eq!(scene.explain_as(&kubeconfig, &["--namespace", namespace]).with_status(0).errors, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repository_of_another_namespace_admits_by_the_labels_of_the_policys() {
    let registry = registry();
    let image = format!("{}/app/web", registry.address());
    let scene = Scene::new(&image, &json!({})).await;
    let (own, other) = (scene.cluster.namespace(), scene.cluster.another_namespace().await);
    scene.policy(own, &json!({"imageRepositoryRef": {"name": scene.name, "namespace": other}})).await;
    let name = &scene.name;
    let denied = |why: &str| {
        format!(
            "failed to get the referred ImageRepository: access denied: '{other}/{name}' can't be accessed due to {why}"
        )
    };
    scene.repository(&other, &image, &json!({})).await;
    let document = scene.explain(&[]).with_status(1).json();
    assert_eq!(document["error"], denied("missing ACL labels on 'accessFrom'"));
    let access = json!({"accessFrom": {"namespaceSelectors": [{"matchLabels": {"tenant": "a"}}]}});
    scene.repository(&other, &image, &access).await;
    let document = scene.explain(&[]).with_status(1).json();
    let mismatch = denied(&format!("ACL labels mismatch on namespace '{own}'"));
    assert_eq!((&document["error"], &document["tags"]), (&json!(mismatch), &json!([])));
    let namespaces: Api<Namespace> = Api::all(scene.cluster.client());
    let label = Patch::Merge(json!({"metadata": {"labels": {"tenant": "a"}}}));
    namespaces.patch(own, &PatchParams::default(), &label).await.unwrap();
    assert_eq!(scene.explain(&[]).with_status(0).json()["latest"], "1.4.2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_announced_image_stays_while_the_winner_cannot_be_pulled() {
    let registry = registry();
    let front = Front::before(registry.port(), |request| {
        if request.path.ends_with("manifests/1.4.2") { Reply::status(404) } else { Reply::Forward }
    });
    let image = format!("{}/app/web", front.address());
    let scene = Scene::new(&image, &json!({})).await;
    let first = scene.explain(&[]).with_status(0).json();
    assert_eq!((&first["latest"], &first["error"]), (&json!("1.4.2"), &Value::Null));
    let words = "the greatest of 2 candidates; it is listed but cannot be pulled yet";
    assert!(reason(&first, "1.4.2").starts_with(words), "{first:#}");
    scene.status(&json!({"latestRef": {"name": image, "tag": "1.0.0"}})).await;
    let second = scene.explain(&[]).with_status(0).json();
    assert_eq!((&second["latest"], &second["error"]), (&json!("1.0.0"), &Value::Null));
    assert_eq!(outcomes(&second), [("1.4.2", "candidate"), ("1.0.0", "latest"), ("2.0.0", "out-of-range")]);
    assert!(reason(&second, "1.4.2").starts_with("it is listed but cannot be pulled yet, so 1.0.0 stays: "));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_downgrade_of_the_status_is_reported_beside_the_winner() {
    let registry = registry();
    let image = format!("{}/app/web", registry.address());
    let scene = Scene::new(&image, &json!({})).await;
    let held = "1.4.2 is lower than 1.9.0 and waits";
    let condition = json!({
        "type": "RegressionHeld", "status": "True", "reason": "LowerWinner", "message": held,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let status = json!({"latestRef": {"name": image, "tag": "1.9.0"}, "conditions": [condition]});
    scene.status(&status).await;
    let ended = scene.explain(&[]).with_status(0);
    assert_eq!(ended.json()["latest"], "1.4.2");
    assert_eq!(ended.only_error(), format!("note: the policy's status has 1.9.0: {held}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_cannot_be_reached_is_named() {
    let cluster = Cluster::new().await;
    let kubeconfig = cluster.kubeconfig(ADMIN);
    let kubeconfig = kubeconfig.to_str().unwrap();
    for (arguments, status, words) in [
        (
            &["--kubeconfig", "/nowhere"][..],
            2,
            "error: --kubeconfig /nowhere: failed to read kubeconfig from '/nowhere'",
        ),
        (&["--kubeconfig", kubeconfig, "--context", "other"], 2, "other"),
        (&["--context", "other"], 2, "error: --context other: "),
        (&[], 1, "error: there is no kubeconfig or in-cluster configuration ("),
        (&["--secret", "login=/tmp"], 2, "--policies"),
    ] {
        let mut command = program();
        command.args(["explain", "policy", "web"]).args(arguments).env("HOME", "/nonexistent");
        let ended = run(&mut command).with_status(status);
        assert!(ended.errors.contains(words) && ended.output.is_empty(), "{arguments:?} {ended:?}");
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("kubeconfig");
    let front = Front::alone(|_| Reply::body(404, "404 page not found\n"));
    let reaching = |server: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": {"server": server}}],
            "users": [{"name": "test", "user": {"token": "hunter2"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "current-context": "test",
        })
        .to_string()
    };
    let no_kind = "the cluster has no kind ImagePolicy of image.toolkit.fluxcd.io/v1: its CustomResourceDefinition is not";
    for (content, status, words) in [
        (reaching(&front.url("")), 1, no_kind),
        (
            reaching("http://127.0.0.1:1"),
            1,
            "cannot read ImagePolicies: the request to the API server failed",
        ),
        ("token: hunter2 [\nb: [\n".to_owned(), 2, "failed to parse kubeconfig YAML"),
        (
            "{}".to_owned(),
            2,
            ": it is empty: write the kubeconfig of a cluster to it, or select another file",
        ),
    ] {
        std::fs::write(&file, content).unwrap();
        let mut command = program();
        command.args(["explain", "policy", "web", "--kubeconfig"]).arg(&file);
        let ended = run(&mut command).with_status(status);
        assert!(ended.only_error().contains(words) && !ended.errors.contains("hunter2"), "{ended:?}");
    }
    for both in [["--kubeconfig", kubeconfig], ["--context", "test"]] {
        let mut command = program();
        command.args(["explain", "policy", "web", "--policies", "x.yaml"]).args(both);
        assert!(run(&mut command).with_status(2).errors.contains("cannot be used with"));
    }
}
