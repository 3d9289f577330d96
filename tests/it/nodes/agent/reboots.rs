//! Reboots, which need an approval.

use std::time::Duration;

use tagboat::agent::{self, AgentOptions, AgentTimes};
use tagboat::backoff::Backoff;
use tagboat::host::{DEFAULT_ADDRESS, HostKind, HostOptions, OnHost};
use tagboat::nodes::{AgentState, keys};

use super::super::machine::{Boot, MachineState, digest, image};
use super::{Scene, digests, message};
use crate::support::api_server::{Fault, Faults};
use crate::support::eventually::eventually;

/// The ID of the first boot of each machine.
const FIRST_BOOT: &str = "00000000-0000-4000-8000-000000000000";

fn booted(image: char, boots: usize) -> MachineState {
    MachineState { booted: digest(image), staged: None, boots }
}

#[tokio::test]
async fn an_approved_node_boots_the_staged_image_once() {
    let scene = Scene::staged().await;
    for stage in ["before-drain", "draining", "before-reboot"] {
        scene.set_stage(stage).await;
    }
    scene.until_read_again().await;
    assert_eq!(scene.reboots(), 0, "nothing is approved");
    scene.set_stage("rebooting").await;
    let node = scene.until(AgentState::UpToDate).await;
    assert_eq!(scene.machine.state(), booted('2', 1));
    assert_eq!(digests(&node), [Some(digest('2')), None]);
    assert_eq!(node.annotation(keys::BOOTED_VERSION), Some("22222222"));
    assert_eq!(node.annotation(keys::ATTEMPTED), Some(format!("{} {FIRST_BOOT}", digest('2')).as_str()));
    // The controller has not seen it yet.
    scene.until_read_again().await;
    assert_eq!((scene.reboots(), scene.machine.state().boots), (1, 1));
}

