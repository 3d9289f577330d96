//! Requests that are refused.

use reqwest::Method;
use serde_json::json;

use super::server::Server;
use super::status::{object, status};

/// A path and the detail of its problem.
type Case = (&'static str, &'static str);

async fn check(server: &Server, status: u16, title: &str, cases: &[Case]) {
    for (path, detail) in cases {
        let answer = server.get(path).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert_eq!(answer.header("content-type"), "application/problem+json");
        let expected = json!({"type": "about:blank", "title": title, "status": status, "detail": detail});
        assert_eq!(answer.json(), expected, "{path}");
        assert_eq!(answer.header("etag"), "", "{path}");
    }
}

#[tokio::test]
async fn invalid_parameters_are_refused_in_a_sentence() {
    let server = Server::start("").await;
    server.put(&object("a", "b", &json!({}), &status("1", "pending", &[])));
    let cases = [
        (
            "/api/v1/deployments?state=Failed",
            "state \"Failed\" is invalid: write failed, removing, installing, pending, removed or installed",
        ),
        (
            "/api/v1/deployments?namespace=A",
            "namespace \"A\" is invalid: it cannot be the name of a namespace",
        ),
        (
            "/api/v1/deployments?selector=a+b",
            "selector \"a b\" is invalid: \"a b\" is not a requirement: write a=b, a!=b, a in (b,c), a notin (b,c), a or !a",
        ),
        (
            "/api/v1/deployments?automation=a/b",
            "automation \"a/b\" is invalid: it cannot be the name of an object",
        ),
        ("/api/v1/deployments?state=failed&state=failed", "the parameter state is given twice"),
        (
            "/api/v1/deployments?limit=1",
            "there is no parameter \"limit\": the resource has namespace, selector, automation, cluster, state",
        ),
        ("/api/v1/deployments/1/status?form=xml", "form \"xml\" is invalid: write seed or margo"),
        ("/api/v1/deployments/1/status?Form=seed", "there is no parameter \"Form\": the resource has form"),
        ("/api/v1/namespaces/a/deployments/b/status?x", "there is no parameter \"x\": the resource has form"),
        ("/api/v1/clusters?x=y", "there is no parameter \"x\": the resource has none"),
        ("/api/v1/events?x=y", "there is no parameter \"x\": the resource has none"),
        ("/api/v1/openapi.json?x=y", "there is no parameter \"x\": the resource has none"),
        ("/api/v1/deployments/%ff/status", "the path is not UTF-8"),
    ];
    check(&server, 400, "Bad Request", &cases).await;
    let long = format!("/api/v1/deployments?cluster={}", "x".repeat(2_000));
    let answer = server.get(&long).await;
    assert_eq!(answer.status, 400);
    assert!(answer.body.len() < 600, "{answer:?}");
}

#[tokio::test]
async fn unknown_paths_and_deployments_are_not_found() {
    let server = Server::start("").await;
    server.put(&object("a", "b", &json!({}), &status("1", "pending", &[])));
    let mut new = object("a", "new", &json!({}), &json!(null));
    new.as_object_mut().unwrap().remove("status");
    server.put(&new);
    let cases = [
        ("/api/v1/deployments/2/status", "there is no deployment with the id \"2\""),
        ("/api/v1/namespaces/a/deployments/c/status", "there is no deployment \"c\" in the namespace \"a\""),
        (
            "/api/v1/namespaces/a/deployments/new/status",
            "there is no deployment \"new\" in the namespace \"a\"",
        ),
        ("/api/v1/deployments/1", "there is nothing at /api/v1/deployments/1"),
        ("/api/v1/deployments/", "there is nothing at /api/v1/deployments/"),
        ("/api/v2/deployments", "there is nothing at /api/v2/deployments"),
        ("/api/v1", "there is nothing at /api/v1"),
    ];
    check(&server, 404, "Not Found", &cases).await;
}

#[tokio::test]
async fn only_get_and_head_are_allowed() {
    let server = Server::start("").await;
    for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"] {
        for path in ["/api/v1/deployments", "/api/v1/deployments/1/status", "/api/v1/events", "/nowhere"] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let answer = server.ask(method, path, &[]).await;
            assert_eq!((answer.status, answer.header("allow")), (405, "GET, HEAD"), "{path}");
            assert_eq!(answer.json()["detail"], "only GET and HEAD are allowed");
        }
    }
}

#[tokio::test]
async fn requests_for_other_hosts_are_misdirected() {
    let server = Server::start("").await;
    let path = "/api/v1/deployments";
    for host in ["localhost:9797", "127.0.0.1", "[::1]:80", "Status.example.com", "10.0.0.1:9797"] {
        let answer = server.ask(Method::GET, path, &[("host", host)]).await;
        assert_eq!(answer.status, 200, "{host}");
    }
    for host in
        ["evil.example.com", "status.example.com.evil.org", "localhost.evil.org", "127.0.0.1.evil.org"]
    {
        for (method, path) in [(Method::GET, path), (Method::POST, path), (Method::GET, "/nowhere")] {
            let answer = server.ask(method, path, &[("host", host)]).await;
            assert_eq!(answer.status, 421, "{host}");
            assert_eq!(answer.json()["title"], "Misdirected Request");
        }
    }
}
