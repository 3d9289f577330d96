//! Delivery by pull request in a cluster, on the real Gitea.

use std::collections::BTreeSet;

use kube::core::DynamicObject;
use serde_json::{Value, json};
use tagboat::objects::cluster::Scope;

use super::delivery::{Delivery, delivery};
use super::scene::{Kind, condition, line};
use crate::pull_requests::fleet::carried;
use crate::support::eventually::eventually;
use crate::support::gitea::{GiteaRepository, OTHER};
use crate::support::http_front::{Front, Reply};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pull_request_lives_and_each_action_has_one_event() {
    let own = Delivery::new("cluster").await;
    own.scene.choose("app", "2.0.0").await;
    let controller = own.scene.controller().start();
    let status = own.until("True Current 1 open: #1").await;
    assert_eq!(condition(&status, "Ready").unwrap()["status"], "True", "{status:#}");
    assert_eq!(own.events().await, ["PullRequestOpened #1"]);
    let main = own.forge.tip("main").await.unwrap();
    assert_eq!(status["observedSourceRevision"], format!("main@sha1:{main}"));

    // A restart announces nothing again, and writes nothing.
    let before = own.pulls().await;
    controller.end().await;
    let controller = own.scene.controller().start();
    own.scene.choose("app", "3.0.0").await;
    eventually("the pull request is refreshed", async || own.events().await.len() == 2).await;
    assert_eq!(own.events().await, ["PullRequestOpened #1", "PullRequestRefreshed #1"]);
    assert_eq!((own.pulls().await.len(), before.len()), (1, 1));
    let is_told = async || own.pulls().await[0]["title"].as_str().unwrap().ends_with("3.0.0");
    eventually("its text tells the refresh, after the report", is_told).await;

    // A person closes it; the next image is another one.
    own.forge.call("PATCH", "pulls/1", json!({"state": "closed"})).await;
    own.scene.request("app", "1").await;
    own.until("True Current refused by a person: #1").await;
    own.scene.choose("app", "4.0.0").await;
    own.until("True Current 1 open: #2").await;

    // The base gets the value otherwise.
    let namespace = own.scene.cluster.namespace();
    own.forge.write("main", "fleet.yaml", &line(namespace, "app", "4.0.0")).await;
    own.scene.request("app", "2").await;
    own.until("True Current no pull request is open").await;
    let expected = [
        "PullRequestOpened #1",
        "PullRequestRefreshed #1",
        "PullRequestClosed #1",
        "PullRequestOpened #2",
        "PullRequestClosed #2",
    ];
    assert_eq!(own.events().await, expected);
    let states: Vec<Value> = own.pulls().await.into_iter().map(|pull| pull["state"].clone()).collect();
    assert_eq!(states, ["closed", "closed"]);
    controller.end().await;
}

/// Those beyond the limit of 25 events of an object were lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_many_pull_requests_has_an_event() {
    const MANY: usize = 28;
    let own = Delivery::new("many").await;
    let namespace = own.scene.cluster.namespace();
    let names: Vec<String> = (0..MANY).map(|number| format!("p{number}")).collect();
    for name in &names {
        own.scene.create_policy(name, "2.0.0").await;
    }
    let lines: String = names.iter().map(|name| line(namespace, name, "1.0.0")).collect();
    own.forge.write("main", "fleet.yaml", &lines).await;
    own.scene.patch(Kind::Automation, "app", &json!({"spec": {"policySelector": null}})).await;
    own.annotate(json!({"tagboat.dev/push-branch": "tagboat/{{ .Policy.Name }}"})).await;
    let controller = own.scene.controller().start();
    own.until(&format!("True Current {MANY} open: ")).await;
    let events: BTreeSet<String> = own.events().await.into_iter().collect();
    let wanted: BTreeSet<String> = (1..=MANY).map(|number| format!("PullRequestOpened #{number}")).collect();
    assert_eq!(events, wanted);
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_branch_of_a_superseded_pull_request_is_deleted() {
    let own = Delivery::new("superseded").await;
    own.annotate(json!({"tagboat.dev/push-branch": "images/{{ .Image.Tag }}"})).await;
    own.scene.choose("app", "2.0.0").await;
    let controller = own.scene.controller().start();
    own.until("True Current 1 open: #1").await;
    own.scene.choose("app", "3.0.0").await;
    own.until("True Current 1 open: #2").await;
    eventually("its branch is deleted", async || own.forge.tip("images/2.0.0").await.is_none()).await;
    assert!(own.forge.tip("images/3.0.0").await.is_some());
    let states: Vec<Value> = own.pulls().await.into_iter().map(|pull| pull["state"].clone()).collect();
    assert_eq!(states, ["closed", "open"]);
    controller.end().await;
}

