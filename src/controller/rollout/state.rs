//! The state that all reconciles share, and the effects of changes on it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use kube::ResourceExt;
use parking_lot::RwLock;
use tagboat_api::deployment_status::DeploymentStatusStatus;
use tagboat_api::{Condition, DeploymentStatus, ImagePolicy, ImageRef, ImageUpdateAutomation, ObjectName};
use tokio::sync::{Notify, watch};

use super::changed_policies::ChangedPolicies;
use super::cluster::WatchedCluster;
use super::kinds;
use super::long_lock::LongLock;
use super::own_statuses::OwnStatuses;
use super::remote::Remote;
use super::write_rate::CORRECTION_DELAY;
use crate::controller::automation::{KnownFile, Places};
use crate::controller::engine::kind::{Kind, Reconciler};
use crate::objects::cluster::{Cache, Change, ClusterObjects, ListLimiter};
use crate::objects::remote_clusters::RemoteClusters;
use crate::reconcile::cross_namespace::CrossNamespace;
use crate::rollout::components::PodRequest;
use crate::rollout::index::PlaceIndex;
use crate::rollout::watched::{GroupKind, WatchedObject};
use crate::tenancy::Capacity;
use crate::update::ObjectIdentifier;

/// The state that all reconciles of DeploymentStatus objects share.
pub(in crate::controller) struct Rollouts {
    pub(super) kind: Arc<Kind<DeploymentStatus>>,
    /// All automations of the controller.
    pub(super) automations: Cache<ImageUpdateAutomation>,
    /// The places of the automations, as their scans report them.
    pub(super) places: Places,
    /// The same places, by policy and by the objects that they lead to.
    pub(super) place_index: LongLock<PlaceIndex>,
    /// The watched objects, while the feature is available.
    pub(super) cluster: Arc<WatchedCluster>,
    /// The clusters with a kubeconfig, by name.
    pub(super) remote: RwLock<BTreeMap<String, Remote>>,
    /// Limits the lists of pods in all clusters together.
    pub(super) list_limiter: ListLimiter,
    /// The kinds to which places lead, which are watched in all clusters.
    pub(super) kinds: watch::Sender<BTreeSet<GroupKind>>,
    /// Woken when an object is new or gone, or its components have other kinds.
    pub(super) objects_changed: Notify,
    /// The policies whose images the index may not have yet.
    pub(super) changed_policies: ChangedPolicies,
    /// The statuses from which the next ones are computed.
    pub(super) own_statuses: OwnStatuses,
    pub(super) options: RolloutOptions,
}

/// The options of the rollout controller.
#[derive(Clone, Debug)]
pub(in crate::controller) struct RolloutOptions {
    /// Forbids matches of objects outside of the automation's namespace.
    pub(in crate::controller) cross_namespace: CrossNamespace,
    /// The only namespace that is watched; `None`: all.
    pub(in crate::controller) namespace: Option<String>,
    /// The label selector of the objects that the controller reconciles.
    pub(in crate::controller) labels: Option<String>,
    /// The clusters with a kubeconfig, if a directory of them is given.
    pub(in crate::controller) remote: Option<RemoteClusters>,
    /// The threads of the process.
    pub(in crate::controller) capacity: Capacity,
}

impl Rollouts {
    pub(super) fn objects(&self) -> &ClusterObjects {
        &self.kind.context.objects
    }

    /// Returns true if a cluster's objects are known to which a policy's places can lead.
    pub(super) fn is_listed_for(&self, policy: &ObjectName, cluster: &WatchedCluster) -> bool {
        let index = self.place_index.read();
        let kinds = self.kinds.borrow();
        let mut documents = index.places(policy).map(|(_, place)| &place.document);
        let is_known = |document: &ObjectIdentifier| {
            let kind = GroupKind::new(&document.api_version, &document.kind);
            !cluster.is_awaited(&kind, &kinds)
        };
        cluster.is_listed() && documents.all(is_known)
    }

