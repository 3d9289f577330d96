//! What can be wrong, and the one sentence that says so: in bounded time, with exit status 1, and nothing lost.

use std::ffi::OsStr;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::{Value, json};

use super::scene::{Scene, run_in_time};
use crate::support::certificates::Authority;
use crate::support::content::file;
use crate::support::fleet::tag_line;
use crate::support::git_host::{Access, Fault, GitHost, Operation, Settings};
use crate::support::ssh_host::SshHost;
use crate::support::ssh_key::SshKey;

/// Runs and insists on one sentence of the automation's, and on a repository as it was. A sentence that ends in `…` may
/// go on in the words of a library.
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
    let said = run.only_error().strip_prefix("default/fleet: ").unwrap_or_else(|| panic!("{run:?}"));
    match sentence.strip_suffix('…') {
        Some(begin) => assert!(said.starts_with(begin), "\nwanted: {begin}\nfound:  {said}"),
        None => assert_eq!(said, sentence, "{run:?}"),
    }
    assert!(!said.contains("hunter2") && !run.output.contains("hunter2"), "{run:?}");
    assert_eq!(scene.repository.git(["for-each-ref"]), before);
    scene.repository.assert_sound();
}

const NONE: [&str; 0] = [];

/// How sentences begin, by the stage at which a run stops.
const SOURCE: &str = "failed configuring source manager";
const CHECKOUT: &str = "failed to checkout source";
const PUSH: &str = "failed to update source";

/// A scene with a host that wants a password, and what the secret says about it.
fn guarded(data: &Value) -> (Scene, GitHost) {
    let scene = Scene::new();
    let host = scene.serve(Settings { access: Access::basic("bot", "hunter2"), tls: None });
    scene.source(json!({"url": host.url("fleet.git"), "secretRef": {"name": "login"}}));
    scene.secret("login", json!({"stringData": data}));
    (scene, host)
}

/// A port of loopback where nobody listens.
fn closed_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

#[test]
fn a_reference_that_is_not_there() {
    let scene = Scene::new();
    scene.repository.commit("release/1", "Other", &[file("app.yaml", "a: 1\n")]);
    let host = scene.serve(Settings::default());
    let url = host.url("fleet.git");
    scene.automation(json!({"git": {"push": {"branch": "main"}}}));
    let missing = |name| format!("couldn't find remote ref {name:?}; its branches are main, release/1");
    let nobody = "0123456789012345678901234567890123456789";
    for (reference, words) in [
        (json!({"branch": "mian"}), missing("refs/heads/mian")),
        (json!({"branch": null}), missing("refs/heads/master")),
        (json!({"tag": "v1"}), missing("refs/tags/v1")),
        (json!({"name": "refs/pull/1/head"}), missing("refs/pull/1/head")),
        (json!({"semver": ">=1"}), "no match found for semver: >=1".to_owned()),
        (
            json!({"commit": nobody}),
            format!("there is no commit {nobody} in it, or the server does not give it out"),
        ),
        (
            json!({"commit": nobody, "branch": "main"}),
            format!("there is no commit {nobody} in it, or the server does not give it out"),
        ),
    ] {
        scene.source(json!({"url": url, "ref": reference}));
        refused(&scene, NONE, &format!("{CHECKOUT}: unable to clone '{url}': {words}"));
    }
    for (reference, sentence) in [
        (
            json!({"name": "main"}),
            "spec.ref of GitRepository default/fleet cannot be used: \"main\" is no full name of a reference: it does not begin with refs/",
        ),
        (
            json!({"commit": "0123"}),
            "spec.ref of GitRepository default/fleet cannot be used: \"0123\" is no commit: a commit is named by 40 hexadecimal digits",
        ),
        (json!({"semver": "one"}), "failed to checkout source: semver parse error: \"one\"…"),
    ] {
        scene.source(json!({"url": url, "ref": reference}));
        refused(&scene, NONE, sentence);
    }
    let blob = scene.repository.id("main:app.yaml").unwrap();
    scene.repository.tag("blob", &blob);
    scene.source(json!({"url": url, "ref": {"tag": "blob"}}));
    scene.automation(json!({"git": {"push": {"branch": "new"}}}));
    refused(&scene, NONE, &format!("{CHECKOUT}: {blob} of '{url}' does not lead to a commit…"));
}

