//! Benchmarks repositories and policies: long tag lists, many policies, many of both.

use std::path::Path;
use std::time::{Duration, Instant};

use futures::StreamExt;
use kube::api::{DynamicObject, ListParams};
use serde_json::{Value, json};

use crate::catalog::Catalog;
use crate::process::Measured;
use crate::scene::{Kind, Scene, kstatus};

/// The timeout of each wait.
const PATIENCE: Duration = Duration::from_secs(300);

/// The number of objects that are created concurrently.
const AT_ONCE: usize = 16;

/// The head of the printed table.
const HEAD: &str = "| | seconds | CPU s | peak MB | requests to the registry | requests to the API server |\n\
                    |---|---|---|---|---|---|";

/// Runs all benchmarks, at sizes divided by `part`.
pub(crate) async fn measure(program: &Path, part: usize) {
    println!("{HEAD}");
    long_list(program, 10_000 / part, 100 / part).await;
    many_policies(program, 1_000 / part).await;
    for pairs in [500, 1_000] {
        many_pairs(program, pairs / part, Duration::from_secs(60) / u32::try_from(part).unwrap()).await;
    }
}

/// One repository with many tags, and a policy for each series of tags.
async fn long_list(program: &Path, tags: usize, policies: usize) {
    let field = Field::new().await;
    let versions = |policy: usize| (0..tags / policies).map(move |minor| format!("{policy}.{minor}.0"));
    field.catalog.add("app", (0..policies).flat_map(versions));
    let process = Measured::start(program, &field.scene).await;
    field.create_all(Kind::Policy, policies, |number| policy("app", &format!("{number}.x"))).await;
    // The policies have no repository yet, and the program has reported that for all of them.
    field
        .all_are(policies, |object| {
            kstatus(object) == "InProgress" && object.data["status"]["conditions"].is_array()
        })
        .await;
    let row = field.row(&process);
    field.create(Kind::Repository, "app", &repository(&field.catalog.image("app"), "1m")).await;
    field.all_at(policies, |_| true).await;
    row.print(&format!(
        "{tags} tags, {policies} policies: from the repository's creation until all are Ready"
    ));

    let row = field.row(&process);
    let new = format!("1.{tags}.0");
    field.catalog.add("app", [new.clone()]);
    field.request("app", "new").await;
    field.has("m0001", &new).await;
    row.print("one new tag and a request: until its policy has it");
    let row = field.row(&process);
    field.request("app", "nothing new").await;
    field.is_answered("app", "nothing new").await;
    row.print("nothing new and a request");
    field.rest_and_restart(program, process, Duration::from_secs(60)).await;
}

/// One repository whose new tag all policies choose.
async fn many_policies(program: &Path, policies: usize) {
    let field = Field::new().await;
    field.catalog.add("app", (0..100).map(|minor| format!("1.{minor}.0")));
    let process = Measured::start(program, &field.scene).await;
    field.create(Kind::Repository, "app", &repository(&field.catalog.image("app"), "10m")).await;
    field.create_all(Kind::Policy, policies, |_| policy("app", "*")).await;
    field.all_at(policies, |tag| tag == "1.99.0").await;
    let row = field.row(&process);
    field.catalog.add("app", ["2.0.0".to_owned()]);
    field.request("app", "new").await;
    field.all_at(policies, |tag| tag == "2.0.0").await;
    row.print(&format!("{policies} policies of one repository: from a request until all have the new tag"));
    process.end();
}

/// Repositories with one policy each.
async fn many_pairs(program: &Path, pairs: usize, rest: Duration) {
    let field = Field::new().await;
    for number in 0..pairs {
        field.catalog.add(&format!("app-{number}"), (0..100).map(|minor| format!("1.{minor}.0")));
    }
    let process = Measured::start(program, &field.scene).await;
    let row = field.row(&process);
    let interval = format!("{}s", rest.as_secs().max(1));
    let image = |number: usize| field.catalog.image(&format!("app-{number}"));
    field.create_all(Kind::Repository, pairs, |number| repository(&image(number), &interval)).await;
    field.create_all(Kind::Policy, pairs, |number| policy(&name(number), "*")).await;
    let created = row.begin.elapsed().as_secs_f64();
    field.all_at(pairs, |tag| tag == "1.99.0").await;
    row.print(&format!(
        "{pairs} repositories of 100 tags with a policy each: from the first creation (all: {created:.1} s) until all are \
         Ready"
    ));
    field.rest_and_restart(program, process, rest).await;
}

fn name(number: usize) -> String {
    format!("m{number:04}")
}