    /// Handles a change of a cluster's object, in its state before or after it.
    ///
    /// It can take long, and blocks the thread.
    pub(super) fn object_changed(&self, cluster: &WatchedCluster, object: &WatchedObject) {
        let places = self.place_index.read();
        let mut concerned = places.concerned(&cluster.index(), object);
        if object.is_remote_applier() {
            let others = self.watched_clusters().into_iter();
            let others = others.filter(|other| !std::ptr::eq(&raw const **other, cluster));
            concerned.extend(others.flat_map(|other| places.owning(&other.index(), object)));
        }
        drop(places);
        concerned.into_iter().for_each(|policy| self.kind.enqueue(policy));
    }

    /// Returns all clusters that are watched.
    pub(super) fn watched_clusters(&self) -> Vec<Arc<WatchedCluster>> {
        let remote = self.remote.read();
        let remote = remote.values().filter_map(Remote::watched).cloned();
        [self.cluster.clone()].into_iter().chain(remote).collect()
    }

    /// Replaces the requests of a policy for pods.
    ///
    /// Returns false if there are too many requests, so that some must be made again later.
    pub(super) fn request_pods(&self, policy: &ObjectName, requests: &[PodRequest]) -> bool {
        let now = Instant::now();
        let mut incomplete = BTreeSet::new();
        for cluster in self.watched_clusters() {
            let own = requests.iter().filter(|request| request.cluster == cluster.connection.cluster);
            incomplete.append(&mut cluster.pods.request(policy, own, now));
        }
        let has_all = !incomplete.remove(policy);
        incomplete.into_iter().for_each(|evicted| self.kind.enqueue(evicted));
        has_all
    }

    /// Handles a change of a policy.
    pub(in crate::controller) fn policy_changed(&self, change: &Change<ImagePolicy>) {
        if change.old.as_deref().map(visible_policy) == change.new.as_deref().map(visible_policy) {
            return;
        }
        if !self.places.is_on() {
            return;
        }
        let has_places = self.places.has_policy(&change.name);
        if has_places {
            // The index may be locked for long, and this is the watch of all policies.
            self.changed_policies.insert(change.name.clone());
        }
        if has_places || self.kind.cache.get(&change.name).is_some() {
            self.kind.enqueue(change.name.clone());
        }
    }

    /// Handles a change of an automation.
    pub(in crate::controller) fn automation_changed(&self, change: &Change<ImageUpdateAutomation>) {
        let is_visible =
            change.old.as_deref().map(visible_automation) != change.new.as_deref().map(visible_automation);
        if !is_visible || !self.places.is_on() {
            return;
        }
        for object in self.kind.cache.in_namespace(&change.name.namespace) {
            self.kind.enqueue(ObjectName::of(object.as_ref()));
        }
    }

    /// Forgets all that was known while the feature was available.
    pub(super) fn clear(&self) {
        self.places.turn_off();
        self.cluster.clear();
        self.remote.write().clear();
        self.kinds.send_replace(BTreeSet::new());
        *self.place_index.write() = PlaceIndex::default();
        self.changed_policies.take();
        self.own_statuses.clear();
        self.kind.context.metrics.forget_deployments();
    }

    /// Makes the policies with an object or a place due.
    pub(super) fn enqueue_all(&self) {
        let objects = self.kind.cache.all();
        let mut policies: BTreeSet<ObjectName> =
            objects.iter().map(|object| ObjectName::of(object.as_ref())).collect();
        policies.extend(self.places.policies());
        policies.into_iter().for_each(|policy| self.kind.enqueue(policy));
    }

    /// Sets the repository of a policy's image in the index, if the policy has places.
    ///
    /// Returns true if it is another one.
    pub(super) fn set_repository(&self, policy: &ObjectName) -> bool {
        let known = self.objects().policies.get(policy);
        let index = self.place_index.read();
        let known = known.filter(|_| index.places(policy).next().is_some());
        let image = known.and_then(|known| super::observe::image(&known));
        let repository = image.map(|image| image.name);
        let is_other =
            index.policy(policy).and_then(|known| known.repository.as_ref()) != repository.as_ref();
        drop(index);
        if is_other {
            self.place_index.write().set_repository(policy, repository);
        }
        is_other
    }

    /// Begins to keep places, and has all automations scanned.
    pub(super) fn turn_on(&self) {
        self.places.turn_on();
        for object in self.kind.cache.all() {
            self.set_known_files(&ObjectName::of(object.as_ref()), object.status.as_ref());
        }
    }

