//! GitRepositories: oversized objects, odd addresses, logins that wait, and mirrors.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::join_all;
use git2::{ObjectType, Repository};
use kube::api::DynamicObject;
use serde_json::json;

use super::measures::TIMEOUT;
use super::scene::Scene;
use crate::controller::scene::{Kind, condition};
use crate::support::bare_repository::BareRepository;
use crate::support::certificates::Authority;
use crate::support::content::file;
use crate::support::http_front::{Front, Reply};

const MEBIBYTE: usize = 1 << 20;

/// Moves `main` to a commit with a message of this many bytes.
fn commit_with_message(repository: &BareRepository, length: usize) {
    let objects = Repository::open_bare(repository.path()).unwrap();
    let mut text = repository.git(["cat-file", "commit", "main"]);
    text.resize(text.len() + length, b'x');
    let commit = objects.odb().unwrap().write(ObjectType::Commit, &text).unwrap();
    repository.move_branch("main", &commit.to_string());
}

/// An oversized commit and odd addresses end with an error message of their own.
///
/// Formerly, git took 277 MiB in each of three processes for a message of 270 MiB, in addition to the memory
/// of tagboat.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_oversized_commit_and_odd_addresses_end_with_a_sentence_of_their_own() {
    let scene = Scene::start().await;
    let attacker = &scene.attacker;
    let evil = attacker.repository("evil", &[file("empty.yaml", "a: 1\n")]);
    commit_with_message(&evil, 120 * MEBIBYTE);
    attacker.create_source("evil", &json!({})).await;
    let odd = [
        "ssh://git@[127.0.0.1]@203.0.113.7/x.git",
        "ssh://git%40%5B127.0.0.1%5D@203.0.113.7/x.git",
        "ssh://203.0.113.7/a@[127.0.0.1]/x.git",
    ];
    for (number, url) in odd.iter().enumerate() {
        attacker.create_source(&format!("odd-{number}"), &json!({"url": url})).await;
        attacker.create_automation(&format!("odd-{number}"), &json!({})).await;
    }
    scene
        .assert_healthy_while(async {
            attacker.create_automation("evil", &json!({})).await;
            scene.victim_is_reconciled().await;
        })
        .await;
    let sentence = attacker.ready_message(Kind::Automation, "evil").await;
    assert!(
        sentence.contains("has an object larger than the 96 MiB that git may hold in memory"),
        "{sentence}"
    );
    for (number, url) in odd.iter().enumerate() {
        let sentence = attacker.ready_message(Kind::Automation, &format!("odd-{number}")).await;
        assert!(sentence.contains("the repository URL '"), "{url}: {sentence}");
        assert!(
            sentence.contains("where ssh or git may look") || sentence.contains("has '@[' in its path"),
            "{sentence}"
        );
    }
    scene.assert_memory_below(512 << 20);
}

/// Eight of them took 32 MiB each, where 8 MiB were reserved.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_list_slowly_take_no_more_memory_than_is_reserved() {
    let scene = Scene::start().await;
    let attacker = &scene.attacker;
    // Git keeps a partial list in memory until the rest arrives. Each server has slots of its own.
    let reply = || Reply::Paced { body: vec![b'x'; 20 * MEBIBYTE], piece: 18 * MEBIBYTE, pause: TIMEOUT };
    let servers: Vec<Front> = (0..8).map(|_| Front::alone(move |_| reply())).collect();
    for (number, server) in servers.iter().enumerate() {
        let name = format!("slow-{number}");
        attacker.create_source(&name, &json!({"url": server.url("/fleet.git")})).await;
        attacker.create_automation(&name, &json!({})).await;
    }
    scene.victim_is_reconciled().await;
    // Transactions that wait for their server release their slots, so that further servers get a request: all, or as many
    // as have memory.
    let asked = || servers.iter().filter(|server| !server.requests().is_empty()).count();
    let begin = Instant::now();
    while asked() < 4 || (asked() < servers.len() && begin.elapsed() < Duration::from_secs(15)) {
        assert!(begin.elapsed() < TIMEOUT, "four servers are asked");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // The 18 MiB of the last answer arrive.
    tokio::time::sleep(Duration::from_secs(2)).await;
    scene.assert_memory_below(128 << 20);
}

/// The private directories of a process, found by their locks.
fn private_directories(process: u32) -> Vec<PathBuf> {
    let open = fs::read_dir(format!("/proc/{process}/fd")).unwrap().flatten();
    let targets = open.filter_map(|item| fs::read_link(item.path()).ok());
    targets.filter(|path| path.to_string_lossy().contains("tagboat-private-")).collect()
}