#[test]
fn a_server_that_cannot_be_reached() {
    let scene = Scene::new();
    let port = closed_port();
    let key = SshKey::generate(scene.root(), "key", "ed25519", "");
    scene.secret("login", json!({"stringData": {"identity": key.private(), "known_hosts": "a b c\n"}}));
    for (url, words) in [
        (format!("http://127.0.0.1:{port}/fleet.git"), "the server cannot be reached: "),
        (format!("https://127.0.0.1:{port}/fleet.git"), "the server cannot be reached: "),
        ("https://no-such-host.invalid/fleet.git".to_owned(), "the name of the server cannot be resolved: "),
        (
            format!("ssh://git@127.0.0.1:{port}/fleet.git"),
            "the server cannot be reached: ssh: connect to host 127.0.0.1 port ",
        ),
        (
            "ssh://git@no-such-host.invalid/fleet.git".to_owned(),
            "the name of the server cannot be resolved: ssh: ",
        ),
    ] {
        scene.source(json!({"url": url, "secretRef": {"name": "login"}}));
        refused(&scene, NONE, &format!("{CHECKOUT}: unable to list '{url}': {words}…"));
    }
}

#[test]
fn a_login_that_is_refused() {
    let sentence = |host: &GitHost| {
        format!(
            "{CHECKOUT}: unable to list '{}': the server does not accept the credentials, or wants some; check the Secret \
             that spec.secretRef of the GitRepository names",
            host.url("fleet.git")
        )
    };
    for data in [
        json!({"username": "bot", "password": "wrong"}),
        json!({"username": "hunter2", "password": "bot"}),
        json!({"username": "bot"}),
        json!({"bearerToken": "hunter2"}),
    ] {
        let (scene, host) = guarded(&data);
        refused(&scene, NONE, &sentence(&host));
    }
    let (scene, host) = guarded(&json!({}));
    scene.source(json!({"url": host.url("fleet.git")}));
    refused(&scene, NONE, &sentence(&host));
    refused(&scene, ["--git-login", "user"], &sentence(&host));
}

#[test]
fn a_secret_that_is_missing() {
    let (scene, host) = guarded(&json!({}));
    let advice = "give it as a Secret among the manifests or as --secret NAMESPACE/NAME=DIR, or log in as yourself with \
                  --git-login user";
    for kind in ["auth", "proxy"] {
        let field = if kind == "auth" { "secretRef" } else { "proxySecretRef" };
        scene.source(json!({"url": host.url("fleet.git"), field: {"name": "other"}}));
        let missing =
            format!("{SOURCE}: failed to get {kind} secret 'default/other': secret 'default/other' ");
        refused(&scene, NONE, &format!("{missing}not found; {advice}"));
        refused(&scene, ["--secret", "elsewhere/other=."], &format!("{missing}not found; {advice}"));
        let unreadable = "cannot be read from nowhere: No such file or directory (os error 2)";
        refused(&scene, ["--secret", "other=nowhere"], &format!("{missing}{unreadable}"));
    }
}

