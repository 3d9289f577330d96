//! Tests of errors, each with its one message.
//! They end in bounded time, with exit status 1, and without loss of data.

mod handshakes;
mod hung_servers;
mod invalid_objects;
mod logins;
mod machine;
mod memory;
mod references;
mod rejected_pushes;
mod servers;

use std::ffi::OsStr;
use std::net::TcpListener;
use std::process::Command;

use serde_json::{Value, json};

use crate::run::scene::{Scene, run_in_time};
use crate::support::git_host::{Access, GitHost, Settings};

/// Runs, and asserts one error message for the automation and an unchanged repository.
/// After `…` at the end, the message may continue with the text of a library.
#[track_caller]
fn refused<I>(scene: &Scene, more: I, sentence: &str)
where
    I: IntoIterator,
    I::Item: AsRef<OsStr>,
{
    refused_by(scene, scene.command().args(more), sentence);
}

#[track_caller]
fn refused_by(scene: &Scene, command: &mut Command, sentence: &str) {
    let before = scene.repository.git(["for-each-ref"]);
    let run = run_in_time(command).with_status(1);
    let message = run.only_error().strip_prefix("default/fleet: ").unwrap_or_else(|| panic!("{run:?}"));
    match sentence.strip_suffix('…') {
        Some(begin) => assert!(message.starts_with(begin), "\nwanted: {begin}\nfound:  {message}"),
        None => assert_eq!(message, sentence, "{run:?}"),
    }
    assert!(!message.contains("hunter2") && !run.output.contains("hunter2"), "{run:?}");
    assert_eq!(scene.repository.git(["for-each-ref"]), before);
    scene.repository.assert_sound();
}

const NONE: [&str; 0] = [];

/// Beginnings of messages, by the stage at which a run fails.
const SOURCE: &str = "failed configuring source manager";
const CHECKOUT: &str = "failed to checkout source";
const PUSH: &str = "failed to update source";

/// A scene with a host that wants a password, and a Secret with this data.
fn guarded(data: &Value) -> (Scene, GitHost) {
    let scene = Scene::new();
    let host = scene.serve(Settings { access: Access::basic("bot", "hunter2"), tls: None });
    scene.source(json!({"url": host.url("fleet.git"), "secretRef": {"name": "login"}}));
    scene.secret("login", json!({"stringData": data}));
    (scene, host)
}

/// A loopback port without a listener.
fn closed_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}
