//! The controller as shipped, a victim and an attacker.

use std::future::Future;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::measures::{
    DELETED_WITHIN, HEALTHY_WITHIN, HealthProbe, MemorySampler, NOISE, RECONCILED_WITHIN, TIMEOUT,
    is_healthy, threads,
};
use super::server_pool::{OwnServer, remove_all_objects};
use super::tenant::Tenant;
use super::victim::Victim;
use crate::controller::pod::{Pod, PodSpec};
use crate::controller::scene::Kind;
use crate::support::api_server::Cluster;
use crate::support::workloads::install_kinds;

/// The flags of `deploy/deployment.yaml`.
const FLAGS: [&str; 4] =
    ["--watch-all-namespaces", "--log-level=info", "--log-encoding=json", "--enable-leader-election"];

/// The roles of the controller.
const ROLES: [&str; 2] = ["rbac/cluster-role.yaml", "rbac/role.yaml"];

/// A controller with two tenants. The fields are dropped in this order.
pub(super) struct Scene {
    memory: MemorySampler,
    pub(super) pod: Pod,
    pub(super) victim: Victim,
    pub(super) attacker: Tenant,
    kubeconfig: PathBuf,
    flags: Vec<String>,
    pub(super) cluster: Cluster,
    directory: TempDir,
    own: OwnServer,
}

impl Scene {
    /// Starts everything, and waits until the victim is Ready.
    pub(super) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts the controller with further flags.
    pub(super) async fn start_with(flags: &[&str]) -> Self {
        Self::start_as(flags, &ROLES).await
    }

    /// Starts everything with the kinds and the role for reports of rollouts.
    pub(super) async fn start_reporting() -> Self {
        Self::start_as(&[], &[ROLES[0], ROLES[1], "rollout/cluster-role.yaml"]).await
    }

    /// Starts the controller with further flags and some roles.
    async fn start_as(flags: &[&str], roles: &[&str]) -> Self {
        let own = OwnServer::take().await;
        if roles.len() > ROLES.len() {
            let server = own.server.clone();
            tokio::task::spawn_blocking(move || install_kinds(&server)).await.unwrap();
        }
        let cluster = Cluster::on(own.server.clone()).await;
        remove_all_objects(&cluster.client()).await;
        let directory = tempfile::tempdir().unwrap();
        let tenant = async |name: &str| {
            let namespace = cluster.another_namespace().await;
            Tenant::new(cluster.client(), namespace, directory.path().join(name))
        };
        let (victim, attacker) = (tenant("victim").await, tenant("attacker").await);
        let kubeconfig = cluster.kubeconfig(&cluster.token_with_roles(roles).await);
        let flags: Vec<String> = FLAGS.iter().chain(flags).map(|flag| (*flag).to_owned()).collect();
        let pod = spawn(&cluster, &kubeconfig, &directory, &flags, own.number);
        let memory = MemorySampler::start(pod.id());
        let victim = Victim::create(victim).await;
        let scene = Self { memory, pod, victim, attacker, kubeconfig, flags, cluster, directory, own };
        scene.victim.is_ready().await;
        scene
    }

    /// Ends the program as Kubernetes does, and starts it again with an empty disk.
    pub(super) async fn restart(&mut self) {
        let (status, _) = self.pod.terminate();
        assert_eq!(status, Some(0));
        std::fs::remove_dir_all(self.directory.path().join("temporary")).unwrap();
        self.pod = spawn(&self.cluster, &self.kubeconfig, &self.directory, &self.flags, self.own.number);
        self.memory = MemorySampler::start(self.pod.id());
        let begin = Instant::now();
        while !is_healthy(&self.pod.health) {
            assert!(begin.elapsed() < TIMEOUT, "the program does not start: {:#?}", self.pod.lines());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Probes `/healthz` every 50 ms during `something`.
    /// Asserts that each answer comes within a second.
    pub(super) async fn assert_healthy_while<T>(&self, something: impl Future<Output = T>) -> T {
        let probe = HealthProbe::start(&self.pod.health);
        let outcome = something.await;
        let record = tokio::task::spawn_blocking(|| probe.stop()).await.unwrap();
        println!("/healthz: {record:?}");
        assert!(record.longest <= HEALTHY_WITHIN, "/healthz took {:?}", record.longest);
        outcome
    }

    /// Pushes a new image of the victim's, and returns the time until its commit.
    /// Asserts that a commit with the image is pushed in time.
    pub(super) async fn victim_is_reconciled(&self) -> Duration {
        let time = self.victim.is_reconciled().await;
        println!("the victim was reconciled in {time:?}");
        assert!(time <= RECONCILED_WITHIN + NOISE, "the victim was reconciled in {time:?}");
        time
    }

    /// Deletes an object of the attacker's, and returns the time that this took.
    /// Asserts that the object loses its finalizer in time.
    pub(super) async fn delete_and_wait(&self, kind: Kind, name: &str) -> Duration {
        let time = self.attacker.delete(kind, name).await;
        println!("{name} was gone in {time:?}");
        assert!(time <= DELETED_WITHIN + NOISE, "{name} was gone in {time:?}");
        time
    }

    /// The anonymous memory of the program and its children, sampled every 20 ms.
    pub(super) fn memory(&self) -> &MemorySampler {
        &self.memory
    }

    /// Asserts that the anonymous memory was never above a number of bytes.
    /// It is the memory of the program and its children.
    pub(super) fn assert_memory_below(&self, bytes: u64) {
        let peak = self.memory.peak();
        println!("the peak of anonymous memory was {} MiB", peak >> 20);
        assert!(peak < bytes, "the peak of anonymous memory was {} MiB", peak >> 20);
    }

    /// The program's directory for temporary files, which contains the mirrors.
    pub(super) fn temporary(&self) -> PathBuf {
        self.directory.path().join("temporary")
    }

    /// The number of the program's threads.
    pub(super) fn threads(&self) -> u64 {
        threads(self.pod.id())
    }

    /// The lines that the program logged about an object of the attacker's.
    pub(super) fn lines_about(&self, name: &str) -> Vec<serde_json::Value> {
        let is_about = |line: &serde_json::Value| {
            line["name"] == name && line["namespace"].as_str() == Some(self.attacker.namespace())
        };
        self.pod.lines().into_iter().filter(is_about).collect()
    }
}

fn spawn(
    cluster: &Cluster,
    kubeconfig: &std::path::Path,
    directory: &TempDir,
    flags: &[String],
    cpu: usize,
) -> Pod {
    let arguments: Vec<&str> = flags.iter().map(String::as_str).collect();
    Pod::spawn(PodSpec {
        kubeconfig,
        namespace: cluster.namespace(),
        directory: directory.path(),
        environment: &[],
        arguments: &arguments,
        serves_status: false,
        cpu: Some(cpu % std::thread::available_parallelism().map_or(1, usize::from)),
    })
}
