//! Windows and freezes: what waits, and when it is written.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::pod::Pod;
use super::scene::{Kind, Scene, condition};
use crate::support::eventually::eventually;
use crate::support::git_host::Operation;
use crate::support::shifted_clock::ShiftedClock;

/// A list of windows that is closed until a time.
fn closed_until(until: Timestamp) -> String {
    format!("[{{name: long, kind: deny, from: 2020-01-01T00:00, until: '{until}'}}]")
}

fn never() -> Timestamp {
    "2200-01-01T00:00:00Z".parse().unwrap()
}

async fn set_windows(scene: &Scene, windows: Option<&str>) {
    let patch = json!({"metadata": {"annotations": {"tagboat.dev/windows": windows}}});
    scene.patch(Kind::Automation, "app", &patch).await;
}

/// Waits until an automation waits, and returns the message.
async fn waits(scene: &Scene, reason: &str) -> String {
    let is_waiting = |status: &Value| {
        condition(status, "UpdatesWaiting")
            .is_some_and(|found| found["status"] == "True" && found["reason"] == reason)
    };
    let status = scene.until("app", "it waits", |object| is_waiting(&object.data["status"])).await;
    let message = condition(&status, "UpdatesWaiting").unwrap()["message"].as_str().unwrap().to_owned();
    let ready = condition(&status, "Ready").unwrap();
    assert_eq!((ready["status"].as_str(), ready["message"].as_str()), (Some("True"), Some(message.as_str())));
    message
}

