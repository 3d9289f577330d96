//! Benchmarks the reports of rollouts: many workloads, many changes, and a long page.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use serde_json::{Value, json};
use tagboat_api::DeploymentStatus;
use tagboat_api::deployment_status::State;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::process::{Measured, Row};
use crate::scene::{Kind, Scene, kstatus};
use crate::support::api_server::{ApiServer, apply};
use crate::support::bare_repository::BareRepository;
use crate::support::content::file;

/// The timeout of each wait.
const PATIENCE: Duration = Duration::from_secs(300);

/// The number of requests that are made concurrently.
const AT_ONCE: usize = 16;

/// The size of a workload, in bytes.
const WORKLOAD_BYTES: usize = 6_000;

/// The number of changes per second.
const CHANGES: u32 = 200;

/// The time between the two changes of one workload.
const HALF: Duration = Duration::from_secs(5);

/// The roles of a program that reports rollouts.
const ROLES: [&str; 3] = ["rbac/cluster-role.yaml", "rbac/role.yaml", "rollout/cluster-role.yaml"];

/// The head of the printed table.
pub(crate) const HEAD: &str = "| | seconds | CPU s | peak MB |\n|---|---|---|---|";

/// Runs all benchmarks, at sizes divided by `part`.
pub(crate) async fn measure(program: &Path, part: usize) {
    let fleet = Fleet::new(5_000 / part, 200 / part).await;
    println!("{HEAD}");
    let process = fleet.start(program, &["--rollout=false"]).await;
    let row = Row::new(&process);
    fleet.all_ready().await;
    sleep(Duration::from_secs(20)).await;
    row.print("without the feature: from the start, and 20 s at rest");
    process.end();

    let process = fleet.start(program, &[]).await;
    let row = Row::new(&process);
    fleet.all_known().await;
    row.print(&format!(
        "{} workloads of {} policies among {}: from the start until all are known",
        fleet.workloads,
        fleet.policies,
        2 * fleet.workloads
    ));
    sleep(Duration::from_secs(20)).await;
    let row = Row::new(&process);
    sleep(Duration::from_secs(60)).await;
    row.print("nothing to do, for 60 s");
    changes(&fleet, &process, Duration::from_secs(30)).await;
    process.end();
    page(program, &fleet.scene, 500 / part).await;
}

/// Changes the states of workloads, beside a bare watch of them.
async fn changes(fleet: &Fleet, process: &Measured, time: Duration) {
    let bare = Measured::start_bare_watch(&fleet.scene);
    sleep(Duration::from_secs(5)).await;
    let latencies = Latencies::follow(fleet);
    sleep(Duration::from_secs(2)).await;
    let (row, bare_row) = (Row::new(process), Row::new(&bare));
    let begin = Instant::now();
    let mut tick = interval(Duration::from_secs(1) / CHANGES);
    tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let pairs = usize::try_from(CHANGES / 2).unwrap() * usize::try_from(HALF.as_secs()).unwrap();
    let steps = usize::try_from(CHANGES).unwrap() * usize::try_from(time.as_secs()).unwrap();
    let made = futures::stream::unfold((tick, 0), |(mut tick, step)| async move {
        tick.tick().await;
        Some((step, (tick, step + 1)))
    })
    .take(steps)
    .map(|step| {
        // Half of a round begins rollouts, and the other half ends the same ones.
        let (round, at) = (step / (2 * pairs), step % (2 * pairs));
        let workload = (round * pairs + at % pairs) * 7 % fleet.workloads;
        latencies.change(fleet, workload, at < pairs)
    })
    .buffer_unordered(AT_ONCE)
    .count()
    .await;
    let seconds = begin.elapsed().as_secs_f64();
    sleep(Duration::from_secs(5)).await;
    row.print(&format!("{:.0} changes of a state per second, for {seconds:.0} s", made as f64 / seconds));
    bare_row.print("a bare watch of the same Deployments meanwhile");
    latencies.print();
    bare.kill();
}

