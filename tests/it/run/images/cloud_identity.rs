//! The cloud identity of `tagboat run` comes from its environment.

use std::fs;

use serde_json::json;

use super::scene::{Scene, object};
use crate::support::certificates::Authority;
use crate::support::http_front::{Front, Reply};
use crate::support::program::run;
use crate::support::proxy_host::ProxyHost;

const ECR: &str = "012345678901.dkr.ecr.eu-west-1.amazonaws.com";

#[test]
fn the_cloud_identity_of_a_run_comes_from_the_environment() {
    let scene = Scene::new();
    let authority = Authority::new();
    let registry = Front::secured(None, authority.server_named(ECR, false), |_| {
        Reply::status(401).with("WWW-Authenticate", "Basic realm=\"ECR\"")
    });
    let proxy = ProxyHost::start_knowing(&format!("{ECR}:443"), &registry.address());
    let container = Front::alone(|_| Reply::status(403));
    scene.repository(
        "web",
        json!({"spec": {
            "image": format!("{ECR}/app/web"), "provider": "aws", "certSecretRef": {"name": "authority"},
        }}),
    );
    let mut secret = object("v1", "Secret", "default", "authority");
    secret["stringData"] = json!({"ca.crt": fs::read_to_string(authority.certificate_file()).unwrap()});
    scene.write(&secret);
    let ended = run(scene
        .command()
        .env("HTTPS_PROXY", proxy.url())
        .env("NO_PROXY", "127.0.0.1")
        .env("AWS_CONTAINER_CREDENTIALS_FULL_URI", container.url("/role")));
    let ended = ended.with_status(1);
    assert!(ended.only_error().contains("the role of the container"), "{ended:?}");
    assert_eq!(container.requests_for("/role").len(), 1);
}
