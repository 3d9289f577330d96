//! Benchmarks pull requests of many automations in one repository.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::join_all;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::forge_limits;
use crate::process::Measured;
use crate::scene::{Kind, Scene, condition, kstatus, line};
use crate::support::bare_repository::BareRepository;
use crate::support::content::{Change, file};
use crate::support::forges::hub::Hub;
use crate::support::git_host::{Access, GitHost, Operation, Settings};
use crate::support::gitea::GiteaRepository;
use crate::support::http_front::{Front, Reply};

/// The timeout of each wait; the limits of GitHub need minutes.
const PATIENCE: Duration = Duration::from_secs(900);

/// The head of the printed table.
const HEAD: &str = "| | seconds | CPU s | peak MB | git: listings, fetches, pushes | API: reads, writes, refused |\n|---|---|---|---|---|---|";

/// The arguments for a public forge, whose limits the test server has.
const PUBLIC: [&str; 1] = ["--forge-writes-per-minute=60"];

/// The requests to a forge and its git server.
trait Counts {
    /// Listings, fetches and pushes; calls that read, write and were refused.
    fn counts(&self) -> [usize; 6];
}

/// Automations with one policy, one file and one pull request each.
struct Fleet {
    scene: Scene,
    members: Vec<String>,
}

fn files(namespace: &str, members: &[String]) -> Vec<Change> {
    members.iter().map(|name| file(format!("apps/{name}.yaml"), line(namespace, name, "1.0.0"))).collect()
}

impl Fleet {
    async fn new(members: usize) -> Self {
        let members = (0..members).map(|number| format!("m{number:03}")).collect();
        Self { scene: Scene::new(&[]).await, members }
    }

    fn namespace(&self) -> &str {
        self.scene.cluster.namespace()
    }

    async fn create(&self, url: &str, annotations: Value) {
        let spec = json!({
            "url": url, "interval": "1m", "timeout": "5m", "ref": {"branch": "main"}, "secretRef": {"name": "git"},
        });
        self.scene.create(Kind::Source, "pulls", &spec).await;
        let patch = json!({"metadata": {"annotations": annotations}});
        self.scene.patch(Kind::Source, "pulls", &patch).await;
        let delivery = json!({"metadata": {
            "labels": {"tenant": self.namespace()}, "annotations": {"tagboat.dev/delivery": "pull-request"},
        }});
        for member in &self.members {
            self.scene.create_policy(member, "1.0.0").await;
            let mut spec = Scene::spec(member);
            spec["interval"] = json!("1m");
            spec["sourceRef"]["name"] = json!("pulls");
            spec["git"].as_object_mut().unwrap().remove("push");
            spec["suspend"] = json!(true);
            self.scene.create(Kind::Automation, member, &spec).await;
            self.scene.patch(Kind::Automation, member, &delivery).await;
            let start = json!({"spec": {"suspend": false}});
            self.scene.patch(Kind::Automation, member, &start).await;
        }
    }

    async fn choose_all(&self, tag: &str) {
        join_all(self.members.iter().map(|member| self.scene.choose(member, tag))).await;
    }

