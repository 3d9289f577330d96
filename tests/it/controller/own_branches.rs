//! Delivery by branch in a cluster.

use serde_json::{Value, json};
use tagboat::reconcile::branch_references::BranchReferences;

use super::pod::Pod;
use super::scene::{Kind, Scene, condition, line};
use crate::support::content::file;
use crate::support::eventually::eventually;

fn annotations(delivery: &Value, push_branch: &Value) -> Value {
    json!({"metadata": {"annotations": {"tagboat.dev/delivery": delivery, "tagboat.dev/push-branch": push_branch}}})
}

/// The condition `Delivery`, as `Status Reason message`.
fn delivery(status: &Value) -> Option<String> {
    let found = condition(status, "Delivery")?;
    let text = |member: &str| found[member].as_str().unwrap();
    Some(format!("{} {} {}", text("status"), text("reason"), text("message")))
}

/// Waits until a branch has a version of a member's line.
async fn has(scene: &Scene, branch: &str, member: &str, tag: &str) {
    let wanted = line(scene.cluster.namespace(), member, tag);
    let is_there = || {
        let is_branch = scene.repository.id(&format!("refs/heads/{branch}")).is_some();
        is_branch && String::from_utf8(scene.repository.file(branch, "fleet.yaml")).unwrap().contains(&wanted)
    };
    eventually(&format!("{member} at {tag} on {branch}"), async || is_there()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_branch_has_its_event_and_commits_of_others_stay() {
    let scene = Scene::new(&["app", "web"]).await;
    scene.delete(Kind::Automation, "web").await;
    scene.patch(Kind::Automation, "app", &json!({"spec": {"policySelector": null}})).await;
    let own = annotations(&json!("branch"), &json!("images/{{ .Policy.Name }}"));
    scene.patch(Kind::Automation, "app", &own).await;
    tokio::join!(scene.choose("app", "2.0.0"), scene.choose("web", "2.0.0"));
    let main = scene.repository.id("main").unwrap();
    let controller = scene.controller().start();
    tokio::join!(has(&scene, "images/app", "app", "2.0.0"), has(&scene, "images/web", "web", "2.0.0"));
    let tip = |branch: &str| scene.repository.id(&format!("refs/heads/{branch}")).unwrap();
    let (app, web) = (tip("images/app"), tip("images/web"));
    let status =
        scene.until("app", "reported", |object| object.data["status"]["lastPushCommit"] == web).await;
    assert_eq!(status["observedSourceRevision"], format!("main@sha1:{main}"));
    assert_eq!(delivery(&status).unwrap(), "True Current 2 branches: images/app, images/web");
    assert_eq!(scene.repository.id("main").unwrap(), main);
    let events = scene.events("app").await;
    for (tip, branch) in [(&app, "images/app"), (&web, "images/web")] {
        let wanted = format!("Normal Succeeded: pushed commit '{}' to branch '{branch}'", &tip[..7]);
        assert_eq!(events.iter().filter(|event| event.starts_with(&wanted)).count(), 1, "{events:#?}");
    }

    // A reviewer commits on one of them.
    let review = scene.repository.commit("images/app", "Review", &[file("notes.md", "words\n")]);
    tokio::join!(scene.choose("app", "3.0.0"), scene.choose("web", "3.0.0"));
    has(&scene, "images/web", "web", "3.0.0").await;
    let is_left =
        |status: &Value| delivery(status).is_some_and(|text| text.starts_with("False EditedByOthers"));
    let status = scene.until("app", "left", |object| is_left(&object.data["status"])).await;
    assert!(delivery(&status).unwrap().contains(&review[..7]), "{status:#}");
    assert_eq!(condition(&status, "Ready").unwrap()["status"], "True", "{status:#}");
    assert_eq!(tip("images/app"), review);

    // As Flux again.
    scene.patch(Kind::Automation, "app", &annotations(&Value::Null, &Value::Null)).await;
    tokio::join!(scene.lands("app", "3.0.0"), scene.lands("web", "3.0.0"));
    scene.until("app", "as Flux", |object| delivery(&object.data["status"]).is_none()).await;
    assert_eq!(tip("images/app"), review);
    controller.end().await;
    scene.repository.assert_sound();
}

/// The branch stayed and proposed the image that was not wanted any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_branch_whose_image_is_the_base_again_is_deleted() {
    let scene = Scene::new(&["app"]).await;
    scene.patch(Kind::Automation, "app", &annotations(&json!("branch"), &json!("images"))).await;
    scene.choose("app", "2.0.0").await;
    let controller = scene.controller().start();
    has(&scene, "images", "app", "2.0.0").await;
    scene.ready("app").await;
    scene.choose("app", "1.0.0").await;
    let is_gone = || scene.repository.id("refs/heads/images").is_none();
    eventually("the branch to be deleted", async || is_gone()).await;
    let none = "True Current no branch differs from 'main'";
    let is_reported = |status: &Value| delivery(status).as_deref() == Some(none);
    let status = scene.until("app", "reported", |object| is_reported(&object.data["status"])).await;
    assert_eq!(condition(&status, "Ready").unwrap()["status"], "True", "{status:#}");
    // A reviewer commits on the next one.
    scene.choose("app", "3.0.0").await;
    has(&scene, "images", "app", "3.0.0").await;
    scene.ready("app").await;
    let review = scene.repository.commit("images", "Review", &[file("notes.md", "words\n")]);
    scene.choose("app", "1.0.0").await;
    let is_left =
        |status: &Value| delivery(status).is_some_and(|text| text.starts_with("False EditedByOthers"));
    scene.until("app", "left", |object| is_left(&object.data["status"])).await;
    assert_eq!(scene.repository.id("refs/heads/images").unwrap(), review);
    controller.end().await;
    scene.repository.assert_sound();
}

/// Makes two automations with new images that share a branch.
async fn two_on_one_branch() -> Scene {
    let scene = Scene::new(&["app", "web"]).await;
    let own = annotations(&json!("branch"), &json!("images"));
    tokio::join!(
        scene.patch(Kind::Automation, "app", &own),
        scene.patch(Kind::Automation, "web", &own),
        scene.choose("app", "2.0.0"),
        scene.choose("web", "2.0.0"),
    );
    scene
}

/// Waits until the branch has the images of both, and their runs are reported.
async fn both_are_there(scene: &Scene) {
    tokio::join!(has(scene, "images", "app", "2.0.0"), has(scene, "images", "web", "2.0.0"));
    tokio::join!(scene.ready("app"), scene.ready("web"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shared_branch_has_the_commits_of_all_when_one_is_due() {
    let scene = two_on_one_branch().await;
    let controller = scene.controller().start();
    both_are_there(&scene).await;
    scene.choose("app", "3.0.0").await;
    has(&scene, "images", "app", "3.0.0").await;
    has(&scene, "images", "web", "2.0.0").await;
    let main = scene.repository.id("main").unwrap();
    let commits = scene.repository.log("refs/heads/images");
    let own: Vec<&str> =
        commits.iter().take_while(|one| one.id != main).map(|one| one.author.as_str()).collect();
    assert_eq!(own, ["web <bot@example.com>", "app <bot@example.com>"]);
    controller.end().await;
    scene.repository.assert_sound();
}

/// Without an interval, it waited for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_automation_is_due_when_the_one_that_delays_its_branch_changes_or_is_deleted() {
    let scene = two_on_one_branch().await;
    let windows = |value: &Value| json!({"metadata": {"annotations": {"tagboat.dev/windows": value}}});
    let closed = json!("[{name: past, kind: allow, from: 2020-01-01T00:00, until: 2020-01-02T00:00}]");
    scene.patch(Kind::Automation, "app", &json!({"spec": {"interval": "0s"}})).await;
    scene.patch(Kind::Automation, "web", &windows(&closed)).await;
    let controller = scene.controller().start();
    let waits = async || {
        let is = |status: &Value| {
            condition(status, "UpdatesWaiting").is_some_and(|found| {
                let message = found["message"].as_str().unwrap();
                found["status"] == "True" && message.contains("/web, which changes the same branch and waits")
            })
        };
        scene.until("app", "it waits for the other", |object| is(&object.data["status"])).await;
    };
    waits().await;
    assert!(scene.repository.id("refs/heads/images").is_none());
    scene.patch(Kind::Automation, "web", &windows(&Value::Null)).await;
    both_are_there(&scene).await;
    scene.patch(Kind::Automation, "web", &windows(&closed)).await;
    tokio::join!(scene.choose("app", "3.0.0"), scene.choose("web", "3.0.0"));
    waits().await;
    has(&scene, "images", "app", "2.0.0").await;
    scene.delete(Kind::Automation, "web").await;
    has(&scene, "images", "app", "3.0.0").await;
    controller.end().await;
    scene.repository.assert_sound();
}

/// An automation that fails for ever must not delay the others for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_automation_that_fails_or_is_suspended_does_not_delay_a_shared_branch_for_ever() {
    let scene = two_on_one_branch().await;
    let controller = scene.controller().start();
    both_are_there(&scene).await;
    let at = |path: &str| json!({"spec": {"update": {"path": path}}});
    scene.patch(Kind::Automation, "web", &at("./missing")).await;
    scene.choose("app", "3.0.0").await;
    has(&scene, "images", "app", "3.0.0").await;
    has(&scene, "images", "web", "1.0.0").await;
    scene.patch(Kind::Automation, "web", &at("./")).await;
    has(&scene, "images", "web", "2.0.0").await;
    has(&scene, "images", "app", "3.0.0").await;
    scene.ready("web").await;
    scene.patch(Kind::Automation, "web", &json!({"spec": {"suspend": true}})).await;
    scene.choose("app", "4.0.0").await;
    has(&scene, "images", "app", "4.0.0").await;
    has(&scene, "images", "web", "1.0.0").await;
    controller.end().await;
    scene.repository.assert_sound();
}

/// The commit was gone, and no line said so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_a_shared_branch_has_lost_is_logged() {
    let scene = two_on_one_branch().await;
    let arguments = ["--watch-all-namespaces=false", "--log-level=info", "--log-encoding=json"];
    let pod = Pod::start(&scene, &arguments).await;
    both_are_there(&scene).await;
    scene.patch(Kind::Automation, "web", &json!({"spec": {"suspend": true}})).await;
    scene.choose("app", "3.0.0").await;
    has(&scene, "images", "app", "3.0.0").await;
    has(&scene, "images", "web", "1.0.0").await;
    let namespace = scene.cluster.namespace();
    let expected = format!(
        "dropped the commit of automation {namespace}/web from branch 'images', because it is suspended"
    );
    let is_logged = || pod.lines().iter().any(|line| line["msg"] == expected.as_str());
    eventually("the line", async || is_logged()).await;
    scene.repository.assert_sound();
}

/// Gives both automations an annotation, and both policies a new image.
async fn choose_both(scene: &Scene, own: &Value) {
    tokio::join!(
        scene.patch(Kind::Automation, "app", own),
        scene.patch(Kind::Automation, "web", own),
        scene.choose("app", "2.0.0"),
        scene.choose("web", "2.0.0"),
    );
}

/// Waits until an automation may not have its branch, and returns the status.
async fn refused(scene: &Scene, automation: &str) -> Value {
    let is_refused =
        |status: &Value| delivery(status).is_some_and(|text| text.starts_with("False InvalidBranch"));
    scene.until(automation, "refused", |object| is_refused(&object.data["status"])).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_branch_of_two_bases_belongs_to_the_older_automation() {
    let scene = Scene::new(&["app", "web"]).await;
    scene.repository.git(["branch", "release", "main"]);
    let own = annotations(&json!("branch"), &json!("images"));
    let release = json!({"spec": {"git": {"checkout": {"ref": {"branch": "release"}}}}});
    scene.patch(Kind::Automation, "web", &release).await;
    choose_both(&scene, &own).await;
    let controller = scene.controller().start();
    has(&scene, "images", "app", "2.0.0").await;
    let status = refused(&scene, "web").await;
    let namespace = scene.cluster.namespace();
    let expected =
        format!("automation {namespace}/app makes the branch images on main, and a branch has one base");
    assert!(delivery(&status).unwrap().contains(&expected), "{status:#}");
    assert_eq!(condition(&status, "Ready").unwrap()["status"], "True", "{status:#}");
    scene.choose("app", "3.0.0").await;
    has(&scene, "images", "app", "3.0.0").await;
    has(&scene, "images", "web", "1.0.0").await;
    // Once the older one is suspended, the name is free.
    scene.patch(Kind::Automation, "app", &json!({"spec": {"suspend": true}})).await;
    scene.request("web", "now").await;
    has(&scene, "images", "web", "2.0.0").await;
    controller.end().await;
    scene.repository.assert_sound();
}

/// Each of them replaced the commit of the other in every run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_branch_of_two_sets_of_push_options_belongs_to_the_older_automation() {
    let scene = Scene::new(&["app", "web"]).await;
    let own = annotations(&json!("branch"), &json!("images"));
    let options = json!({"spec": {"git": {"push": {"options": {"ci.skip": "true"}}}}});
    scene.patch(Kind::Automation, "web", &options).await;
    choose_both(&scene, &own).await;
    let controller = scene.controller().start();
    has(&scene, "images", "app", "2.0.0").await;
    let status = refused(&scene, "web").await;
    let namespace = scene.cluster.namespace();
    let expected = format!("automation {namespace}/app makes the branch images with other push options");
    assert!(delivery(&status).unwrap().contains(&expected), "{status:#}");
    scene.choose("web", "3.0.0").await;
    scene.choose("app", "3.0.0").await;
    has(&scene, "images", "app", "3.0.0").await;
    has(&scene, "images", "web", "1.0.0").await;
    // With the same options they share it.
    scene.patch(Kind::Automation, "web", &json!({"spec": {"git": {"push": null}}})).await;
    has(&scene, "images", "web", "3.0.0").await;
    has(&scene, "images", "app", "3.0.0").await;
    controller.end().await;
    scene.repository.assert_sound();
}

/// With the gate `GitAllBranchReferences=false`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_branch_begins_at_the_checkout_each_time_by_a_gate() {
    let scene = Scene::new(&["app"]).await;
    let push = json!({"spec": {"git": {"push": {"branch": "auto"}}}});
    scene.patch(Kind::Automation, "app", &push).await;
    let mut builder = scene.controller();
    builder.options.run.references = BranchReferences::Fresh;
    let controller = builder.start();
    for tag in ["2.0.0", "3.0.0"] {
        scene.repository.commit("main", "By hand", &[file("notes.md", tag)]);
        scene.choose("app", tag).await;
        has(&scene, "auto", "app", tag).await;
        let commits = scene.repository.log("refs/heads/auto");
        assert_eq!(Some(commits[0].parents[0].clone()), scene.repository.id("main"), "{tag}");
    }
    let status = scene.until("app", "reported", |object| delivery(&object.data["status"]).is_some()).await;
    assert_eq!(delivery(&status).unwrap(), "True Current 1 branch: auto");
    controller.end().await;
}
