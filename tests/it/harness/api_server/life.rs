//! Servers start, survive an outage, and leave nothing behind, also after killed tests.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::PostParams;

use super::{config_map, config_maps};
use crate::support::api_server::{ApiServer, Cluster};
use crate::support::process_reaper::ProcessReaper;

#[tokio::test]
async fn an_outage_keeps_the_data() {
    let server = Arc::new(ApiServer::start());
    let cluster = Cluster::on(Arc::clone(&server)).await;
    let api = config_maps(cluster.client());
    api.create(&PostParams::default(), &config_map("one")).await.unwrap();
    server.stop();
    assert!(matches!(api.get("one").await.unwrap_err(), kube::Error::Service(_)));
    server.resume();
    api.get("one").await.unwrap();
    let directory = server.directory().to_owned();
    assert!(directory.join("audit.log").exists());
    drop((cluster, server));
    assert!(!directory.exists(), "{}", directory.display());
}

/// Waits for a condition with a short timeout.
#[track_caller]
fn soon(what: &str, mut happens: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !happens() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_server_ends_with_its_last_owner() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("data");
    std::fs::create_dir(&directory).unwrap();
    // The tests cannot kill themselves, so another program holds the other end of the pipe.
    let mut holder = Command::new("sleep").arg("600").stdout(Stdio::piped()).spawn().unwrap();
    let mut server = Command::new("sh");
    server.args(["-c", "echo $$ >pid.new; mv pid.new pid; exec sleep 600"]).current_dir(root.path());
    let pipe = Stdio::from(holder.stdout.take().unwrap());
    let mut shell =
        ProcessReaper::shell(&server, &directory).stdin(pipe).stderr(Stdio::null()).spawn().unwrap();
    soon("the server starts", || root.path().join("pid").exists());
    let number = std::fs::read_to_string(root.path().join("pid")).unwrap();
    let process = Path::new("/proc").join(number.trim());
    assert!(process.exists());

    // A terminal sends these signals to all processes; only the end of the tests must end the server.
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let shell = rustix::process::Pid::from_raw(i32::try_from(shell.id()).unwrap()).unwrap();
        rustix::process::kill_process(shell, signal).unwrap();
    }
    std::thread::sleep(Duration::from_millis(100));
    assert!(process.exists() && shell.try_wait().unwrap().is_none());

    holder.kill().unwrap();
    holder.wait().unwrap();
    soon("the shell ends", || shell.try_wait().unwrap().is_some());
    assert!(!process.exists());
    assert!(!directory.exists());
}