/// Requests the page and the list of many deployments.
async fn page(program: &Path, scene: &Scene, count: usize) {
    let client = scene.cluster.client();
    let namespace = scene.cluster.another_namespace().await;
    let api: Api<DeploymentStatus> = Api::namespaced(client, &namespace);
    let objects = (0..count).map(|number| {
        let (api, name) = (api.clone(), format!("app-{number}"));
        async move {
            let object = json!({
                "apiVersion": "tagboat.dev/v1alpha1", "kind": "DeploymentStatus", "metadata": {"name": name},
                "spec": {"policyRef": {"name": name}},
            });
            api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
            let status = Patch::Merge(json!({"status": status(&name)}));
            api.patch_status(&name, &PatchParams::default(), &status).await.unwrap();
        }
    });
    futures::stream::iter(objects).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let process = Measured::start_on(
        program,
        scene,
        &namespace,
        &["--rollout=false", "--controllers=automation", &format!("--status-addr={address}")],
    )
    .await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    for (path, what) in [("/", "page"), ("/api/v1/deployments", "JSON list")] {
        let url = format!("http://{address}{path}");
        let begin = Instant::now();
        let mut first = loop {
            match client.get(&url).send().await {
                Ok(response) if response.status() == 200 => break response.text().await.unwrap(),
                other => assert!(begin.elapsed() < PATIENCE, "{other:?}"),
            }
            sleep(Duration::from_millis(50)).await;
        };
        while !first.contains(&format!("app-{}", count - 1)) && path != "/" {
            assert!(begin.elapsed() < PATIENCE, "{} bytes", first.len());
            first = client.get(&url).send().await.unwrap().text().await.unwrap();
        }
        let row = Row::new(&process);
        let mut times = Vec::new();
        for _ in 0..20 {
            let begin = Instant::now();
            let text = client.get(&url).send().await.unwrap().text().await.unwrap();
            assert!(text.len() >= first.len() / 2);
            times.push(begin.elapsed());
        }
        times.sort();
        row.print(&format!(
            "{what} of {count} deployments ({} kB), 20 times; median {} ms",
            first.len() / 1_000,
            times[10].as_millis()
        ));
    }
    process.end();
}

/// Returns the status of an installed deployment with one component.
fn status(name: &str) -> Value {
    let since = "2026-01-31T12:00:00Z";
    json!({
        "deploymentId": format!("5d1c0e9a-0000-4000-8000-{:012}", name.trim_start_matches("app-").parse::<u32>().unwrap()),
        "timeStamp": since, "state": "installed", "since": since, "progress": "2/2",
        "target": {"name": format!("ghcr.io/org/{name}"), "tag": "1.0.0"},
        "summary": {"total": 1, "failed": 0, "removing": 0, "installing": 0, "pending": 0, "removed": 0, "installed": 1},
        "components": [{
            "name": format!("Deployment/apps/{name}"), "state": "installed", "image": format!("ghcr.io/org/{name}:1.0.0"),
            "desired": 2, "updated": 2, "ready": 2, "since": since, "automation": "apps", "place": "apps.yaml:12", "tie": "object",
        }],
    })
}

/// Policies with workloads, as many other workloads, and one automation.
struct Fleet {
    scene: Scene,
    workloads: usize,
    policies: usize,
}

impl Fleet {
    async fn new(workloads: usize, policies: usize) -> Self {
        // The kind turns the feature on, so the server is not that of other benchmarks.
        let scene = Scene::on(Arc::new(ApiServer::start()), &[]).await;
        let definition = serde_json::to_value(tagboat_api::crds::rollout()).unwrap();
        apply(&scene.cluster.client(), &definition, false).await.unwrap();
        let fleet = Self { scene, workloads, policies };
        fleet.create_automation().await;
        let begin = Instant::now();
        futures::stream::iter((0..2 * workloads).map(|number| fleet.create_workload(number)))
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<()>>()
            .await;
        println!(
            "{} Deployments of {WORKLOAD_BYTES} bytes in {:.0} s\n",
            2 * workloads,
            begin.elapsed().as_secs_f64()
        );
        fleet
    }

