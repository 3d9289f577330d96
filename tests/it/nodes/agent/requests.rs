//! Hosts that update themselves, and ask for a reboot by a file.

use tagboat::nodes::{AgentState, keys};

use super::{Scene, message};

#[tokio::test]
async fn a_host_that_asks_for_a_reboot_gets_it_once_approved() {
    let scene = Scene::without_agent(None).await;
    scene.machine.remove_program("bootc");
    scene.machine.write_file("/var/run/reboot-required", "*** System restart required ***\n");
    scene.machine.write_file("/var/run/reboot-required.pkgs", "linux-image\nlibc6\n");
    scene.machine.start_agent(&scene.cluster.administrators_kubeconfig());
    let node = scene.until(AgentState::UpdateStaged).await;
    assert_eq!(message(&node), "the host requires a reboot for libc6, linux-image");
    assert_eq!(node.annotation(keys::BOOTED_VERSION), Some("12"));
    scene.until_read_again().await;
    assert_eq!(scene.reboots(), 0);
    scene.set_stage("rebooting").await;
    // The file is gone, by which `auto` chose the kind of the host.
    let node = scene.until(AgentState::UpToDate).await;
    assert_eq!((message(&node), scene.reboots(), scene.machine.state().boots), (String::new(), 1, 1));
    scene.set_stage("idle").await;
    scene.machine.write_file("/var/run/reboot-required", "");
    let node = scene.until(AgentState::UpdateStaged).await;
    assert_eq!(message(&node), "the host requires a reboot");
}

#[tokio::test]
async fn a_host_of_no_kind_is_an_error_until_it_asks_for_a_reboot() {
    let scene = Scene::without_agent(None).await;
    scene.machine.remove_program("bootc");
    scene.machine.start_agent(&scene.cluster.administrators_kubeconfig());
    let none = "bootc is missing on the host, update-engine is not on its D-Bus, and /var/run/reboot-required does not \
                exist; if the host asks for reboots by that file, run the agent with --host=reboot-required";
    assert_eq!(scene.until_error().await, none);
    scene.machine.write_file("/var/run/reboot-required", "");
    scene.until(AgentState::UpdateStaged).await;
}

#[tokio::test]
async fn a_host_that_never_stops_asking_is_not_rebooted_forever() {
    let scene = Scene::without_agent(None).await;
    scene.machine.write_file("/var/lib/reboot", "");
    let kubeconfig = scene.cluster.administrators_kubeconfig();
    let arguments = ["--host=reboot-required", "--reboot-sentinel=/var/lib/reboot"];
    scene.machine.start_agent_with(&kubeconfig, &arguments);
    for boots in [1, 2] {
        scene.until(AgentState::UpdateStaged).await;
        scene.set_stage("rebooting").await;
        let expected = format!(
            "the host still needs a reboot after one; to end the attempt: kubectl label node {node} tagboat.dev/pause=true, and \
             later kubectl label node {node} tagboat.dev/pause-; its reason: the host requires a reboot",
            node = scene.machine.node().await.name
        );
        assert_eq!(scene.until_error().await, expected);
        scene.until_read_again().await;
        assert_eq!((scene.reboots(), scene.machine.state().boots), (boots, boots));
        // A user cancels, and the controller approves again.
        scene.set_stage("idle").await;
    }
    let node = scene.until(AgentState::UpdateStaged).await;
    assert_eq!(node.annotation(keys::ATTEMPTED), None);
    scene.machine.remove_file("/var/lib/reboot");
    scene.until(AgentState::UpToDate).await;
}

#[tokio::test]
async fn a_host_without_images_in_a_pool_with_one_is_an_error() {
    let wanted = super::image('2');
    let scene = Scene::without_agent(Some(&wanted)).await;
    let kubeconfig = scene.cluster.administrators_kubeconfig();
    scene.machine.start_agent_with(&kubeconfig, &["--host=reboot-required"]);
    assert_eq!(scene.until_error().await, format!("the host has no images, so {wanted} cannot be staged"));
}
