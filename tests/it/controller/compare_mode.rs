//! Compare mode: a controller that writes nothing beside one that does.

use std::fs;
use std::path::Path;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use super::pod::{Pod, get};
use super::scene::{Kind, Scene, line};
use crate::support::api_server::{apply, documents};
use crate::support::content::file;
use crate::support::eventually::eventually;
use crate::support::git_host::Operation;

/// The arguments of `deploy`, and the one for compare mode.
const ARGUMENTS: [&str; 5] = [
    "--watch-all-namespaces=false",
    "--log-level=info",
    "--log-encoding=json",
    "--enable-leader-election",
    "--dry-run",
];

/// The rules that the manual gives a controller in compare mode.
fn rules() -> Value {
    let manual = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/migrate-from-flux.md"));
    let manual = manual.unwrap();
    let block = manual.split("```yaml\n").find(|block| block.starts_with("# patch: compare\n")).unwrap();
    let kustomization = documents(block.split("```").next().unwrap()).remove(0);
    let patches = kustomization["patches"].as_array().unwrap();
    let patch = patches.iter().find(|patch| patch["target"]["kind"] == "ClusterRole").unwrap();
    documents(patch["patch"].as_str().unwrap()).remove(0)[0]["value"].clone()
}

/// Starts a controller in compare mode with just the permissions of the manual.
/// It has them in the test's namespace.
async fn start(scene: &Scene) -> Pod {
    let token = scene.cluster.token("compare").await;
    let group = "rbac.authorization.k8s.io";
    let metadata = json!({"name": "compare", "namespace": scene.cluster.namespace()});
    let role = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": metadata, "rules": rules(),
    });
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "compare"},
        "subjects": [{"kind": "ServiceAccount", "name": "compare", "namespace": scene.cluster.namespace()}],
    });
    for object in [role, binding] {
        apply(&scene.cluster.client(), &object, false).await.unwrap();
    }
    Pod::start_with(scene, &token, &ARGUMENTS)
}

/// Sets an interval of one second.
async fn set_short_interval(scene: &Scene, name: &str) {
    scene.patch(Kind::Automation, name, &json!({"spec": {"interval": "1s"}})).await;
}

/// The log lines with this builder.
fn lines(pod: &Pod, beginning: &str) -> Vec<Value> {
    let mut lines = pod.lines();
    lines.retain(|line| line["msg"].as_str().unwrap().starts_with(beginning));
    lines
}

/// Waits for log lines with this beginning, and returns the last one.
async fn wait_for_line(pod: &Pod, beginning: &str, count: usize) -> Value {
    eventually(beginning, async || lines(pod, beginning).len() >= count).await;
    lines(pod, beginning).pop().unwrap()
}

/// Waits until two further reconciles have ended.
/// Each has one listing, so the third listing comes after both.
async fn reconciled_again(scene: &Scene) {
    let count = || scene.host.requests_for(Operation::ListForFetch).len();
    let before = count();
    eventually("two further reconciles", async || count() >= before + 3).await;
}

/// Pushes the file as another author.
fn push(scene: &Scene, content: &str) {
    scene.repository.commit("main", "Not ours", &[file("fleet.yaml", content)]);
}

