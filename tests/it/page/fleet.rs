//! Deployments in every state, for the pages.

use serde_json::{Value, json};

use crate::rest::server::Server;
use crate::rest::status::{object, status};

/// Text with control characters, a reversed direction, and HTML.
pub(super) const HOSTILE: &str = "a\u{1b}[2J\u{202e}</p><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">";

/// Starts a server with a deployment in each state, and one with hostile text.
pub(super) async fn server() -> Server {
    let server = Server::start("edge-1").await;
    for state in ["pending", "installing", "installed", "failed", "removing", "removed"] {
        server.put(&deployment("shop", state, 1, state));
    }
    let mut status = status("hostile", "failed", &[("Deployment/web/hostile", "failed")]);
    for pointer in [
        "/components/0/error/message",
        "/components/0/image",
        "/components/0/name",
        "/components/0/place",
        "/target/tag",
        "/revision",
        "/commit/branch",
        "/progress",
        "/deployHistory/0/version",
    ] {
        *status.pointer_mut(pointer).unwrap() = json!(HOSTILE);
    }
    status["message"] = json!(format!("https://user:password@example.com/ {HOSTILE}"));
    server.put(&object("web", "hostile", &json!({"team": "edge"}), &status));
    server
}

/// A deployment with one component, both in a state.
pub(super) fn deployment(namespace: &str, name: &str, version: u64, state: &str) -> Value {
    let component = format!("Deployment/{namespace}/{name}");
    let mut status = status(name, state, &[(&component, state), ("Job/shop/migration", "installed")]);
    if state == "pending" {
        status["reason"] = json!("NotApplied");
        status["components"][0]["reason"] = json!("NotApplied");
        status["components"][0]["message"] = json!("Kustomization/shop/apps is suspended");
        status["message"] = json!(format!("{component}: Kustomization/shop/apps is suspended"));
    }
    let mut object = object(namespace, name, &json!({"team": "shop"}), &status);
    object["metadata"]["uid"] = json!(name);
    object["metadata"]["resourceVersion"] = json!(version.to_string());
    object
}
