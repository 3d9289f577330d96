//! Notifications for Flux's notification controller, and what is served over HTTP.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::routing::post;
use futures::future::join_all;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::scene::{Kind, Scene, condition};
use crate::support::api_server::Faults;
use crate::support::eventually::eventually;

/// A receiver of notifications that answers the first ones as a test wants.
pub(super) struct Receiver {
    pub(super) address: String,
    pub(super) taken: Arc<Mutex<Vec<Value>>>,
}

impl Receiver {
    pub(super) async fn start(answers: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://user:hunter2@{}/", listener.local_addr().unwrap());
        let taken: Arc<Mutex<Vec<Value>>> = Arc::default();
        let answers = Arc::new(Mutex::new(answers.to_vec()));
        let keep = {
            let taken = taken.clone();
            move |body: Bytes| async move {
                let body: Value = serde_json::from_slice(&body).unwrap();
                taken.lock().unwrap().push(body);
                let mut answers = answers.lock().unwrap();
                let answer = if answers.is_empty() { 202 } else { answers.remove(0) };
                StatusCode::from_u16(answer).unwrap()
            }
        };
        let routes = Router::new().route("/", post(keep));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { address, taken }
    }

    fn messages(&self) -> Vec<String> {
        self.taken.lock().unwrap().iter().map(|body| body["message"].as_str().unwrap().to_owned()).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_notification_is_posted_once() {
    let scene = Scene::new(&["app"]).await;
    let annotations =
        json!({"metadata": {"annotations": {"event.toolkit.fluxcd.io/team": "x", "other": "y"}}});
    let object = scene.patch(Kind::Automation, "app", &annotations).await;
    let receiver = Receiver::start(&[]).await;
    let controller = scene.controller().notifying(&receiver.address).start();
    scene.ready("app").await;
    // A reconcile that changes nothing is not announced.
    scene.request("app", "now").await;
    scene.until("app", "answered", |object| object.data["status"]["lastHandledReconcileAt"] == "now").await;
    scene.choose("app", "2.0.0").await;
    scene.lands("app", "2.0.0").await;
    let commit = scene.commits()[0].id.clone();
    eventually("both are posted", async || receiver.taken.lock().unwrap().len() == 2).await;
    controller.end().await;
    let taken = receiver.taken.lock().unwrap().clone();
    assert_eq!(taken.len(), 2, "{taken:#?}");
    let push = &taken[1];
    let message =
        format!("pushed commit '{}' to branch 'main'\nUpdate from image update automation", &commit[..7]);
    assert_eq!(push["message"], message);
    assert_eq!((&push["severity"], &push["reason"]), (&json!("info"), &json!("Succeeded")));
    assert_eq!(push["metadata"], json!({"event.toolkit.fluxcd.io/team": "x"}));
    assert_eq!(push["involvedObject"]["kind"], "ImageUpdateAutomation");
    assert_eq!(push["involvedObject"]["apiVersion"], "image.toolkit.fluxcd.io/v1");
    assert_eq!(push["involvedObject"]["uid"], object.metadata.uid.unwrap());
    assert_eq!(push["reportingController"], "image-automation-controller");
    assert!(push["timestamp"].as_str().unwrap().ends_with('Z'));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_notification_is_retried_and_a_duplicate_is_not() {
    let cases = [(&[500, 503][..], 3), (&[429], 1), (&[400], 1)];
    join_all(cases.map(|(answers, expected)| async move {
        let scene = Scene::new(&["app"]).await;
        let receiver = Receiver::start(answers).await;
        let controller = scene.controller().notifying(&receiver.address).start();
        scene.ready("app").await;
        eventually("all tries", async || receiver.messages().len() == expected).await;
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        assert_eq!(receiver.messages(), vec!["repository up-to-date"; expected], "{answers:?}");
        controller.end().await;
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_message_of_a_push_is_cut_and_not_lost() {
    const LIMIT: usize = 256 * 1024;
    let scene = Scene::new(&["app"]).await;
    let template = r#"{{ repeat 300000 "ä" }}"#;
    let spec = json!({"spec": {"git": {"commit": {"messageTemplate": template}}}});
    scene.patch(Kind::Automation, "app", &spec).await;
    let receiver = Receiver::start(&[]).await;
    let controller = scene.controller().notifying(&receiver.address).start();
    scene.ready("app").await;
    scene.choose("app", "2.0.0").await;
    scene.lands("app", "2.0.0").await;
    let is_cut = |message: &str| {
        (LIMIT - 2048..=LIMIT).contains(&message.len())
            && message.ends_with("ä… (cut: the commit has the whole message)")
    };
    eventually("the notification is posted", async || {
        receiver.messages().iter().any(|message| message.contains("pushed commit") && is_cut(message))
    })
    .await;
    eventually("the event is recorded", async || {
        scene
            .events("app")
            .await
            .iter()
            .any(|event| event.contains("pushed commit") && event.ends_with(" the whole message)"))
    })
    .await;
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_has_25_events_but_each_push_has_one() {
    let scene = Scene::new(&["app"]).await;
    let faults = Faults::default();
    let receiver = Receiver::start(&[]).await;
    let client = scene.cluster.faulty_client(&faults);
    let controller = scene.controller().through(client).notifying(&receiver.address).start();
    scene.ready("app").await;
    // Every second reconcile fails, so that each has something to announce.
    for number in 0..40 {
        let branch = if number % 2 == 0 { "nope" } else { "main" };
        scene.patch(Kind::Source, "fleet", &json!({"spec": {"ref": {"branch": branch}}})).await;
        let reason = if number % 2 == 0 { "GitOperationFailed" } else { "Succeeded" };
        let is = |object: &DynamicObject| {
            condition(&object.data["status"], "Ready").is_some_and(|ready| ready["reason"] == reason)
        };
        scene.until("app", reason, is).await;
    }
    scene.choose("app", "2.0.0").await;
    scene.lands("app", "2.0.0").await;
    eventually("the push is announced", async || {
        scene.events("app").await.iter().any(|event| event.contains("pushed commit"))
    })
    .await;
    controller.end().await;
    let writes = faults.calls().iter().filter(|call| call.resource == "events" && call.writes()).count();
    // One more may happen in the time that this takes.
    assert!((25..=28).contains(&writes), "{writes}");
    let notified = receiver.messages();
    assert!(notified.len() > 28, "receivers have limits of their own: {}", notified.len());
}

/// A receiver that cannot be reached delays nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreachable_receiver_delays_nothing() {
    let scene = Scene::new(&["app"]).await;
    let controller = scene.controller().notifying("http://127.0.0.1:1/").start();
    scene.ready("app").await;
    scene.choose("app", "2.0.0").await;
    scene.lands("app", "2.0.0").await;
    controller.end().await;
}