fn pushes(scene: &Scene) -> usize {
    scene.host.requests_for(Operation::Push).len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_waits_over_restarts_and_lands_when_its_window_opens() {
    let scene = Scene::new(&["app"]).await;
    set_windows(&scene, Some(&closed_until(never()))).await;
    let mut controller = scene.controller().start();
    scene.choose("app", "2.0.0").await;
    let message = waits(&scene, "WindowClosed").await;
    assert!(message.starts_with("1 value of app waits: deny window `long` of automation "), "{message}");
    assert!(message.ends_with("; until 2200-01-01T00:00:00Z"), "{message}");
    for _ in 0..2 {
        controller.kill().await;
        controller = scene.controller().start();
        scene.request("app", &Timestamp::now().to_string()).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        waits(&scene, "WindowClosed").await;
    }
    assert_eq!((pushes(&scene), scene.commits().len()), (0, 0));
    let events = scene.events("app").await;
    let of_wait = |event: &&String| event.contains("deny window `long`");
    assert_eq!(events.iter().filter(of_wait).count(), 1, "{events:#?}");
    // The end of the window is a time, at which the controller is woken.
    let end = Timestamp::now() + SignedDuration::from_secs(5);
    let end = Timestamp::from_second(end.as_second()).unwrap();
    set_windows(&scene, Some(&closed_until(end))).await;
    scene.lands("app", "2.0.0").await;
    assert!(Timestamp::now() >= end);
    let status = scene.until("app", "nothing waits", |object| {
        condition(&object.data["status"], "UpdatesWaiting").is_some_and(|found| found["status"] == "False")
    });
    let status = status.await;
    assert_eq!(condition(&status, "UpdatesWaiting").unwrap()["reason"], "NothingWaiting");
    set_windows(&scene, None).await;
    scene
        .until("app", "no rules", |object| condition(&object.data["status"], "UpdatesWaiting").is_none())
        .await;
    controller.end().await;
}

/// Makes the automation reconcile, and asserts that it waits and pushes nothing.
async fn waits_when_requested(scene: &Scene) -> String {
    let token = Timestamp::now().to_string();
    scene.request("app", &token).await;
    let is_handled =
        |object: &kube::core::DynamicObject| object.data["status"]["lastHandledReconcileAt"] == token;
    scene.until("app", "the request is handled", is_handled).await;
    let message = waits(scene, "WindowClosed").await;
    assert_eq!((pushes(scene), scene.commits().len()), (0, 0));
    message
}

/// A window opens by neither a change of the clock nor a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_set_forward_and_back_opens_no_window() {
    let arguments = ["controller", "--controllers=automation", "--watch-all-namespaces=false"];
    let scene = Scene::new(&["app"]).await;
    let clock = ShiftedClock::new(scene.root());
    let environment = clock.environment();
    let token = scene.cluster.token_with_the_roles().await;
    let start = || Pod::start_in(&scene, &scene.cluster.kubeconfig(&token), &environment, &arguments);
    let end = Timestamp::from_second((Timestamp::now() + SignedDuration::from_mins(30)).as_second()).unwrap();
    set_windows(&scene, Some(&closed_until(end))).await;
    let mut pod = start();
    scene.choose("app", "2.0.0").await;
    let by = waits(&scene, "WindowClosed").await;
    assert!(by.ends_with(&format!("; until {end}")), "{by}");
    let changed = ", by the time before the system clock was changed; no end is known";
    for (shift, is_changed) in
        [(3_600, true), (0, false), (-3_600, false), (0, false), (3_600, true), (0, false)]
    {
        clock.set(shift);
        let message = waits_when_requested(&scene).await;
        assert_eq!(message.contains(changed), is_changed, "{shift}: {message}");
    }
    for _ in 0..2 {
        pod.kill();
        pod = start();
        assert_eq!(waits_when_requested(&scene).await, by);
    }
    // The shift is that of the program: after its end, the window is open.
    pod.kill();
    clock.set(3_600);
    let mut pod = start();
    scene.lands("app", "2.0.0").await;
    assert_eq!(pod.terminate().0, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forced_request_overrides_the_own_windows_once() {
    let scene = Scene::new(&["app"]).await;
    set_windows(&scene, Some(&closed_until(never()))).await;
    let controller = scene.controller().start();
    scene.choose("app", "2.0.0").await;
    waits(&scene, "WindowClosed").await;
    let force = |requested: &str, forced: &str| {
        json!({"metadata": {"annotations": {
            "reconcile.fluxcd.io/requestedAt": requested, "reconcile.fluxcd.io/forceAt": forced,
        }}})
    };
    // An older force is none of the new request.
    scene.patch(Kind::Automation, "app", &force("2", "1")).await;
    scene
        .until("app", "the request is handled", |object| {
            object.data["status"]["lastHandledReconcileAt"] == "2"
        })
        .await;
    assert_eq!(pushes(&scene), 0);
    scene.patch(Kind::Automation, "app", &force("3", "3")).await;
    scene.lands("app", "2.0.0").await;
    scene.choose("app", "3.0.0").await;
    waits(&scene, "WindowClosed").await;
    assert_eq!(scene.commits().len(), 1);
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_list_of_windows_stalls_until_it_is_corrected() {
    let scene = Scene::new(&["app"]).await;
    set_windows(&scene, Some("[{name: a, kind: deny, cron: '0 0 30 2 *', window: 1h}]")).await;
    let controller = scene.controller().start();
    scene.choose("app", "2.0.0").await;
    let status = scene.not_ready("app", "InvalidSettings").await;
    let message = condition(&status, "Stalled").unwrap()["message"].as_str().unwrap();
    assert!(message.starts_with("annotation tagboat.dev/windows: "), "{message}");
    set_windows(&scene, Some("[]")).await;
    scene.lands("app", "2.0.0").await;
    controller.end().await;
}

/// Each reconcile read the files, except on the branch of the checkout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_files_are_read_once_while_an_automation_waits() {
    for (push, delivery) in [
        (json!({"branch": "main"}), "push"),
        (json!({"branch": "bots"}), "push"),
        (json!({"branch": "main", "refspec": "refs/heads/main:refs/heads/copy"}), "push"),
        (json!({"branch": "main"}), "branch"),
    ] {
        let scene = Scene::new(&["app"]).await;
        let annotations = json!({
            "tagboat.dev/windows": closed_until(never()), "tagboat.dev/delivery": delivery,
        });
        let spec = json!({"interval": "1s", "git": {"push": push}});
        let patch = json!({"metadata": {"annotations": annotations}, "spec": spec});
        scene.patch(Kind::Automation, "app", &patch).await;
        let builder = scene.controller();
        let metrics = builder.metrics.clone();
        let controller = builder.start();
        scene.choose("app", "2.0.0").await;
        waits(&scene, "WindowClosed").await;
        let skipped = || {
            let text = metrics.to_text();
            let count =
                |line: &str| line.strip_prefix(r#"tagboat_runs_total{outcome="skipped"} "#)?.parse().ok();
            text.lines().find_map(count).unwrap_or(0)
        };
        eventually(&format!("nothing is read: {push} {delivery}"), async || skipped() >= 3).await;
        waits(&scene, "WindowClosed").await;
        assert_eq!(pushes(&scene), 0);
        set_windows(&scene, None).await;
        eventually("a push", async || pushes(&scene) > 0).await;
        controller.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_show_the_wait_and_go_with_it() {
    let scene = Scene::new(&["app"]).await;
    set_windows(&scene, Some(&closed_until(never()))).await;
    let builder = scene.controller();
    let metrics = builder.metrics.clone();
    let controller = builder.start();
    let object =
        format!(r#"kind="ImageUpdateAutomation",name="app",namespace="{}""#, scene.cluster.namespace());
    let has = |line: &str| metrics.to_text().lines().any(|found| found == line);
    let waiting = format!(r#"tagboat_policies_waiting{{{object},reason="WindowClosed"}}"#);
    let open = format!("tagboat_window_open{{{object}}}");
    let next = format!("tagboat_next_write_timestamp_seconds{{{object}}}");
    scene.choose("app", "2.0.0").await;
    waits(&scene, "WindowClosed").await;
    eventually("the metrics show the wait", async || has(&format!("{waiting} 1"))).await;
    assert!(has(&format!("{open} 0")) && has(&format!("{next} 7258118400.0")), "{}", metrics.to_text());
    set_windows(&scene, Some("[{name: past, kind: deny, from: 2020-01-01T00:00, until: 2020-01-02T00:00}]"))
        .await;
    scene.lands("app", "2.0.0").await;
    eventually("the window is open", async || has(&format!("{open} 1"))).await;
    assert!(!metrics.to_text().contains(&waiting) && !metrics.to_text().contains(&next));
    set_windows(&scene, None).await;
    eventually("there are no windows", async || !metrics.to_text().contains(&open)).await;
    set_windows(&scene, Some("[]")).await;
    set_windows(&scene, Some(&closed_until(never()))).await;
    eventually("the window is closed", async || has(&format!("{open} 0"))).await;
    scene.delete(Kind::Automation, "app").await;
    eventually("nothing is left", async || !metrics.to_text().contains(&object)).await;
    controller.end().await;
}
