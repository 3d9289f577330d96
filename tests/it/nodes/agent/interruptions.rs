//! Agents that are killed at any moment, and go on after their start.

use tagboat::nodes::AgentState;

use super::super::machine::{MachineState, digest, image};
use super::Scene;
use crate::support::api_server::{Fault, Faults};
use crate::support::eventually::eventually;

/// Approves a reboot, and waits until image 2 is booted, by one reboot.
async fn finish(scene: &Scene) {
    scene.machine.restart_agent();
    if scene.machine.state().boots == 0 {
        scene.machine.until("staged or later", |node| node.agent() != Some(AgentState::Staging)).await;
        scene.set_stage("rebooting").await;
    }
    scene.until(AgentState::UpToDate).await;
    let expected = MachineState { booted: digest('2'), staged: None, boots: 1 };
    assert_eq!(scene.machine.state(), expected);
    scene.until_read_again().await;
    assert_eq!(scene.machine.state(), expected);
}

#[tokio::test]
async fn an_agent_that_is_killed_while_it_stages_goes_on() {
    let scene = Scene::without_agent(Some(&image('2'))).await;
    scene.machine.fault("unit", "sleep 600");
    scene.machine.start_agent(&scene.cluster.administrators_kubeconfig());
    eventually("image 2 is being staged", async || scene.stagings() == [image('2')]).await;
    scene.machine.kill_agent();
    scene.machine.heal("unit");
    assert_eq!(scene.machine.state().staged, None);
    finish(&scene).await;
}

#[tokio::test]
async fn a_staging_that_a_killed_agent_left_is_ended_if_no_image_is_wanted() {
    let scene = Scene::without_agent(Some(&image('2'))).await;
    scene.machine.fault("unit", "sleep 600");
    scene.machine.start_agent(&scene.cluster.administrators_kubeconfig());
    eventually("image 2 is being staged", async || scene.stagings() == [image('2')]).await;
    scene.machine.kill_agent();
    scene.set("idle", Some("")).await;
    scene.machine.restart_agent();
    scene.until(AgentState::UpToDate).await;
    assert_eq!((scene.machine.is_staging(), scene.machine.state().staged), (false, None));
}

#[tokio::test]
async fn an_agent_that_is_killed_before_its_report_goes_on() {
    let scene = Scene::without_agent(Some(&image('2'))).await;
    let faults = Faults::default();
    faults.next(usize::MAX, Fault::Silence, |call| call.is("patch", "nodes"));
    scene.machine.start_agent(&scene.cluster.faulty_kubeconfig(&faults).await);
    let is_sent = async || faults.calls().iter().any(|call| call.is("patch", "nodes"));
    eventually("the report is on its way", is_sent).await;
    scene.machine.kill_agent();
    faults.heal();
    finish(&scene).await;
}

#[tokio::test]
async fn an_agent_that_is_killed_after_its_acknowledgment_reboots_the_host_once() {
    let scene = Scene::staged().await;
    scene.machine.fault("systemctl", r#"[ "$1" != reboot ] || exec sleep 600"#);
    scene.set_stage("rebooting").await;
    eventually("the reboot is asked for", async || scene.reboots() == 1).await;
    scene.machine.kill_agent();
    scene.machine.heal("systemctl");
    finish(&scene).await;
}

#[tokio::test]
async fn an_agent_that_is_killed_before_its_acknowledgment_reboots_the_host_once() {
    let scene = Scene::without_agent(Some(&image('2'))).await;
    let faults = Faults::default();
    scene.machine.start_agent(&scene.cluster.faulty_kubeconfig(&faults).await);
    scene.until(AgentState::UpdateStaged).await;
    faults.forget_calls();
    faults.next(1, Fault::Silence, |call| call.is("patch", "nodes"));
    scene.set_stage("rebooting").await;
    let is_sent = async || faults.calls().iter().any(|call| call.is("patch", "nodes"));
    eventually("the acknowledgment is on its way", is_sent).await;
    scene.machine.kill_agent();
    assert_eq!(scene.reboots(), 0);
    finish(&scene).await;
}
