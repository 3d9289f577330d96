//! Workloads of other namespaces, and objects of other kinds.

use std::sync::Arc;

use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};

use super::scene::{ROLES, Scene, component, deployment, image};
use super::statuses::Statuses;
use crate::support::api_server::{ApiServer, Call, Fault, Faults, apply, documents};
use crate::support::eventually::eventually;
use crate::support::workloads::{WorkloadCluster, install_kinds};

/// The definition of a kind without a rule of its own.
const APPS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: apps.example.com}
spec:
  group: example.com
  names: {kind: App, listKind: AppList, plural: apps, singular: app}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

/// An object of this kind whose image follows a policy.
fn app() -> String {
    format!(
        "apiVersion: example.com/v1\nkind: App\nmetadata:\n  name: podinfo\nspec:\n  image: {}:1.0.0 \
         # {{\"$imagepolicy\": \"NAMESPACE:podinfo\"}}\n",
        image("podinfo")
    )
}

/// Creates a cluster on a server of the test's own.
/// The program may watch all of its namespaces.
async fn cluster(name: &str) -> WorkloadCluster {
    let server = Arc::new(ApiServer::shared().start_beside(name));
    install_kinds(&server);
    let kinds = documents(APPS).into_iter().map(|kind| serde_json::from_value(kind).unwrap());
    server.install(&kinds.collect::<Vec<_>>());
    WorkloadCluster::on(server).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workloads_of_other_namespaces_are_matched_unless_the_flag_forbids_it() {
    let marked = format!("image: {}:1.0.0 # {{\"$imagepolicy\": \"NAMESPACE:podinfo\"}}\n", image("podinfo"));
    let scene = Scene::of(cluster("namespaces").await, &[("podinfo", marked)]).await;
    let elsewhere = scene.cluster().another_namespace().await;
    let mut workload = documents(&deployment("podinfo", 1)).remove(0);
    workload["metadata"]["namespace"] = json!(elsewhere);
    apply(&scene.cluster().client(), &workload, false).await.unwrap();
    let kubeconfig = scene.cluster().kubeconfig(&scene.cluster().token_with_roles(&ROLES).await);
    let mut program = scene.start_in_all_namespaces(&kubeconfig, &[]);
    let name = format!("Deployment/{elsewhere}/podinfo");
    let is_matched = |status: &Value| status["components"][0]["name"] == name.as_str();
    let status = scene.until("podinfo", "matched", is_matched).await;
    assert_eq!(component(&status)["tie"], "image", "{status:#}");
    assert_eq!(program.terminate().0, Some(0));
    let _program = scene.start_in_all_namespaces(&kubeconfig, &["--no-cross-namespace-refs"]);
    let is_unmatched = |status: &Value| status["components"].is_array() && !is_matched(status);
    let status = scene.until("podinfo", "not matched", is_unmatched).await;
    assert!(!status.to_string().contains(&elsewhere), "{status:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_of_any_kind_with_a_marker_is_reported_by_its_conditions() {
    let scene = scene("kinds").await;
    let mut program = scene.start().await;
    scene.state("podinfo", "1.0.0", "pending").await;
    scene.apply_tree().await;
    let name = format!("App/{}/podinfo", scene.cluster().namespace());
    let status = scene.state("podinfo", "1.0.0", "installed").await;
    assert_eq!(component(&status)["name"], name.as_str(), "{status:#}");
    let api = apps(&scene);
    let mut object = api.get("podinfo").await.unwrap();
    object.data["status"] =
        json!({"conditions": [{"type": "Stalled", "status": "True", "reason": "Bad", "message": "no room"}]});
    api.replace_status("podinfo", &PostParams::default(), &object).await.unwrap();
    let status = scene.state("podinfo", "1.0.0", "failed").await;
    assert_eq!(component(&status)["error"]["source"], name.as_str(), "{status:#}");
    assert_eq!(program.terminate().0, Some(0));
}

/// Another field has the wanted tag by chance.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_of_any_kind_counts_at_the_keys_of_its_marker() {
    let marked = "apiVersion: example.com/v1\nkind: App\nmetadata:\n  name: podinfo\nspec:\n  replicas: \"2.0.0\"\n  apps:\n  - tag: 1.0.0 \
         # {\"$imagepolicy\": \"NAMESPACE:podinfo:tag\"}\n";
    let scene = scene_of("keys", marked.to_owned()).await;
    let mut program = scene.start().await;
    scene.apply_tree().await;
    scene.state("podinfo", "1.0.0", "installed").await;
    scene.choose("podinfo", "2.0.0").await;
    eventually("the commit is pushed", async || {
        let text = String::from_utf8(scene.repository.file("main", "podinfo.yaml")).unwrap();
        text.contains("tag: 2.0.0")
    })
    .await;
    let status = scene.state("podinfo", "2.0.0", "pending").await;
    assert_eq!(component(&status)["image"], "1.0.0", "{status:#}");
    scene.apply_tree().await;
    scene.state("podinfo", "2.0.0", "installed").await;
    assert_eq!(program.terminate().0, Some(0));
}

/// No marker leads to its kind any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_of_any_kind_is_removing_after_its_file_was_removed() {
    let scene = scene("removed-kinds").await;
    let mut program = scene.start().await;
    scene.apply_tree().await;
    scene.state("podinfo", "1.0.0", "installed").await;
    let statuses = Statuses::record(&scene, "podinfo").await;
    scene.commit("podinfo.yaml", None);
    scene.rescan("1").await;
    let status = scene.state("podinfo", "1.0.0", "removing").await;
    assert_eq!(component(&status)["message"], "podinfo.yaml was removed from git", "{status:#}");

    // Its kind is still watched in the next observations.
    let api = apps(&scene);
    let change = json!({"metadata": {"labels": {"changed": "true"}}});
    api.patch("podinfo", &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
    for tag in ["2.0.0", "3.0.0"] {
        scene.choose("podinfo", tag).await;
        let status = scene.state("podinfo", tag, "removing").await;
        assert_eq!(component(&status)["message"], "podinfo.yaml was removed from git", "{status:#}");
    }
    api.delete("podinfo", &DeleteParams::default()).await.unwrap();
    // This state is written for a second only.
    let status = statuses.until("removed", |status| status["state"] == "removed").await;
    assert_eq!(status["target"]["tag"], "3.0.0", "{status:#}");
    assert_eq!(statuses.states()[..3], ["installed", "removing", "removed"]);
    assert_eq!(program.terminate().0, Some(0));
}

/// The scan after a restart arrives before the watch of the kind begins.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_of_any_kind_stays_installed_over_a_restart() {
    let scene = scene("restarted-kinds").await;
    let mut program = scene.start().await;
    scene.apply_tree().await;
    scene.state("podinfo", "1.0.0", "installed").await;
    assert_eq!(program.terminate().0, Some(0));
    let before = scene.object("podinfo").await.unwrap();
    let statuses = Statuses::record(&scene, "podinfo").await;
    let mut program = scene.start().await;
    let is_reporting = async || program.lines().iter().any(|line| line["msg"] == "reporting rollouts");
    eventually("the program reports rollouts", is_reporting).await;
    for (number, tag) in ["2.0.0", "3.0.0"].into_iter().enumerate() {
        scene.choose("podinfo", tag).await;
        scene.lands("podinfo", tag).await;
        scene.apply_tree().await;
        scene.rescan(&number.to_string()).await;
        scene.state("podinfo", tag, "installed").await;
    }
    let of_first = |status: &Value| status["target"]["tag"] == "1.0.0";
    for status in statuses.all() {
        assert!(!status.to_string().contains("not watched"), "{status:#}");
        assert!(!of_first(&status) || status["state"] == "installed", "{status:#}");
    }
    assert_eq!(scene.object("podinfo").await.unwrap().metadata.uid, before.metadata.uid);
    assert_eq!(program.terminate().0, Some(0));
}

