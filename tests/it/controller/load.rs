//! Load: many automations on one branch or many, beside other authors who push to them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures::future::join_all;
use kube::api::ListParams;
use serde_json::json;

use super::scene::{Kind, Scene, kstatus, line};
use crate::support::bare_repository::BareRepository;
use crate::support::content::file;
use crate::support::eventually::{eventually, eventually_within};
use crate::support::git_host::Operation;

/// The timeout for many automations.
/// A build for tests is slow, and the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(300);

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("m{number:03}")).collect()
}

/// Waits until all automations are Ready.
/// It lists them, because a request for each would keep the API server busy.
async fn all_ready(scene: &Scene) {
    eventually_within(TIMEOUT, "all are ready", async || {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let found = scene.api(Kind::Automation).list(&ListParams::default()).await.unwrap();
        found.items.iter().all(|object| kstatus(object) == "Current")
    })
    .await;
}

/// Waits until the branches have this many commits of automations altogether.
async fn all_landed(repositories: &[BareRepository], count: usize) {
    eventually_within(TIMEOUT, "all commits", async || {
        tokio::time::sleep(Duration::from_millis(200)).await;
        repositories.iter().map(|repository| Scene::commits_of(repository).len()).sum::<usize>() >= count
    })
    .await;
}

/// Asserts that each member has one commit, which its status names, and its new line.
async fn assert_each_landed_once(scene: &Scene, repository: &BareRepository, members: &[&str]) {
    let commits = Scene::commits_of(repository);
    let authors: BTreeSet<String> = commits.iter().map(|commit| commit.author.clone()).collect();
    assert_eq!((commits.len(), authors.len()), (members.len(), members.len()));
    let text = String::from_utf8(repository.file("main", "fleet.yaml")).unwrap();
    for member in members {
        let author = format!("{member} <bot@example.com>");
        let own = commits.iter().find(|commit| commit.author == author).unwrap();
        scene
            .until(member, "pushed", |object| object.data["status"]["lastPushCommit"] == own.id.as_str())
            .await;
        assert!(text.contains(&line(scene.cluster.namespace(), member, "2.0.0")), "{member} in\n{text}");
    }
    repository.assert_sound();
}

/// Interval between two pushes of the person.
const PACE: Duration = Duration::from_millis(200);

/// A person who pushes to `main` every 200 ms, to one repository after the other.
struct Person {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<(usize, String)>>,
}

