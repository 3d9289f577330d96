//! Slots of transactions, threads and finalizers beside servers that never answer.

use std::time::Duration;

use kube::api::DynamicObject;
use serde_json::json;

use super::scene::Scene;
use crate::controller::scene::{Kind, condition};
use crate::support::git_host::{Fault, Operation};
use crate::support::http_front::{Front, Reply};

/// More than the slots of the controller and the waiters that one namespace may have.
const ATTACKERS: usize = 24;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hanging_proxies_on_the_way_to_the_victims_git_host_take_none_of_its_slots() {
    let scene = Scene::start().await;
    let attacker = &scene.attacker;
    let silent = Front::alone(|_| Reply::Silence);
    attacker.create_secret("proxy", &json!({"address": format!("http://{}", silent.address())})).await;
    let target = scene.victim.tenant.git_url("app");
    for number in 0..ATTACKERS {
        let source = json!({"url": target, "timeout": "10m", "proxySecretRef": {"name": "proxy"}});
        attacker.create_source(&format!("evil{number}"), &source).await;
        attacker.create_automation(&format!("evil{number}"), &json!({})).await;
    }
    // As many transactions as one route may have, and a victim that is not delayed by them.
    wait_until("four requests at the proxy", || silent.requests().len() >= 4).await;
    scene.assert_healthy_while(scene.victim_is_reconciled()).await;
    scene.delete_and_wait(Kind::Automation, "evil0").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_that_wait_for_a_slot_have_no_thread() {
    let scene = Scene::start().await;
    let attacker = &scene.attacker;
    attacker.host.always(Operation::ListForFetch, Fault::Hang);
    let before = scene.threads();
    for number in 0..80 {
        attacker.create_source(&format!("slow{number}"), &json!({"timeout": "10m"})).await;
        attacker.create_automation(&format!("slow{number}"), &json!({})).await;
    }
    let is_reconciling = |object: &DynamicObject| condition(&object.data["status"], "Reconciling").is_some();
    for number in 0..80 {
        attacker.until(Kind::Automation, &format!("slow{number}"), "reconciling", is_reconciling).await;
    }
    // Four run, each with a thread of its own and two that read from git; the rest are threads of a busy runtime.
    let more = scene.threads().saturating_sub(before);
    assert!(more < 40, "{more} more threads for 80 automations");
    scene.victim_is_reconciled().await;
    scene.delete_and_wait(Kind::Automation, "slow79").await;
}

async fn wait_until(what: &str, is: impl Fn() -> bool) {
    let begin = std::time::Instant::now();
    while !is() {
        assert!(begin.elapsed() < super::measures::TIMEOUT, "{what} never came");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
