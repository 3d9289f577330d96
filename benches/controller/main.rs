//! Measures the controller on a real API server and a real git server.
//!
//! `hack/bench controller` runs it. `reflect` measures the reflector controller with a registry of this process, and
//! `rollout` the reports of rollouts, `nodes` a pool of many nodes and a rollout on some (alone as `node-rollout`), `forges` pull requests at Gitea
//! and at a test server of GitHub (alone as `gitea` and `github`), with
//! their branches alone as `branches`; `small` measures a tenth of these.
//!
//! The first argument is the program. CPU and memory are those of its process tree, so its git processes count and
//! the servers do not.

#![cfg(test)]
#![allow(
    dead_code,
    unused_imports,
    missing_docs,
    reason = "it has the tests' support, and needs only a part of it"
)]

mod catalog;
mod crowd;
mod forge_limits;
mod forges;
mod node_rollout;
mod nodes;
mod process;
mod reflection;
mod rollout;
#[path = "../../tests/it/controller/scene.rs"]
mod scene;
#[path = "../../tests/it/support/mod.rs"]
mod support;
mod windows;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use crowd::Crowd;
use process::Measured;
use support::content::file;

/// The head of the printed table.
const HEAD: &str =
    "| | seconds | CPU s | peak MB | pushes | fetches | listings |\n|---|---|---|---|---|---|---|";

fn main() {
    let usage = "usage: cargo bench --profile dev --bench controller -- PROGRAM [waves|person|idle|windows|rest|reflect|rollout|nodes|node-rollout|forges|gitea|branches|github|small]…";
    // Cargo adds a flag of its own.
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let first = arguments.next().expect(usage);
    if first == "bare-watch" {
        let namespace = arguments.next().expect("a namespace");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(rollout::watch_bare(&namespace));
    }
    let program = PathBuf::from(first);
    let chosen: Vec<String> = arguments.collect();
    let is_small = chosen.iter().any(|name| name == "small");
    let wants = |part: &str| chosen.len() == usize::from(is_small) || chosen.iter().any(|name| name == part);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        if ["waves", "person", "idle"].into_iter().any(wants) {
            println!("{HEAD}");
        }
        if wants("waves") {
            for (members, repositories) in [(50, 1), (200, 1), (200, 20)] {
                wave(&program, members, repositories).await;
            }
        }
        if wants("person") {
            for members in [20, 50] {
                beside_a_person(&program, members).await;
            }
        }
        if wants("idle") {
            for commits in [0, 4] {
                idle(&program, commits).await;
            }
        }
        if wants("windows") {
            println!();
            println!("{HEAD}");
            windows::measure(&program).await;
        }
        if wants("rest") {
            println!();
            println!("{HEAD}");
            windows::measure_rest(&program, if is_small { 100 } else { 1_000 }).await;
        }
        if wants("reflect") {
            println!();
            reflection::measure(&program, if is_small { 10 } else { 1 }).await;
        }
        if wants("rollout") {
            println!();
            rollout::measure(&program, if is_small { 10 } else { 1 }).await;
        }
        if wants("nodes") {
            println!();
            nodes::measure(&program, if is_small { 10 } else { 1 }).await;
        }
        if wants("nodes") || wants("node-rollout") {
            println!();
            node_rollout::measure(&program).await;
        }
        let members = if is_small { 20 } else { 200 };
        if wants("forges") || wants("gitea") {
            println!();
            forges::at_gitea(&program, members).await;
        }
        if wants("forges") || wants("branches") {
            println!();
            forges::branches(&program, members).await;
        }
        if wants("forges") || wants("github") {
            println!();
            forges::at_github(&program, members).await;
        }
    });
    // The shared servers are not owned by a value; they stop with this process.
}

/// Every policy changes at once.
async fn wave(program: &std::path::Path, members: usize, repositories: usize) {
    let crowd = Crowd::new(members, repositories, "10m").await;
    let process = Measured::start(program, &crowd.scene).await;
    let row = crowd.row(&process);
    crowd.all_at("1.0.0").await;
    row.print(&format!("{members} automations on {repositories}: from the start until all are Ready"));
    let row = crowd.row(&process);
    crowd.choose_all("2.0.0").await;
    crowd.all_at("2.0.0").await;
    row.print(&format!("{members} automations on {repositories}: all policies move"));
    crowd.assert_each_landed_once();
    process.end();
}

/// Every policy changes at once while a user pushes every 200 ms.
async fn beside_a_person(program: &std::path::Path, members: usize) {
    let crowd = Arc::new(Crowd::new(members, 1, "10m").await);
    let process = Measured::start(program, &crowd.scene).await;
    crowd.all_at("1.0.0").await;
    let is_over = Arc::new(AtomicBool::new(false));
    let person = spawn({
        let (crowd, is_over) = (crowd.clone(), is_over.clone());
        move || {
            let mut made = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let note = file("notes.txt", format!("{}\n", made.len()));
                made.push(crowd.repositories[0].commit_beside_others("main", "A person's", &[note]));
                sleep(Duration::from_millis(200));
            }
            made
        }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let row = crowd.row(&process);
    crowd.choose_all("2.0.0").await;
    crowd.all_at("2.0.0").await;
    row.print(&format!("{members} automations on 1 beside a person who pushes every 200 ms"));
    is_over.store(true, Ordering::Relaxed);
    let made = person.join().unwrap();
    crowd.assert_each_landed_once();
    let log: Vec<String> = crowd.repositories[0].log("main").into_iter().map(|commit| commit.id).collect();
    assert!(made.iter().all(|commit| log.contains(commit)), "a commit of the person's is lost");
    process.end();
}

/// One minute without changed policies, while a user pushes a number of commits.
async fn idle(program: &std::path::Path, commits: u32) {
    let crowd = Crowd::new(200, 1, "1m").await;
    let process = Measured::start(program, &crowd.scene).await;
    crowd.all_at("1.0.0").await;
    // After one interval, all automations reconcile together.
    tokio::time::sleep(Duration::from_secs(65)).await;
    let row = crowd.row(&process);
    let begin = Instant::now();
    for number in 0..commits {
        tokio::time::sleep(Duration::from_secs(10)).await;
        crowd.repositories[0].commit("main", "A person's", &[file("notes.txt", format!("{number}\n"))]);
    }
    tokio::time::sleep(Duration::from_secs(60).saturating_sub(begin.elapsed())).await;
    row.print(&format!("200 automations on 1, nothing to do, {commits} commits of others a minute"));
    process.end();
}
