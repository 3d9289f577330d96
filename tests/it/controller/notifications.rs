//! Notifications for Flux's notification controller, and what is served over HTTP.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::scene::{Kind, Scene, eventually};

/// Somebody who takes notifications, and answers the first ones as he is told.
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
async fn what_is_worth_a_notification_is_posted_once() {
    let scene = Scene::new(&["app"]).await;
    let annotations =
        json!({"metadata": {"annotations": {"event.toolkit.fluxcd.io/team": "x", "other": "y"}}});
    let object = scene.patch(Kind::Automation, "app", &annotations).await;
    let receiver = Receiver::start(&[]).await;
    let controller = scene.controller().notifying(&receiver.address).start();
    scene.ready("app").await;
    // A run that finds nothing is no news.
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
async fn a_receiver_that_fails_is_asked_again_and_one_that_knows_it_is_not() {
    for (answers, expected) in [(&[500, 503][..], 3), (&[429], 1), (&[400], 1)] {
        let scene = Scene::new(&["app"]).await;
        let receiver = Receiver::start(answers).await;
        let controller = scene.controller().notifying(&receiver.address).start();
        scene.ready("app").await;
        eventually("all tries", async || receiver.messages().len() == expected).await;
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        assert_eq!(receiver.messages(), vec!["repository up-to-date"; expected], "{answers:?}");
        controller.end().await;
    }
}

/// Nothing waits for a receiver that is not there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_receiver_all_goes_on() {
    let scene = Scene::new(&["app"]).await;
    let controller = scene.controller().notifying("http://127.0.0.1:1/").start();
    scene.ready("app").await;
    scene.choose("app", "2.0.0").await;
    scene.lands("app", "2.0.0").await;
    controller.end().await;
}
