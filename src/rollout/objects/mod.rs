//! Thin types of the watched kinds.
//!
//! Each has only the fields in use: a watch of 10,000 workloads keeps no pod template in memory but its images. All
//! other fields are ignored, of any type.
//!
//! | files | contents |
//! |---|---|
//! | `deployment`, `stateful_set`, `daemon_set`, `job`, `cron_job`, `pod` | kinds of Kubernetes |
//! | `argo_rollout`, `canary` | progressive delivery: Argo Rollouts and Flagger |
//! | `kustomization`, `helm_release`, `application` | appliers: Flux and Argo CD |
//! | `git_repository` | the source of a Kustomization: Flux |
//! | `generic` | an object of any other kind |
//! | `pod_template`, `pod_selector`, `condition` | parts that several kinds have |
//! | `metadata` | the kept labels and annotations |
//! | `readable` | a spec or status, or the reason why it cannot be read |
//! | `custom_kind` | `kube::Resource` for kinds without a type in k8s-openapi |

mod application;
mod argo_rollout;
mod canary;
mod condition;
mod cron_job;
mod custom_kind;
mod daemon_set;
mod deployment;
mod generic;
mod git_repository;
mod helm_release;
mod job;
mod kustomization;
mod metadata;
mod pod;
mod pod_selector;
mod pod_template;
mod readable;
mod stateful_set;

pub use application::{
    Application, ApplicationDestination, ApplicationHealth, ApplicationRevision, ApplicationSource,
    ApplicationSpec, ApplicationStatus, ApplicationSummary, ApplicationSync, Automated, Operation,
    OperationState, OperationSync, SyncPolicy,
};
pub use argo_rollout::{ArgoRollout, ArgoRolloutSpec, ArgoRolloutStatus};
pub use canary::{Canary, CanarySpec, CanaryStatus};
pub use condition::{Condition, find, is_true};
pub use cron_job::{CronJob, CronJobSpec, JobTemplate};
pub use daemon_set::{DaemonSet, DaemonSetSpec, DaemonSetStatus};
pub use deployment::{Deployment, DeploymentSpec, DeploymentStatus};
pub use generic::GenericObject;
pub use git_repository::{GitRepository, GitRepositorySpec};
pub use helm_release::{HelmRelease, HelmReleaseSpec, HelmReleaseStatus, ReleaseSnapshot};
pub use job::{Job, JobSpec, JobStatus};
pub use kustomization::{Kustomization, KustomizationSpec, KustomizationStatus, SourceReference};
pub use metadata::{KEPT_ANNOTATIONS, KEPT_LABELS, SKIP_RECONCILE};
pub use pod::{ContainerState, ContainerStatus, Pod, PodStatus, Running, Terminated, Waiting};
pub use pod_selector::PodSelector;
pub use pod_template::{Container, ObjectReference, PodSpec, PodTemplate};
pub use readable::{Readable, Unreadable, parse_status};
pub use stateful_set::{
    RollingUpdate, StatefulSet, StatefulSetSpec, StatefulSetStatus, StatefulSetUpdateStrategy,
};
