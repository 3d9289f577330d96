//! Hosts that update themselves by update-engine, on a real D-Bus.

use std::os::unix::net::UnixListener;
use std::time::Duration;

use futures::FutureExt;
use tagboat::host::{Host, HostKind, HostOptions, OnHost, UpdateEngine, select};
use tagboat::nodes::{AgentState, OwnUpdate, keys};
use tempfile::TempDir;

use super::{Scene, message};
use crate::nodes::machine::{Answer, SystemBus, status};
use crate::support::eventually::eventually;

fn directory() -> TempDir {
    tempfile::tempdir().unwrap()
}

async fn bus(directory: &TempDir) -> SystemBus {
    SystemBus::start(&directory.path().join("bus")).await
}

fn host(bus: &SystemBus) -> UpdateEngine {
    UpdateEngine::new(OnHost::new(""), bus.address())
}

async fn own_update(host: &dyn Host) -> Result<OwnUpdate, String> {
    host.state().await.map(|state| state.own_update).map_err(|error| error.to_string())
}

#[tokio::test]
async fn the_status_on_the_bus_is_the_state_of_the_update() {
    let directory = directory();
    let bus = bus(&directory).await;
    let host = host(&bus);
    let state = host.state().await.unwrap();
    assert!(state.booted.is_none() && state.staged.is_none() && state.boot_id.len() == 36, "{state:?}");
    let staged = OwnUpdate::NeedsReboot("version 4230.2.1 is staged".to_owned());
    for (answer, expected) in [
        (Answer::Status("IDLE", "0.0.0"), Ok(OwnUpdate::None)),
        (Answer::Status("DOWNLOADING", "4230.2.1"), Ok(OwnUpdate::Staging)),
        (Answer::Status("UPDATED_NEED_REBOOT", "4230.2.1"), Ok(staged)),
        (
            Answer::Status("REPORTING_ERROR_EVENT", "4230.2.1"),
            Err("update-engine reports that its update failed"),
        ),
        (Answer::Status("REST", ""), Err("update-engine reports an unknown status, \"UPDATE_STATUS_REST\"")),
        (Answer::OtherTypes, Err("com.coreos.update1.Manager.GetStatus has values of other types, \"(su)\"")),
        (
            Answer::Error("out of\u{1b}[2J order"),
            Err(
                "com.coreos.update1.Manager.GetStatus failed: com.coreos.update1.Error: out of\\u{1b}[2J order",
            ),
        ),
    ] {
        bus.answer(answer);
        assert_eq!(own_update(&host).await, expected.map_err(str::to_owned));
    }
}

#[tokio::test]
async fn a_reboot_asks_logind_without_a_question() {
    let directory = directory();
    let bus = bus(&directory).await;
    host(&bus).reboot().await.unwrap();
    assert_eq!(bus.reboots(), [false]);
    let bus = SystemBus::start_without_services(&directory.path().join("bus")).await;
    let error = host(&bus).reboot().await.unwrap_err().to_string();
    assert!(error.starts_with("org.freedesktop.login1.Manager.Reboot failed: "), "{error}");
    let error = own_update(&host(&bus)).await.unwrap_err();
    assert!(error.starts_with("com.coreos.update1.Manager.GetStatus failed: "), "{error}");
}

#[tokio::test]
async fn a_notice_is_another_operation_and_survives_a_dropped_future() {
    let directory = directory();
    let bus = bus(&directory).await;
    let host = host(&bus);
    assert_eq!(own_update(&host).await, Ok(OwnUpdate::None));
    // The subscription is a notice: the operation may have changed before it.
    host.changed().await;
    let is_quiet = async || tokio::time::timeout(Duration::from_millis(300), host.changed()).await.is_err();
    assert!(is_quiet().await);
    bus.set("IDLE", "0.0.0").await;
    assert!(is_quiet().await);
    assert!(host.changed().now_or_never().is_none());
    bus.set("DOWNLOADING", "4230.2.1").await;
    assert!(host.changed().now_or_never().is_none() || own_update(&host).await.is_ok());
    bus.set("VERIFYING", "4230.2.1").await;
    host.changed().await;
    assert_eq!(own_update(&host).await, Ok(OwnUpdate::Staging));
    bus.signal(&("of other types",)).await;
    host.changed().await;
    // Signals of another program do not count.
    let other = zbus::connection::Builder::address(bus.address().as_str()).build().await.unwrap();
    let (path, interface) = ("/com/coreos/update1", "com.coreos.update1.Manager");
    let values = status("UPDATED_NEED_REBOOT", "1");
    while !is_quiet().await {}
    other.emit_signal(None::<&str>, path, interface, "StatusUpdate", &values).await.unwrap();
    assert!(is_quiet().await);
}

#[tokio::test]
async fn a_bus_that_ends_is_an_error_and_is_used_again_when_it_is_back() {
    let directory = directory();
    let mut first = bus(&directory).await;
    let host = host(&first);
    host.changed().await;
    first.kill();
    host.changed().await;
    let error = own_update(&host).await.unwrap_err();
    assert!(error.contains(&first.address()), "{error}");
    assert!(tokio::time::timeout(Duration::from_millis(300), host.changed()).await.is_err());
    let second = bus(&directory).await;
    assert_eq!(own_update(&host).await, Ok(OwnUpdate::None));
    host.changed().await;
    second.set("DOWNLOADING", "4230.2.1").await;
    host.changed().await;
}

/// Time runs by itself while nothing else is to be done.
#[tokio::test(start_paused = true)]
async fn a_bus_that_hangs_is_an_error_after_a_time() {
    let directory = directory();
    let path = directory.path().join("bus");
    let _socket = UnixListener::bind(&path).unwrap();
    let address = format!("unix:path={}", path.display());
    let host = UpdateEngine::new(OnHost::new(""), address.clone());
    let expected = format!("the D-Bus at {address} did not answer within 25 s");
    assert_eq!(own_update(&host).await, Err(expected));
}