    async fn create_automation(&self) {
        let namespace = self.scene.cluster.namespace();
        let mut files = Vec::new();
        for policy in 0..self.policies {
            let documents: String = (policy..self.workloads)
                .step_by(self.policies)
                .map(|number| {
                    document(number, &image(policy), &format!("{namespace}:{}", policy_name(policy)))
                })
                .collect();
            files.push(file(format!("{}.yaml", policy_name(policy)), documents));
            let spec = json!({"imageRepositoryRef": {"name": "app"}, "policy": {"semver": {"range": "*"}}});
            self.scene.create(Kind::Policy, &policy_name(policy), &spec).await;
            let status = json!({"status": {"latestRef": {"name": image(policy), "tag": "1.0.0"}}});
            let api = self.scene.api(Kind::Policy);
            api.patch_status(&policy_name(policy), &PatchParams::default(), &Patch::Merge(status))
                .await
                .unwrap();
        }
        let place = self.scene.root().join("served/rollout.git");
        BareRepository::with_files(&place, &files);
        let url = self.scene.host.url("rollout.git");
        let source = json!({"url": url, "interval": "10m", "ref": {"branch": "main"}});
        self.scene.create(Kind::Source, "rollout", &source).await;
        let spec = json!({
            "interval": "10m",
            "sourceRef": {"kind": "GitRepository", "name": "rollout"},
            "git": {"commit": {"author": {"name": "bot", "email": "bot@example.com"}}, "push": {"branch": "main"}},
            "update": {"strategy": "Setters", "path": "./"},
        });
        self.scene.create(Kind::Automation, "rollout", &spec).await;
    }

