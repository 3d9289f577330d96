//! Many automations on one branch, and others who push to it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;

use super::scene::{Scene, eventually, line};
use crate::support::content::file;
use crate::support::git_host::Operation;

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("m{number:02}")).collect()
}

async fn all_ready(scene: &Scene, members: &[&str]) {
    join_all(members.iter().map(|member| scene.ready(member))).await;
}

/// Insists on one commit for each member, told to its object.
async fn assert_each_landed_once(scene: &Scene, members: &[&str]) {
    let commits = scene.commits();
    let authors: BTreeSet<String> = commits.iter().map(|commit| commit.author.clone()).collect();
    assert_eq!((commits.len(), authors.len()), (members.len(), members.len()));
    for member in members {
        let author = format!("{member} <bot@example.com>");
        let own = commits.iter().find(|commit| commit.author == author).unwrap();
        scene
            .until(member, "pushed", |object| object.data["status"]["lastPushCommit"] == own.id.as_str())
            .await;
    }
    scene.repository.assert_sound();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_automations_of_one_branch_need_few_pushes() {
    let names = names(50);
    let members: Vec<&str> = names.iter().map(String::as_str).collect();
    let scene = Scene::new(&members).await;
    let controller = scene.controller().start();
    all_ready(&scene, &members).await;
    let before = scene.host.requests_for(Operation::Fetch).len();
    let begin = Instant::now();
    join_all(members.iter().map(|member| scene.choose(member, "2.0.0"))).await;
    eventually("all commits", async || scene.commits().len() == members.len()).await;
    let time = begin.elapsed();
    assert_each_landed_once(&scene, &members).await;
    let pushes = scene.host.requests_for(Operation::Push).len();
    let fetches = scene.host.requests_for(Operation::Fetch).len() - before;
    println!("{} automations: {time:?}, {pushes} pushes, {fetches} requests to fetch or list", members.len());
    assert!(pushes <= 5, "{pushes} pushes");
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_automations_land_beside_a_person_who_pushes_all_the_time() {
    let names = names(20);
    let members: Vec<&str> = names.iter().map(String::as_str).collect();
    let scene = Arc::new(Scene::new(&members).await);
    let controller = scene.controller().start();
    all_ready(&scene, &members).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let person = std::thread::spawn({
        let (scene, is_over) = (scene.clone(), is_over.clone());
        move || {
            let mut made = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let note = file("notes.txt", format!("{}\n", made.len()));
                made.push(scene.repository.commit_beside_others("main", "A person's", &[note]));
                std::thread::sleep(Duration::from_millis(200));
            }
            made
        }
    });
    let begin = Instant::now();
    join_all(members.iter().map(|member| scene.choose(member, "2.0.0"))).await;
    eventually("all commits", async || scene.commits().len() == members.len()).await;
    println!("20 automations beside a person: {:?}", begin.elapsed());
    is_over.store(true, Ordering::Relaxed);
    let made = person.join().unwrap();
    assert_each_landed_once(&scene, &members).await;
    let log: BTreeSet<String> = scene.repository.log("main").into_iter().map(|commit| commit.id).collect();
    assert!(made.iter().all(|commit| log.contains(commit)), "a commit of the person's is lost");
    let text = String::from_utf8(scene.repository.file("main", "fleet.yaml")).unwrap();
    for member in members {
        assert!(text.contains(&line(scene.cluster.namespace(), member, "2.0.0")));
    }
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_a_thousand_changes_of_policies_ends_at_the_last_ones() {
    let names = names(10);
    let members: Vec<&str> = names.iter().map(String::as_str).collect();
    let scene = Scene::new(&members).await;
    let controller = scene.controller().start();
    all_ready(&scene, &members).await;
    for number in 1..=100 {
        let tag = format!("2.0.{number}");
        join_all(members.iter().map(|member| scene.choose(member, &tag))).await;
    }
    for member in &members {
        scene.lands(member, "2.0.100").await;
        scene.ready(member).await;
    }
    // Changes that come together are served together.
    let pushes = scene.host.requests_for(Operation::Push).len();
    assert!(pushes <= 150, "{pushes} pushes for 1,000 changes");
    scene.repository.assert_sound();
    controller.end().await;
}