#[tokio::test]
async fn auto_is_update_engine_if_its_name_is_on_the_bus() {
    let directory = directory();
    let sentinel = directory.path().join("reboot-required");
    let options = |address: String| HostOptions {
        kind: HostKind::Auto,
        on_host: OnHost::new(""),
        dbus_address: address,
        reboot_sentinel: sentinel.display().to_string(),
    };
    let selected = async |address: String| match select(options(address)).await {
        Ok(host) => own_update(&*host).await,
        Err(error) => Err(error.to_string()),
    };
    let unknown = format!(
        "bootc is missing on the host, update-engine is not on its D-Bus, and {} does not exist; if the host asks for \
         reboots by that file, run the agent with --host=reboot-required",
        sentinel.display()
    );
    let none = format!("unix:path={}", directory.path().join("none").display());
    assert_eq!(selected(none.clone()).await, Err(unknown.clone()));
    let bus = SystemBus::start_without_services(&directory.path().join("bus")).await;
    assert_eq!(selected(bus.address()).await, Err(unknown));
    std::fs::write(&sentinel, "").unwrap();
    let asks = Ok(OwnUpdate::NeedsReboot("the host requires a reboot".to_owned()));
    assert_eq!((selected(bus.address()).await, selected(none).await), (asks.clone(), asks));
    drop(bus);
    let bus = SystemBus::start(&directory.path().join("bus")).await;
    assert_eq!(selected(bus.address()).await, Ok(OwnUpdate::None));
}

#[tokio::test]
async fn a_node_with_update_engine_is_rebooted_once_approved() {
    let scene = Scene::without_agent(None).await;
    scene.machine.remove_program("bootc");
    let bus = scene.machine.start_bus().await;
    scene.machine.start_agent(&scene.cluster.administrators_kubeconfig());
    let node = scene.until(AgentState::UpToDate).await;
    assert_eq!(node.annotation(keys::BOOTED_VERSION), Some("12"));
    bus.set("DOWNLOADING", "4230.2.1").await;
    scene.until(AgentState::Staging).await;
    bus.set("UPDATED_NEED_REBOOT", "4230.2.1").await;
    let node = scene.until(AgentState::UpdateStaged).await;
    assert_eq!((message(&node).as_str(), bus.reboots().len()), ("version 4230.2.1 is staged", 0));
    scene.machine.set_next_version("4230.2.1");
    scene.set_stage("rebooting").await;
    eventually("the host is back", async || scene.machine.state().boots == 1).await;
    let node = scene.until(AgentState::UpToDate).await;
    assert_eq!(node.annotation(keys::BOOTED_VERSION), Some("4230.2.1"));
    assert_eq!(bus.reboots(), [false]);
    assert!(scene.machine.calls("systemctl").is_empty());
}

/// The other partition does not boot, and update-engine stages the same version again.
#[tokio::test]
async fn a_host_that_falls_back_to_its_version_is_an_error_and_is_not_rebooted_again() {
    let scene = Scene::without_agent(None).await;
    scene.machine.remove_program("bootc");
    let bus = scene.machine.start_bus().await;
    scene.machine.start_agent(&scene.cluster.administrators_kubeconfig());
    bus.set("UPDATED_NEED_REBOOT", "4230.2.1").await;
    scene.until(AgentState::UpdateStaged).await;
    scene.set_stage("rebooting").await;
    let expected = format!(
        "the host came back with 12, which its update had replaced; to end the attempt: kubectl label node {node} \
         tagboat.dev/pause=true, and later kubectl label node {node} tagboat.dev/pause-",
        node = scene.machine.node().await.name
    );
    assert_eq!(scene.until_error().await, expected);
    bus.set("UPDATED_NEED_REBOOT", "4230.2.1").await;
    scene.until_read_again().await;
    assert_eq!((message(&scene.machine.node().await), bus.reboots().len()), (expected, 1));
}

#[tokio::test]
async fn an_agent_that_starts_before_update_engine_finds_it_later() {
    let scene = Scene::without_agent(None).await;
    scene.machine.remove_program("bootc");
    // It asked for a reboot, as it would without an image, and has come back.
    let annotations = serde_json::json!({keys::ATTEMPTED: " 00000000-0000-4000-8000-000000000009"});
    scene.machine.patch(serde_json::json!({"metadata": {"annotations": annotations}})).await;
    scene.set_stage("rebooting").await;
    scene.machine.start_agent(&scene.cluster.administrators_kubeconfig());
    scene.until(AgentState::UpToDate).await;
    scene.set_stage("idle").await;
    let bus = scene.machine.start_bus().await;
    bus.set("UPDATED_NEED_REBOOT", "4230.2.1").await;
    let node = scene.until(AgentState::UpdateStaged).await;
    assert_eq!(message(&node), "version 4230.2.1 is staged");
}

#[tokio::test]
async fn an_update_engine_that_never_answers_is_an_error_until_it_does() {
    let scene = Scene::without_agent(None).await;
    scene.machine.remove_program("bootc");
    let bus = scene.machine.start_bus().await;
    bus.answer(Answer::Nothing);
    scene.machine.start_agent(&scene.cluster.administrators_kubeconfig());
    let expected = "com.coreos.update1.Manager.GetStatus did not answer within 25 s";
    assert_eq!(scene.until_error().await, expected);
    bus.answer(Answer::Status("IDLE", "0.0.0"));
    scene.until(AgentState::UpToDate).await;
}
