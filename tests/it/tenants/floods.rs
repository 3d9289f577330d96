//! Floods of reconcile requests, and of the events that they cause.

use std::collections::BTreeSet;
use std::time::Instant;

use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, ListParams};
use serde_json::json;

use super::scene::Scene;
use crate::controller::scene::Kind;
use crate::support::content::file;
use crate::support::http_front::{Front, Reply};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_without_end_are_answered_once_a_second_and_displace_nothing() {
    let begin = Instant::now();
    let scene = Scene::start().await;
    let attacker = &scene.attacker;
    let registry = Front::alone(|request| match request.path.as_str() {
        "/v2/" => Reply::status(200),
        _ => Reply::body(200, r#"{"name":"app","tags":["1.0.0"]}"#),
    });
    attacker.create_images("evil", &format!("{}/app", registry.address())).await;
    attacker.repository("evil", &[file("empty.yaml", "a: 1\n")]);
    attacker.create_source("evil", &json!({})).await;
    attacker.create_automation("evil", &json!({})).await;
    attacker.ready_message(Kind::Automation, "evil").await;
    let flood = async {
        for number in 0..100 {
            for kind in [Kind::Automation, Kind::Repository, Kind::Policy] {
                attacker.request(kind, "evil", &number.to_string()).await;
            }
        }
    };
    let victim = async {
        for _ in 0..2 {
            scene.victim_is_reconciled().await;
        }
    };
    scene.assert_healthy_while(async { tokio::join!(flood, victim) }).await;
    let most = usize::try_from(12 + begin.elapsed().as_secs()).unwrap();
    for kind in ["ImageUpdateAutomation", "ImageRepository"] {
        let lines = scene.lines_about("evil").into_iter().filter(|line| line["controllerKind"] == kind);
        let reconciles: BTreeSet<String> =
            lines.filter_map(|line| Some(line["reconcileID"].as_str()?.to_owned())).collect();
        println!("{kind}: {} reconciles, at most {most}", reconciles.len());
        assert!((2..=most).contains(&reconciles.len()), "{kind}: {} reconciles", reconciles.len());
    }
    let is_event = |request: &crate::support::api_server::Audited| {
        request.resource == "events" && request.writes() && request.namespace == attacker.namespace()
    };
    let events = scene.cluster.audit("tagboat").into_iter().filter(is_event).count();
    // Three objects with bursts of 25 events, and one more each after five minutes.
    assert!((2..=78).contains(&events), "{events} events");
    let victim: Api<Event> = Api::namespaced(scene.cluster.client(), scene.victim.tenant.namespace());
    let pushes = victim.list(&ListParams::default()).await.unwrap().items;
    let pushes = pushes
        .iter()
        .filter(|event| event.message.as_deref().is_some_and(|text| text.contains("pushed commit")));
    assert_eq!(pushes.count(), 3);
}
