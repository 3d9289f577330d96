//! Benchmarks many automations on a few repositories.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures::future::join_all;
use kube::api::ListParams;
use serde_json::json;

use crate::process::Measured;
use crate::scene::{Kind, Scene, kstatus, line};
use crate::support::bare_repository::BareRepository;
use crate::support::content::file;
use crate::support::git_host::Operation;

/// The timeout of each wait.
const PATIENCE: Duration = Duration::from_secs(180);

/// Automations with one policy each, several on each repository.
pub(crate) struct Crowd {
    pub(crate) scene: Scene,
    pub(crate) repositories: Vec<BareRepository>,
    members: Vec<String>,
}

/// A measurement, from its start on.
pub(crate) struct Row<'a> {
    crowd: &'a Crowd,
    process: &'a Measured,
    begin: Instant,
    cpu: f64,
    requests: [usize; 3],
}

impl Crowd {
    pub(crate) async fn new(members: usize, repositories: usize, interval: &str) -> Self {
        let scene = Scene::new(&[]).await;
        let members: Vec<String> = (0..members).map(|number| format!("m{number:03}")).collect();
        let mut made = Vec::new();
        for number in 0..repositories {
            let name = format!("r{number:02}");
            let own = members.iter().skip(number).step_by(repositories);
            let lines: String = own.map(|member| line(scene.cluster.namespace(), member, "1.0.0")).collect();
            let place = scene.root().join(format!("served/{name}.git"));
            made.push(BareRepository::with_files(&place, &[file("fleet.yaml", lines)]));
            let url = scene.host.url(&format!("{name}.git"));
            let spec = json!({"url": url, "interval": "1m", "ref": {"branch": "main"}});
            scene.create(Kind::Source, &name, &spec).await;
        }
        for (number, member) in members.iter().enumerate() {
            scene.create_policy(member, "1.0.0").await;
            let mut spec = Scene::spec(member);
            spec["interval"] = json!(interval);
            spec["sourceRef"]["name"] = json!(format!("r{:02}", number % repositories));
            scene.create(Kind::Automation, member, &spec).await;
        }
        Self { scene, repositories: made, members }
    }

    pub(crate) fn members(&self) -> &[String] {
        &self.members
    }

    pub(crate) async fn choose_all(&self, tag: &str) {
        join_all(self.members.iter().map(|member| self.scene.choose(member, tag))).await;
    }

    /// Waits until the status of every automation is Ready and has a tag.
    pub(crate) async fn all_at(&self, tag: &str) {
        let (begin, api) = (Instant::now(), self.scene.api(Kind::Automation));
        loop {
            let found = api.list(&ListParams::default()).await.unwrap().items;
            let is_there = |object: &kube::core::DynamicObject| {
                let mut policies =
                    object.data["status"]["observedPolicies"].as_object().into_iter().flatten();
                kstatus(object) == "Current" && policies.any(|(_, image)| image["tag"] == tag)
            };
            let left = found.iter().filter(|object| !is_there(object)).count();
            if left == 0 {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "{left} automations are not at {tag}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Asserts one commit per automation.
    pub(crate) fn assert_each_landed_once(&self) {
        let mut authors = Vec::new();
        for repository in &self.repositories {
            let commits = repository.log("main").into_iter().map(|commit| commit.author);
            authors.extend(commits.filter(|author| author.ends_with("<bot@example.com>")));
        }
        let different: BTreeSet<&String> = authors.iter().collect();
        assert_eq!((authors.len(), different.len()), (self.members.len(), self.members.len()));
    }

    pub(crate) fn row<'a>(&'a self, process: &'a Measured) -> Row<'a> {
        process.forget_peak();
        let (begin, requests) = (Instant::now(), self.requests());
        Row { crowd: self, process, begin, cpu: process.cpu_seconds(), requests }
    }

    fn requests(&self) -> [usize; 3] {
        [Operation::Push, Operation::Fetch, Operation::ListForFetch]
            .map(|operation| self.scene.host.requests_for(operation).len())
    }
}

impl Row<'_> {
    pub(crate) fn print(self, what: &str) {
        let Row { crowd, process, begin, cpu, requests } = self;
        let seconds = begin.elapsed().as_secs_f64();
        let cpu = process.cpu_seconds() - cpu;
        let now = crowd.requests();
        let [pushes, fetches, listings] = [0, 1, 2].map(|place: usize| now[place] - requests[place]);
        let peak = process.peak_megabytes();
        println!("| {what} | {seconds:.1} | {cpu:.2} | {peak:.0} | {pushes} | {fetches} | {listings} |");
    }
}
