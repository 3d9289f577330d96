//! Tests of the git host over SSH.
//! They cover authorized and other keys, and the commands that a session may run.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use super::Fleet;
use crate::support::content::file;
use crate::support::git_program::Person;
use crate::support::program::run;
use crate::support::ssh_host::{PASSPHRASE, SshHost};
use crate::support::ssh_key::SshKey;

#[test]
fn both_keys_are_admitted_and_may_push() {
    let fleet = Fleet::new();
    let host = SshHost::start();
    let url = host.url(fleet.repository.path());
    let answer = fleet.root.path().join("answer");
    fs::write(&answer, format!("#!/bin/sh\necho '{PASSPHRASE}'\n")).unwrap();
    fs::set_permissions(&answer, fs::Permissions::from_mode(0o700)).unwrap();
    for (name, key) in [("plain", host.key()), ("locked", host.locked_key())] {
        let person = Person::ssh(&host.command(key, &host.known_hosts()))
            .with("SSH_ASKPASS", &answer)
            .with("SSH_ASKPASS_REQUIRE", "force");
        let clone = person.clone_bare(&url, &fleet.root.path().join(name));
        let commit = clone.commit("main", name, &[file("app.yaml", name)]);
        person.push(&clone, "main").with_status(0);
        assert_eq!(fleet.repository.id("main"), Some(commit), "{name}");
    }
    fleet.repository.assert_sound();
    assert!(host.key().private().starts_with("-----BEGIN OPENSSH PRIVATE KEY-----\n"));
    assert_ne!(host.key().public(), host.locked_key().public());
}

#[test]
fn strangers_and_unknown_hosts_and_other_commands_are_refused() {
    let fleet = Fleet::new();
    let (host, other) = (SshHost::start(), SshHost::start());
    let url = host.url(fleet.repository.path());
    let stranger = SshKey::generate(fleet.root.path(), "stranger", "ed25519", "");
    let not_known = other.known_hosts();
    let wrong = not_known.replace(&port(&other.url(fleet.repository.path())), &port(&url));
    for (key, known_hosts, words) in [
        (&stranger, host.known_hosts(), "Permission denied (publickey)"),
        (host.key(), String::new(), "Host key verification failed"),
        (host.key(), not_known, "Host key verification failed"),
        (host.key(), wrong, "REMOTE HOST IDENTIFICATION HAS CHANGED"),
    ] {
        let command = host.command(key, &known_hosts);
        let run = Person::ssh(&command).with("SSH_ASKPASS_REQUIRE", "never").list(&url).with_status(128);
        assert!(run.errors.contains(words), "{run:?}");
    }
    let command = host.command(host.key(), &host.known_hosts());
    let address = url.rsplit_once(&port(&url)).unwrap().0.trim_end_matches(':');
    let shell = format!("{command} -p {} {} id", port(&url), address.trim_start_matches("ssh://"));
    let run = run(Command::new("sh").args(["-c", &shell]));
    assert!(run.status != Some(0) && run.errors.contains("unrecognized command 'id'"), "{run:?}");
    assert!(host.log().contains("Accepted publickey"), "{}", host.log());
}

fn port(url: &str) -> String {
    url.split(['/', ':']).nth(4).unwrap().to_owned()
}

#[test]
fn a_dropped_host_is_gone() {
    let host = SshHost::start();
    let address = format!("127.0.0.1:{}", port(&host.url("/".as_ref())));
    std::net::TcpStream::connect(&address).unwrap();
    drop(host);
    let begin = Instant::now();
    while std::net::TcpStream::connect(&address).is_ok() {
        assert!(begin.elapsed() < Duration::from_secs(10), "sshd is still there");
    }
}
