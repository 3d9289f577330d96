//! All clusters with a kubeconfig, kept up to date.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kube::Client;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use super::directory::{self, DirectoryError, Files};
use super::remote_cluster::{RemoteCluster, fingerprint};
use crate::error::chain;
use crate::metrics::Metrics;
use crate::objects::cluster::{ClusterError, PROBE_INTERVAL, Silence, probe};
use crate::secrets::Fingerprint;
use crate::tenancy::run_blocking;

/// The time between two reads of the directory.
const READ_INTERVAL: Duration = Duration::from_secs(5);

/// The time between two probes of a cluster that does not answer.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// The options of [`RemoteClusters`].
#[derive(Clone, Debug)]
pub struct RemoteClusterOptions {
    /// The directory with the kubeconfigs.
    pub directory: PathBuf,
    /// The name of Tagboat's own cluster, which no other can have.
    pub own_name: String,
}

/// The clusters with a kubeconfig. Clones share them.
#[derive(Clone)]
pub struct RemoteClusters {
    shared: Arc<Shared>,
}

struct Shared {
    options: RemoteClusterOptions,
    known: watch::Sender<BTreeMap<String, RemoteCluster>>,
    metrics: Metrics,
}

impl RemoteClusters {
    /// Reads the directory for the first time.
    ///
    /// # Errors
    ///
    /// If it cannot be listed.
    pub async fn open(options: RemoteClusterOptions, metrics: Metrics) -> Result<Self, DirectoryError> {
        let shared = Shared { options, known: watch::Sender::default(), metrics };
        let clusters = Self { shared: Arc::new(shared) };
        let files = clusters.read().await?;
        clusters.log_ignored(&files);
        clusters.update(files).await;
        Ok(clusters)
    }

    /// Returns the clusters by name, and a notice of each change.
    pub fn subscribe(&self) -> watch::Receiver<BTreeMap<String, RemoteCluster>> {
        self.shared.known.subscribe()
    }

    /// Reads the directory again and again, and probes all clusters, until dropped.
    pub async fn run(self) {
        let mut probes = Probes::default();
        let (mut ignored, mut failure) = (None, String::new());
        loop {
            probes.set(&self);
            self.measure();
            sleep(READ_INTERVAL).await;
            match self.read().await {
                Ok(files) => {
                    failure.clear();
                    if ignored.replace(files.ignored.clone()).is_some_and(|before| before != files.ignored) {
                        self.log_ignored(&files);
                    }
                    self.update(files).await;
                }
                Err(error) => {
                    let message = chain(&error);
                    if message != failure {
                        tracing::error!(error = message, "the kubeconfigs of clusters are not read again");
                        failure = message;
                    }
                }
            }
        }
    }

    async fn read(&self) -> Result<Files, DirectoryError> {
        let shared = self.shared.clone();
        run_blocking(move || directory::read(&shared.options.directory, &shared.options.own_name)).await
    }

    fn log_ignored(&self, files: &Files) {
        let directory = self.shared.options.directory.display();
        files.ignored.iter().for_each(|text| tracing::warn!(directory = %directory, "{text}"));
    }

    /// Replaces the clusters whose kubeconfig changed.
    async fn update(&self, files: Files) {
        let known = self.shared.known.borrow().clone();
        let is_known = |name: &String, kubeconfig| {
            known.get(name).is_some_and(|cluster| cluster.kubeconfig == kubeconfig)
        };
        let mut names = Vec::new();
        let mut changed = Vec::new();
        for (name, file) in files.files {
            names.push(name.clone());
            if !is_known(&name, fingerprint(&file)) {
                changed.push((name, file));
            }
        }
        // A kubeconfig may be large.
        let made = run_blocking(move || {
            let now = Timestamp::now();
            changed.into_iter().map(|(name, file)| (name, RemoteCluster::new(file, now))).collect::<Vec<_>>()
        });
        let made = made.await;
        let gone: Vec<String> = known.into_keys().filter(|name| names.binary_search(name).is_err()).collect();
        if made.is_empty() && gone.is_empty() {
            return;
        }
        for (name, cluster) in &made {
            match cluster.client() {
                Ok(_) => tracing::info!(cluster = name, "a cluster has a new kubeconfig"),
                Err(reason) => tracing::error!(cluster = name, "a cluster is not watched: {reason}"),
            }
        }
        for name in &gone {
            tracing::info!(cluster = name, "a cluster has no kubeconfig any more");
            self.shared.metrics.cluster_up(name, None);
        }
        self.shared.known.send_modify(|known| {
            gone.iter().for_each(|name| drop(known.remove(name)));
            known.extend(made);
        });
    }