#[test]
fn a_secret_that_is_malformed() {
    let (scene, host) = guarded(&json!({}));
    let options = "failed to configure authentication options: ";
    let certificate = "-----BEGIN CERTIFICATE-----";
    for (data, words) in [
        (json!({"password": "hunter2"}), format!("{options}invalid 'http' auth option: 'password' requires 'username' to be set")),
        (json!({"bearerToken": ""}), "secret 'default/login': key 'bearerToken' is empty: give the token, or take the key out".to_owned()),
        (json!({"bearerToken": "hunter2 x"}), "secret 'default/login': key 'bearerToken' has a character that an HTTP header cannot carry: correct it".to_owned()),
        (json!({"username": "bot", "password": "hunter2\nb"}), "secret 'default/login': key 'password' has a line break inside: give it on one line".to_owned()),
        (json!({"ca.crt": "hunter2"}), "secret 'default/login': key 'ca.crt' holds no certificate in PEM".to_owned()),
        (json!({"tls.crt": "hunter2"}), "secret 'default/login' contains 'tls.crt' but missing 'tls.key'".to_owned()),
        (json!({"tls.key": "hunter2"}), "secret 'default/login' contains 'tls.key' but missing 'tls.crt'".to_owned()),
        (json!({"tls.crt": certificate, "tls.key": "hunter2"}), "secret 'default/login': key 'tls.key' holds no private key in PEM".to_owned()),
    ] {
        scene.secret("login", json!({"stringData": data}));
        refused(&scene, NONE, &format!("{SOURCE}: {words}"));
    }
    scene.secret("login", json!({"stringData": {"githubAppID": "1"}}));
    refused(
        &scene,
        NONE,
        "secretRef 'default/login' has github app data but provider is not set to github: invalid source configuration",
    );
    let file = scene.root().join("manifests/secret-login.yaml");
    let unusable = format!(
        "{SOURCE}: failed to get auth secret 'default/login': {}: Secret default/login cannot be used: ",
        file.display()
    );
    for (secret, words) in [
        (
            json!({"data": {"password": "hunter2"}}),
            "the value of data.password is not base64; plain text belongs in stringData",
        ),
        (json!({"data": {"password": 2}}), "the value of data.password is not a string; put it in quotes"),
        (json!({"data": "hunter2"}), "data must be a mapping"),
        (
            json!({"sops": {}, "data": {"password": "ENC[hunter2]"}}),
            "it is encrypted with SOPS, which tagboat does not read; give it decrypted",
        ),
    ] {
        scene.secret("login", secret);
        refused(&scene, NONE, &format!("{unusable}{words}"));
    }
    scene.source(json!({"url": host.url("fleet.git"), "proxySecretRef": {"name": "proxy"}}));
    for (data, words) in [
        (json!({}), "key 'address' not found"),
        (json!({"address": ""}), "proxy address is empty"),
        (
            json!({"address": "ftp://u:hunter2@p"}),
            "proxy URL must use one of the supported schemes (http, https, socks5), got 'ftp'",
        ),
        (
            json!({"address": "http://u:hunter2@p:x"}),
            "key 'address' is no URL of a host and a port: write http://HOST:PORT",
        ),
    ] {
        scene.secret("proxy", json!({"stringData": data}));
        refused(&scene, NONE, &format!("{SOURCE}: secret 'default/proxy': {words}"));
    }
    scene.secret("proxy", json!({"stringData": {"address": format!("http://127.0.0.1:{}", closed_port())}}));
    refused(
        &scene,
        NONE,
        &format!("{CHECKOUT}: unable to list '{}': the server cannot be reached: …", host.url("fleet.git")),
    );
}