/// Every object in the namespace that a controller might write.
async fn written(scene: &Scene) -> Vec<String> {
    let (client, namespace) = (scene.cluster.client(), scene.cluster.namespace());
    let leases: Api<Lease> = Api::namespaced(client.clone(), namespace);
    let events: Api<Event> = Api::namespaced(client, namespace);
    let everything = ListParams::default();
    let mut found = Vec::new();
    found.extend(leases.list(&everything).await.unwrap().into_iter().map(|lease| lease.name_any()));
    found.extend(events.list(&everything).await.unwrap().into_iter().map(|event| event.name_any()));
    for automation in scene.api(Kind::Automation).list(&everything).await.unwrap() {
        found.extend(automation.resource_version());
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compare_mode_compares_and_writes_nothing() {
    const WOULD: &str = "would push a commit";
    const OTHER: &str = "another controller pushed";
    let scene = Scene::new(&["app"]).await;
    set_short_interval(&scene, "app").await;
    // An image that Flux has observed is compared all the same.
    let theirs = json!({"observedPolicies": {"app": {"name": super::scene::IMAGE, "tag": "2.0.0"}}});
    scene.patch_status("app", "image-automation-controller", &theirs).await;
    scene.choose("app", "2.0.0").await;
    let before = written(&scene).await;
    let mut pod = start(&scene).await;
    let namespace = scene.cluster.namespace().to_owned();
    let at = |tag: &str| line(&namespace, "app", tag);

    let would = wait_for_line(&pod, WOULD, 1).await;
    assert_eq!(would["name"], "app", "{would}");
    let diff = would["diff"].as_str().unwrap();
    assert!(diff.contains(&format!("-{}+{}", at("1.0.0"), at("2.0.0"))), "{diff}");
    assert!(would["commit_message"].as_str().unwrap().starts_with("Update from image update automation"));

    // The same edit, beside an unrelated change by another author.
    let other_file = file("README", "more\n");
    scene.repository.commit("main", "Not ours", &[file("fleet.yaml", at("2.0.0")), other_file]);
    let agreed = wait_for_line(&pod, OTHER, 1).await;
    assert_eq!(agreed["msg"], "another controller pushed the same");
    assert_eq!(
        (&agreed["agreed"], &agreed["differed"], &agreed["missed"]),
        (&json!(1), &json!(0), &json!(0))
    );

    // A different edit: the value in other bytes.
    scene.choose("app", "3.0.0").await;
    wait_for_line(&pod, WOULD, 2).await;
    push(&scene, &format!("\n{}", at("3.0.0")));
    let differed = wait_for_line(&pod, OTHER, 2).await;
    assert_eq!(differed["level"], "warn");
    assert_eq!(differed["msg"], "another controller pushed the same values in different bytes: fleet.yaml");
    assert!(differed["diff"].as_str().unwrap().contains("\n-\n"), "{differed}");

    // An edit to a value that is up to date for us: we would set it back.
    push(&scene, &format!("\n{}", at("0.0.1")));
    let missed = wait_for_line(&pod, OTHER, 3).await;
    assert_eq!(
        missed["msg"],
        format!(
            "another controller pushed values that this controller would not change: fleet.yaml ({namespace}:app:tag): \
             \"0.0.1\" instead of \"3.0.0\""
        )
    );
    wait_for_line(&pod, WOULD, 3).await;
    // Another value than ours.
    push(&scene, &format!("\n{}", at("0.0.2")));
    let other = wait_for_line(&pod, OTHER, 4).await;
    assert!(other["msg"].as_str().unwrap().starts_with("another controller pushed other values: fleet.yaml"));
    wait_for_line(&pod, WOULD, 4).await;

    // Nothing is logged or counted again while nothing changes.
    reconciled_again(&scene).await;
    assert_eq!((lines(&pod, WOULD).len(), lines(&pod, OTHER).len()), (4, 4));
    let metrics = get(&pod.metrics, "metrics").await;
    for series in [
        "tagboat_dry_run_commits_total 4",
        r#"tagboat_dry_run_comparisons_total{outcome="agreed"} 1"#,
        r#"tagboat_dry_run_comparisons_total{outcome="differed"} 2"#,
        r#"tagboat_dry_run_comparisons_total{outcome="missed"} 1"#,
        "tagboat_leader 0.0",
    ] {
        assert!(metrics.lines().any(|line| line == series), "{series} is not in\n{metrics}");
    }
    assert_eq!(pod.terminate().0, Some(0), "{:#?}", pod.lines());
    let end = wait_for_line(&pod, "the comparison with the other controller ends", 1).await;
    let counts = ["commits", "agreed", "differed", "missed"].map(|name| end[name].as_u64().unwrap());
    assert_eq!(counts, [4, 1, 2, 1]);

    // And nothing was written.
    assert_eq!(written(&scene).await, before);
    let audit = scene.cluster.audit("compare");
    assert!(audit.iter().any(|request| request.verb == "watch" && request.code == 200), "{audit:?}");
    let writes: Vec<_> = audit.iter().filter(|request| request.writes()).collect();
    assert!(writes.is_empty(), "{writes:?}");
    let log = scene.repository.log("main");
    assert_eq!(log.iter().filter(|commit| commit.message == "Not ours\n").count(), 4);
    assert_eq!(log.len(), 5);
    let references = scene.repository.git(["for-each-ref", "--format=%(refname)"]);
    assert_eq!(String::from_utf8(references).unwrap(), "refs/heads/main\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compare_mode_agrees_with_a_controller_on_all_members() {
    let members = ["one", "two", "three"];
    let scene = Scene::new(&members).await;
    for member in members {
        set_short_interval(&scene, member).await;
    }
    let mut pod = start(&scene).await;
    wait_for_line(&pod, "dry run: comparing automations", 1).await;
    for member in members {
        scene.choose(member, "2.0.0").await;
    }
    wait_for_line(&pod, "would push a commit", 3).await;
    // All lines are in one file, and each automation makes a commit of its own.
    let controller = scene.controller().start();
    for member in members {
        scene.lands(member, "2.0.0").await;
    }
    wait_for_line(&pod, "another controller pushed the same", 3).await;
    controller.end().await;
    assert_eq!(pod.terminate().0, Some(0));
    let end = wait_for_line(&pod, "the comparison with the other controller ends", 1).await;
    let counts = ["commits", "agreed", "differed", "missed"].map(|name| end[name].as_u64().unwrap());
    assert_eq!(counts, [3, 3, 0, 0], "{:#?}", pod.lines());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compare_mode_reads_the_push_branch_once_it_exists() {
    let scene = Scene::new(&["app"]).await;
    set_short_interval(&scene, "app").await;
    scene.patch(Kind::Automation, "app", &json!({"spec": {"git": {"push": {"branch": "auto"}}}})).await;
    scene.choose("app", "2.0.0").await;
    let mut pod = start(&scene).await;
    wait_for_line(&pod, "would push a commit", 1).await;
    let line = line(scene.cluster.namespace(), "app", "2.0.0");
    scene.repository.move_branch("auto", &scene.repository.id("main").unwrap());
    scene.repository.commit("auto", "Not ours", &[file("fleet.yaml", line)]);
    wait_for_line(&pod, "another controller pushed the same", 1).await;
    // A branch that was merged is not compared again.
    scene.repository.move_branch("main", &scene.repository.id("auto").unwrap());
    scene.repository.delete_branch("auto");
    reconciled_again(&scene).await;
    assert_eq!(pod.terminate().0, Some(0));
    let end = wait_for_line(&pod, "the comparison with the other controller ends", 1).await;
    let counts = ["commits", "agreed", "differed", "missed"].map(|name| end[name].as_u64().unwrap());
    assert_eq!(counts, [1, 1, 0, 0], "{:#?}", pod.lines());
}