/// Sixty of them filled the 64 MiB of `/dev/shm` before one had a slot.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logins_that_wait_have_no_files_and_equal_certificates_share_one() {
    let scene = Scene::start().await;
    let attacker = &scene.attacker;
    let silent = Front::alone(|_| Reply::Silence);
    // Comments between certificates are allowed, and make each bundle large.
    let certificate = fs::read_to_string(Authority::new().certificate_file()).unwrap();
    let authority = format!("{certificate}{}\n", "# nothing ".repeat(50_000));
    attacker.create_secret("login", &json!({"username": "u", "password": "p", "ca.crt": authority})).await;
    let names: Vec<String> = (0..40).map(|number| format!("silent-{number}")).collect();
    join_all(names.iter().map(async |name| {
        let url = silent.url(&format!("/{name}.git"));
        attacker.create_source(name, &json!({"url": url, "secretRef": {"name": "login"}})).await;
        attacker.create_automation(name, &json!({})).await;
    }))
    .await;
    // The first ones wait for their server, the others for a slot.
    let begin = Instant::now();
    while silent.requests().is_empty() {
        assert!(begin.elapsed() < TIMEOUT, "no automation gets to its server");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    scene.victim_is_reconciled().await;
    let mut bundles = Vec::new();
    let directories = private_directories(scene.pod.id());
    // One for each running transaction, and one for each content.
    assert!(directories.len() < names.len(), "{directories:?}");
    for directory in directories {
        bundles.extend(fs::metadata(directory.join("ca.crt")).ok().map(|file| file.size()));
    }
    assert_eq!(bundles.len(), 1, "{bundles:?}");
    let sizes = bundles.iter().sum::<u64>();
    assert!(sizes < 2 * MEBIBYTE as u64, "{sizes}");
    scene.assert_memory_below(512 << 20);
}

/// Automations that wait for a slot hold few large Secrets.
/// Formerly, each held its Secret twice, as read and as written for ssh. A thousand of them used 2 GiB.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn automations_that_wait_hold_few_large_secrets() {
    let scene = Scene::start().await;
    let attacker = &scene.attacker;
    // Connections stay in its backlog, without any answer.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ssh://git@{}/silent.git", silent.local_addr().unwrap());
    let identity = "-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n";
    let names: Vec<String> = (0..64).map(|number| format!("large-{number}")).collect();
    scene.memory().reset();
    let create = async |name: &String| {
        let line = format!("{name} ssh-ed25519 AAAA\n");
        let known_hosts = line.repeat(MEBIBYTE * 9 / 10 / line.len());
        attacker.create_secret(name, &json!({"identity": identity, "known_hosts": known_hosts})).await;
        attacker.create_source(name, &json!({"url": url, "secretRef": {"name": name}})).await;
        attacker.create_automation(name, &json!({})).await;
    };
    // The API server of the test needs several times the size of each Secret.
    futures::stream::iter(&names).for_each_concurrent(8, create).await;
    let is_reconciling = |object: &DynamicObject| condition(&object.data["status"], "Reconciling").is_some();
    for name in &names {
        attacker.until(Kind::Automation, name, "reconciling", is_reconciling).await;
    }
    scene.victim_is_reconciled().await;
    // All of them would be 115 MiB, and the program needs 50 without them.
    scene.assert_memory_below(110 << 20);
    scene.delete_and_wait(Kind::Automation, "large-0").await;
    attacker.delete_secrets().await;
}

/// The size of the files below a directory, in bytes.
fn size_of(directory: &Path) -> u64 {
    let Ok(listing) = fs::read_dir(directory) else { return 0 };
    let sizes = listing.flatten().map(|item| match item.metadata() {
        Ok(metadata) if metadata.is_dir() => size_of(&item.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

/// Content that does not compress.
fn noise(seed: u64, size: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(&mut next).take(size).collect()
}

/// Each mirror is within its limit, and the number of repositories is not limited.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_repositories_displace_their_own_mirrors() {
    let limit = 8 * MEBIBYTE;
    let scene = Scene::start_with(&[&format!("--mirrors-max-size={limit}")]).await;
    let attacker = &scene.attacker;
    let mirrors = scene.temporary().join("mirrors");
    for number in 0..6 {
        let name = format!("large-{number}");
        attacker.repository(&name, &[file("noise.bin", noise(number, 2 * MEBIBYTE))]);
        attacker.create_source(&name, &json!({})).await;
        attacker.create_automation(&name, &json!({})).await;
    }
    for number in 0..6 {
        let name = format!("large-{number}");
        let has_ended = |object: &DynamicObject| {
            condition(&object.data["status"], "Ready").is_some_and(|ready| ready["status"] == "True")
        };
        attacker.until(Kind::Automation, &name, "reconciled", has_ended).await;
    }
    let folders: Vec<String> = fs::read_dir(&mirrors)
        .unwrap()
        .map(|item| item.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(folders.iter().any(|folder| folder.contains(".app.")), "the victim's is gone: {folders:?}");
    assert!(folders.len() < 7, "{folders:?}");
    let size = size_of(&mirrors);
    assert!(size <= limit as u64 + limit as u64 / 8, "{size}");
    scene.victim_is_reconciled().await;
}