    /// Waits until every automation is Ready, and its condition `Delivery` has a text.
    async fn all(&self, tag: &str, text: &str) {
        let (begin, api) = (Instant::now(), self.scene.api(Kind::Automation));
        loop {
            let found = api.list(&ListParams::default()).await.unwrap().items;
            let is_there = |object: &kube::core::DynamicObject| {
                let status = &object.data["status"];
                let mut policies = status["observedPolicies"].as_object().into_iter().flatten();
                kstatus(object) == "Current"
                    && policies.any(|(_, image)| image["tag"] == tag)
                    && condition(status, "Delivery")
                        .is_some_and(|found| found["message"].as_str().unwrap().contains(text))
            };
            let left: Vec<_> = found.iter().filter(|object| !is_there(object)).collect();
            if left.is_empty() {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "{} are not there: {:#}", left.len(), left[0].data["status"]);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Sets the freeze of the Namespace, or ends it.
    async fn freeze(&self, reason: Value) {
        let api: Api<Namespace> = Api::all(self.scene.cluster.client());
        let patch = json!({"metadata": {"annotations": {"tagboat.dev/freeze": reason}}});
        api.patch(self.namespace(), &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Waits until the status of every automation says that it waits.
    async fn all_wait(&self) {
        let api = self.scene.api(Kind::Automation);
        let waits = |object: &kube::core::DynamicObject| {
            condition(&object.data["status"], "UpdatesWaiting").is_some_and(|found| found["status"] == "True")
        };
        while !api.list(&ListParams::default()).await.unwrap().items.iter().all(waits) {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Waits until each automation has its branch.
    async fn all_pushed<S: Server>(&self, server: &S) {
        let begin = Instant::now();
        while server.branches().await < self.members.len() {
            assert!(begin.elapsed() < PATIENCE, "the branches are pushed");
            tokio::time::sleep(S::POLL).await;
        }
    }

    /// Measures everything that both forges have in common.
    ///
    /// Returns the seconds from the new images until all pull requests are open.
    async fn measure<S: Server>(&self, program: &Path, arguments: &[&str], server: &S) -> f64 {
        println!("{HEAD}");
        let members = self.members.len();
        let process = Measured::start_with(program, &self.scene, arguments).await;
        self.all("1.0.0", "no pull request is open").await;

        let row = Row::new(&process, server);
        let begin = Instant::now();
        self.choose_all("2.0.0").await;
        self.all_pushed(server).await;
        row.print(&format!("{members} new images: until all branches are pushed"));
        while server.open().await < members {
            assert!(begin.elapsed() < PATIENCE, "the pull requests are opened");
            tokio::time::sleep(S::POLL).await;
        }
        let opened = begin.elapsed().as_secs_f64();
        row.print("the same: until all pull requests are open");
        println!("from the first call that opens one until the last is open: {:.1} s", server.opening());
        self.all("2.0.0", "1 open: #").await;

        let row = Row::new(&process, server);
        self.choose_all("3.0.0").await;
        self.all("3.0.0", "1 open: #").await;
        let begin = Instant::now();
        while server.refreshed().await < members {
            assert!(begin.elapsed() < PATIENCE, "the pull requests are refreshed");
            tokio::time::sleep(S::POLL).await;
        }
        row.print(&format!("{members} new images: until all pull requests are refreshed"));

        // After one interval, all automations reconcile together.
        tokio::time::sleep(Duration::from_secs(75)).await;
        let row = Row::new(&process, server);
        tokio::time::sleep(Duration::from_secs(60)).await;
        row.print("nothing to do, for a minute");

        process.end();
        std::fs::remove_dir_all(self.scene.root().join("temporary")).unwrap();
        let process = Measured::start_with(program, &self.scene, arguments).await;
        let row = Row::new(&process, server);
        tokio::time::sleep(Duration::from_secs(75)).await;
        self.all("3.0.0", "1 open: #").await;
        row.print("a start without state, and 75 seconds");
        process.end();
        opened
    }
}

/// A forge, with the branches and pull requests that it has.
trait Server: Counts {
    /// The time between two questions, which must not slow the server down.
    const POLL: Duration;

    async fn branches(&self) -> usize;
    async fn open(&self) -> usize;
    /// The number of pull requests that name the newest image.
    async fn refreshed(&self) -> usize;
    /// The seconds between the first call that opens a pull request and now.
    fn opening(&self) -> f64;
}

/// A measurement, from its start on.
struct Row<'a, S> {
    process: &'a Measured,
    server: &'a S,
    begin: Instant,
    cpu: f64,
    counts: [usize; 6],
}

impl<'a, S: Counts> Row<'a, S> {
    fn new(process: &'a Measured, server: &'a S) -> Self {
        process.forget_peak();
        let (cpu, counts) = (process.cpu_seconds(), server.counts());
        Self { process, server, begin: Instant::now(), cpu, counts }
    }

    fn print(&self, what: &str) {
        let seconds = self.begin.elapsed().as_secs_f64();
        let (cpu, peak) = (self.process.cpu_seconds() - self.cpu, self.process.peak_megabytes());
        let now = self.server.counts();
        let [listings, fetches, pushes, reads, writes, refused] =
            [0, 1, 2, 3, 4, 5].map(|place: usize| now[place] - self.counts[place]);
        println!(
            "| {what} | {seconds:.1} | {cpu:.2} | {peak:.0} | {listings}, {fetches}, {pushes} | {reads}, {writes}, {refused} |"
        );
    }
}

/// Gitea behind a front that counts.
struct Gitea {
    forge: GiteaRepository,
    front: Front,
    first: Arc<Mutex<Option<Instant>>>,
    refused: Arc<AtomicUsize>,
}

impl Counts for Gitea {
    fn counts(&self) -> [usize; 6] {
        let mut counts = [0; 6];
        for request in self.front.requests() {
            let is = |end: &str| request.path.ends_with(end);
            let place = if is("/info/refs") {
                if !request.query.ends_with("git-upload-pack") {
                    continue;
                }
                0
            } else if is("/git-upload-pack") {
                if memchr::memmem::find(&request.body, b"command=ls-refs").is_some() {
                    continue;
                }
                1
            } else if is("/git-receive-pack") {
                2
            } else if request.method == "GET" {
                3
            } else {
                4
            };
            counts[place] += 1;
        }
        counts[5] = self.refused.load(Ordering::Relaxed);
        counts
    }
}

impl Gitea {
    async fn pulls(&self) -> Vec<Value> {
        let mut all = Vec::new();
        for page in 1.. {
            let path = format!("pulls?state=open&limit=50&page={page}");
            let found = self.forge.call("GET", &path, Value::Null).await;
            let found = found.as_array().unwrap();
            all.extend(found.clone());
            if found.len() < 50 {
                break;
            }
        }
        all
    }
}

impl Server for Gitea {
    const POLL: Duration = Duration::from_millis(500);

    async fn branches(&self) -> usize {
        let mut command = crate::support::git_program::git(Path::new("/"));
        command.args(["ls-remote", &with_login(&self.forge), "refs/heads/tagboat/*"]);
        crate::support::program::run(&mut command).output.lines().count()
    }

    async fn open(&self) -> usize {
        let path = format!("repos/{}/{}", crate::support::gitea::OWNER, self.forge.name);
        let found = self.forge.wire.call("GET", &path, Value::Null).await;
        usize::try_from(found["open_pr_counter"].as_u64().unwrap()).unwrap()
    }

    async fn refreshed(&self) -> usize {
        let is_new = |pull: &&Value| pull["title"].as_str().unwrap().contains("3.0.0");
        self.pulls().await.iter().filter(is_new).count()
    }

    fn opening(&self) -> f64 {
        self.first.lock().unwrap().unwrap().elapsed().as_secs_f64()
    }
}

fn with_login(forge: &GiteaRepository) -> String {
    forge.url().replace("http://", &format!("http://bot:{}@", GiteaRepository::token()))
}

/// Opens pull requests by bare calls, and returns the seconds.
///
/// Four run at a time, as in the controller.
async fn bare_loop(address: &str, forge: &GiteaRepository, branches: &[String]) -> f64 {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("http://{address}/api/v1/repos/bot/{}/pulls", forge.name);
    let (begin, next) = (Instant::now(), AtomicUsize::new(0));
    join_all((0..4).map(async |_| {
        while let Some(branch) = branches.get(next.fetch_add(1, Ordering::Relaxed)) {
            let body =
                json!({"head": branch, "base": "main", "title": branch, "body": "A table.\n".repeat(20)});
            let request = client.post(&url).header("Content-Type", "application/json").body(body.to_string());
            let login = format!("token {}", GiteaRepository::token());
            let answer = request.header("Authorization", login).send().await.unwrap();
            assert_eq!(answer.status().as_u16(), 201);
            answer.text().await.unwrap();
        }
    }))
    .await;
    begin.elapsed().as_secs_f64()
}

/// A repository of Gitea with these files, and the branches of the bare loop.
///
/// Also returns the seconds of their push.
async fn repository(name: &str, files: &[Change], branches: &[String]) -> (GiteaRepository, f64) {
    let forge = GiteaRepository::new(name).await;
    let directory = tempfile::tempdir().unwrap();
    let local = BareRepository::with_files(&directory.path().join("local.git"), files);
    for branch in branches {
        local.move_branch(branch, &local.id("main").unwrap());
        local.commit(branch, "Update", &[file(format!("{branch}.yaml"), "tag: 2\n")]);
    }
    let url = with_login(&forge);
    local.git(["push", "--quiet", "--force", &url, "refs/heads/main"]);
    let begin = Instant::now();
    if !branches.is_empty() {
        local.git(["push", "--quiet", "--force", &url, "refs/heads/bare/*:refs/heads/bare/*"]);
    }
    (forge, begin.elapsed().as_secs_f64())
}

/// Pull requests at the real Gitea, beside a loop of bare calls.
pub(crate) async fn at_gitea(program: &Path, members: usize) {
    println!("Pull requests at Gitea\n");
    let fleet = Fleet::new(members).await;
    let branches: Vec<String> = (0..members).map(|number| format!("bare/b{number:03}")).collect();
    let all = files(fleet.namespace(), &fleet.members);
    let (bare, pushing) = repository("bare", &all, &branches).await;
    let (forge, _) = repository("fleet", &all, &[]).await;
    let first = Arc::<Mutex<Option<Instant>>>::default();
    let noted = Arc::clone(&first);
    let opening = format!("/{}/pulls", forge.name);
    let front = Front::before(forge.port(), move |request| {
        if request.method == "POST" && request.path.ends_with(&opening) {
            noted.lock().unwrap().get_or_insert_with(Instant::now);
        }
        Reply::Forward
    });
    let alone = bare_loop(&front.address(), &bare, &branches).await;
    println!(
        "a bare push of {members} branches: {pushing:.1} s; {members} bare calls, four at a time: {alone:.1} s\n"
    );
    let login = [("username", "bot"), ("password", GiteaRepository::token())];
    fleet.scene.create_secret(fleet.namespace(), "git", &login).await;
    let url = forge.url().replace(&format!("127.0.0.1:{}", forge.port()), &front.address());
    fleet.create(&url, json!({"tagboat.dev/forge": "gitea"})).await;
    let server = Gitea { forge, front, first, refused: Arc::default() };
    let opened = fleet.measure(program, &["--forge-writes-per-minute=60000"], &server).await;
    println!(
        "until all pull requests are open: {:.2} times the bare calls, {:.2} times the bare push and calls",
        opened / alone,
        opened / (pushing + alone)
    );
}

/// The test server of GitHub with its limits.
struct Github {
    hub: Arc<Hub>,
    front: Front,
    git: GitHost,
    limits: Arc<Mutex<forge_limits::Limits>>,
    begin: Instant,
}

impl Counts for Github {
    fn counts(&self) -> [usize; 6] {
        // With protocol 2, a listing is a request to the same address as a fetch.
        let of = |operation| {
            let records = self.git.requests_for(operation).into_iter();
            records.filter(|record| record.request.command.as_deref() != Some("ls-refs")).count()
        };
        let calls = self.front.requests();
        let reads = calls.iter().filter(|request| request.method == "GET").count();
        let refused = self.limits.lock().unwrap().refused;
        let git = [Operation::ListForFetch, Operation::Fetch, Operation::Push].map(of);
        [git[0], git[1], git[2], reads, calls.len() - reads, refused]
    }
}

impl Server for Github {
    const POLL: Duration = Duration::from_millis(20);

    async fn branches(&self) -> usize {
        let refs = self.hub.repository.git(["for-each-ref", "--format=%(refname)", "refs/heads/tagboat/"]);
        String::from_utf8(refs).unwrap().lines().count()
    }

    async fn open(&self) -> usize {
        self.hub.pulls().len()
    }

    async fn refreshed(&self) -> usize {
        self.hub.pulls().iter().filter(|pull| pull.title.contains("3.0.0")).count()
    }

    fn opening(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }
}

/// A fleet at a plain git server and a GitHub with its limits.
async fn github_fleet(members: usize) -> (Fleet, Github) {
    let fleet = Fleet::new(members).await;
    let hub = Hub::new();
    hub.repository.commit("main", "Fleet", &files(fleet.namespace(), &fleet.members));
    let served = hub.repository.path().parent().unwrap().to_owned();
    symlink(".", served.join("acme")).unwrap();
    let git = GitHost::start(&served, Settings { access: Access::Anonymous, tls: None });
    let (front, limits) = forge_limits::serve(&hub);
    let namespace = fleet.namespace().to_owned();
    fleet.scene.create_secret(&namespace, "git", &[("username", "git"), ("password", "none")]).await;
    fleet.scene.create_secret(&namespace, "forge", &[("token", "test-token")]).await;
    let annotations = json!({
        "tagboat.dev/forge": "github", "tagboat.dev/forge-url": front.url("/api/v3"), "tagboat.dev/forge-secret": "forge",
    });
    fleet.create(&git.url("acme/fleet.git"), annotations).await;
    (fleet, Github { hub, front, git, limits, begin: Instant::now() })
}

/// The branches of many pull requests at a plain git server.
///
/// They become ready one after another, or all in one moment.
pub(crate) async fn branches(program: &Path, members: usize) {
    println!("Branches of pull requests at a plain git server\n\n{HEAD}");
    for is_at_once in [false, true] {
        let (fleet, server) = github_fleet(members).await;
        let selector = format!("--watch-label-selector=tenant={}", fleet.namespace());
        let process = Measured::start_everywhere(program, &fleet.scene, &[&selector, PUBLIC[0]]);
        fleet.all("1.0.0", "no pull request is open").await;
        if is_at_once {
            fleet.freeze(json!("release")).await;
            fleet.choose_all("2.0.0").await;
            fleet.all_wait().await;
        }
        let row = Row::new(&process, &server);
        let what = if is_at_once {
            fleet.freeze(Value::Null).await;
            "a freeze ends for"
        } else {
            fleet.choose_all("2.0.0").await;
            "one after another,"
        };
        let changed = row.begin.elapsed().as_secs_f64();
        fleet.all_pushed(&server).await;
        row.print(&format!("{what} {members} new images (in {changed:.1} s): until all branches are pushed"));
        process.end();
    }
}

/// Pull requests at a test server of GitHub with its limits.
pub(crate) async fn at_github(program: &Path, members: usize) {
    println!("Pull requests at a test server of GitHub with its limits\n");
    let (fleet, server) = github_fleet(members).await;
    fleet.measure(program, &PUBLIC, &server).await;
    let unchanged = server.limits.lock().unwrap().unchanged;
    println!("answers without a body, because nothing had changed: {unchanged}");
}
