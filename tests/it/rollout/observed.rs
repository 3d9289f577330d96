//! The assessments of all versions of one object.

use std::fmt::Debug;
use std::time::Duration;

use futures::StreamExt;
use kube::Resource;
use kube::api::Api;
use kube::core::NamespaceResourceScope;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher;
use serde::de::DeserializeOwned;
use tagboat::rollout::assess::{
    Assessment, Counts, PreviousState, Progress, daemon_set, deployment, job, stateful_set,
};
use tagboat::rollout::objects::{CronJob, DaemonSet, Deployment, Job, PodSpec, StatefulSet};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::support::workloads::WorkloadCluster;

/// A kind with an assessment.
pub(super) trait Assessed:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug + Send + 'static
{
    fn pods(&self) -> &PodSpec;

    fn assess(&self, was_complete: bool) -> Assessment;
}

fn state(was_complete: bool) -> PreviousState {
    if was_complete { PreviousState::Complete } else { PreviousState::Incomplete }
}

impl Assessed for Deployment {
    fn pods(&self) -> &PodSpec {
        &self.spec.get().unwrap().template.spec
    }

    fn assess(&self, was_complete: bool) -> Assessment {
        deployment::assess(self, state(was_complete))
    }
}

impl Assessed for StatefulSet {
    fn pods(&self) -> &PodSpec {
        &self.spec.get().unwrap().template.spec
    }

    fn assess(&self, was_complete: bool) -> Assessment {
        stateful_set::assess(self, state(was_complete))
    }
}

impl Assessed for DaemonSet {
    fn pods(&self) -> &PodSpec {
        &self.spec.get().unwrap().template.spec
    }

    fn assess(&self, was_complete: bool) -> Assessment {
        daemon_set::assess(self, state(was_complete))
    }
}

impl Assessed for Job {
    fn pods(&self) -> &PodSpec {
        &self.spec.get().unwrap().template.spec
    }

    fn assess(&self, _was_complete: bool) -> Assessment {
        job::assess(self)
    }
}

impl Assessed for CronJob {
    fn pods(&self) -> &PodSpec {
        &self.spec.get().unwrap().job_template.spec.template.spec
    }

    fn assess(&self, _was_complete: bool) -> Assessment {
        Assessment::complete(Counts::default(), None)
    }
}

/// A watched object, with a line for each of its versions.
///
/// A line has the tag of the image, the progress, the desired, updated and ready pods, and the message:
/// `2.0.0 in progress 3/1/3 pods of the current template: 1 of 3`.
pub(super) struct Observed {
    name: String,
    lines: watch::Receiver<Vec<String>>,
    /// The number of lines before those that the next call of `until` returns.
    read: usize,
    task: JoinHandle<()>,
}

impl Observed {
    /// Watches the object of a name, before it exists.
    pub(super) fn start<K: Assessed>(cluster: &WorkloadCluster, name: &str) -> Self {
        let (sender, lines) = watch::channel(Vec::new());
        let api: Api<K> = Api::default_namespaced(cluster.client());
        let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let task = tokio::spawn(async move {
            let mut versions = watcher(api, config).default_backoff().applied_objects().boxed();
            let mut completed = None;
            while let Some(version) = versions.next().await {
                let version = version.unwrap();
                let image = version.pods().images().next().unwrap_or_default().to_owned();
                let assessment = version.assess(completed.as_ref() == Some(&image));
                completed = (assessment.progress == Progress::Complete).then(|| image.clone());
                let tag = image.rsplit(':').next().unwrap_or_default();
                sender.send_modify(|lines| lines.push(format!("{tag} {}", summary(&assessment))));
            }
        });
        Self { name: name.to_owned(), lines, read: 0, task }
    }

    /// Waits for a line that begins with `expected`, and returns the lines before it.
    /// Lines that a former call has returned or waited for do not count.
    pub(super) async fn until(&mut self, expected: &str) -> Vec<String> {
        let read = self.read;
        let position = |lines: &[String]| lines[read..].iter().position(|line| line.starts_with(expected));
        let mut lines = self.lines.clone();
        let found = lines.wait_for(|lines| position(lines).is_some());
        let result = tokio::time::timeout(Duration::from_secs(60), found).await;
        let result = result.map(|lines| lines.unwrap().clone());
        let Ok(lines) = result else {
            panic!("{} is never {expected:?}: {:#?}", self.name, &self.lines.borrow()[read..]);
        };
        let length = position(&lines).expect("the condition of the wait holds");
        self.read = read + length + 1;
        lines[read..read + length].to_vec()
    }

    /// Waits for a line that begins with `expected`.
    /// All lines before it must begin with `before`.
    pub(super) async fn only(&mut self, before: &str, expected: &str) {
        let lines = self.until(expected).await;
        let other = lines.iter().find(|line| !line.starts_with(before));
        assert_eq!(other, None, "{} before {expected:?}: {lines:#?}", self.name);
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An assessment as one line, without the time.
pub(super) fn summary(assessment: &Assessment) -> String {
    let Assessment { progress, counts: Counts { desired, updated, ready, .. }, message, .. } = assessment;
    let counts = format!("{desired}/{updated}/{ready}");
    match progress {
        Progress::Complete => format!("complete {counts}"),
        Progress::InProgress => format!("in progress {counts} {}", message.as_deref().unwrap_or("-")),
        Progress::Failed(failure) => format!("failed {counts} {}: {}", failure.code, failure.message),
    }
}
