//! Benchmarks the nodes controller: many nodes, their heartbeats, and a few steps.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tagboat_api::{NodePool, crds};
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::process::{Measured, Row};
use crate::rollout::HEAD;
use crate::scene::Scene;
use crate::support::api_server::ApiServer;

/// The timeout of each wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// The number of requests that are made concurrently.
const AT_ONCE: usize = 16;

/// The number of heartbeats per second.
const HEARTBEATS: u32 = 200;

/// The number of nodes that are paused.
const STEPS: usize = 20;

/// Runs all benchmarks, at sizes divided by `part`.
pub(crate) async fn measure(program: &Path, part: usize) {
    let fleet = Fleet::new(5_000 / part).await;
    println!("{HEAD}");
    let namespace = fleet.scene.cluster.namespace();
    let process = Measured::start_on(program, &fleet.scene, namespace, &["--nodes=false"]).await;
    let row = Row::new(&process);
    sleep(Duration::from_secs(10)).await;
    row.print("without the feature: 10 s from the start");
    process.end();

    let process = Measured::start_on(program, &fleet.scene, namespace, &[]).await;
    let row = Row::new(&process);
    fleet.is_counted().await;
    row.print(&format!("{} nodes: from the start until the pool counts them", fleet.nodes));
    sleep(Duration::from_secs(10)).await;
    let row = Row::new(&process);
    sleep(Duration::from_secs(60)).await;
    row.print("nothing to do, for 60 s");
    fleet.heartbeats(&process, Duration::from_secs(30)).await;
    process.end();
}

/// A pool with all nodes of a server.
pub(crate) struct Fleet {
    pub(crate) scene: Scene,
    nodes: usize,
}

impl Fleet {
    pub(crate) async fn new(nodes: usize) -> Self {
        let server = Arc::new(ApiServer::start());
        server.install(&[crds::nodes()]);
        let fleet = Self { scene: Scene::on(server, &[]).await, nodes };
        let begin = Instant::now();
        stream::iter((0..nodes).map(|number| fleet.create_node(number)))
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<()>>()
            .await;
        let pool = json!({
            "apiVersion": "tagboat.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "workers"},
            "spec": {"nodeSelector": {"matchLabels": {"pool": "workers"}}, "image": {"ref": image()}},
        });
        let pools: Api<NodePool> = Api::all(fleet.scene.cluster.client());
        pools.create(&PostParams::default(), &serde_json::from_value(pool).unwrap()).await.unwrap();
        println!("{nodes} nodes of 12 kB in {:.0} s\n", begin.elapsed().as_secs_f64());
        fleet
    }

    fn api(&self) -> Api<Node> {
        Api::all(self.scene.cluster.client())
    }

    /// Creates a node that is up to date, with the images of a kubelet.
    async fn create_node(&self, number: usize) {
        let name = name(number);
        let node = json!({
            "metadata": {
                "name": name,
                "labels": {"pool": "workers", "tagboat.dev/state": "idle", "tagboat.dev/agent": "up-to-date"},
                "annotations": {
                    "tagboat.dev/desired-image": image(), "tagboat.dev/booted-digest": digest(),
                    "tagboat.dev/booted-version": "1.0", "tagboat.dev/last-deployed": digest(),
                    "tagboat.dev/last-deployed-at": "2026-01-01T00:00:00Z",
                },
            },
        });
        self.api().create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
        let images: Vec<Value> = (0..50)
            .map(|image| json!({"names": [format!("registry.example/{}/{image}", "x".repeat(180))], "sizeBytes": 1}))
            .collect();
        let status = json!({"images": images, "conditions": [ready(0)], "nodeInfo": {"bootID": "1"}});
        self.patch_status(number, &status).await;
    }

    async fn patch_status(&self, number: usize, status: &Value) {
        let patch = Patch::Merge(json!({"status": status}));
        self.api().patch_status(&name(number), &PatchParams::default(), &patch).await.unwrap();
    }

    pub(crate) async fn is_counted(&self) {
        let pools: Api<NodePool> = Api::all(self.scene.cluster.client());
        let begin = Instant::now();
        loop {
            let status = pools.get("workers").await.unwrap().status.unwrap_or_default();
            if usize::try_from(status.updated_count) == Ok(self.nodes) {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "{status:?}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Writes heartbeats of kubelets, and pauses nodes meanwhile.
    async fn heartbeats(&self, process: &Measured, time: Duration) {
        let row = Row::new(process);
        let begin = Instant::now();
        let mut tick = interval(Duration::from_secs(1) / HEARTBEATS);
        tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let count = usize::try_from(HEARTBEATS).unwrap() * usize::try_from(time.as_secs()).unwrap();
        let beats = stream::unfold((tick, 0), |(mut tick, step)| async move {
            tick.tick().await;
            Some((step, (tick, step + 1)))
        })
        .take(count)
        .map(|step| async move {
            self.patch_status(step % self.nodes, &json!({"conditions": [ready(step + 1)]})).await;
        })
        .buffer_unordered(AT_ONCE)
        .count();
        let (made, mut latencies) = tokio::join!(beats, self.pause_nodes(time));
        let seconds = begin.elapsed().as_secs_f64();
        row.print(&format!("{:.0} heartbeats per second, for {seconds:.0} s", made as f64 / seconds));
        latencies.sort_unstable();
        println!(
            "\n{STEPS} pauses meanwhile: a step followed after {:.3} s (median), at most {:.3} s\n",
            latencies[STEPS / 2].as_secs_f64(),
            latencies[STEPS - 1].as_secs_f64()
        );
    }

    /// Pauses nodes one after the other, and returns the times until their stages.
    async fn pause_nodes(&self, time: Duration) -> Vec<Duration> {
        let mut latencies = Vec::new();
        for number in 0..STEPS {
            sleep(time / u32::try_from(STEPS + 2).unwrap()).await;
            let pause = Patch::Merge(json!({"metadata": {"labels": {"tagboat.dev/pause": "true"}}}));
            self.api().patch(&name(number), &PatchParams::default(), &pause).await.unwrap();
            let begin = Instant::now();
            while self.api().get(&name(number)).await.unwrap().labels()["tagboat.dev/state"] != "paused" {
                assert!(begin.elapsed() < PATIENCE, "{}", name(number));
                sleep(Duration::from_millis(10)).await;
            }
            latencies.push(begin.elapsed());
        }
        latencies
    }
}

fn name(number: usize) -> String {
    format!("node-{number:05}")
}

fn digest() -> String {
    format!("sha256:{}", "1".repeat(64))
}

fn image() -> String {
    format!("quay.io/org/os@{}", digest())
}

/// Returns the condition of a node with another time of its heartbeat.
fn ready(step: usize) -> Value {
    let time = jiff::Timestamp::from_second(1_767_225_600 + i64::try_from(step).unwrap()).unwrap();
    json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "", "lastHeartbeatTime": time.to_string()})
}