#[test]
fn what_ssh_does_not_like() {
    let (host, other) = (SshHost::start(), SshHost::start());
    let scene = Scene::new();
    let url = host.url(scene.repository.path());
    let port = |url: &str| url.split(['/', ':']).nth(4).unwrap().to_owned();
    let stranger = SshKey::generate(scene.root(), "stranger", "ed25519", "");
    let changed = other.known_hosts().replace(&port(&other.url("/".as_ref())), &port(&url));
    let (key, locked, known_hosts) = (host.key().private(), host.locked_key().private(), host.known_hosts());
    let unreadable = "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n-----END OPENSSH PRIVATE KEY-----\n";
    let unlisted = "the server's host key is not in known_hosts of the Secret, or is another one there: No ED25519 host key is known for …";
    let unopened =
        "the SSH key in identity of the Secret cannot be opened; check the passphrase in its key password: ";
    scene.source(json!({"url": url, "secretRef": {"name": "login"}}));
    for (data, words) in [
        (
            json!({"identity": key, "known_hosts": changed}),
            "the server's host key is another than the one in known_hosts; if the server really has a new key, put it \
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
            format!("{secret}'identity' is encrypted: give its passphrase by the key 'password'"),
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
                "{secret}'known_hosts' has no line of host, key type and key: fill it by ssh-keyscan, and check what it says"
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
    refused(&scene, NONE, &format!("{SOURCE}: {option}'identity' is required"));
    scene.source(json!({"url": url, "secretRef": {"name": "login"}, "proxySecretRef": {"name": "proxy"}}));
    scene.secret("proxy", json!({"stringData": {"address": "http://127.0.0.1:1"}}));
    refused(
        &scene,
        NONE,
        &format!(
            "{SOURCE}: the SSH remote {url} cannot go through a proxy: use its https URL, or take the proxy secret out"
        ),
    );
}

#[test]
fn what_tls_does_not_like() {
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
    let handshake = "no TLS connection comes about; check the port in the URL, …";
    refused(&scene, NONE, &format!("{CHECKOUT}: unable to list '{url}': {handshake}"));

    let scene = Scene::new();
    let host = scene.serve(Settings { access: Access::Anonymous, tls: Some(authority.server(true)) });
    let url = host.url("fleet.git");
    scene.source(json!({"url": url, "secretRef": {"name": "login"}}));
    scene.secret("login", json!({"stringData": {"ca.crt": certificate(&authority)}}));
    // Whether the client gets to hear why depends on who is quicker.
    refused(&scene, NONE, &format!("{CHECKOUT}: unable to list '{url}': …"));
}

#[test]
fn a_server_that_says_no() {
    let scene = Scene::new();
    let host = scene.serve(Settings::default());
    let (url, other) = (host.url("fleet.git"), host.url("other.git"));
    scene.source(json!({"url": other}));
    let missing = "there is no such repository, or the credentials may not see it";
    refused(
        &scene,
        NONE,
        &format!("{CHECKOUT}: unable to list '{other}': {missing}: repository '{other}/' not found"),
    );
    scene.source(json!({"url": url}));
    let list = format!("{CHECKOUT}: unable to list '{url}': ");
    let push = format!("{PUSH}: unable to push to '{url}': ");
    let forbidden = "the server forbids it (403); give the user or token the right to read and to push: …";
    let broken = "the server broke off or failed; it will be tried again: …";
    for (operation, status, words) in [
        (Operation::ListForFetch, 403, format!("{list}{forbidden}")),
        (Operation::ListForFetch, 500, format!("{list}{broken}")),
        (Operation::Fetch, 503, format!("{list}{broken}")),
        (Operation::ListForPush, 403, format!("{push}{forbidden}")),
        (Operation::ListForPush, 404, format!("{push}{missing}: …")),
        (Operation::Push, 403, format!("{push}{forbidden}")),
        (Operation::Push, 413, format!("{push}{broken}")),
        (Operation::Push, 500, format!("{push}{broken}")),
    ] {
        host.heal();
        host.always(operation, Fault::Status(status));
        refused(&scene, NONE, &words);
    }
    host.heal();
    let refusal =
        format!("{PUSH}: failed to push to remote '{url}': refs/heads/main was refused: [remote rejected] ");
    for (hook, script, words) in [
        ("pre-receive", "echo 'Not on Fridays.' >&2; exit 1", "(pre-receive hook declined): Not on Fridays."),
        ("pre-receive", "exit 1", "(pre-receive hook declined)"),
        ("update", "echo 'No.'; exit 1", "(hook declined): No.…"),
    ] {
        scene.repository.hook("pre-receive", "exit 0");
        scene.repository.hook(hook, script);
        refused(&scene, NONE, &format!("{refusal}{words}"));
    }
}

#[test]
fn a_server_that_hangs() {
    let scene = Scene::new();
    let host = scene.serve(Settings::default());
    let url = host.url("fleet.git");
    scene.source(json!({"url": url, "timeout": "1s"}));
    for (operation, stage, doing) in [
        (Operation::ListForFetch, CHECKOUT, ("list", "ls-remote")),
        (Operation::ListForPush, PUSH, ("push to", "push")),
    ] {
        host.heal();
        host.always(operation, Fault::Hang);
        let (doing, verb) = doing;
        let sentence =
            format!("{stage}: unable to {doing} '{url}': git {verb} was ended after 1 s without a result");
        refused(&scene, NONE, &sentence);
    }
}

/// The program with limits of a shell.
fn limited(scene: &Scene, program: &str, arguments: &[&OsStr]) -> Command {
    let tagboat = scene.command();
    let mut command = Command::new(program);
    command.args(arguments).arg(tagboat.get_program()).args(tagboat.get_args());
    command.env_clear().envs(tagboat.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(scene.root()).arg("--state").arg(scene.state());
    command
}

#[test]
fn a_disk_that_is_full() {
    // Nothing that could be compressed, so that it meets every limit.
    let large = (0..400_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).wrapping_pow(3).to_le_bytes());
    let large: Vec<u8> = large.collect();
    let scene = Scene::with_files(&[file("app.yaml", tag_line("4.0.6")), file("large", large)]);
    let host = scene.serve(Settings::default());
    let full = format!(
        "{CHECKOUT}: unable to fetch '{}': there is no room left on the disk of the mirror: ",
        host.url("fleet.git")
    );
    let small = "trap '' XFSZ; ulimit -f 512; exec \"$@\"";
    refused_by(&scene, &mut limited(&scene, "sh", &["-c", small, "sh"].map(OsStr::new)), &format!("{full}…"));

    // A namespace of its own, which needs no privileges.
    let mount = "mount -t tmpfs -o size=512k none \"$0\" && exec \"$@\"";
    let state = scene.state();
    let arguments = ["-rm", "sh", "-c", mount].map(OsStr::new).into_iter().chain([state.as_os_str()]);
    let arguments: Vec<&OsStr> = arguments.collect();
    refused_by(&scene, &mut limited(&scene, "unshare", &arguments), &format!("{full}…"));

    scene.run_with_state(NONE).with_status(0);
    assert_eq!(scene.tag("main"), "5.0.3");
}

#[test]
fn a_mirror_that_would_grow_too_large() {
    let scene = Scene::with_files(&[file("app.yaml", tag_line("4.0.6")), file("large", vec![b'x'; 100_000])]);
    let host = scene.serve(Settings::default());
    for (size, bytes) in [("1", "1"), ("1KiB", "1024")] {
        let sentence = format!(
            "{CHECKOUT}: unable to fetch '{}': the mirror would be larger than {bytes} bytes; raise --mirror-max-size if \
             the repository really is that large",
            host.url("fleet.git")
        );
        refused(&scene, ["--mirror-max-size", size], &sentence);
    }
}

#[test]
fn a_state_directory_that_cannot_be_written() {
    let scene = Scene::new();
    let _host = scene.serve(Settings::default());
    let state = scene.state();
    fs::write(&state, "").unwrap();
    let run = scene.run_with_state(NONE).with_status(1);
    let sentence =
        format!("error: cannot read the state in {}: Not a directory (os error 20)", state.display());
    assert_eq!(run.only_error(), sentence);
    fs::remove_file(&state).unwrap();
    fs::create_dir(&state).unwrap();
    fs::write(state.join("mirrors"), "").unwrap();
    let mirrors = state.join("mirrors/default.fleet.");
    let sentence = format!("{CHECKOUT}: cannot keep a mirror in {}…", mirrors.display());
    refused_by(&scene, scene.command().arg("--state").arg(&state), &sentence);
}

/// A run whose PATH holds nothing but, perhaps, a script as git.
fn with_only(scene: &Scene, git: Option<&str>) -> Command {
    let bin = scene.root().join("bin");
    fs::create_dir_all(&bin).unwrap();
    if let Some(script) = git {
        fs::write(bin.join("git"), script).unwrap();
        fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = scene.command();
    command.env("PATH", &bin);
    command
}

#[test]
fn a_git_that_is_missing_or_too_old() {
    let scene = Scene::new();
    let host = scene.serve(Settings::default());
    let list = format!("{CHECKOUT}: unable to list '{}': git ", host.url("fleet.git"));
    let missing = format!("{list}is not installed, or not in PATH; tagboat needs git 2.32 or newer");
    refused_by(&scene, &mut with_only(&scene, None), &missing);
    let old = "#!/bin/sh\nfor word; do test \"$word\" = version && echo 'git version 2.17.1' && exit; done\n\
               echo 'error: unknown option' >&2\nexit 129\n";
    let too_old = format!("{list}2.17.1 is too old; tagboat needs git 2.32 or newer");
    refused_by(&scene, &mut with_only(&scene, Some(old)), &too_old);
}

#[test]
fn urls_that_are_not_taken() {
    let scene = Scene::new();
    for (url, words) in [
        (
            "git@github.com:org/fleet.git",
            " 'git@github.com:org/fleet.git' is the short form of SSH: write ssh://git@github.com/org/fleet.git",
        ),
        ("ext::sh -c id", " 'ext::sh -c id' has the scheme 'ext::': use http, https or ssh"),
        (
            "git://github.com/org/fleet.git",
            " 'git://github.com/org/fleet.git' has the scheme 'git': use http, https or ssh",
        ),
        ("ftp://a/b", " 'ftp://a/b' has the scheme 'ftp': use http, https or ssh"),
        ("", " is empty: give an http, https or ssh URL"),
        ("https://", " 'https://' names no host"),
        (
            "https://bot:hunter2@a b/c",
            " 'https://••••@a b/c' has a host that is no name and no address: correct it",
        ),
    ] {
        scene.source(json!({"url": url}));
        refused(&scene, NONE, &format!("{SOURCE}: the repository URL{words}"));
    }
    let here = scene.root().join("nowhere");
    for (url, shown, path) in [
        ("/nowhere", "/nowhere", "/nowhere"),
        ("file:///nowhere", "file:///nowhere", "/nowhere"),
        ("nowhere", here.to_str().unwrap(), here.to_str().unwrap()),
    ] {
        scene.source(json!({"url": url}));
        let words = "there is no such repository, or the credentials may not see it";
        let sentence = format!(
            "{CHECKOUT}: unable to list '{shown}': {words}: '{path}' does not appear to be a git repository"
        );
        refused(&scene, NONE, &sentence);
    }
}

#[test]
fn paths_of_this_machine_are_taken() {
    let scene = Scene::new();
    for (tag, url) in [
        ("5.0.3", scene.repository.path().display().to_string()),
        ("5.0.4", format!("file://{}", scene.repository.path().display())),
        ("5.0.5", "served/fleet.git".to_owned()),
    ] {
        scene.source(json!({"url": url}));
        scene.latest(tag);
        scene.run(NONE).with_status(0);
        assert_eq!(scene.tag("main"), tag, "{url}");
    }
    scene.repository.assert_sound();
}

#[test]
fn objects_that_do_not_say_what_to_do() {
    let scene = Scene::new();
    refused(
        &scene,
        NONE,
        "failed configuring source manager: referenced git repository does not exist: GitRepository.source.toolkit.fluxcd.io \"fleet\" not found",
    );
    let host = scene.serve(Settings::default());
    let no_push = "failed configuring source manager: push spec not provided, and cannot be inferred from \
                   .spec.git.checkout.ref or GitRepository .spec.ref";
    for (spec, sentence) in [
        (
            json!({"git": {"commit": {"signingKey": {"secretRef": {"name": "key"}}}}}),
            "spec.git.commit.signingKey is set, but commits cannot be signed yet, and nothing is pushed unsigned in their \
             place: remove the field to have commits without a signature",
        ),
        (
            json!({"git": null}),
            "source kind 'GitRepository' necessitates field .spec.git: invalid source configuration",
        ),
        (
            json!({"sourceRef": {"kind": "Bucket"}}),
            "source kind 'Bucket' not supported: invalid source configuration",
        ),
        (json!({"git": {"checkout": {"ref": {"tag": "v1"}}}}), no_push),
        (json!({"git": {"checkout": {"ref": {"name": "refs/heads/main"}}}}), no_push),
        (
            json!({"git": {"push": {"branch": "a b"}}}),
            "spec.git.push.branch cannot be used: \"a b\" is no name for a branch: it has a space, a control character or \
             one of ~ ^ : ? * [ \\",
        ),
        (
            json!({"git": {"push": {"refspec": ":refs/heads/x"}}}),
            "spec.git.push.refspec \":refs/heads/x\" is not [+]SOURCE:DESTINATION with one source and one full \
             destination: an empty source would delete the destination",
        ),
        (json!({"update": {"strategy": "Magic"}}), "unsupported update strategy: Magic"),
        (
            json!({"policySelector": {"matchExpressions": [{"key": "a", "operator": "Bogus"}]}}),
            "failed to parse policy selector: \"Bogus\" is not a valid label selector operator",
        ),
    ] {
        scene.automation(spec);
        refused(&scene, NONE, sentence);
    }
    scene.automation_with(json!({"metadata": {"annotations": {"tagboat.dev/nonsense": "1"}}}));
    refused(&scene, NONE, "…");
    scene.automation(json!({}));
    for (spec, sentence) in [
        (
            json!({"provider": "github"}),
            "secretRef with github app data must be specified when provider is set to github: invalid source configuration",
        ),
        (
            json!({"provider": "github", "secretRef": {"name": "app"}}),
            "failed configuring source manager: GitRepository default/fleet has the provider github, and logging in through it is \
             not supported yet: use the provider generic and a secret with a token or a key",
        ),
        (
            json!({"provider": "azure", "serviceAccountName": "x"}),
            "to use spec.serviceAccountName for provider authentication please enable the ObjectLevelWorkloadIdentity feature gate \
             in the controller",
        ),
        (
            json!({"timeout": "1h"}),
            "spec.timeout of GitRepository default/fleet cannot be used: `1h` counts hours, which this field does not take: write \
             it in minutes",
        ),
        (json!({"ref": null}), no_push),
    ] {
        let mut spec = spec;
        spec["url"] = host.url("fleet.git").into();
        scene.source(spec);
        refused(&scene, NONE, sentence);
    }
}

#[test]
fn manifests_without_an_automation() {
    let scene = Scene::new();
    fs::remove_file(scene.root().join("manifests/automation.yaml")).unwrap();
    let run = scene.run(NONE).with_status(1);
    assert_eq!(run.only_error(), "error: there is no ImageUpdateAutomation among the manifests");
}
