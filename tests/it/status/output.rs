//! The output in each format.

use kube::ResourceExt;
use kube::api::Api;
use serde_json::{Value, json};
use tagboat_api::DeploymentStatus;

use super::scene::{Scene, failed, installed};

/// The cells of each line, which two spaces separate at least.
fn cells(output: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| {
        let cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
        cells.map(str::to_owned).collect()
    };
    output.lines().map(cells).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_has_a_row_for_each_deployment() {
    let scene = Scene::new().await;
    let ended = scene.status(&[]).with_status(0);
    let note = format!("note: no DeploymentStatus in the namespace {} is selected", scene.namespace());
    assert_eq!((ended.only_error(), ended.output.as_str()), (note.as_str(), ""));
    scene.deploy("podinfo", &failed("6.5.1")).await;
    scene.deploy("backend", &installed("1.0.0")).await;
    scene.create(scene.namespace(), "new", &json!({})).await;
    let ended = scene.status(&[]).with_status(0);
    let pull = "Deployment/apps/podinfo: ImagePullBackOff: Back-off pulling image";
    let expected = vec![
        vec!["NAME", "STATE", "PROGRESS", "VERSION", "SINCE", "MESSAGE"],
        vec!["backend", "installed", "2/2", "1.0.0", "2h"],
        vec!["new", "-", "-", "-", "-"],
        vec!["podinfo", "failed", "1/2", "6.5.1", "2h", pull],
    ];
    assert_eq!(cells(&ended.output), expected);
    assert_eq!(ended.errors, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wide_table_has_a_row_for_each_component() {
    let scene = Scene::new().await;
    scene.deploy("podinfo", &failed("6.5.1")).await;
    let ended = scene.status(&["-o", "wide"]).with_status(0);
    let titles =
        ["NAME", "STATE", "PROGRESS", "VERSION", "SINCE", "IMAGE", "TIE", "PLACE", "APPLIER", "MESSAGE"];
    let image = "ghcr.io/org/app:6.5.1";
    let pull = "ImagePullBackOff: Back-off pulling image";
    let message = format!("Deployment/apps/podinfo: {pull}");
    let applier = "Kustomization/flux-system/apps";
    let expected = vec![
        titles.to_vec(),
        vec!["podinfo", "failed", "1/2", "6.5.1", "2h", image, "-", "-", "-", &message],
        vec![
            "Deployment/apps/podinfo",
            "failed",
            "1/2",
            "-",
            "2h",
            image,
            "object",
            "apps/podinfo.yaml:12",
            applier,
            pull,
        ],
    ];
    assert_eq!(cells(&ended.output), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_is_the_list_document_with_all_fields_of_the_objects() {
    let scene = Scene::new().await;
    let mut bad = failed("6.5.1");
    bad["message"] = json!("turned \u{202e} text");
    scene.create(scene.namespace(), "podinfo", &json!({"team": "web"})).await;
    scene.set(scene.namespace(), "podinfo", &bad).await;
    scene.deploy("backend", &installed("1.0.0")).await;
    scene.create(scene.namespace(), "new", &json!({})).await;
    let ended = scene.status(&["-o", "json"]).with_status(0);
    assert_eq!(ended.only_error(), format!("note: {}/new has no status yet", scene.namespace()));
    assert!(ended.output.contains(r"turned \u202e text"), "{}", ended.output);
    let document = ended.json();
    assert_eq!((&document["state"], &document["summary"]["total"]), (&json!("failed"), &json!(2)));
    let names = document["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["backend", "podinfo"]);
    let item = &document["items"][1];
    assert_eq!(item["metadata"]["labels"], json!({"team": "web"}));
    let api: Api<DeploymentStatus> = Api::default_namespaced(scene.cluster.client());
    let object = api.get("podinfo").await.unwrap();
    assert_eq!(item["metadata"]["namespace"], json!(object.namespace().unwrap()));
    let status = serde_json::to_value(&object.status).unwrap();
    for (name, field) in status.as_object().unwrap() {
        let place = if ["deploymentId", "timeStamp"].contains(&&**name) { "metadata" } else { "status" };
        assert_eq!(&item[place][name], field, "{name}");
    }
    let none = scene.status(&["-o", "json", "-l", "team=none"]).with_status(0);
    assert_eq!(none.json(), json!({"state": "pending", "summary": summary(), "items": []}));
}

/// The summary of no deployment.
fn summary() -> Value {
    json!({"total": 0, "failed": 0, "removing": 0, "installing": 0, "pending": 0, "removed": 0, "installed": 0})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_of_a_cluster_cannot_control_the_terminal() {
    let scene = Scene::new().await;
    let mut bad = failed("6.5.1");
    bad["components"][0]["name"] = json!("Deployment/apps/\u{1b}[2Jweb");
    bad["components"][0]["image"] = json!("a\tb\nc");
    bad["components"][0]["error"]["message"] = json!("two\r\nlines\u{202e}");
    bad["progress"] = json!("1\u{7}/2");
    scene.deploy("podinfo", &bad).await;
    for format in ["text", "wide", "json"] {
        let output = scene.status(&["-o", format]).with_status(0).output;
        let is_safe = |letter: char| letter == '\n' || letter == ' ' || letter.is_ascii_graphic();
        assert!(output.chars().all(is_safe), "{output:?}");
        assert!(format == "json" || output.lines().count() == if format == "wide" { 3 } else { 2 });
    }
    let message = r"Deployment/apps/\u{1b}[2Jweb: ImagePullBackOff: two\r\nlines\u{202e}";
    let output = scene.status(&[]).with_status(0).output;
    assert!(output.contains(message), "{output}");
}