/// The branch was rebuilt while the label was there.
/// A commit that came meanwhile was lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_branch_is_handed_back_by_the_label_which_is_removed_first() {
    let own = Delivery::new("label").await;
    own.scene.choose("app", "2.0.0").await;
    let controller = own.scene.controller().start();
    own.until("True Current 1 open: #1").await;
    let branch = format!("tagboat/{}-app", own.scene.cluster.namespace());
    let review = own.forge.write(&branch, "notes.md", "words\n").await;
    own.scene.choose("app", "3.0.0").await;
    own.until("False EditedByOthers").await;
    assert_eq!(own.forge.tip(&branch).await, Some(review));
    own.forge.call("POST", "labels", json!({"name": "tagboat/rebuild", "color": "#00aa00"})).await;
    own.forge.call("POST", "issues/1/labels", json!({"labels": ["tagboat/rebuild"]})).await;
    own.scene.request("app", "1").await;
    own.until("True Current 1 open: #1").await;
    let wanted = line(own.scene.cluster.namespace(), "app", "3.0.0");
    assert_eq!(own.forge.read(&branch, "fleet.yaml").await, wanted);
    assert_eq!(own.pulls().await[0]["labels"], json!([]));
    // A later commit is kept: the label is gone.
    let later = own.forge.write(&branch, "notes.md", "words\n").await;
    own.scene.choose("app", "4.0.0").await;
    own.until("False EditedByOthers").await;
    assert_eq!(own.forge.tip(&branch).await, Some(later));
    controller.end().await;
}

/// The number of runs that are asked for.
const RUNS: u64 = 5;

/// The number of calls that each of them may make: it lists and looks up.
const CALLS: u64 = 4;