    /// Creates a workload whose rollout is complete; the later half runs other images.
    async fn create_workload(&self, number: usize) {
        let is_other = number >= self.workloads;
        let image = if is_other { "ghcr.io/org/other".to_owned() } else { image(number % self.policies) };
        let padding: Vec<Value> = (0..WORKLOAD_BYTES / 100)
            .map(|index| json!({"name": format!("VARIABLE_{index:03}"), "value": "x".repeat(60)}))
            .collect();
        let name = workload_name(number);
        let object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {
                "replicas": 2, "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"containers": [{"name": "main", "image": format!("{image}:1.0.0"), "env": padding}]},
                },
            },
        });
        self.deployments()
            .create(&PostParams::default(), &serde_json::from_value(object).unwrap())
            .await
            .unwrap();
        self.set_status(number, true).await;
    }

    fn deployments(&self) -> Api<Deployment> {
        Api::namespaced(self.scene.cluster.client(), self.scene.cluster.namespace())
    }

    /// Writes a status as the Deployment controller does in a rollout or at its end.
    async fn set_status(&self, number: usize, is_complete: bool) {
        let time = "2026-01-31T12:00:00Z";
        let condition = |type_: &str, reason: &str| json!({"type": type_, "status": "True", "reason": reason, "lastUpdateTime": time, "lastTransitionTime": time});
        let (replicas, updated, reason) =
            if is_complete { (2, 2, "NewReplicaSetAvailable") } else { (3, 1, "ReplicaSetUpdated") };
        let status = json!({"status": {
            "observedGeneration": 1, "replicas": replicas, "updatedReplicas": updated, "readyReplicas": 2,
            "availableReplicas": 2,
            "conditions": [condition("Available", "MinimumReplicasAvailable"), condition("Progressing", reason)],
        }});
        let name = workload_name(number);
        self.deployments().patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    async fn start(&self, program: &Path, arguments: &[&str]) -> Measured {
        let arguments = [&["--controllers=automation"], arguments].concat();
        Measured::start_on(program, &self.scene, self.scene.cluster.namespace(), &arguments).await
    }

    fn statuses(&self) -> Api<DeploymentStatus> {
        Api::namespaced(self.scene.cluster.client(), self.scene.cluster.namespace())
    }

    async fn all_ready(&self) {
        let (begin, api) = (Instant::now(), self.scene.api(Kind::Automation));
        while !api
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .iter()
            .all(|object: &DynamicObject| kstatus(object) == "Current")
        {
            assert!(begin.elapsed() < PATIENCE, "not all automations are Ready");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until the statuses have all workloads, installed.
    async fn all_known(&self) {
        let begin = Instant::now();
        loop {
            let found = self.statuses().list(&ListParams::default()).await.unwrap().items;
            let summaries = found.iter().filter_map(|object| Some(object.status.as_ref()?.report.summary));
            let installed: i64 = summaries.map(|summary| summary.installed).sum();
            if usize::try_from(installed).unwrap() == self.workloads {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "{installed} workloads are installed");
            sleep(Duration::from_millis(200)).await;
        }
    }
}

/// The times from changes until a status has them.
struct Latencies {
    expected: Arc<Mutex<HashMap<String, (State, Instant)>>>,
    found: Arc<Mutex<Vec<Duration>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Latencies {
    /// Follows the statuses of a fleet.
    fn follow(fleet: &Fleet) -> Self {
        let expected = Arc::<Mutex<HashMap<String, (State, Instant)>>>::default();
        let found = Arc::<Mutex<Vec<Duration>>>::default();
        let (awaited, times) = (expected.clone(), found.clone());
        let mut changes = Box::pin(watcher(fleet.statuses(), watcher::Config::default()));
        let task = tokio::spawn(async move {
            while let Some(change) = changes.next().await {
                let Ok(watcher::Event::Apply(object)) = change else { continue };
                let (now, mut awaited) = (Instant::now(), awaited.lock().unwrap());
                for component in object.status.into_iter().flat_map(|status| status.report.components) {
                    if let Some((state, since)) = awaited.get(&component.name).copied()
                        && state == component.state
                    {
                        awaited.remove(&component.name);
                        times.lock().unwrap().push(now - since);
                    }
                }
            }
        });
        Self { expected, found, task }
    }

    /// Begins or ends the rollout of a workload.
    async fn change(&self, fleet: &Fleet, number: usize, is_begin: bool) {
        let component = format!("Deployment/{}/{}", fleet.scene.cluster.namespace(), workload_name(number));
        let state = if is_begin { State::Installing } else { State::Installed };
        fleet.set_status(number, !is_begin).await;
        self.expected.lock().unwrap().insert(component, (state, Instant::now()));
    }

    fn print(self) {
        self.task.abort();
        let (mut found, missed) =
            (std::mem::take(&mut *self.found.lock().unwrap()), self.expected.lock().unwrap().len());
        found.sort();
        let part = |percent: usize| found.get(found.len() * percent / 100).map_or(0.0, Duration::as_secs_f64);
        let within = |limit: u64| found.iter().filter(|time| **time <= Duration::from_secs(limit)).count();
        println!(
            "\n{} changes, of which {missed} were replaced by a later one or not seen: median {:.2} s, 99 % {:.2} s, within 1 s {:.1} %, \
             within 2 s {:.1} %\n\n{HEAD}",
            found.len() + missed,
            part(50),
            part(99),
            100.0 * within(1) as f64 / found.len().max(1) as f64,
            100.0 * within(2) as f64 / found.len().max(1) as f64,
        );
    }
}

/// Watches all Deployments and does nothing else, until killed.
pub(crate) async fn watch_bare(namespace: &str) {
    let client = kube::Client::try_default().await.unwrap();
    let api: Api<Deployment> = Api::namespaced(client, namespace);
    let mut changes = Box::pin(watcher(api, watcher::Config::default()));
    while changes.next().await.is_some() {}
}

fn policy_name(number: usize) -> String {
    format!("p{number:03}")
}

fn workload_name(number: usize) -> String {
    format!("w{number:05}")
}

fn image(policy: usize) -> String {
    format!("ghcr.io/org/{}", policy_name(policy))
}

fn document(number: usize, image: &str, marker: &str) -> String {
    let name = workload_name(number);
    format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\nspec:\n  template:\n    spec:\n      \
         containers:\n        - name: main\n          image: {image}:1.0.0 # {{\"$imagepolicy\": \"{marker}\"}}\n"
    )
}
