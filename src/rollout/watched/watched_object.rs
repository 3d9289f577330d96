//! An object of any watched kind.

use std::borrow::Cow;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::ApiResource;
use serde::Deserialize;

use super::texts::texts_bytes;
use super::{GroupKind, WatchedId};
use crate::rollout::applier::application;
use crate::rollout::objects::{
    Application, ArgoRollout, Canary, CronJob, DaemonSet, Deployment, GenericObject, GitRepository,
    HelmRelease, Job, Kustomization, PodSelector, PodTemplate, StatefulSet, Unreadable,
};

/// An object of any watched kind.
///
/// The kinds differ in size, so each is on the heap.
#[derive(Clone, Debug)]
pub enum WatchedObject {
    /// A Deployment.
    Deployment(Box<Deployment>),
    /// A StatefulSet.
    StatefulSet(Box<StatefulSet>),
    /// A DaemonSet.
    DaemonSet(Box<DaemonSet>),
    /// A Job.
    Job(Box<Job>),
    /// A CronJob.
    CronJob(Box<CronJob>),
    /// A Rollout of Argo Rollouts.
    ArgoRollout(Box<ArgoRollout>),
    /// A Canary of Flagger.
    Canary(Box<Canary>),
    /// A Kustomization of Flux.
    Kustomization(Box<Kustomization>),
    /// A HelmRelease of Flux.
    HelmRelease(Box<HelmRelease>),
    /// An Application of Argo CD.
    Application(Box<Application>),
    /// A GitRepository of Flux.
    GitRepository(Box<GitRepository>),
    /// An object of any other kind, which has a marker.
    Other(Arc<ApiResource>, Box<GenericObject>),
}

impl WatchedObject {
    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> GroupKind {
        match self {
            Self::Deployment(_) => GroupKind::DEPLOYMENT,
            Self::StatefulSet(_) => GroupKind::STATEFUL_SET,
            Self::DaemonSet(_) => GroupKind::DAEMON_SET,
            Self::Job(_) => GroupKind::JOB,
            Self::CronJob(_) => GroupKind::CRON_JOB,
            Self::ArgoRollout(_) => GroupKind::ARGO_ROLLOUT,
            Self::Canary(_) => GroupKind::CANARY,
            Self::Kustomization(_) => GroupKind::KUSTOMIZATION,
            Self::HelmRelease(_) => GroupKind::HELM_RELEASE,
            Self::Application(_) => GroupKind::APPLICATION,
            Self::GitRepository(_) => GroupKind::GIT_REPOSITORY,
            Self::Other(resource, _) => GroupKind::new(&resource.api_version, &resource.kind),
        }
    }

