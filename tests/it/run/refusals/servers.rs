//! Servers that cannot be reached, refuse or hang.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use serde_json::json;

use super::{CHECKOUT, NONE, PUSH, closed_port, refused};
use crate::run::scene::Scene;
use crate::support::git_host::{Fault, Operation, Settings};
use crate::support::ssh_key::SshKey;

#[test]
fn a_server_that_cannot_be_reached() {
    let scene = Scene::new();
    let port = closed_port();
    let key = SshKey::generate(scene.root(), "key", "ed25519", "");
    scene.secret(
        "login",
        json!({"stringData": {"identity": key.private(), "known_hosts": "a b c\n", "bearerToken": "t"}}),
    );
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
fn a_server_that_refuses_access() {
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
    let stranger = "the server requires credentials, or does not accept them; …";
    let broken = "the server closed the connection or failed; the next run tries again: …";
    for (operation, status, words) in [
        (Operation::ListForFetch, 403, format!("{list}{forbidden}")),
        (Operation::ListForFetch, 500, format!("{list}{broken}")),
        (Operation::Fetch, 503, format!("{list}{broken}")),
        // Reading needs no login, and pushing does.
        (Operation::ListForPush, 401, format!("{push}{stranger}")),
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
    scene.source(json!({"url": url, "timeout": "8s"}));
    for (operation, stage, doing) in [
        (Operation::ListForFetch, CHECKOUT, ("list", "ls-remote")),
        (Operation::ListForPush, PUSH, ("push to", "push")),
    ] {
        host.heal();
        host.always(operation, Fault::Hang);
        let (doing, verb) = doing;
        // What came before has taken a part of the time.
        let sentence = format!("{stage}: unable to {doing} '{url}': git {verb} timed out after …");
        refused(&scene, NONE, &sentence);
    }
}

#[test]
fn a_listing_that_never_ends_is_an_error_and_never_used_in_part() {
    let scene = Scene::new();
    let host = scene.serve(Settings::default());
    scene.source(json!({"url": host.url("fleet.git"), "ref": {"branch": null, "semver": "*"}}));
    scene.automation(json!({"git": {"push": {"branch": "main"}}}));
    let tip = scene.repository.id("refs/heads/main").unwrap();
    let mut listing = "# pack-refs with: peeled fully-peeled sorted \n".to_owned();
    let long = format!("{}/", "x".repeat(200)).repeat(15);
    // The first of the tags is within the range.
    listing.push_str(&format!("{tip} refs/tags/1.0.0\n"));
    for number in 0..23_000 {
        listing.push_str(&format!("{tip} refs/tags/{long}{number:05}\n"));
    }
    let place = scene.repository.path().join("packed-refs");
    std::fs::write(&place, listing).unwrap();
    let run = scene.run(NONE).with_status(1);
    let sentence = format!(
        "default/fleet: {CHECKOUT}: unable to list '{}': the list of its references is larger than 16 MiB, the limit; \
         delete unneeded branches and tags",
        host.url("fleet.git")
    );
    assert_eq!(run.only_error(), sentence);
    assert_eq!(scene.repository.id("refs/heads/main"), Some(tip));
}

/// An HTML page is not read as an empty repository.
/// It is the page of a login or a captive portal, which git reads as the listing of an empty repository.
#[test]
fn an_html_page_is_not_read_as_an_empty_repository() {
    let scene = Scene::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/fleet.git", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut lines = BufReader::new(&stream).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let page = "<html><body>Who are you?</body></html>";
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
                page.len()
            );
            let _gone = stream.write_all(answer.as_bytes());
        }
    });
    scene.source(json!({"url": url}));
    let sentence = format!(
        "{CHECKOUT}: unable to clone '{url}': the server is not a git server; check spec.url of the GitRepository"
    );
    refused(&scene, NONE, &sentence);
}