fn repository(image: &str, interval: &str) -> Value {
    json!({"image": image, "interval": interval})
}

fn policy(repository: &str, range: &str) -> Value {
    json!({"imageRepositoryRef": {"name": repository}, "policy": {"semver": {"range": range}}})
}

/// A namespace and a registry.
struct Field {
    scene: Scene,
    catalog: Catalog,
}

impl Field {
    async fn new() -> Self {
        Self { scene: Scene::new(&[]).await, catalog: Catalog::start().await }
    }

    async fn create(&self, kind: Kind, name: &str, spec: &Value) {
        self.scene.create(kind, name, spec).await;
    }

    async fn create_all(&self, kind: Kind, count: usize, spec: impl Fn(usize) -> Value) {
        let creations = (0..count).map(|number| {
            let spec = spec(number);
            async move { self.create(kind, &name(number), &spec).await }
        });
        futures::stream::iter(creations).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    }

    async fn request(&self, repository: &str, token: &str) {
        let request = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": token}}});
        self.scene.patch(Kind::Repository, repository, &request).await;
    }

    async fn is_answered(&self, repository: &str, token: &str) {
        let is = |object: &DynamicObject| object.data["status"]["lastHandledReconcileAt"] == token;
        self.until(Kind::Repository, repository, is).await;
    }

    async fn has(&self, policy: &str, tag: &str) {
        let is = |object: &DynamicObject| object.data["status"]["latestRef"]["tag"] == tag;
        self.until(Kind::Policy, policy, is).await;
    }

    async fn until(&self, kind: Kind, name: &str, is: impl Fn(&DynamicObject) -> bool) {
        let (begin, api) = (Instant::now(), self.scene.api(kind));
        while !is(&api.get(name).await.unwrap()) {
            assert!(begin.elapsed() < PATIENCE, "{name} is not as it should be");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until `count` policies are Ready with accepted tags.
    async fn all_at(&self, count: usize, is: impl Fn(&str) -> bool) {
        let is_there = |object: &DynamicObject| {
            let tag = object.data["status"]["latestRef"]["tag"].as_str();
            kstatus(object) == "Current" && tag.is_some_and(&is)
        };
        self.all_are(count, is_there).await;
    }

    /// Waits until `count` policies are in an accepted state.
    async fn all_are(&self, count: usize, is: impl Fn(&DynamicObject) -> bool) {
        let (begin, api) = (Instant::now(), self.scene.api(Kind::Policy));
        loop {
            let found = api.list(&ListParams::default()).await.unwrap().items;
            let there = found.iter().filter(|object| is(object)).count();
            if there == count {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "{there} of {count} policies are there");
            // The more policies, the more a check costs.
            tokio::time::sleep(Duration::from_millis(20 + count as u64 / 4)).await;
        }
    }

    /// Measures a time without changes, and again after a restart.
    async fn rest_and_restart(&self, program: &Path, process: Measured, time: Duration) {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let row = self.row(&process);
        tokio::time::sleep(time).await;
        row.print(&format!("nothing to do, for {} s", time.as_secs()));
        process.end();
        let process = Measured::start(program, &self.scene).await;
        let row = self.row(&process);
        tokio::time::sleep(time).await;
        row.print(&format!("after a restart, from its beginning, for {} s", time.as_secs()));
        process.end();
    }

    fn row<'a>(&'a self, process: &'a Measured) -> Row<'a> {
        process.forget_peak();
        let requests = self.requests();
        Row { field: self, process, begin: Instant::now(), cpu: process.cpu_seconds(), requests }
    }

    /// Returns the numbers of requests to the registry and to the API server, without watches.
    fn requests(&self) -> [usize; 2] {
        let audit = self.scene.cluster.audit("tagboat");
        [self.catalog.requests(), audit.iter().filter(|request| request.verb != "watch").count()]
    }
}

/// A measurement, from its start on.
struct Row<'a> {
    field: &'a Field,
    process: &'a Measured,
    begin: Instant,
    cpu: f64,
    requests: [usize; 2],
}

impl Row<'_> {
    fn print(self, what: &str) {
        let Row { field, process, begin, cpu, requests } = self;
        let (seconds, cpu) = (begin.elapsed().as_secs_f64(), process.cpu_seconds() - cpu);
        let (peak, now) = (process.peak_megabytes(), field.requests());
        let [registry, server] = [0, 1].map(|place: usize| now[place] - requests[place]);
        println!("| {what} | {seconds:.2} | {cpu:.2} | {peak:.0} | {registry} | {server} |");
    }
}
