//! The scene itself: a victim beside an attacker that does little.

use std::time::Duration;

use kube::api::DynamicObject;
use serde_json::json;

use super::scene::Scene;
use crate::controller::scene::Kind;
use crate::support::content::file;
use crate::support::http_front::{Front, Reply};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_victim_is_reconciled_beside_a_silent_registry() {
    let scene = Scene::start().await;
    let attacker = &scene.attacker;
    let silent = Front::alone(|_| Reply::Silence);
    let image = format!("{}/app", silent.address());
    scene
        .assert_healthy_while(async {
            let spec = json!({"image": image, "interval": "1m", "timeout": "5s"});
            attacker.create(Kind::Repository, "silent", &spec).await;
            attacker.repository("evil", &[file("empty.yaml", "a: 1\n")]);
            attacker.create_source("evil", &json!({})).await;
            attacker.create_automation("evil", &json!({})).await;
            scene.victim_is_reconciled().await;
        })
        .await;
    let sentence = attacker.ready_message(Kind::Repository, "silent").await;
    assert!(sentence.contains("no complete response within 5s"), "{sentence}");
    assert!(!silent.requests().is_empty());
    let evil = attacker.ready_message(Kind::Automation, "evil").await;
    assert_eq!(evil, "repository up-to-date");
    scene.delete_and_wait(Kind::Automation, "evil").await;
    assert!(scene.memory().peak() > 1 << 20, "the sampler sees the process");
    scene.assert_memory_below(512 << 20);
    assert!((2..200).contains(&scene.threads()), "{}", scene.threads());
    assert!(!scene.lines_about("silent").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_starts_again_reads_changed_secrets_and_slow_lists() {
    let mut scene = Scene::start().await;
    let slow = Front::alone(|request| match request.path.as_str() {
        "/v2/" => Reply::status(200),
        _ if request.authorization() != Some("Basic dXNlcjpyaWdodA==") => {
            Reply::status(401).with("WWW-Authenticate", "Basic realm=\"test\"")
        }
        _ => Reply::Paced {
            body: br#"{"name":"app","tags":["1.0.0"]}"#.to_vec(),
            piece: 4,
            pause: Duration::from_millis(10),
        },
    });
    let login = |password: &str| {
        let auths = json!({slow.address(): {"username": "user", "password": password}});
        json!({".dockerconfigjson": json!({"auths": auths}).to_string()})
    };
    scene.attacker.create_secret("login", &login("wrong")).await;
    let image = format!("{}/app", slow.address());
    let spec = json!({"image": image, "interval": "1h", "secretRef": {"name": "login"}});
    scene.attacker.create(Kind::Repository, "slow", &spec).await;
    let refused = scene.attacker.ready_message(Kind::Repository, "slow").await;
    assert!(refused.starts_with("scan failed: "), "{refused}");
    scene.attacker.change_secret("login", &login("right")).await;
    scene.restart().await;
    scene.memory().reset();
    let is_scanned = |object: &DynamicObject| object.data["status"]["lastScanResult"]["tagCount"] == 1;
    scene.attacker.until(Kind::Repository, "slow", "scanned", is_scanned).await;
    scene.victim_is_reconciled().await;
    scene.assert_memory_below(512 << 20);
}
