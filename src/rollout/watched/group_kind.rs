//! The group and the kind of an object.

use std::borrow::Cow;
use std::fmt;

/// The group and the kind of an object, without the version.
///
/// A manifest may have another version than the watch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKind {
    group: Cow<'static, str>,
    kind: Cow<'static, str>,
}

impl GroupKind {
    /// A Deployment.
    pub const DEPLOYMENT: Self = Self::known("apps", "Deployment");
    /// A StatefulSet.
    pub const STATEFUL_SET: Self = Self::known("apps", "StatefulSet");
    /// A DaemonSet.
    pub const DAEMON_SET: Self = Self::known("apps", "DaemonSet");
    /// A Job.
    pub const JOB: Self = Self::known("batch", "Job");
    /// A CronJob.
    pub const CRON_JOB: Self = Self::known("batch", "CronJob");
    /// A Rollout of Argo Rollouts.
    pub const ARGO_ROLLOUT: Self = Self::known("argoproj.io", "Rollout");
    /// A Canary of Flagger.
    pub const CANARY: Self = Self::known("flagger.app", "Canary");
    /// A Kustomization of Flux.
    pub const KUSTOMIZATION: Self = Self::known("kustomize.toolkit.fluxcd.io", "Kustomization");
    /// A HelmRelease of Flux.
    pub const HELM_RELEASE: Self = Self::known("helm.toolkit.fluxcd.io", "HelmRelease");
    /// An Application of Argo CD.
    pub const APPLICATION: Self = Self::known("argoproj.io", "Application");
    /// A GitRepository of Flux.
    pub const GIT_REPOSITORY: Self = Self::known("source.toolkit.fluxcd.io", "GitRepository");

    /// The kinds with a rule of their own, which run pods.
    pub const WORKLOADS: [Self; 6] = [
        Self::DEPLOYMENT,
        Self::STATEFUL_SET,
        Self::DAEMON_SET,
        Self::JOB,
        Self::CRON_JOB,
        Self::ARGO_ROLLOUT,
    ];

    /// The kinds that apply files.
    pub const APPLIERS: [Self; 3] = [Self::KUSTOMIZATION, Self::HELM_RELEASE, Self::APPLICATION];

    /// The kinds that decide about workloads, besides their appliers.
    const DECIDING: [Self; 2] = [Self::CANARY, Self::GIT_REPOSITORY];

    /// Returns the kinds to which any place can lead.
    ///
    /// These are all workloads, because of their images, and their appliers. They are always watched.
    pub fn of_any_place() -> impl Iterator<Item = Self> {
        Self::WORKLOADS.into_iter().chain(Self::APPLIERS).chain(Self::DECIDING)
    }

    const fn known(group: &'static str, kind: &'static str) -> Self {
        Self { group: Cow::Borrowed(group), kind: Cow::Borrowed(kind) }
    }

    /// Creates a kind from an API version such as `apps/v1`, and its name.
    #[must_use]
    pub fn new(api_version: &str, kind: &str) -> Self {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        Self { group: Cow::Owned(group.to_owned()), kind: Cow::Owned(kind.to_owned()) }
    }

    /// Returns the group; empty for the core kinds of Kubernetes.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Returns the kind, such as `Deployment`.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }
}

/// Formats the kind without its group.
impl fmt::Display for GroupKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.kind)
    }
}