impl Person {
    fn start(places: &[BareRepository]) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let repositories: Vec<BareRepository> =
            places.iter().map(|place| BareRepository::existing(place.path())).collect();
        let thread = std::thread::spawn({
            let is_over = is_over.clone();
            move || {
                let mut made = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    let number = made.len() % repositories.len();
                    let begin = Instant::now();
                    let note = file("notes.txt", format!("{}\n", made.len()));
                    let commit = repositories[number].commit_beside_others("main", "A person's", &[note]);
                    made.push((number, commit));
                    // On a slow machine the person is slower, too.
                    std::thread::sleep(PACE.max(6 * begin.elapsed()));
                }
                made
            }
        });
        Self { is_over, thread }
    }

    /// Stops the person, and asserts that none of the person's commits is lost.
    fn end(self, repositories: &[BareRepository]) {
        self.is_over.store(true, Ordering::Relaxed);
        let made = self.thread.join().unwrap();
        assert!(!made.is_empty());
        for (number, repository) in repositories.iter().enumerate() {
            let log: BTreeSet<String> = repository.log("main").into_iter().map(|commit| commit.id).collect();
            let mut own = made.iter().filter(|(of, _)| *of == number);
            assert!(own.all(|(_, commit)| log.contains(commit)), "a commit of the person's is lost");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_automations_of_one_branch_need_few_pushes() {
    let names = names(50);
    let members: Vec<&str> = names.iter().map(String::as_str).collect();
    let scene = Scene::new(&members).await;
    let controller = scene.controller().start();
    all_ready(&scene).await;
    let before = scene.host.requests_for(Operation::Fetch).len();
    let begin = Instant::now();
    join_all(members.iter().map(|member| scene.choose(member, "2.0.0"))).await;
    eventually("all commits", async || scene.commits().len() == members.len()).await;
    let time = begin.elapsed();
    assert_each_landed_once(&scene, &scene.repository, &members).await;
    let pushes = scene.host.requests_for(Operation::Push).len();
    let fetches = scene.host.requests_for(Operation::Fetch).len() - before;
    println!("{} automations: {time:?}, {pushes} pushes, {fetches} requests to fetch or list", members.len());
    assert!(pushes <= 5, "{pushes} pushes");
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_automations_of_one_branch_land_beside_a_person_who_pushes_all_the_time() {
    let names = names(50);
    let members: Vec<&str> = names.iter().map(String::as_str).collect();
    let scene = Scene::new(&members).await;
    let repositories = [BareRepository::existing(scene.repository.path())];
    let controller = scene.controller().start();
    all_ready(&scene).await;
    let person = Person::start(&repositories);
    let begin = Instant::now();
    join_all(members.iter().map(|member| scene.choose(member, "2.0.0"))).await;
    all_landed(&repositories, members.len()).await;
    println!("{} automations beside a person: {:?}", members.len(), begin.elapsed());
    person.end(&repositories);
    assert_each_landed_once(&scene, &scene.repository, &members).await;
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_automations_on_ten_repositories_land_once_each() {
    let (names, scene) = (names(100), Scene::new(&[]).await);
    let members: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut repositories = Vec::new();
    for (number, own) in members.chunks(10).enumerate() {
        let (source, namespace) = (format!("r{number:02}"), scene.cluster.namespace());
        let lines: String = own.iter().map(|member| line(namespace, member, "1.0.0")).collect();
        let place = scene.root().join(format!("served/{source}.git"));
        repositories.push(BareRepository::with_files(&place, &[file("fleet.yaml", lines)]));
        let url = scene.host.url(&format!("{source}.git"));
        let spec = json!({"url": url, "interval": "1m", "ref": {"branch": "main"}});
        scene.create(Kind::Source, &source, &spec).await;
        for member in own {
            scene.create_policy(member, "1.0.0").await;
            let mut spec = Scene::spec(member);
            spec["sourceRef"]["name"] = json!(source);
            scene.create(Kind::Automation, member, &spec).await;
        }
    }
    let controller = scene.controller().start();
    all_ready(&scene).await;
    let person = Person::start(&repositories);
    let begin = Instant::now();
    for some in members.chunks(20) {
        join_all(some.iter().map(|member| scene.choose(member, "2.0.0"))).await;
    }
    all_landed(&repositories, members.len()).await;
    println!("{} automations on {} repositories: {:?}", members.len(), repositories.len(), begin.elapsed());
    person.end(&repositories);
    for (own, repository) in members.chunks(10).zip(&repositories) {
        assert_each_landed_once(&scene, repository, own).await;
    }
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_a_thousand_changes_of_policies_ends_at_the_last_ones() {
    let names = names(10);
    let members: Vec<&str> = names.iter().map(String::as_str).collect();
    let scene = Scene::new(&members).await;
    let controller = scene.controller().start();
    all_ready(&scene).await;
    for number in 1..=100 {
        let tag = format!("2.0.{number}");
        join_all(members.iter().map(|member| scene.choose(member, &tag))).await;
    }
    for member in &members {
        scene.lands(member, "2.0.100").await;
        scene.ready(member).await;
    }
    // Changes at the same time are batched.
    let pushes = scene.host.requests_for(Operation::Push).len();
    assert!(pushes <= 150, "{pushes} pushes for 1,000 changes");
    scene.repository.assert_sound();
    controller.end().await;
}
