//! Jobs that succeed, fail and wait, and a CronJob whose Jobs fail.

use k8s_openapi::api::batch::v1::CronJob as CoreCronJob;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tagboat::rollout::assess::Progress;
use tagboat::rollout::assess::job::assess;
use tagboat::rollout::objects::{CronJob, Job};

use super::manifests::{change, create, job};
use super::observed::Observed;
use crate::support::eventually::eventually_found;
use crate::support::workloads::{PodState, WorkloadCluster};

async fn started(cluster: &WorkloadCluster, pods: PodState, spec: Value) -> Observed {
    cluster.kubelet().set_image("podinfo:1.0.0", pods);
    let observed = Observed::start::<Job>(cluster, "podinfo");
    create(cluster, &job(spec)).await;
    observed
}

#[tokio::test]
async fn a_job_is_complete_when_its_pods_have_succeeded() {
    let cluster = WorkloadCluster::new().await;
    let mut podinfo = started(&cluster, PodState::Ready, json!({"completions": 2, "parallelism": 2})).await;
    podinfo.only("1.0.0 in progress 2/", "1.0.0 in progress 2/2/0 succeeded pods: 0 of 2").await;
    cluster.kubelet().set_image("podinfo:1.0.0", PodState::Succeeded);
    podinfo.only("1.0.0 in progress 2/", "1.0.0 complete 2/2/2").await;
}

#[tokio::test]
async fn a_failed_job_has_the_reason_of_its_controller() {
    let cluster = WorkloadCluster::new().await;
    let mut podinfo = started(&cluster, PodState::Failed(3), json!({"backoffLimit": 0})).await;
    let failed = "1.0.0 failed 1/0/0 BackoffLimitExceeded: Job has reached the specified backoff limit";
    podinfo.only("1.0.0 in progress 1/", failed).await;
}

#[tokio::test]
async fn a_job_fails_at_its_deadline() {
    let cluster = WorkloadCluster::new().await;
    let mut podinfo = started(&cluster, PodState::Ready, json!({"activeDeadlineSeconds": 1})).await;
    let failed = "1.0.0 failed 1/0/0 DeadlineExceeded: Job was active longer than specified deadline";
    podinfo.only("1.0.0 in progress 1/", failed).await;
}

#[tokio::test]
async fn a_suspended_job_is_in_progress() {
    let cluster = WorkloadCluster::new().await;
    let mut podinfo = started(&cluster, PodState::Succeeded, json!({"suspend": true})).await;
    podinfo.only("1.0.0 in progress 1/0/0 ", "1.0.0 in progress 1/0/0 Job suspended").await;
    change::<Job>(&cluster, json!({"suspend": false})).await;
    podinfo.only("1.0.0 in progress 1/", "1.0.0 complete 1/1/1").await;
}

#[tokio::test]
async fn a_cron_job_is_complete_while_its_jobs_fail() {
    let cluster = WorkloadCluster::new().await;
    cluster.kubelet().set_image("podinfo:1.0.0", PodState::Failed(3));
    let mut podinfo = Observed::start::<CronJob>(&cluster, "podinfo");
    let document = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "podinfo"},
        "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job(json!({"backoffLimit": 0}))["spec"]}},
    });
    create(&cluster, &document).await;
    podinfo.only("nothing", "1.0.0 complete 0/0/0").await;
    // The first of January was missed, so its Job starts now.
    let cron_jobs: Api<CoreCronJob> = Api::default_namespaced(cluster.client());
    let missed = Patch::Merge(json!({"status": {"lastScheduleTime": "2025-06-01T00:00:00Z"}}));
    cron_jobs.patch_status("podinfo", &PatchParams::default(), &missed).await.unwrap();
    let jobs: Api<Job> = Api::default_namespaced(cluster.client());
    let failed = eventually_found("the Job fails", async || {
        let assessed: Vec<_> = jobs.list(&ListParams::default()).await.unwrap().iter().map(assess).collect();
        assessed.into_iter().find(|assessment| matches!(assessment.progress, Progress::Failed(_)))
    })
    .await;
    assert_eq!(failed.message, None);
    let lines = podinfo.until("1.0.0 complete 0/0/0").await;
    assert_eq!(lines, [""; 0]);
}
