//! Failed handshakes of SSH and TLS.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{CHECKOUT, NONE, SOURCE, refused};
use crate::run::scene::Scene;
use crate::support::certificates::Authority;
use crate::support::git_host::{Access, Settings};
use crate::support::git_program::harden;
use crate::support::program::{installed, run};
use crate::support::ssh_host::{PASSPHRASE, SshHost};
use crate::support::ssh_key::SshKey;

#[test]
fn handshakes_that_ssh_refuses() {
    let (host, other) = (SshHost::start(), SshHost::start());
    let scene = Scene::new();
    let url = host.url(scene.repository.path());
    let port = |url: &str| url.split(['/', ':']).nth(4).unwrap().to_owned();
    let stranger = SshKey::generate(scene.root(), "stranger", "ed25519", "");
    let changed = other.known_hosts().replace(&port(&other.url("/".as_ref())), &port(&url));
    let (key, locked, known_hosts) = (host.key().private(), host.locked_key().private(), host.known_hosts());
    let unreadable = "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n-----END OPENSSH PRIVATE KEY-----\n";
    let unlisted = "the server's host key is not in known_hosts of the Secret, or differs from the one there: No ED25519 host key is known for …";
    let unopened =
        "the SSH key in identity of the Secret cannot be opened; check the passphrase in its key password: ";
    scene.source(json!({"url": url, "secretRef": {"name": "login"}}));
    for (data, words) in [
        (
            json!({"identity": key, "known_hosts": changed}),
            "the server's host key differs from the one in known_hosts; if the server really has a new key, put it \
             there: The fingerprint for the ED25519 key sent by the remote host is; SHA256:…".to_owned(),
        ),
        (json!({"identity": key, "known_hosts": other.known_hosts()}), unlisted.to_owned()),
        (json!({"identity": key, "known_hosts": "[127.0.0.1]:22 ssh-ed25519 hunter2"}), unlisted.to_owned()),
        (
            json!({"identity": stranger.private(), "known_hosts": known_hosts}),
            "the server does not accept the SSH key in identity of the Secret: …".to_owned(),
        ),
        (json!({"identity": locked, "known_hosts": known_hosts, "password": "wrong"}), format!("{unopened}incorrect passphrase; …")),
        (json!({"identity": unreadable, "known_hosts": known_hosts}), format!("{unopened}Load key \"identity\": …")),
    ] {
        scene.secret("login", json!({"stringData": data}));
        refused(&scene, NONE, &format!("{CHECKOUT}: unable to list '{url}': {words}"));
    }
    let option = "failed to configure authentication options: invalid 'ssh' auth option: ";
    let secret = "secret 'default/login': key ";
    for (data, words) in [
        (
            json!({"identity": locked, "known_hosts": known_hosts}),
            format!("{secret}'identity' is encrypted: give its passphrase in the key 'password'"),
        ),
        (json!({"identity": key}), format!("{option}'known_hosts' is required")),
        (json!({"known_hosts": known_hosts}), format!("{option}'identity' is required")),
        (
            json!({"identity": "hunter2", "known_hosts": known_hosts}),
            format!("{secret}'identity' holds no private key: give one in PEM or OpenSSH form"),
        ),
        (
            json!({"identity": host.key().public(), "known_hosts": known_hosts}),
            format!("{secret}'identity' holds no private key: give one in PEM or OpenSSH form"),
        ),
        (
            json!({"identity": key, "known_hosts": "hunter2"}),
            format!(
                "{secret}'known_hosts' has no line of host, key type and key: fill it with ssh-keyscan, and verify the keys"
            ),
        ),
    ] {
        scene.secret("login", json!({"stringData": data}));
        refused(&scene, NONE, &format!("{SOURCE}: {words}"));
    }
    scene.secret("login", json!({"stringData": {"identity": key, "known_hosts": known_hosts}}));
    let nowhere = host.url("/nowhere/x.git".as_ref());
    scene.source(json!({"url": nowhere, "secretRef": {"name": "login"}}));
    let words = "there is no such repository, or the credentials may not see it: '/nowhere/x.git' does not appear to be a git repository";
    refused(&scene, NONE, &format!("{CHECKOUT}: unable to list '{nowhere}': {words}"));
    scene.source(json!({"url": url}));
    let advice = "name a Secret with the key in spec.secretRef of the GitRepository, or log in as yourself with --git-login user";
    refused(&scene, NONE, &format!("{SOURCE}: {option}'identity' is required; {advice}"));
    scene.source(json!({"url": url, "secretRef": {"name": "login"}, "proxySecretRef": {"name": "proxy"}}));
    scene.secret("proxy", json!({"stringData": {"address": "http://127.0.0.1:1"}}));
    refused(
        &scene,
        NONE,
        &format!(
            "{SOURCE}: the SSH remote {url} cannot go through a proxy: use its https URL, or remove the proxy secret"
        ),
    );
}

