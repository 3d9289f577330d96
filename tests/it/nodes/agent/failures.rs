//! Hosts and API servers that fail.

use std::time::Duration;

use serde_json::json;
use tagboat::nodes::{AgentState, keys};

use super::super::machine::image;
use super::{Scene, message};
use crate::support::api_server::{Fault, Faults};
use crate::support::eventually::{eventually, eventually_within};

#[tokio::test]
async fn a_status_that_cannot_be_used_is_an_error_of_one_sentence_until_it_can() {
    let scene = Scene::wanting(&image('1')).await;
    scene.until(AgentState::UpToDate).await;
    let version = r#"echo '{"apiVersion":"org.containers.bootc/v2","status":{}}'; exit 0"#;
    let none = r#"echo '{"apiVersion":"org.containers.bootc/v1","status":{"booted":null}}'; exit 0"#;
    let changed = r#"sed s/false/true/ "$machine/booted" > "$machine/b"; mv "$machine/b" "$machine/booted""#;
    for (script, expected) in [
        ("echo 'no json'; exit 0", "`bootc status` printed no JSON: "),
        (version, "`bootc status` has the version \"org.containers.bootc/v2\" in place of "),
        (none, "`bootc status` has no booted image"),
        (changed, "the booted image has local changes"),
        ("cat /dev/zero", "`bootc status --json --format-version 1` printed more than 1024 KiB"),
        (r"printf 'no\033[2Jspace' >&2; exit 3", r"failed, exit status: 3: no\u{1b}[2Jspace"),
    ] {
        scene.machine.fault("bootc", script);
        let node = scene.machine.until(expected, |node| message(node).contains(expected)).await;
        assert_eq!(node.agent(), Some(AgentState::Error));
        scene.machine.heal("bootc");
        let repaired =
            r#"sed s/true/false/ "$machine/booted" > "$machine/b"; mv "$machine/b" "$machine/booted""#;
        scene.machine.fault("bootc", repaired);
        // The delay of the agent would grow with each case.
        scene.machine.restart_agent();
        scene.until(AgentState::UpToDate).await;
    }
    assert_eq!(scene.reboots(), 0);
}

#[tokio::test]
async fn a_missing_program_is_named_and_its_return_is_noticed() {
    let scene = Scene::without_agent(Some(&image('2'))).await;
    scene.machine.fault("systemd-run", "exit 127");
    scene.machine.start_agent_with(&scene.cluster.administrators_kubeconfig(), &["--host=bootc"]);
    assert_eq!(scene.until_error().await, "systemd-run is missing");
    scene.machine.heal("systemd-run");
    scene.until(AgentState::UpdateStaged).await;
    scene.machine.remove_program("bootc");
    assert_eq!(scene.until_error().await, "bootc is missing");
}

#[tokio::test]
async fn a_failed_staging_is_reported_with_the_last_words_of_bootc_and_tried_again() {
    let scene = Scene::without_agent(Some(&image('2'))).await;
    scene.machine.fault("unit", "head -c 5000 /dev/zero | tr '\\0' x; echo; echo 'error: no space'; exit 1");
    scene.machine.start_agent(&scene.cluster.administrators_kubeconfig());
    let message = scene.until_error().await;
    assert!(message.ends_with(r"xxx\nerror: no space") && message.len() < 1400, "{message}");
    assert!(
        message.starts_with("`systemd-run --wait --collect --unit=tagboat-stage bootc switch "),
        "{message}"
    );
    scene.machine.heal("unit");
    scene.until(AgentState::UpdateStaged).await;
}

/// The limit of a program that only reads is a minute.
#[tokio::test]
async fn a_program_that_never_ends_is_an_error() {
    let scene = Scene::without_agent(Some(&image('1'))).await;
    scene.machine.fault("bootc", "exec sleep 600");
    scene.machine.start_agent(&scene.cluster.administrators_kubeconfig());
    let expected = "`bootc status --json --format-version 1` did not end within 60 s";
    let is_reported = async || message(&scene.machine.node().await) == expected;
    eventually_within(Duration::from_secs(300), "the program is killed", is_reported).await;
}

#[tokio::test]
async fn a_failure_of_the_host_is_reported_once_the_api_server_can_be_reached() {
    let scene = Scene::without_agent(Some(&image('1'))).await;
    let faults = Faults::default();
    faults.next(usize::MAX, Fault::Unreachable, |call| call.is("patch", "nodes"));
    scene.machine.remove_program("bootc");
    scene.machine.start_agent_with(&scene.cluster.faulty_kubeconfig(&faults).await, &["--host=bootc"]);
    let is_tried = async || faults.calls().iter().filter(|call| call.is("patch", "nodes")).count() >= 2;
    eventually("the report is tried twice", is_tried).await;
    assert_eq!(scene.machine.node().await.agent(), None);
    faults.heal();
    assert_eq!(scene.until_error().await, "bootc is missing");
    let log = scene.machine.agent_log();
    assert!(log.contains("bootc is missing") && log.contains("the node cannot be patched"), "{log}");
}

#[tokio::test]
async fn keys_that_others_change_are_corrected() {
    let scene = Scene::staged().await;
    let (labels, annotations) =
        (json!({keys::AGENT: "up-to-date"}), json!({keys::STAGED_DIGEST: "sha256:0"}));
    scene.machine.patch(json!({"metadata": {"labels": labels, "annotations": annotations}})).await;
    let is_corrected = |node: &tagboat::nodes::Node| {
        node.agent() == Some(AgentState::UpdateStaged)
            && node.annotation(keys::STAGED_DIGEST) == Some(&super::super::machine::digest('2'))
    };
    scene.machine.until("the keys are corrected", is_corrected).await;
}
