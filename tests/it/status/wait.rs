//! `--wait` and `--image`: until everything is installed, or until the end of the time.

use std::process::Stdio;

use serde_json::json;

use super::scene::{Running, Scene, command, failed, installed, installing};
use crate::support::api_server::{Fault, Faults};
use crate::support::eventually::eventually;
use crate::support::program::run;

/// Starts a run through a gateway, and waits until its watch has begun.
async fn waiting(scene: &Scene, arguments: &[&str]) -> Running {
    let faults = Faults::default();
    let kubeconfig = scene.cluster.faulty_kubeconfig(&faults).await;
    let running = Running::start(command(&kubeconfig, arguments));
    let is_watched = || faults.calls().iter().any(|call| call.is("watch", "deploymentstatuses"));
    eventually("a watch begins", async || is_watched()).await;
    running
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_ends_when_everything_is_installed() {
    let scene = Scene::new().await;
    scene.deploy("podinfo", &installed("6.5.1")).await;
    let ended = scene.status(&["--wait"]).with_status(0);
    assert!(ended.output.starts_with("NAME") && ended.errors.is_empty(), "{ended:?}");
    scene.status(&["podinfo", "--wait", "0s"]).with_status(0);
    // A failed rollout that recovers.
    scene.deploy("backend", &failed("1.0.0")).await;
    let mut running = waiting(&scene, &["--wait", "2m"]).await;
    scene.set(scene.namespace(), "backend", &installing("1.0.0")).await;
    assert!(!running.has_ended());
    scene.set(scene.namespace(), "backend", &installed("1.0.0")).await;
    let ended = running.end().with_status(0);
    let rows: Vec<&str> = ended.output.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!((rows, ended.errors.as_str()), (vec!["NAME", "backend", "podinfo"], ""));
}

/// A closed output ended the wait with the exit status of a success.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_output_does_not_end_a_wait() {
    let scene = Scene::new().await;
    scene.deploy("podinfo", &failed("6.5.1")).await;
    for format in ["text", "json"] {
        let mut command = scene.command(&["--wait", "1s", "--watch", "-o", format]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        let errors = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{format}: {errors}");
        assert!(errors.contains("Deployment/apps/podinfo failed"), "{errors}");
    }
}

/// A wait failed at once if the server was not ready for the first list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_of_the_first_list_does_not_end_a_wait() {
    let scene = Scene::new().await;
    scene.deploy("podinfo", &installed("6.5.1")).await;
    let faults = Faults::default();
    let kubeconfig = scene.cluster.faulty_kubeconfig(&faults).await;
    faults.next(2, Fault::Broken, |call| call.is("list", "deploymentstatuses"));
    let ended = run(&mut command(&kubeconfig, &["podinfo", "--wait", "1m"])).with_status(0);
    assert!(ended.output.starts_with("NAME"), "{ended:?}");
    faults.next(1, Fault::Broken, |call| call.is("list", "deploymentstatuses"));
    run(&mut command(&kubeconfig, &["podinfo"])).with_status(1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_end_of_the_time_the_blocking_components_are_printed() {
    let scene = Scene::new().await;
    let namespace = scene.namespace();
    scene.deploy("a-failed", &failed("6.5.1")).await;
    scene.deploy("b-installing", &installing("6.5.1")).await;
    scene.deploy("c-installed", &installed("6.5.1")).await;
    scene.create(namespace, "d-new", &json!({})).await;
    let mut waiting = installing("6.5.1");
    waiting["state"] = json!("pending");
    waiting["components"][0]["state"] = json!("pending");
    waiting["components"][0]["reason"] = json!("NotApplied");
    waiting["components"][0]["message"] = json!("the Kustomization flux-system/apps is suspended");
    scene.deploy("e-pending", &waiting).await;
    let mut refused = waiting.clone();
    refused["state"] = json!("failed");
    refused["error"] =
        json!({"code": "GitPushRejected", "source": "ImageUpdateAutomation/apps/apps", "message": "denied"});
    scene.deploy("f-refused", &refused).await;
    for time in ["0s", "1s"] {
        let ended = scene.status(&["--wait", time, "-o", "json"]).with_status(1);
        assert_eq!(ended.json()["summary"]["total"], 5);
        let blockers = [
            "a-failed: Deployment/apps/podinfo failed: ImagePullBackOff: Back-off pulling image",
            "b-installing: Deployment/apps/podinfo is installing, 1 of 2 pods are ready",
            "d-new: it has no status yet",
            "e-pending: Deployment/apps/podinfo is pending: NotApplied: the Kustomization flux-system/apps is suspended",
            "f-refused: it failed: GitPushRejected: denied",
        ];
        let expected: Vec<String> = ["note: ".to_owned() + namespace + "/d-new has no status yet"]
            .into_iter()
            .chain(
                blockers.map(|blocker| format!("error: not installed within {time}: {namespace}/{blocker}")),
            )
            .collect();
        assert_eq!(ended.errors.lines().collect::<Vec<_>>(), expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_that_does_not_exist_is_awaited() {
    let scene = Scene::new().await;
    let place = format!("in the namespace {}", scene.namespace());
    let ended = scene.status(&["podinfo", "--wait", "1s"]).with_status(1);
    let words = format!("error: not installed within 1s: no DeploymentStatus podinfo {place} is selected");
    assert_eq!((ended.only_error(), ended.output.as_str()), (words.as_str(), ""));
    for arguments in
        [&["--wait", "0s"][..], &["--wait", "0s", "-l", "a=b"], &["--wait", "0s", "--automation", "x"]]
    {
        let ended = scene.status(arguments).with_status(1);
        assert_eq!(
            ended.only_error(),
            format!("error: not installed within 0s: no DeploymentStatus {place} is selected")
        );
    }
    for arguments in [&["podinfo", "--wait"][..], &["--wait", "2m", "--automation", "apps"]] {
        let mut running = waiting(&scene, arguments).await;
        assert!(!running.has_ended());
        scene.deploy("podinfo", &installed("6.5.1")).await;
        running.end().with_status(0);
        scene.delete("podinfo").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_is_awaited_until_it_or_a_later_one_is_installed() {
    let scene = Scene::new().await;
    let namespace = scene.namespace();
    scene.deploy("podinfo", &installed("6.5.1")).await;
    let image = |tag: &str| format!("ghcr.io/org/app:{tag}");
    for tag in ["6.5.1", "6.5.0"] {
        scene.status(&["podinfo", "--image", &image(tag), "--wait", "0s"]).with_status(0);
    }
    let ended = scene.status(&["podinfo", "--image", &image("6.5.2"), "--wait", "0s"]).with_status(1);
    let words = format!(
        "error: not installed within 0s: {namespace}/podinfo: its image is ghcr.io/org/app:6.5.1, and not \
         ghcr.io/org/app:6.5.2 or a later one"
    );
    assert_eq!(ended.only_error(), words);
    // The rollout of the image, and of a later one.
    for (tag, next) in [("6.5.2", "6.5.2"), ("6.5.3", "6.6.0")] {
        let mut running = waiting(&scene, &["podinfo", "--image", &image(tag), "--wait", "2m"]).await;
        scene.set(namespace, "podinfo", &installing(next)).await;
        assert!(!running.has_ended());
        scene.set(namespace, "podinfo", &installed(next)).await;
        running.end().with_status(0);
    }
    // A digest moves on while the tag stays.
    let digest = |letter: &str| format!("sha256:{}", letter.repeat(64));
    let mut status = installed("main");
    status["target"]["digest"] = json!(digest("a"));
    scene.set(namespace, "podinfo", &status).await;
    let pushed = image(&format!("main@{}", digest("b")));
    for image in [&*pushed, &*digest("b"), &*format!("ghcr.io/org/app@{}", digest("b"))] {
        scene.status(&["podinfo", "--image", image, "--wait", "0s"]).with_status(1);
    }
    // --image implies --wait.
    let running = waiting(&scene, &["podinfo", "--image", &pushed]).await;
    status["target"]["digest"] = json!(digest("c"));
    status["deployHistory"] = json!([
        {"digest": digest("c"), "version": "main", "objectCount": 1, "lastDeployed": "2026-01-31T12:00:00Z"},
        {"digest": digest("b"), "version": "main", "objectCount": 1, "lastDeployed": "2026-01-31T11:00:00Z"},
    ]);
    scene.set(namespace, "podinfo", &status).await;
    running.end().with_status(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_name_an_image_selects_the_deployments_of_its_repository() {
    let scene = Scene::new().await;
    let namespace = scene.namespace();
    scene.deploy("podinfo", &installed("6.5.1")).await;
    let mut other = failed("1.0.0");
    other["target"]["name"] = json!("ghcr.io/org/other");
    scene.deploy("other", &other).await;
    let wait = ["--image", "ghcr.io/org/app:6.5.1", "--wait", "0s"];
    let ended = scene.status(&[&wait[..], &["-o", "json"]].concat()).with_status(0);
    assert_eq!(ended.json()["summary"]["total"], 1);
    let ended = scene.status(&[&["other"], &wait[..]].concat()).with_status(1);
    let words = format!(
        "error: not installed within 0s: {namespace}/other: its image is ghcr.io/org/other:1.0.0, of another repository \
         than ghcr.io/org/app:6.5.1: Deployment/apps/podinfo: ImagePullBackOff: Back-off pulling image"
    );
    assert_eq!(ended.only_error(), words);
    let ended = scene.status(&["--image", "ghcr.io/org/none:1", "--wait", "0s"]).with_status(1);
    assert!(
        ended
            .only_error()
            .ends_with(&format!("no DeploymentStatus in the namespace {namespace} is selected"))
    );
}
