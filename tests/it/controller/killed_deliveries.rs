//! Controllers that are killed between the opening of a pull request and its report.
//! The next process reports it once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::delivery::Delivery;
use super::pod::Pod;
use super::scene::{Kind, condition, kstatus, line};
use crate::support::api_server::{Fault, Faults};
use crate::support::eventually::eventually;
use crate::support::http_front::{Front, Reply};

/// The arguments of controllers without a Lease, which would make the next process wait.
const ARGUMENTS: [&str; 3] = ["--watch-all-namespaces=false", "--log-level=error", "--min-retry-delay=200ms"];

/// Each row has a request to the API server after the opening, and its fault.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_is_killed_between_opening_and_report_reports_once() {
    let status = "imageupdateautomations/status";
    let cases = [
        ("before-event", "create", "events", Fault::Silence),
        ("after-event", "create", "events", Fault::LostAnswer),
        ("before-status", "patch", status, Fault::Silence),
        ("after-status", "patch", status, Fault::LostAnswer),
    ];
    for (name, verb, resource, fault) in cases {
        let own = Delivery::new(name).await;
        let (is_open, is_reached) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let opened = Arc::clone(&is_open);
        let front = Front::before(own.forge.port(), move |request| {
            opened.fetch_or(request.method == "POST" && request.path.ends_with("/pulls"), Ordering::SeqCst);
            Reply::Forward
        });
        own.reach_by(&front.address()).await;
        let faults = Faults::default();
        let kubeconfig = own.scene.cluster.faulty_kubeconfig(&faults).await;
        let pod = Pod::start_by(&own.scene, &kubeconfig, &ARGUMENTS);
        own.scene.until("app", "ready", |object| kstatus(object) == "Current").await;
        let reached = Arc::clone(&is_reached);
        faults.next(1, fault, move |call| {
            let is_it = call.is(verb, resource) && is_open.load(Ordering::SeqCst);
            reached.fetch_or(is_it, Ordering::SeqCst);
            is_it
        });
        own.scene.choose("app", "2.0.0").await;
        eventually(name, async || match (fault, resource) {
            (Fault::LostAnswer, "events") => !own.counted_events().await.is_empty(),
            (Fault::LostAnswer, _) => delivered(&own.scene.status("app").await),
            _ => is_reached.load(Ordering::SeqCst),
        })
        .await;
        pod.kill();
        let _pod = Pod::start(&own.scene, &ARGUMENTS).await;
        own.until("True Current 1 open: #1").await;
        eventually("the event", async || !own.counted_events().await.is_empty()).await;
        own.scene.request("app", "later").await;
        let handled = |object: &kube::core::DynamicObject| {
            object.data["status"]["lastHandledReconcileAt"] == "later" && kstatus(object) == "Current"
        };
        own.scene.until("app", "handled", handled).await;
        assert_eq!(own.counted_events().await, ["PullRequestOpened #1 1"], "{name}");
        assert_eq!(own.pulls().await.len(), 1, "{name}");
    }
}

/// The closings whose branches were not rendered any more had no event.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_is_killed_between_three_closings_and_their_report_reports_each_once() {
    let policies = ["p1", "p2", "p3"];
    for (name, last) in [("superseded", "3 open: #4, #5, #6"), ("nothing-left", "no pull request is open")] {
        let own = Delivery::new(name).await;
        let namespace = own.scene.cluster.namespace();
        let lines = |tag: &str| policies.map(|policy| line(namespace, policy, tag)).concat();
        for policy in policies {
            own.scene.create_policy(policy, "2.0.0").await;
        }
        own.forge.write("main", "fleet.yaml", &lines("1.0.0")).await;
        own.scene.patch(Kind::Automation, "app", &json!({"spec": {"policySelector": null}})).await;
        let branch = "images/{{ .Policy.Name }}-{{ .Image.Tag }}";
        own.annotate(json!({"tagboat.dev/push-branch": branch})).await;
        let closings = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&closings);
        let front = Front::before(own.forge.port(), move |request| {
            let is_closing = request.method == "PATCH"
                && memchr::memmem::find(&request.body, br#""state":"closed""#).is_some();
            counted.fetch_add(usize::from(is_closing), Ordering::SeqCst);
            Reply::Forward
        });
        own.reach_by(&front.address()).await;
        let pod = Pod::start(&own.scene, &ARGUMENTS).await;
        own.until("True Current 3 open: #1, #2, #3").await;
        pod.kill();

        if name == "superseded" {
            for policy in policies {
                own.scene.choose(policy, "3.0.0").await;
            }
        } else {
            own.forge.write("main", "fleet.yaml", &lines("2.0.0")).await;
        }
        let faults = Faults::default();
        let is_reached = Arc::new(AtomicBool::new(false));
        let reached = Arc::clone(&is_reached);
        faults.next(1, Fault::Silence, move |call| {
            let is_it = call.is("create", "events") && closings.load(Ordering::SeqCst) == 3;
            reached.fetch_or(is_it, Ordering::SeqCst);
            is_it
        });
        let kubeconfig = own.scene.cluster.faulty_kubeconfig(&faults).await;
        let pod = Pod::start_by(&own.scene, &kubeconfig, &ARGUMENTS);
        eventually(name, async || is_reached.load(Ordering::SeqCst)).await;
        pod.kill();
        let open = own.pulls().await.iter().filter(|pull| pull["state"] == "open").count();
        assert_eq!(open, last.matches('#').count(), "{name}");

        let _pod = Pod::start(&own.scene, &ARGUMENTS).await;
        own.until(&format!("True Current {last}")).await;
        own.scene.request("app", "later").await;
        let handled = |object: &kube::core::DynamicObject| {
            object.data["status"]["lastHandledReconcileAt"] == "later" && kstatus(object) == "Current"
        };
        own.scene.until("app", "handled", handled).await;
        let opened = 3 + last.matches('#').count();
        let closed = (1..=3).map(|number| format!("PullRequestClosed #{number} 1"));
        let opened = (1..=opened).map(|number| format!("PullRequestOpened #{number} 1"));
        let wanted: Vec<String> = closed.chain(opened).collect();
        // The status is written after the events.
        assert_eq!(own.counted_events().await, wanted, "{name}");
    }
}

/// Returns true if the condition tells of the pull request.
fn delivered(status: &Value) -> bool {
    let found = condition(status, "Delivery");
    found.is_some_and(|found| found["message"].as_str().unwrap().contains("#1"))
}