    /// Returns the metadata.
    #[must_use]
    pub fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Deployment(object) => &object.metadata,
            Self::StatefulSet(object) => &object.metadata,
            Self::DaemonSet(object) => &object.metadata,
            Self::Job(object) => &object.metadata,
            Self::CronJob(object) => &object.metadata,
            Self::ArgoRollout(object) => &object.metadata,
            Self::Canary(object) => &object.metadata,
            Self::Kustomization(object) => &object.metadata,
            Self::HelmRelease(object) => &object.metadata,
            Self::Application(object) => &object.metadata,
            Self::GitRepository(object) => &object.metadata,
            Self::Other(_, object) => &object.metadata,
        }
    }

    /// Returns the identity.
    #[must_use]
    pub fn id(&self) -> WatchedId {
        let ObjectMeta { name, namespace, .. } = self.metadata();
        let (namespace, name) =
            (namespace.as_deref().unwrap_or_default(), name.as_deref().unwrap_or_default());
        WatchedId::new(self.kind(), namespace, name)
    }

    /// Returns the images of the pod template, init containers included.
    ///
    /// An Application with another destination has the images that it reports. Other objects without a pod template
    /// have none, as has a Rollout with `workloadRef`.
    ///
    /// # Errors
    ///
    /// The spec cannot be read, or the status of an Application.
    pub fn images(&self) -> Result<Vec<&str>, &Unreadable> {
        if let Self::Application(object) = self {
            let is_remote = application::is_remote(&object.spec.get()?.destination);
            let images = &object.status.get()?.summary.images;
            return Ok(images.iter().filter(|_| is_remote).map(String::as_str).collect());
        }
        Ok(self.template()?.map(|template| template.spec.images().collect()).unwrap_or_default())
    }

    /// Returns the size of the texts that may have an image, in bytes.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        match self {
            Self::Other(_, object) => texts_bytes(&object.spec) + texts_bytes(&object.status),
            Self::HelmRelease(object) => object.spec.get().map_or(0, |spec| texts_bytes(&spec.values)),
            _ => self.images().unwrap_or_default().into_iter().map(str::len).sum(),
        }
    }

    fn template(&self) -> Result<Option<&PodTemplate>, &Unreadable> {
        Ok(match self {
            Self::Deployment(object) => Some(&object.spec.get()?.template),
            Self::StatefulSet(object) => Some(&object.spec.get()?.template),
            Self::DaemonSet(object) => Some(&object.spec.get()?.template),
            Self::Job(object) => Some(&object.spec.get()?.template),
            Self::CronJob(object) => Some(&object.spec.get()?.job_template.spec.template),
            Self::ArgoRollout(object) => Some(&object.spec.get()?.template),
            Self::Canary(_)
            | Self::Kustomization(_)
            | Self::HelmRelease(_)
            | Self::Application(_)
            | Self::GitRepository(_)
            | Self::Other(..) => None,
        })
    }

    /// Returns `true` for an applier that applies to another cluster than its own.
    #[must_use]
    pub fn is_remote_applier(&self) -> bool {
        match self {
            Self::Kustomization(object) => object.spec.get().is_ok_and(|spec| spec.kube_config.is_some()),
            Self::HelmRelease(object) => object.spec.get().is_ok_and(|spec| spec.is_remote),
            Self::Application(object) => {
                object.spec.get().is_ok_and(|spec| application::is_remote(&spec.destination))
            }
            _ => false,
        }
    }

    /// Returns the label selector of the pods, unless it is unreadable or selects all.
    #[must_use]
    pub fn pod_selector(&self) -> Option<Cow<'_, str>> {
        let selector = match self {
            Self::Deployment(object) => &object.spec.get().ok()?.selector,
            Self::StatefulSet(object) => &object.spec.get().ok()?.selector,
            Self::DaemonSet(object) => &object.spec.get().ok()?.selector,
            Self::Job(object) => &object.spec.get().ok()?.selector,
            Self::ArgoRollout(object) => &object.spec.get().ok()?.selector,
            Self::Other(resource, object) if resource.group == "apps" && resource.kind == "ReplicaSet" => {
                let selector = PodSelector::deserialize(object.spec.get("selector")?).ok()?;
                return selector.query().map(|query| Cow::Owned(query.to_owned()));
            }
            _ => return None,
        };
        selector.query().map(Cow::Borrowed)
    }

    /// Returns the workload that the object refers to.
    ///
    /// It is the target of a Canary, or the workload of a Rollout's `workloadRef`.
    #[must_use]
    pub fn target(&self) -> Option<WatchedId> {
        let target = match self {
            Self::Canary(object) => &object.spec.get().ok()?.target_ref,
            Self::ArgoRollout(object) => object.spec.get().ok()?.workload_ref.as_ref()?,
            _ => return None,
        };
        let api_version = target.api_version.as_deref().unwrap_or("apps/v1");
        let namespace = self.metadata().namespace.as_deref().unwrap_or_default();
        Some(WatchedId::new(GroupKind::new(api_version, &target.kind), namespace, &target.name))
    }

    /// Returns the object that controls this one, such as the CronJob of a Job.
    #[must_use]
    pub fn controller(&self) -> Option<WatchedId> {
        let owner = self.metadata().owner_references.as_ref()?.first()?;
        let namespace = self.metadata().namespace.as_deref().unwrap_or_default();
        Some(WatchedId::new(GroupKind::new(&owner.api_version, &owner.kind), namespace, &owner.name))
    }
}
