//! Tests of registries behind a hanging proxy, and of registries with large pages.
//! The latter answer with the largest page that is read.

use std::time::{Duration, Instant};

use serde_json::json;

use super::measures::TIMEOUT;
use super::scene::Scene;
use crate::controller::scene::Kind;
use crate::support::http_front::{Front, Reply};

/// More than the slots of one registry.
const ATTACKERS: usize = 24;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hanging_proxies_on_the_way_to_the_victims_registry_take_none_of_its_slots() {
    let scene = Scene::start().await;
    let attacker = &scene.attacker;
    let silent = Front::alone(|_| Reply::Silence);
    attacker.create_secret("proxy", &json!({"address": format!("http://{}", silent.address())})).await;
    let image = format!("{}/app", scene.victim.registry.address());
    for number in 0..ATTACKERS {
        let spec =
            json!({"image": image, "interval": "10m", "timeout": "10m", "proxySecretRef": {"name": "proxy"}});
        attacker.create(Kind::Repository, &format!("evil{number}"), &spec).await;
    }
    let begin = Instant::now();
    while silent.requests().is_empty() {
        assert!(begin.elapsed() < TIMEOUT, "no request reached the proxy");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    scene.assert_healthy_while(scene.victim_is_reconciled()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_as_large_as_are_read_end_with_a_sentence_on_their_own_object() {
    let scene = Scene::start().await;
    let attacker = &scene.attacker;
    let registry = Front::alone(|request| match request.path.as_str() {
        "/v2/" => Reply::status(200),
        _ => Reply::body(200, format!("{{\"errors\":[{}0]}}", "0,".repeat(16 * 1024 * 1024 - 20))),
    });
    let image = |number: usize| format!("{}/evil{number}", registry.address());
    scene
        .assert_healthy_while(async {
            for number in 0..3 {
                let spec = json!({"image": image(number), "interval": "10m"});
                attacker.create(Kind::Repository, &format!("evil{number}"), &spec).await;
            }
            scene.victim_is_reconciled().await;
        })
        .await;
    for number in 0..3 {
        let sentence = attacker.ready_message(Kind::Repository, &format!("evil{number}")).await;
        assert!(sentence.ends_with(": unexpected status code 200 OK"), "{sentence}");
    }
    scene.assert_memory_below(512 << 20);
}