    /// Returns true if another client has changed the status of an object.
    fn is_foreign(&self, change: &Change<DeploymentStatus>) -> bool {
        let (Some(old), Some(new)) = (&change.old, &change.new) else { return false };
        old.status != new.status && self.own_statuses.is_foreign(&change.name, new.status.as_ref())
    }

    /// Sets the files that a status names, whose removal from git is reported.
    fn set_known_files(&self, object: &ObjectName, status: Option<&DeploymentStatusStatus>) {
        self.places.set_known_files(object, status.map(known_files));
    }
}

impl Reconciler for Rollouts {
    type Object = DeploymentStatus;

    fn kind(&self) -> &Kind<DeploymentStatus> {
        &self.kind
    }

    fn forget(&self, name: &ObjectName) {
        self.own_statuses.forget(name);
        self.watched_clusters().iter().for_each(|cluster| cluster.pods.forget(name));
        self.kind.context.metrics.deployment_state(name, None);
    }

    fn related_changes(&self, change: &Change<DeploymentStatus>) {
        let kinds = [&change.old, &change.new]
            .map(|object| object.as_ref().map(|object| object.status.as_ref().map(kinds::of_components)));
        if kinds[0] != kinds[1] {
            self.objects_changed.notify_one();
        }
        let Some(object) = &change.new else {
            self.set_known_files(&change.name, None);
            // It may have been deleted by another client, or for another policy of its name.
            self.kind.enqueue(change.name.clone());
            return;
        };
        if self.is_foreign(change) {
            self.kind.enqueue_after(change.name.clone(), CORRECTION_DELAY);
        } else {
            self.set_known_files(&change.name, object.status.as_ref());
        }
        let policy = self.objects().policies.get(&change.name);
        if policy.is_some_and(|policy| policy.labels() != object.labels()) {
            self.kind.enqueue(change.name.clone());
        }
    }
}

/// Returns the files that the components of a status name.
fn known_files(status: &DeploymentStatusStatus) -> BTreeSet<KnownFile> {
    let components = status.report.components.iter();
    let files = components.filter_map(|component| {
        let (file, _line) = component.place.as_ref()?.rsplit_once(':')?;
        Some(KnownFile { automation: component.automation.clone()?, file: file.to_owned() })
    });
    files.collect()
}

/// The parts of a policy on which a status depends.
#[derive(PartialEq)]
struct VisiblePolicy<'a> {
    uid: Option<String>,
    labels: &'a BTreeMap<String, String>,
    latest: Option<&'a ImageRef>,
    conditions: Vec<VisibleCondition<'a>>,
}

fn visible_policy(policy: &ImagePolicy) -> VisiblePolicy<'_> {
    let status = policy.status.as_ref();
    VisiblePolicy {
        uid: policy.uid(),
        labels: policy.labels(),
        latest: status.and_then(|status| status.latest_ref.as_ref()),
        conditions: visible_conditions(status.map_or(&[], |status| &status.conditions)),
    }
}

/// The parts of an automation on which a status depends.
#[derive(PartialEq)]
struct VisibleAutomation<'a> {
    uid: Option<String>,
    is_suspended: bool,
    push: Option<&'a str>,
    conditions: Vec<VisibleCondition<'a>>,
}

fn visible_automation(automation: &ImageUpdateAutomation) -> VisibleAutomation<'_> {
    let status = automation.status.as_ref();
    VisibleAutomation {
        uid: automation.uid(),
        is_suspended: automation.spec.suspend,
        push: status.and_then(|status| status.last_push_commit.as_deref()),
        conditions: visible_conditions(status.map_or(&[], |status| &status.conditions)),
    }
}

/// A condition without the times and generations that change in each run.
type VisibleCondition<'a> = (&'a str, &'a str, &'a str, &'a str);

fn visible_conditions(conditions: &[Condition]) -> Vec<VisibleCondition<'_>> {
    let lasting = conditions.iter().filter(|condition| condition.type_ != "Reconciling");
    lasting
        .map(|condition| {
            let Condition { type_, status, reason, message, .. } = condition;
            (type_.as_str(), status.as_str(), reason.as_str(), message.as_str())
        })
        .collect()
}