#[tokio::test]
async fn an_approval_is_acknowledged_before_the_reboot_and_not_for_another_image() {
    let scene = Scene::staged().await;
    // Without an answer to its question, the agent begins no reboot.
    scene.machine.fault("systemctl", r#"[ "$1" != reboot ] || exec sleep 600"#);
    scene.machine.fault("unit", "exec sleep 600");
    scene.set("rebooting", Some(&image('3'))).await;
    eventually("image 3 is being staged", async || scene.stagings() == ['2', '3'].map(image)).await;
    assert_eq!(scene.machine.node().await.annotation(keys::ATTEMPTED), None);
    scene.set("rebooting", Some(&image('2'))).await;
    eventually("a reboot is begun", async || scene.reboots() == 1).await;
    let node = scene.machine.node().await;
    assert_eq!(node.agent(), Some(AgentState::Rebooting));
    assert!(node.attempt().is_some_and(|attempt| attempt.digest == digest('2')), "{node:?}");
}

#[tokio::test]
async fn a_withdrawal_that_is_written_before_the_acknowledgment_prevents_the_reboot() {
    let scene = Scene::without_agent(Some(&image('2'))).await;
    let faults = Faults::default();
    scene.machine.start_agent(&scene.cluster.faulty_kubeconfig(&faults).await);
    scene.until(AgentState::UpdateStaged).await;
    faults.forget_calls();
    faults.next(1, Fault::Held, |call| call.is("patch", "nodes"));
    scene.set_stage("rebooting").await;
    let is_sent = async || faults.calls().iter().any(|call| call.is("patch", "nodes"));
    eventually("the acknowledgment is on its way", is_sent).await;
    scene.set_stage("idle").await;
    faults.heal();
    scene.until_read_again().await;
    let node = scene.machine.node().await;
    assert_eq!((node.agent(), node.annotation(keys::ATTEMPTED)), (Some(AgentState::UpdateStaged), None));
    assert_eq!((scene.reboots(), scene.machine.state().boots), (0, 0));
    // The next approval counts.
    scene.set_stage("rebooting").await;
    scene.until(AgentState::UpToDate).await;
    assert_eq!(scene.machine.state(), booted('2', 1));
}

#[tokio::test]
async fn an_acknowledgment_whose_answer_is_lost_leads_to_one_reboot() {
    let scene = Scene::without_agent(Some(&image('2'))).await;
    let faults = Faults::default();
    scene.machine.start_agent(&scene.cluster.faulty_kubeconfig(&faults).await);
    scene.until(AgentState::UpdateStaged).await;
    faults.next(1, Fault::LostAnswer, |call| call.is("patch", "nodes"));
    scene.set_stage("rebooting").await;
    scene.until(AgentState::UpToDate).await;
    assert_eq!((scene.reboots(), scene.machine.state()), (1, booted('2', 1)));
}

#[tokio::test]
async fn a_host_that_rolls_back_is_an_error_with_both_digests_and_is_not_rebooted_again() {
    let scene = Scene::staged().await;
    scene.machine.next_boots(Boot::RolledBack);
    scene.set_stage("rebooting").await;
    let expected = format!(
        "the host came back with {} in place of {}; to try it again: kubectl annotate node {} tagboat.dev/attempted-",
        digest('1'),
        digest('2'),
        scene.machine.node().await.name
    );
    assert_eq!(scene.until_error().await, expected);
    scene.until_read_again().await;
    scene.machine.restart_agent();
    scene.until_read_again().await;
    assert_eq!((scene.reboots(), scene.machine.state()), (1, booted('1', 1)));
    assert_eq!(message(&scene.machine.node().await), expected);
    // Another image is tried.
    scene.machine.next_boots(Boot::Staged);
    scene.set("idle", Some(&image('3'))).await;
    scene.until(AgentState::UpdateStaged).await;
    scene.set_stage("rebooting").await;
    scene.until(AgentState::UpToDate).await;
    assert_eq!(scene.machine.state(), booted('3', 2));
}

/// A timer of the host stages the image, and its health check undoes it.
#[tokio::test]
async fn a_host_that_undoes_its_own_update_is_an_error_and_is_not_rebooted_again() {
    let scene = Scene::without_agent(None).await;
    scene.machine.start_agent(&scene.cluster.administrators_kubeconfig());
    scene.machine.set_staged(&image('2'));
    scene.until(AgentState::UpdateStaged).await;
    scene.machine.next_boots(Boot::RolledBack);
    scene.set_stage("rebooting").await;
    let expected = format!(
        "the host came back with {}, which its update had replaced; to end the attempt: ",
        digest('1')
    );
    let found = scene.until_error().await;
    assert!(found.starts_with(&expected), "{found}");
    scene.machine.set_staged(&image('2'));
    scene.until_read_again().await;
    scene.machine.restart_agent();
    scene.until_read_again().await;
    assert_eq!((scene.reboots(), message(&scene.machine.node().await)), (1, found));
    // A user ends the attempt.
    scene.machine.next_boots(Boot::Staged);
    scene.set_stage("paused").await;
    scene.until(AgentState::UpdateStaged).await;
    scene.set_stage("rebooting").await;
    scene.until(AgentState::UpToDate).await;
    assert_eq!((scene.reboots(), scene.machine.state()), (2, booted('2', 2)));
}

/// The controller has a time limit for it.
#[tokio::test]
async fn a_host_that_does_not_come_back_leaves_its_acknowledgment() {
    let scene = Scene::staged().await;
    scene.machine.next_boots(Boot::Never);
    scene.set_stage("rebooting").await;
    let node = scene.machine.until("the machine is down", |node| !node.is_ready).await;
    assert_eq!((node.agent(), node.awaits_reboot()), (Some(AgentState::Rebooting), true));
    assert_eq!((scene.reboots(), scene.machine.state().boots), (1, 0));
}

#[tokio::test]
async fn a_crash_that_boots_the_staged_image_needs_no_reboot_any_more() {
    let scene = Scene::staged().await;
    scene.machine.next_boots(Boot::Late(Duration::from_millis(500)));
    scene.machine.crash().await;
    scene.until(AgentState::UpToDate).await;
    scene.set_stage("rebooting").await;
    scene.until_read_again().await;
    assert_eq!((scene.reboots(), scene.machine.state()), (0, booted('2', 1)));
}

#[tokio::test]
async fn a_reboot_that_fails_is_an_error_and_is_tried_again() {
    let scene = Scene::staged().await;
    scene.machine.fault("systemctl", r#"[ "$1" != reboot ] || { echo 'Operation inhibited' >&2; exit 1; }"#);
    scene.set_stage("rebooting").await;
    let expected = "`systemctl reboot` failed, exit status: 1: Operation inhibited";
    assert_eq!(scene.until_error().await, expected);
    scene.machine.heal("systemctl");
    scene.until(AgentState::UpToDate).await;
    assert_eq!((scene.reboots(), scene.machine.state()), (2, booted('2', 1)));
}

/// The program waits ten minutes; this test calls the agent with another limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_is_still_up_long_after_its_reboot_began_is_an_error_until_another_wish() {
    let scene = Scene::without_agent(Some(&image('2'))).await;
    scene.machine.fault("systemctl", r#"[ "$1" != reboot ] || exit 0"#);
    let retries = Backoff { first: Duration::from_millis(100), longest: Duration::from_millis(100) };
    let options = AgentOptions {
        node: scene.machine.name().to_owned(),
        host: HostOptions {
            kind: HostKind::Bootc,
            on_host: OnHost::new(&scene.machine.prefix()),
            dbus_address: DEFAULT_ADDRESS.to_owned(),
            reboot_sentinel: String::new(),
        },
        times: AgentTimes {
            interval: Duration::from_millis(200),
            retries,
            reboot_limit: Duration::from_secs(1),
        },
    };
    let running = tokio::spawn(agent::run(scene.cluster.client(), options, std::future::pending()));
    scene.until(AgentState::UpdateStaged).await;
    scene.set_stage("rebooting").await;
    scene.machine.until("rebooting or later", |node| node.attempt().is_some()).await;
    let expected = "the host is still up 1 s after the agent began its reboot; on the host, systemctl list-jobs shows what \
                    it waits for";
    assert_eq!(scene.until_error().await, expected);
    // A host that shuts down does not answer for a while, and the reboot is not tried again.
    scene.machine.fault("bootc", "exit 1");
    scene.until_read_again_by("bootc").await;
    scene.machine.heal("bootc");
    scene.until_read_again_by("bootc").await;
    assert_eq!((scene.reboots(), message(&scene.machine.node().await)), (1, expected.to_owned()));
    scene.set_stage("idle").await;
    scene.until(AgentState::UpdateStaged).await;
    assert_eq!(scene.reboots(), 1, "the approval is withdrawn");
    running.abort();
}