/// Such a key would be unlocked by ssh, without a bound on the effort.
#[test]
fn a_key_that_only_ssh_could_unlock_is_refused_with_the_line_that_rewrites_it() {
    let host = SshHost::start();
    let read = |name: &str| fs::read_to_string(format!("testdata/login/{name}")).unwrap();
    let scene = Scene::new();
    scene.source(json!({"url": host.url(scene.repository.path()), "secretRef": {"name": "login"}}));
    let secret = "secret 'default/login': key 'identity'";
    for (key, words) in [
        (
            read("ed25519-pkcs8-locked.pem"),
            "is in encrypted PKCS#8, which Flux does not read either: rewrite it in OpenSSH's form with `ssh-keygen -p -f \
             FILE`, of OpenSSH 9.6 or newer if it is an Ed25519 key",
        ),
        (
            many_rounds(scene.root()),
            "takes more than 256 rounds to unlock: rewrite it with `ssh-keygen -p -a 16 -f FILE`",
        ),
    ] {
        let data = json!({"identity": key, "known_hosts": host.known_hosts(), "password": PASSPHRASE});
        scene.secret("login", json!({"stringData": data}));
        refused(&scene, NONE, &format!("{SOURCE}: {secret} {words}"));
    }
}

/// Makes a key with 257 rounds of bcrypt.
fn many_rounds(folder: &Path) -> String {
    let file = folder.join("many-rounds");
    let mut command = Command::new(installed("ssh-keygen"));
    command.args(["-q", "-t", "ed25519", "-a", "257", "-N", PASSPHRASE, "-f"]).arg(&file);
    assert_eq!(run(harden(&mut command)).status, Some(0));
    fs::read_to_string(file).unwrap()
}

#[test]
fn handshakes_that_tls_refuses() {
    let (scene, authority, other) = (Scene::new(), Authority::new(), Authority::new());
    let host = scene.serve(Settings { access: Access::Anonymous, tls: Some(authority.server(false)) });
    let certificate = |authority: &Authority| fs::read_to_string(authority.certificate_file()).unwrap();
    let url = host.url("fleet.git");
    let untrusted = "the server's certificate is not trusted; put its authority's certificate into ca.crt of the Secret: …";
    refused(&scene, NONE, &format!("{CHECKOUT}: unable to list '{url}': {untrusted}"));
    let elsewhere = url.replace("127.0.0.1", "localhost");
    for (url, authority) in [(&url, &other), (&elsewhere, &authority)] {
        scene.source(json!({"url": url, "secretRef": {"name": "login"}}));
        scene.secret("login", json!({"stringData": {"ca.crt": certificate(authority)}}));
        refused(&scene, NONE, &format!("{CHECKOUT}: unable to list '{url}': {untrusted}"));
    }
    scene.source(json!({"url": url, "secretRef": {"name": "login"}}));
    let broken = "-----BEGIN CERTIFICATE-----\nhunter2\n-----END CERTIFICATE-----\n";
    scene.secret("login", json!({"stringData": {"ca.crt": broken}}));
    let unreadable = "the certificates in ca.crt of the Secret cannot be read: …";
    refused(&scene, NONE, &format!("{CHECKOUT}: unable to list '{url}': {unreadable}"));

    let scene = Scene::new();
    let host = scene.serve(Settings::default());
    let url = host.url("fleet.git").replace("http:", "https:");
    scene.source(json!({"url": url}));
    let handshake = "the TLS handshake failed; check the port in the URL, …";
    refused(&scene, NONE, &format!("{CHECKOUT}: unable to list '{url}': {handshake}"));

    let scene = Scene::new();
    let host = scene.serve(Settings { access: Access::Anonymous, tls: Some(authority.server(true)) });
    let url = host.url("fleet.git");
    scene.source(json!({"url": url, "secretRef": {"name": "login"}}));
    scene.secret("login", json!({"stringData": {"ca.crt": certificate(&authority)}}));
    // The client gets the reason only if it arrives before the connection is closed.
    refused(&scene, NONE, &format!("{CHECKOUT}: unable to list '{url}': …"));
}
