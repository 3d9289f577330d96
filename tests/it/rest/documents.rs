//! The documents of the API, from objects of a real Kubernetes API.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use super::answer::{Answer, client};
use super::scene::Scene;
use super::server::Server;
use super::status::{object, status};

const PATIENCE: Duration = Duration::from_secs(60);

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_equal_the_objects_field_by_field() {
    let scene = Scene::start(&["--cluster-name=edge-1"]).await;
    let web = status("3a5549f2", "failed", &[("Deployment/a/web", "failed"), ("Job/a/web", "installed")]);
    scene.write("web", &json!({"team": "edge", "tier": "front"}), &web).await;
    let shop = status("4b5549f2", "installed", &[("edge-2/Deployment/a/shop", "installed")]);
    scene.write("shop", &json!({"team": "shop"}), &shop).await;
    let all = scene.until("/api/v1/deployments", PATIENCE, |all| names(&all.json()).len() == 2).await.json();
    assert_eq!(names(&all), ["shop", "web"]);
    assert_eq!(all["state"], "failed");
    let summary = json!({
        "total": 2, "failed": 1, "removing": 0, "installing": 0, "pending": 0, "removed": 0, "installed": 1,
    });
    assert_eq!(all["summary"], summary);
    for (query, expected) in [
        ("selector=team%3Dedge", &["web"][..]),
        ("selector=team+in+(edge,shop),!tier", &["shop"]),
        ("automation=fleet", &["shop", "web"]),
        ("automation=other", &[]),
        ("cluster=edge-1", &["web"]),
        ("cluster=edge-2", &["shop"]),
        ("state=installed", &["shop"]),
        ("state=pending", &[]),
        ("namespace=elsewhere", &[]),
        ("state=failed&selector=team%3Dedge&namespace=", &["web"]),
    ] {
        let list = scene.get(&format!("/api/v1/deployments?{query}")).await.json();
        assert_eq!(names(&list), expected, "{query}");
        assert_eq!(list["summary"]["total"], expected.len(), "{query}");
        let state = match expected {
            [] => "pending",
            ["shop"] => "installed",
            _ => "failed",
        };
        assert_eq!(list["state"], state, "{query}");
    }

    let namespace = scene.cluster.namespace();
    let by_name = format!("/api/v1/namespaces/{namespace}/deployments/web/status");
    let document = scene.get(&by_name).await.json();
    assert_eq!(scene.get("/api/v1/deployments/3a5549f2/status").await.json(), document);
    assert_eq!(scene.get("/api/v1/deployments/3a5549f2/status?form=seed").await.json(), document);
    assert_eq!(all["items"][1], document);
    assert_eq!(
        (&document["apiVersion"], &document["kind"]),
        (&json!("deployment.margo/v1"), &json!("DeploymentStatus"))
    );
    let stored = scene.stored("web").await;
    let mut stored_status = stored["status"].clone();
    let members = stored_status.as_object_mut().unwrap();
    assert_eq!(members.remove("deploymentId"), Some(document["metadata"]["deploymentId"].clone()));
    assert_eq!(members.remove("timeStamp"), Some(document["metadata"]["timeStamp"].clone()));
    assert_eq!(document["status"], stored_status);
    assert_eq!(document["metadata"]["labels"], stored["metadata"]["labels"]);
    assert_eq!(document["metadata"]["namespace"], namespace);

    let margo = scene.get("/api/v1/deployments/3a5549f2/status?form=margo").await.json();
    let error = json!({"code": "CrashLoopBackOff", "source": "Deployment/a/web", "message": "exit code 1"});
    assert_eq!(
        margo,
        json!({
            "apiVersion": "deployment.margo.org/v1alpha1",
            "kind": "DeploymentStatusManifest",
            "deploymentId": "3a5549f2",
            "deviceId": "edge-1",
            "status": {"state": "failed"},
            "components": [
                {"name": "Deployment/a/web", "state": "failed", "error": error},
                {"name": "Job/a/web", "state": "installed"},
            ],
        })
    );
    let clusters = scene.get("/api/v1/clusters").await.json();
    assert_eq!(clusters, json!({"items": [{"name": "edge-1", "state": "up"}]}));

    // A change arrives, and so does the end of an object.
    let fixed = status("3a5549f2", "installed", &[("Deployment/a/web", "installed")]);
    scene.write("web", &json!({}), &fixed).await;
    scene.until(&by_name, PATIENCE, |answer| answer.json()["status"]["state"] == "installed").await;
    let api: kube::Api<tagboat_api::DeploymentStatus> = kube::Api::default_namespaced(scene.cluster.client());
    api.delete("web", &kube::api::DeleteParams::default()).await.unwrap();
    scene.until(&by_name, PATIENCE, |answer| answer.status == 404).await;
    assert_eq!(scene.get("/api/v1/deployments/3a5549f2/status").await.status, 404);
}

