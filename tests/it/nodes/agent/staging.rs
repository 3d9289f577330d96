//! Staging of the wanted image.

use tagboat::nodes::AgentState;

use super::super::machine::{digest, image};
use super::{Scene, digests, message, removal};
use crate::support::eventually::eventually;

#[tokio::test]
async fn the_wanted_image_is_staged_and_reported_without_a_reboot_and_then_nothing_is_written() {
    let scene = Scene::wanting(&format!("quay.io/org/os:v2@{}", digest('2'))).await;
    let node = scene.until(AgentState::UpdateStaged).await;
    assert_eq!(digests(&node), [Some(digest('1')), Some(digest('2'))]);
    assert_eq!(message(&node), "");
    assert_eq!(scene.machine.state().staged, Some(digest('2')));
    assert_eq!(scene.stagings(), [image('2')]);
    scene.until_read_again().await;
    assert_eq!(scene.machine.node().await.resource_version, node.resource_version);
    assert_eq!((scene.reboots(), scene.stagings().len()), (0, 1));
}

#[tokio::test]
async fn another_wanted_image_ends_the_staging_of_the_one_before() {
    let scene = Scene::without_agent(Some(&image('2'))).await;
    scene.machine.fault("unit", "exec sleep 600");
    scene.machine.start_agent(&scene.cluster.administrators_kubeconfig());
    eventually("image 2 is being staged", async || scene.stagings() == [image('2')]).await;
    let node = scene.machine.node().await;
    assert_eq!(node.agent(), Some(AgentState::Staging));
    assert_eq!(message(&node), format!("staging {}", image('2')));
    scene.set("idle", Some(&image('3'))).await;
    eventually("image 3 is being staged", async || scene.stagings() == ['2', '3'].map(image)).await;
    // The wanted image is the booted one.
    scene.set("idle", Some(&image('1'))).await;
    scene.until(AgentState::UpToDate).await;
    scene.machine.heal("unit");
    scene.set("idle", Some(&image('4'))).await;
    let node = scene.until(AgentState::UpdateStaged).await;
    assert_eq!(digests(&node), [Some(digest('1')), Some(digest('4'))]);
    // A staging that a busy machine did not finish is tried again.
    let mut stagings = scene.stagings();
    stagings.dedup();
    assert_eq!(stagings, ['2', '3', '4'].map(image));
}

#[tokio::test]
async fn a_node_that_leaves_its_pool_would_boot_its_own_image_and_is_then_left_alone() {
    let scene = Scene::staged().await;
    scene.set("idle", Some("")).await;
    let node = scene.until(AgentState::UpToDate).await;
    assert_eq!(scene.machine.state().staged, Some(digest('1')), "any reboot boots the image as before");
    assert_eq!(digests(&node)[0], Some(digest('1')));
    scene.machine.patch(removal()).await;
    let removed = scene.machine.node().await.resource_version;
    // Nothing tells that the agent has seen it, so it gets the time of two readings.
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    assert_eq!(scene.machine.node().await.resource_version, removed);
}

#[tokio::test]
async fn a_node_that_leaves_its_pool_stops_the_staging() {
    let scene = Scene::without_agent(Some(&image('2'))).await;
    scene.machine.fault("unit", "exec sleep 600");
    scene.machine.start_agent(&scene.cluster.administrators_kubeconfig());
    eventually("image 2 is being staged", async || scene.stagings() == [image('2')]).await;
    scene.set("idle", Some("")).await;
    scene.until(AgentState::UpToDate).await;
    assert_eq!(scene.machine.state().staged, None);
    assert_eq!(scene.machine.calls("systemctl").last().unwrap(), "stop tagboat-stage.service");
}

/// The reference has the digest of the index, bootc reports that of the platform's manifest.
#[tokio::test]
async fn an_image_with_another_digest_for_the_platform_is_the_wanted_one() {
    let scene = Scene::without_agent(Some(&image('2'))).await;
    scene.machine.set_platform('2', '9');
    scene.machine.start_agent(&scene.cluster.administrators_kubeconfig());
    let node = scene.until(AgentState::UpdateStaged).await;
    assert_eq!(scene.machine.state().staged, Some(digest('9')));
    assert_eq!(digests(&node)[1], Some(digest('2')));
    assert_eq!(scene.stagings(), [image('2')]);
}

/// The host was installed by a tag, so it knows no digest of the index.
#[tokio::test]
async fn a_booted_image_with_another_digest_in_the_registry_needs_no_reboot() {
    let scene = Scene::without_agent(Some(&image('2'))).await;
    scene.machine.set_platform('2', '1');
    scene.machine.start_agent(&scene.cluster.administrators_kubeconfig());
    let node = scene.until(AgentState::UpToDate).await;
    assert_eq!(digests(&node)[0], Some(digest('2')));
    scene.until_read_again().await;
    assert_eq!(scene.stagings(), [image('2')]);
}

/// A unit that cannot be stopped at first would go on staging.
#[tokio::test]
async fn a_node_without_labels_stops_its_staging_until_that_succeeds() {
    let scene = Scene::without_agent(Some(&image('2'))).await;
    scene.machine.fault("unit", "exec sleep 600");
    scene.machine.start_agent(&scene.cluster.administrators_kubeconfig());
    eventually("image 2 is being staged", async || scene.stagings() == [image('2')]).await;
    let stops = || scene.machine.calls("systemctl").iter().filter(|call| call.starts_with("stop")).count();
    let before = stops();
    scene.machine.fault("systemctl", "echo 'Failed to connect to bus' >&2; exit 1");
    scene.machine.patch(removal()).await;
    eventually("a stop fails", async || stops() > before).await;
    scene.machine.heal("systemctl");
    eventually("the staging is stopped", async || !scene.machine.is_staging()).await;
    // It tries after 5 s and after twice that, not all the time.
    assert!(stops() <= before + 4, "{} stops", stops() - before);
}

#[tokio::test]
async fn an_image_that_another_program_staged_is_replaced_by_the_booted_one() {
    let scene = Scene::wanting(&image('1')).await;
    scene.until(AgentState::UpToDate).await;
    scene.machine.set_staged(&image('5'));
    eventually("the own image is staged", async || scene.machine.state().staged == Some(digest('1'))).await;
    scene.until(AgentState::UpToDate).await;
    assert_eq!(scene.stagings(), [image('1')]);
}

#[tokio::test]
async fn a_staging_that_stages_nothing_is_an_error() {
    let scene = Scene::without_agent(Some(&image('2'))).await;
    scene.machine.fault("unit", "exit 0");
    scene.machine.start_agent(&scene.cluster.administrators_kubeconfig());
    let expected = format!("the host reports success, but has not staged {}", image('2'));
    assert_eq!(scene.until_error().await, expected);
    scene.machine.heal("unit");
    scene.until(AgentState::UpdateStaged).await;
}
