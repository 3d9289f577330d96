//! Orders that arrive while the forge work of another automation is between two calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use super::delivery::Delivery;
use super::scene::Controller;
use crate::support::eventually::eventually;
use crate::support::git_host::request::Request;
use crate::support::http_front::{Front, Reply};

/// The condition of an automation without a pull request.
const NONE: &str = "True Current no pull request is open";

/// A front that holds one call until it is released.
struct HoldingFront {
    front: Front,
    is_held: Arc<AtomicBool>,
    is_released: Arc<AtomicBool>,
}

impl HoldingFront {
    /// Holds the first call for which `is_it` is true.
    fn before(port: u16, is_it: fn(&Request) -> bool) -> Self {
        let [is_held, is_released] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (held, released) = (Arc::clone(&is_held), Arc::clone(&is_released));
        let front = Front::before(port, move |request| {
            if is_it(request) && !held.swap(true, Ordering::SeqCst) {
                while !released.load(Ordering::SeqCst) {
                    sleep(Duration::from_millis(5));
                }
            }
            Reply::Forward
        });
        Self { front, is_held, is_released }
    }

    async fn until_held(&self) {
        eventually("a call is held", async || self.is_held.load(Ordering::SeqCst)).await;
    }

    fn release(&self) {
        self.is_released.store(true, Ordering::SeqCst);
    }

    /// The number of calls that open a pull request.
    fn openings(&self) -> usize {
        self.front.requests().iter().filter(|request| is_opening(request)).count()
    }
}

impl Drop for HoldingFront {
    fn drop(&mut self) {
        self.release();
    }
}

fn is_opening(request: &Request) -> bool {
    request.method == "POST" && request.path.ends_with("/pulls")
}

fn is_labelling(request: &Request) -> bool {
    request.method == "POST" && request.path.contains("/issues/") && request.path.ends_with("/labels")
}

/// Starts a controller, and holds the first call of `app` that is meant.
async fn begin(own: &Delivery, is_it: fn(&Request) -> bool) -> (HoldingFront, Controller) {
    let front = HoldingFront::before(own.forge.port(), is_it);
    own.reach_by(&front.front.address()).await;
    let controller = own.scene.controller().start();
    own.until(NONE).await;
    own.member_until("web", NONE).await;
    own.scene.choose("app", "2.0.0").await;
    front.until_held().await;
    (front, controller)
}

/// Git pushed the second branch only after the first pull request was opened.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_branch_is_searched_and_pushed_while_the_pull_request_of_another_is_opened() {
    let own = Delivery::of("overtaken", &["app", "web"]).await;
    let [first, second] =
        ["app", "web"].map(|name| format!("tagboat/{}-{name}", own.scene.cluster.namespace()));
    let (front, controller) = begin(&own, is_opening).await;
    own.scene.choose("web", "2.0.0").await;
    eventually("the second branch is there", async || own.forge.tip(&second).await.is_some()).await;
    front.release();
    own.until("True Current 1 open: #1").await;
    own.member_until("web", "True Current 1 open: #2").await;
    // The first opening was held until that push, and did not fail meanwhile.
    assert_eq!(front.openings(), 2);
    let heads: Vec<String> =
        own.pulls().await.iter().map(|pull| pull["head"]["ref"].as_str().unwrap().to_owned()).collect();
    assert_eq!(heads, [first, second]);
    assert_eq!(own.counted_events().await, ["PullRequestOpened #1 1", "PullRequestOpened #2 1"]);
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_automation_that_joins_a_branch_between_opening_and_labelling_has_the_same_pull_request() {
    let own = Delivery::of("joined", &["app", "web"]).await;
    for member in ["app", "web"] {
        let annotations = json!({
            "tagboat.dev/push-branch": "tagboat/both", "tagboat.dev/pull-request-labels": "[images]",
        });
        own.annotate_member(member, annotations).await;
    }
    let (front, controller) = begin(&own, is_labelling).await;
    own.scene.choose("web", "2.0.0").await;
    // Its order has arrived before.
    own.scene.until("web", "reported", |object| object.data["status"].to_string().contains("2.0.0")).await;
    front.release();
    let is_told = async || {
        let body = own.pulls().await[0]["body"].as_str().unwrap().to_owned();
        ["app", "web"].iter().all(|name| body.contains(&format!("/{name}`")))
    };
    eventually("the pull request tells of both", is_told).await;
    own.until("True Current 1 open: #1").await;
    own.member_until("web", "True Current 1 open: #1").await;
    let pulls = own.pulls().await;
    assert_eq!((pulls.len(), front.openings()), (1, 1));
    assert_eq!(pulls[0]["labels"].as_array().unwrap().len(), 1);
    // Each of them reports the opening once.
    for member in ["app", "web"] {
        let events = own.scene.events(member).await;
        let opened = events.iter().filter(|event| event.starts_with("Normal PullRequestOpened: "));
        assert_eq!(opened.count(), 1, "{member}: {events:?}");
    }
    let repeated = |event: &String| !event.ends_with(" 1");
    assert!(!own.counted_events().await.iter().any(repeated));
    controller.end().await;
}