/// The requests for objects of the kind.
fn apps(scene: &Scene) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("example.com", "v1", "App");
    let resource = ApiResource::from_gvk_with_plural(&kind, "apps");
    Api::namespaced_with(scene.cluster().client(), scene.cluster().namespace(), &resource)
}

/// Returns a scene with an object of the kind, which the program may watch.
async fn scene(name: &str) -> Scene {
    scene_of(name, app()).await
}

/// Creates the scene with a text of `podinfo.yaml`.
async fn scene_of(name: &str, text: String) -> Scene {
    let scene = Scene::of(cluster(name).await, &[("podinfo", text)]).await;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "apps"},
        "rules": [{"apiGroups": ["example.com"], "resources": ["apps"], "verbs": ["list", "watch"]}],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "apps"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "apps"},
        "subjects": [{"kind": "ServiceAccount", "name": "tagboat", "namespace": scene.cluster().namespace()}],
    });
    for document in [role, binding] {
        apply(&scene.cluster().client(), &document, false).await.unwrap();
    }
    scene
}

/// An extension API server may be away while the program starts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_is_watched_as_soon_as_its_discovery_works() {
    let scene = Scene::of(cluster("discovery").await, &[("podinfo", app())]).await;
    let faults = Faults::default();
    let kubeconfig = scene.cluster().faulty_kubeconfig(&faults).await;
    let discovers = |call: &Call| call.target == "/apis" || call.target == "/apis/example.com/v1";
    faults.next(usize::MAX, Fault::Broken, discovers);
    let mut program = scene.start_by(&kubeconfig, &[]);
    scene.apply_tree().await;
    let has_failed = async || faults.calls().iter().any(&discovers);
    eventually("discovery has failed", has_failed).await;
    faults.heal();
    let status = scene.state("podinfo", "1.0.0", "installed").await;
    let name = format!("App/{}/podinfo", scene.cluster().namespace());
    assert_eq!(component(&status)["name"], name.as_str(), "{status:#}");
    assert_eq!(program.terminate().0, Some(0));
    let lines = program.lines().into_iter().filter(|line| line["kind"] == "App");
    let lines: Vec<_> = lines.map(|line| line["msg"].as_str().unwrap().to_owned()).collect();
    assert_eq!(lines, ["watch failed, retrying", "watch recovered"]);
}