/// The branch has a commit of a person that was made after the merge.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_branch_that_stays_after_its_merge_makes_no_work() {
    let own = Delivery::new("stays").await;
    own.scene.choose("app", "2.0.0").await;
    let builder = own.scene.controller();
    let metrics = builder.metrics.clone();
    let controller = builder.start();
    own.until("True Current 1 open: #1").await;
    let branch =
        own.forge.call("GET", "pulls/1", json!(null)).await["head"]["ref"].as_str().unwrap().to_owned();
    eventually("the forge merges it", async || {
        own.forge.try_call("POST", "pulls/1/merge", json!({"Do": "squash"})).await.0 == 200
    })
    .await;
    let review = own.forge.write(&branch, "notes.md", "words\n").await;
    own.scene.request("app", "1").await;
    own.until("True Current no pull request is open").await;
    let requests = || -> u64 {
        let text = metrics.to_text();
        let lines = text.lines().filter(|line| line.starts_with("tagboat_forge_requests_total"));
        lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
    };
    // Rounds that cause each other would make more and more calls.
    let before = requests();
    for run in 0..RUNS {
        let token = format!("later-{run}");
        own.scene.request("app", &token).await;
        let is_handled =
            |object: &DynamicObject| object.data["status"]["lastHandledReconcileAt"] == token.as_str();
        own.scene.until("app", "handled", is_handled).await;
    }
    let made = requests() - before;
    assert!(made <= RUNS * CALLS, "{made} calls");
    assert_eq!(own.forge.tip(&branch).await, Some(review));
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forge_that_fails_leaves_ready_and_is_tried_again() {
    let own = Delivery::new("fails").await;
    let namespace = own.scene.cluster.namespace().to_owned();
    own.scene.create_secret(&namespace, "forge", &[("token", "wr0ng-t0ken")]).await;
    let secret = |name: Value| json!({"metadata": {"annotations": {"tagboat.dev/forge-secret": name}}});
    own.scene.patch(Kind::Source, "fleet", &secret(json!("forge"))).await;
    own.scene.choose("app", "2.0.0").await;
    let controller = own.scene.controller().start();
    let refused = format!("False Forbidden 127.0.0.1:{} refuses the credentials of Secret", own.forge.port());
    let status = own.until(&refused).await;
    assert_eq!(condition(&status, "Ready").unwrap()["status"], "True", "{status:#}");
    assert!(delivery(&status).unwrap().contains("; the next retry is at 20"), "{status:#}");
    assert!(!status.to_string().contains("wr0ng-t0ken"));
    // The change of the annotation triggers the automation.
    own.scene.patch(Kind::Source, "fleet", &secret(Value::Null)).await;
    own.until("True Current 1 open: #1").await;
    assert_eq!(own.events().await, ["PullRequestOpened #1"]);
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspended_automation_leaves_its_pull_request_open() {
    let own = Delivery::new("suspended").await;
    own.scene.choose("app", "2.0.0").await;
    let controller = own.scene.controller().start();
    own.until("True Current 1 open: #1").await;
    own.scene.patch(Kind::Automation, "app", &json!({"spec": {"suspend": true}})).await;
    own.scene.choose("app", "1.0.0").await;
    own.scene.delete(Kind::Automation, "app").await;
    eventually("the automation is gone", async || own.scene.get("app").await.is_none()).await;
    assert_eq!(own.pulls().await[0]["state"], "open");
    controller.end().await;
}

/// Each tenant has a namespace, and reaches the repository by a front of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_tenants_of_one_repository_send_their_own_tokens_only() {
    let tenants = [Delivery::new("tenants").await, Delivery::new("unused").await];
    let forge = &tenants[0].forge;
    forge.call("PUT", &format!("collaborators/{OTHER}"), json!({"permission": "write"})).await;
    let text: String = tenants.iter().map(|tenant| tenant.line("1.0.0")).collect();
    forge.write("main", "fleet.yaml", &text).await;
    let tokens = [GiteaRepository::token(), GiteaRepository::other_token()];
    let fronts = [0, 1].map(|_| Front::before(forge.port(), |_| Reply::Forward));
    let label = tenants[0].scene.cluster.namespace().to_owned();
    for ((tenant, user), (token, front)) in tenants.iter().zip(["bot", OTHER]).zip(tokens.iter().zip(&fronts))
    {
        let scene = &tenant.scene;
        scene
            .create_secret(scene.cluster.namespace(), "own", &[("username", user), ("password", token)])
            .await;
        let url = forge.url().replace(&format!("127.0.0.1:{}", forge.port()), &front.address());
        let source = json!({"spec": {"url": url, "secretRef": {"name": "own"}}});
        scene.patch(Kind::Source, "fleet", &source).await;
        let labels = json!({"metadata": {"labels": {"tenant": label}}});
        scene.patch(Kind::Automation, "app", &labels).await;
    }
    // The second controller has the state of the first, and the third has none.
    for tag in ["2.0.0", "3.0.0", "4.0.0"] {
        if tag == "4.0.0" {
            std::fs::remove_dir_all(tenants[0].scene.root().join("state")).unwrap();
        }
        let mut builder = tenants[0].scene.controller();
        builder.options.controller.scope = Scope { namespace: None, labels: Some(format!("tenant={label}")) };
        let controller = builder.start();
        for tenant in &tenants {
            tenant.scene.choose("app", tag).await;
        }
        for tenant in &tenants {
            tenant.until("True Current 1 open: #").await;
            eventually(&format!("{tag} is on the branch"), async || {
                let branch = tenant.branch();
                forge.tip(&branch).await.is_some()
                    && forge.read(&branch, "fleet.yaml").await.contains(&tenant.line(tag))
            })
            .await;
        }
        controller.end().await;
    }
    let authors: BTreeSet<String> =
        forge.pulls().await.iter().map(|pull| pull["user"]["login"].as_str().unwrap().to_owned()).collect();
    assert_eq!(authors, BTreeSet::from(["bot".to_owned(), OTHER.to_owned()]));
    for (front, token) in fronts.iter().zip(tokens) {
        let (carried, writes) = carried(front);
        assert_eq!(carried, BTreeSet::from([token.to_owned()]));
        for write in ["git-receive-pack", "pulls"] {
            assert!(writes.contains(write), "{write}: {writes:?}");
        }
    }
}