    /// Sets the metrics of all clusters, which the end of reports removes.
    fn measure(&self) {
        for (name, cluster) in self.shared.known.borrow().iter() {
            self.shared.metrics.cluster_up(name, Some(cluster.down_since().is_none()));
        }
    }

    /// Records the answers of a cluster, unless it has another kubeconfig by now.
    fn set_down(&self, name: &str, kubeconfig: Fingerprint, since: Option<Timestamp>) {
        self.shared.known.send_if_modified(|known| {
            let cluster = known.get_mut(name).filter(|cluster| cluster.kubeconfig == kubeconfig);
            cluster.is_some_and(|cluster| {
                self.shared.metrics.cluster_up(name, Some(since.is_none()));
                cluster.set_down(since)
            })
        });
    }
}

/// Shows the names only.
impl fmt::Debug for RemoteClusters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.shared.known.borrow().keys()).finish()
    }
}

/// The probes of all clusters, which end when this is dropped.
#[derive(Default)]
struct Probes {
    running: BTreeMap<String, (Fingerprint, AbortHandle)>,
    tasks: JoinSet<()>,
}

impl Probes {
    /// Probes exactly the known clusters from now on.
    fn set(&mut self, clusters: &RemoteClusters) {
        while self.tasks.try_join_next().is_some() {}
        let known = clusters.shared.known.borrow().clone();
        self.running.retain(|name, (kubeconfig, task)| {
            let is_kept = known.get(name).is_some_and(|cluster| cluster.kubeconfig == *kubeconfig);
            if !is_kept {
                task.abort();
            }
            is_kept
        });
        for (name, cluster) in known {
            let Ok(client) = cluster.client().cloned() else { continue };
            if !self.running.contains_key(&name) {
                let kubeconfig = cluster.kubeconfig;
                let work = keep_probing(clusters.clone(), name.clone(), cluster, client);
                self.running.insert(name, (kubeconfig, self.tasks.spawn(work)));
            }
        }
    }
}

/// A problem of a cluster, as it is logged.
///
/// It is logged here only, once for the cluster, and not by the watches of its kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Problem {
    #[error("the cluster refuses the login of its kubeconfig")]
    RefusedLogin,
    #[error("the cluster does not answer")]
    Silence,
}

/// Returns the problem of a cluster after an answer to a probe.
///
/// `logged` is the one before, which lasts until the cluster answers: silence after a refused login is no news.
fn next_problem(
    logged: Option<Problem>,
    answer: &Result<(), ClusterError>,
    is_down: bool,
) -> Option<Problem> {
    match answer {
        Ok(()) => None,
        Err(error) if error.is_unauthorized() => Some(Problem::RefusedLogin),
        Err(_) => logged.or(is_down.then_some(Problem::Silence)),
    }
}

/// Probes a cluster until dropped.
async fn keep_probing(clusters: RemoteClusters, name: String, cluster: RemoteCluster, client: Client) {
    let mut silence = Silence::default();
    let mut logged = None;
    loop {
        let answer = probe(&client).await;
        if answer.is_ok() {
            cluster.answers().add();
        }
        let since = silence.after(answer.is_ok(), Instant::now(), Timestamp::now());
        let problem = next_problem(logged, &answer, since.is_some());
        if problem != logged {
            logged = problem;
            let error = answer.as_ref().err().map(ToString::to_string);
            match problem {
                None => tracing::info!(cluster = name, "the cluster answers again"),
                Some(problem) => tracing::warn!(cluster = name, error, "{problem}"),
            }
        }
        clusters.set_down(&name, cluster.kubeconfig, since);
        sleep(if answer.is_ok() { PROBE_INTERVAL } else { RETRY_INTERVAL }).await;
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn a_problem_is_logged_once_until_the_cluster_answers() {
        use Problem::{RefusedLogin, Silence};
        let refused = || {
            let status = Status::failure("Unauthorized", "Unauthorized").with_code(401);
            Err(ClusterError::Rejected(status.boxed()))
        };
        let silent = || Err(ClusterError::Timeout(Duration::from_secs(10)));
        let mut logged = None;
        for (answer, is_down, expected) in [
            (silent(), false, None),
            (silent(), true, Some(Silence)),
            (refused(), true, Some(RefusedLogin)),
            (silent(), true, Some(RefusedLogin)),
            (refused(), true, Some(RefusedLogin)),
            (Ok(()), false, None),
            (refused(), false, Some(RefusedLogin)),
            (silent(), false, Some(RefusedLogin)),
        ] {
            logged = next_problem(logged, &answer, is_down);
            assert_eq!(logged, expected, "{answer:?}");
        }
    }
}
