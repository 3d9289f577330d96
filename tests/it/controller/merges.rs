//! Merges and shared branches of pull requests by a controller, on the real Gitea.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tagboat::controller::{ControllerError, lease_name};
use tagboat::objects::cluster::FIELD_MANAGER;

use super::delivery::Delivery;
use super::scene::{Kind, condition, line};
use crate::support::eventually::eventually;
use crate::support::http_front::{Front, Reply};

fn merging(time: &str, method: &str) -> Value {
    json!({"tagboat.dev/pull-request-merge": time, "tagboat.dev/pull-request-merge-method": method})
}

impl Delivery {
    /// Waits for an event, and asks for runs meanwhile.
    ///
    /// Gitea computes in the background if it can merge.
    async fn until_event(&self, event: &str) {
        let mut asked = 0;
        eventually(event, async || {
            asked += 1;
            if asked % 20 == 0 {
                self.scene.request("app", &format!("{event} {asked}")).await;
            }
            self.events().await.iter().any(|found| found == event)
        })
        .await;
    }

    /// The number of parents of the tip of `main`, and its message.
    async fn last(&self) -> (usize, String) {
        let log = self.forge.call("GET", "commits?sha=main&stat=false&limit=1", json!(null)).await;
        let last = &log[0];
        let message = last["commit"]["message"].as_str().unwrap().to_owned();
        (last["parents"].as_array().unwrap().len(), message)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_settings_decide_how_and_when_a_pull_request_is_merged() {
    let own = Delivery::new("settings").await;
    let builder = own.scene.controller();
    let metrics = builder.metrics.clone();
    own.annotate(merging("immediately", "squash")).await;
    own.scene.choose("app", "2.0.0").await;
    let controller = builder.start();
    own.until_event("PullRequestMerged #1").await;
    assert_eq!(own.forge.read("main", "fleet.yaml").await, own.line("2.0.0"));
    let (parents, message) = own.last().await;
    assert!(parents == 1 && message.starts_with("Update app to 2.0.0 (#1)"), "{message}");

    own.annotate(merging("immediately", "rebase")).await;
    own.scene.choose("app", "3.0.0").await;
    own.until_event("PullRequestMerged #2").await;
    assert_eq!(own.forge.read("main", "fleet.yaml").await, own.line("3.0.0"));
    // It is the automation's commit.
    let (parents, message) = own.last().await;
    assert!(parents == 1 && !message.contains("#2"), "{message}");

    // Without a rule, Gitea would merge at once.
    own.annotate(merging("when-ready", "commit")).await;
    own.scene.choose("app", "4.0.0").await;
    let status = own.until("False AutoMergeRefused pull request #3 is not merged: ").await;
    assert_eq!(condition(&status, "Ready").unwrap()["status"], "True", "{status:#}");
    let rule = json!({
        "rule_name": "main", "enable_push": true, "enable_status_check": true, "status_check_contexts": ["ci"],
    });
    own.forge.call("POST", "branch_protections", rule).await;
    own.scene.choose("app", "5.0.0").await;
    own.until("True Current 1 open: #3").await;
    let is_current = async || own.forge.read(&own.branch(), "fleet.yaml").await == own.line("5.0.0");
    eventually("the branch has the image", is_current).await;
    let text = metrics.to_text();
    let labels = format!("namespace=\"{}\",name=\"app\"", own.scene.cluster.namespace());
    for (state, count) in [("open", 1), ("refused", 0)] {
        let wanted = format!("tagboat_pull_requests{{{labels},state=\"{state}\"}} {count}\n");
        assert!(text.contains(&wanted), "{wanted} {text}");
    }
    let tip = own.forge.tip(&own.branch()).await.unwrap();
    own.forge.call("POST", &format!("statuses/{tip}"), json!({"context": "ci", "state": "success"})).await;
    own.until_event("PullRequestMerged #3").await;
    assert_eq!(own.last().await.0, 2);

    // A branch that is protected from every push.
    own.annotate(merging("by-hand", "commit")).await;
    own.annotate(json!({"tagboat.dev/push-branch": "images"})).await;
    let rule = json!({"rule_name": "images", "enable_push": false});
    own.forge.call("POST", "branch_protections", rule).await;
    own.scene.choose("app", "6.0.0").await;
    let status = own.scene.not_ready("app", "GitOperationFailed").await;
    let words = condition(&status, "Ready").unwrap()["message"].as_str().unwrap();
    assert!(words.contains("the server protects this branch: allow the login of git"), "{words}");
    own.forge.call("DELETE", "branch_protections/images", json!(null)).await;
    own.until("True Current 1 open: #4").await;
    controller.end().await;

    // The forge itself has merged the third.
    for (action, count) in [("opened", 4), ("merged", 2)] {
        let wanted = format!("tagboat_pull_request_actions_total{{action=\"{action}\"}} {count}\n");
        assert!(metrics.to_text().contains(&wanted), "{wanted} {}", metrics.to_text());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_automations_share_a_pull_request_and_the_update_button_is_no_commit_of_others() {
    let own = Delivery::of("shared", &["app", "web"]).await;
    let namespace = own.scene.cluster.namespace().to_owned();
    let lines = |app: &str, web: &str| line(&namespace, "app", app) + &line(&namespace, "web", web);
    for (name, label, merge) in [("app", "images", "immediately"), ("web", "team/web", "by-hand")] {
        let annotations = json!({
            "tagboat.dev/delivery": "pull-request", "tagboat.dev/push-branch": "tagboat/shared",
            "tagboat.dev/pull-request-labels": format!("[{label}]"), "tagboat.dev/pull-request-merge": merge,
        });
        let patch = json!({"metadata": {"annotations": annotations}});
        own.scene.patch(Kind::Automation, name, &patch).await;
        own.scene.choose(name, "2.0.0").await;
    }
    let controller = own.scene.controller().start();
    let has = async |app: &str, web: &str| {
        let has_both = async || {
            own.forge.tip("tagboat/shared").await.is_some()
                && own.forge.read("tagboat/shared", "fleet.yaml").await == lines(app, web)
        };
        eventually(&format!("{app} and {web} on the branch"), has_both).await;
    };
    has("2.0.0", "2.0.0").await;
    own.until("True Current 1 open: #1").await;
    let is_whole = async || {
        let pull = &own.pulls().await[0];
        let names = pull["labels"].as_array().unwrap().iter().map(|label| label["name"].as_str().unwrap());
        let body = pull["body"].as_str().unwrap();
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        names == ["images", "team/web"] && ["app", "web"].iter().all(|name| body.contains(name))
    };
    eventually("it has the text and the labels of both", is_whole).await;
    let commits = async || {
        let path = "compare/main...tagboat%2Fshared";
        own.forge.call("GET", path, json!(null)).await["total_commits"].as_u64().unwrap()
    };
    assert_eq!(commits().await, 2);

    // A person updates the branch by the forge's button.
    own.forge.write("main", "notes.md", "words\n").await;
    eventually("the update", async || {
        own.forge.try_call("POST", "pulls/1/update?style=merge", json!({})).await.0 == 200
    })
    .await;
    let merged = own.forge.tip("tagboat/shared").await.unwrap();
    let parents = own.forge.call("GET", &format!("git/commits/{merged}"), json!(null)).await;
    assert_eq!(parents["parents"].as_array().unwrap().len(), 2);
    own.scene.choose("web", "3.0.0").await;
    has("2.0.0", "3.0.0").await;
    assert_eq!(commits().await, 2, "the branch was made anew");
    own.until("True Current 1 open: #1").await;
    // The most cautious time of a merge counts.
    let pulls = own.pulls().await;
    assert_eq!((pulls.len(), pulls[0]["state"].as_str()), (1, Some("open")));
    controller.end().await;
}

/// Holds up the requests that open a pull request, until it is released.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    changed: Condvar,
    has_stopped: AtomicBool,
}

impl Gate {
    fn pass(&self) {
        self.has_stopped.store(true, Ordering::SeqCst);
        let is_open = self.is_open.lock().unwrap();
        drop(self.changed.wait_while(is_open, |is_open| !*is_open).unwrap());
    }

    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.changed.notify_all();
    }
}

fn is_opening(method: &str, path: &str) -> bool {
    method == "POST" && path.ends_with("/pulls")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_loses_the_lease_ends_its_work_at_the_forge() {
    let own = Delivery::of("lease", &["app", "web"]).await;
    let gate = Arc::<Gate>::default();
    let held = Arc::clone(&gate);
    let front = Front::before(own.forge.port(), move |request| {
        if is_opening(&request.method, &request.path) {
            held.pass();
        }
        Reply::Forward
    });
    own.reach_by(&front.address()).await;
    own.scene.delete(Kind::Automation, "web").await;
    own.scene.patch(Kind::Automation, "app", &json!({"spec": {"policySelector": null}})).await;
    own.annotate(json!({"tagboat.dev/push-branch": "x/{{ .Policy.Name }}"})).await;
    tokio::join!(own.scene.choose("app", "2.0.0"), own.scene.choose("web", "2.0.0"));
    let controller = own.scene.controller().standing_as("first").start();
    eventually("the first is being opened", async || gate.has_stopped.load(Ordering::SeqCst)).await;
    let leases: Api<Lease> = Api::namespaced(own.scene.cluster.client(), own.scene.cluster.namespace());
    let lose = json!({"spec": {"holderIdentity": "flux", "leaseDurationSeconds": 3600}});
    let (name, lose) = (lease_name(FIELD_MANAGER, None), Patch::Merge(lose));
    leases.patch(&name, &PatchParams::default(), &lose).await.unwrap();
    assert!(matches!(controller.ended().await, ControllerError::LeadershipLost { .. }));
    // The request that was on its way arrives, and none follows it.
    gate.open();
    eventually("the first is open", async || own.pulls().await.len() == 1).await;
    let controller = own.scene.controller().start();
    own.until("True Current 2 open: #1, #2").await;
    controller.end().await;
    let requests = front.requests();
    assert_eq!(requests.iter().filter(|one| is_opening(&one.method, &one.path)).count(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_in_a_dry_run_calls_no_forge() {
    let own = Delivery::new("dry").await;
    let front = Front::before(own.forge.port(), |_| Reply::Forward);
    own.reach_by(&front.address()).await;
    own.scene.choose("app", "2.0.0").await;
    let mut builder = own.scene.controller();
    builder.options.controller.is_dry_run = true;
    let metrics = builder.metrics.clone();
    let controller = builder.start();
    let has_compared = || metrics.to_text().contains("tagboat_dry_run_commits_total 1\n");
    eventually("the change is known", async || has_compared()).await;
    controller.end().await;
    let requests = front.requests();
    assert!(requests.iter().any(|one| one.path.ends_with("/git-upload-pack")));
    assert!(requests.iter().all(|one| !one.path.contains("/api/")), "{requests:?}");
    assert!(own.pulls().await.is_empty());
    assert!(!metrics.to_text().contains("tagboat_forge_requests_total{"));
}