#[tokio::test]
async fn a_manifest_of_margo_has_an_error_only_with_failed() {
    let server = Server::start("").await;
    for state in ["pending", "installing", "installed", "failed", "removing", "removed"] {
        let mut status = status(state, state, &[("Deployment/a/b", state)]);
        // Another writer may leave members that a manifest must not have.
        let empty = json!({"code": "", "source": "", "message": ""});
        status["error"] = empty.clone();
        status["components"][0]["error"] = empty;
        server.put(&object("a", state, &json!({}), &status));
        let margo = server.get(&format!("/api/v1/deployments/{state}/status?form=margo")).await.json();
        assert_eq!(margo["status"]["state"], state);
        assert!(margo.get("deviceId").is_none(), "{margo}");
        for part in [&margo["status"], &margo["components"][0]] {
            assert_eq!(part.get("error").is_some(), state == "failed", "{margo}");
            let members = part.get("error").and_then(Value::as_object);
            assert!(members.into_iter().flatten().all(|(_, text)| text != ""), "{margo}");
        }
    }
}

#[tokio::test]
async fn an_unchanged_content_is_not_sent_again() {
    let server = Server::start("edge-1").await;
    let object = |version: &str, state: &str| {
        let mut object = object("a", "b", &json!({}), &status("1", state, &[("Job/a/b", state)]));
        object["metadata"]["resourceVersion"] = json!(version);
        object["metadata"]["uid"] = json!("u");
        object
    };
    server.put(&object("1", "pending"));
    let changing = [
        "/api/v1/deployments",
        "/api/v1/deployments/1/status",
        "/api/v1/deployments/1/status?form=margo",
        "/api/v1/namespaces/a/deployments/b/status",
    ];
    let mut tags = Vec::new();
    for path in changing.into_iter().chain(["/api/v1/clusters", "/api/v1/openapi.json"]) {
        let first = server.get(path).await;
        let tag = first.header("etag");
        assert!(tag.starts_with('"') && tag.len() > 10, "{first:?}");
        let again = server.ask(Method::GET, path, &[("if-none-match", tag)]).await;
        assert_eq!((again.status, again.header("etag"), &*again.body), (304, tag, ""), "{path}");
        let head = server.ask(Method::HEAD, path, &[]).await;
        assert_eq!((head.status, head.header("etag"), &*head.body), (200, tag, ""), "{path}");
        assert_eq!(head.header("content-type"), first.header("content-type"));
        tags.push((path, tag.to_owned()));
    }
    assert_ne!(tags[1].1, tags[2].1, "both forms");
    server.put(&object("2", "installed"));
    for (path, tag) in tags {
        let answer = server.ask(Method::GET, path, &[("if-none-match", &tag)]).await;
        let expected = if changing.contains(&path) { 200 } else { 304 };
        assert_eq!(answer.status, expected, "{path}");
    }
}

/// Text with control characters, a reversed direction, and HTML.
const HOSTILE: &str = "a\u{1b}[2J\u{202e}\u{9b}</script><script>alert(1)</script>\r\n\u{0}\"'&";

#[tokio::test]
async fn text_of_a_cluster_is_harmless_and_unchanged() {
    let server = Server::start("").await;
    let mut status = status("1", "failed", &[("Deployment/a/b", "failed")]);
    for pointer in ["/components/0/error/message", "/components/0/image", "/components/0/name", "/progress"] {
        *status.pointer_mut(pointer).unwrap() = json!(HOSTILE);
    }
    status["message"] = json!(HOSTILE);
    server.put(&object("a", "b", &json!({"team": HOSTILE}), &status));
    for path in ["/api/v1/deployments", "/api/v1/deployments/1/status"] {
        let answer = server.get(path).await;
        let document = answer.json();
        let document = document.pointer("/items/0").unwrap_or(&document);
        assert_eq!(document["status"]["message"], HOSTILE);
        assert_eq!(document["status"]["components"][0]["error"]["message"], HOSTILE);
        assert_eq!(document["metadata"]["labels"]["team"], HOSTILE);
        assert_eq!(answer.header("content-type"), "application/json");
        assert!(!answer.body.contains(tagboat::printable::is_unprintable), "{path}");
    }
    for path in
        ["/api/%1b%5b2J%e2%80%ae", "/api/v1/deployments/%1b%e2%80%ae/status", "/api/v1/deployments?%1b=%00"]
    {
        let answer = server.get(path).await;
        assert!(answer.status == 404 || answer.status == 400, "{answer:?}");
        assert!(!answer.body.contains(tagboat::printable::is_unprintable), "{answer:?}");
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(!detail.contains(tagboat::printable::is_unprintable), "{detail}");
    }
}

/// The bound of 50 ms is for a release build.
/// Here the test only shows that nothing is slow out of proportion.
#[tokio::test]
async fn a_list_of_500_deployments_is_fast() {
    let server = Server::start("").await;
    for number in 0..500 {
        let name = format!("app-{number}");
        let status = status(&name, "installed", &[("Deployment/a/b", "installed"), ("Job/a/b", "installed")]);
        server.put(&object("a", &name, &json!({"team": "edge"}), &status));
    }
    let client = client();
    let url = format!("http://{}/api/v1/deployments?selector=team", server.address);
    let mut fastest = Duration::MAX;
    for _ in 0..5 {
        let begin = Instant::now();
        let text = client.get(&url).send().await.unwrap().text().await.unwrap();
        fastest = fastest.min(begin.elapsed());
        assert!(text.len() > 500_000);
    }
    println!("a list of 500 deployments takes {fastest:?}");
    assert!(fastest < Duration::from_millis(500), "{fastest:?}");
    let list = Answer::of(Method::GET, &server.address.to_string(), "/api/v1/deployments", &[]).await;
    assert_eq!(list.json()["summary"]["installed"], 500);
}
