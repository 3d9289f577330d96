//! The reconcile of one DeploymentStatus: its object, labels and status.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, ListParams};
use kube::{Resource, ResourceExt};
use tagboat_api::deployment_status::{DeploymentStatusSpec, Report};
use tagboat_api::reference::LocalObjectReference;
use tagboat_api::{DeploymentStatus, ImagePolicy, ObjectName};

use super::announce::announce;
use super::existence::{Decision, Facts, decide, may_have_marker};
use super::observe::{Observed, observe};
use super::state::Rollouts;
use super::write_rate::{CORRECTION_DELAY, WriteTime, pause, write_time};
use crate::controller::engine::in_flight::InFlight;
use crate::controller::engine::reconcile_steps::patch_status;
use crate::objects::cluster::ClusterError;
use crate::reconcile::action::Action;
use crate::rollout::event::event;
use crate::rollout::tie::Stop;
use crate::tenancy::{Checkpoint, Interrupted};

/// The time after which pods are requested again if there were too many requests.
const POD_RETRY: Duration = Duration::from_secs(60);

/// The maximum time of an observation.
const OBSERVATION_TIMEOUT: Duration = Duration::from_secs(10);

/// The time after which an observation that took too long is tried again.
const OBSERVATION_RETRY: Duration = Duration::from_secs(60);

/// Reconciles the object of a policy, which may not exist yet.
pub(super) async fn reconcile(
    rollouts: &Arc<Rollouts>,
    in_flight: &mut InFlight,
) -> Result<Action, ClusterError> {
    let name = &in_flight.name;
    let policy = rollouts.objects().policies.get(name);
    let object = rollouts.kind.cache.get(name);
    if object.is_some() && !rollouts.kind.is_live(name) {
        // Another client deletes it, and its end is a change.
        return Ok(Action::AwaitChange);
    }
    if !rollouts.places.is_settled(name) {
        // It is due as soon as the new places are in the index, and the watches of their kinds have begun.
        return Ok(Action::AwaitChange);
    }
    if policy.is_some() && object.is_some() && !rollouts.is_listed_for(name, &rollouts.cluster) {
        // The end of the lists makes all policies due.
        return Ok(Action::AwaitChange);
    }
    let own = object.as_ref().map(|object| rollouts.own_statuses.of(object, Timestamp::now()));
    let observed = match (&policy, &own) {
        (Some(policy), Some(own)) => match observe_in_pool(rollouts, policy, own).await {
            Ok(observed) => Some(observed),
            Err(interrupted) => {
                tracing::warn!("the rollout is not reported now: {interrupted}");
                return Ok(Action::RequeueAfter(OBSERVATION_RETRY));
            }
        },
        _ => None,
    };
    if !rollouts.places.is_settled(name) {
        // A scan arrived meanwhile, so some of its objects may have counted as unknown.
        return Ok(Action::AwaitChange);
    }
    let uid = policy.as_ref().and_then(|policy| policy.uid());
    let has_place = rollouts.place_index.read().places(name).next().is_some();
    let previous = own.as_ref().and_then(|own| own.status.as_ref()).map(|status| &status.report);
    let decision = decide(Facts {
        policy: uid.as_deref(),
        object: object.as_ref().map(|object| policy_uid(object)),
        has_marker: has_place || observed.as_ref().is_some_and(|observed| observed.has_components),
        may_have_marker: may_have_marker(previous, has_unscanned(rollouts, &name.namespace)),
    });
    let writer = &rollouts.kind.context.writer;
    match (decision, policy, object, observed) {
        (Decision::Create, Some(policy), ..) => {
            if is_selected(rollouts, &policy).await? {
                writer.create(&new_object(&policy)).await?;
                tracing::info!("created the DeploymentStatus of the policy");
            }
            Ok(Action::AwaitChange)
        }
        (Decision::Delete, _, Some(object), _) => {
            writer.delete(object.as_ref()).await?;
            tracing::info!("deleted the DeploymentStatus, which has no policy or no marker any more");
            Ok(Action::AwaitChange)
        }
        (Decision::Report, Some(policy), Some(object), Some(observed)) => {
            report(rollouts, &policy, &object, previous, observed).await
        }
        _ => Ok(Action::AwaitChange),
    }
}

/// Observes a policy on a thread of the pool, after its own status.
///
/// It may have thousands of components.
///
/// # Errors
///
/// If it takes longer than [`OBSERVATION_TIMEOUT`].
async fn observe_in_pool(
    rollouts: &Arc<Rollouts>,
    policy: &Arc<ImagePolicy>,
    own_status: &Arc<DeploymentStatus>,
) -> Result<Observed, Interrupted> {
    let namespace = policy.namespace().unwrap_or_default();
    let (own, policy, object) = (rollouts.clone(), policy.clone(), own_status.clone());
    let work = move |checkpoint: &Checkpoint| {
        let stop = || checkpoint.check().is_err();
        let observed = observe(&own, &policy, object.status.as_ref(), Timestamp::now(), Stop(&stop));
        checkpoint.check().map(|()| observed)
    };
    rollouts.options.capacity.pool.run_within(&namespace, OBSERVATION_TIMEOUT, work).await
}

/// Writes the labels and the status, as soon as the rate allows it.
///
/// `previous` is the report of our own before; that of `object` may have changes of another client.
async fn report(
    rollouts: &Arc<Rollouts>,
    policy: &ImagePolicy,
    object: &DeploymentStatus,
    previous: Option<&Report>,
    observed: Observed,
) -> Result<Action, ClusterError> {
    let name = ObjectName::of(policy);
    let metrics = &rollouts.kind.context.metrics;
    metrics.deployment_state(&name, Some(observed.status.report.state));
    let has_all_pods = rollouts.request_pods(&name, &observed.pods);
    let mut object = object.clone();
    let last = || rollouts.own_statuses.last_write(&name);
    if object.labels() != policy.labels() {
        if let Some(pause) = pause(last(), Instant::now()) {
            return Ok(Action::RequeueAfter(pause));
        }
        rollouts.own_statuses.write_labels(&name, Instant::now());
        let written = rollouts.kind.context.writer.set_labels(&object, policy.labels()).await?;
        let Some(written) = written else { return Ok(Action::AwaitChange) };
        object = written;
    }
    let next_check = observed.next_check.map(|at| wait_until(at, Timestamp::now()));
    let mut waits: Vec<Duration> = next_check.into_iter().collect();
    waits.extend((!has_all_pods).then_some(POD_RETRY));
    match write_time(object.status.as_ref(), &observed.status, last(), Instant::now()) {
        WriteTime::Never => {}
        WriteTime::After(wait) => waits.push(wait),
        WriteTime::Now => {
            rollouts.own_statuses.begin_write(&name, &observed.status, Instant::now());
            let event = event(previous, &observed.status.report);
            let duration = event.as_ref().and_then(|event| event.duration);
            // Before the status: after a kill in between, the next process finds the outcome still to be announced.
            if let Some(event) = event {
                announce(rollouts, policy, event).await;
            }
            let status = |_: &DeploymentStatus| observed.status.clone();
            let Some(written) = patch_status(rollouts.as_ref(), &object, &status).await? else {
                return Ok(Action::AwaitChange);
            };
            if end_write(rollouts, written) {
                waits.push(CORRECTION_DELAY);
            }
            duration.into_iter().for_each(|duration| metrics.rolled_out(duration));
        }
    }
    Ok(waits.into_iter().min().map_or(Action::AwaitChange, Action::RequeueAfter))
}

/// Notes the end of a write, and returns `true` if a foreign change followed.
fn end_write(rollouts: &Rollouts, written: DeploymentStatus) -> bool {
    let current = rollouts.kind.cache.get(&ObjectName::of(&written));
    let (is_own, is_foreign) = match &current {
        Some(current) => {
            (current.resource_version() == written.resource_version(), current.status != written.status)
        }
        None => (false, false),
    };
    // The memory is shared with the cache.
    rollouts.own_statuses.end_write(current.filter(|_| is_own).unwrap_or_else(|| Arc::new(written)));
    is_foreign
}

/// Returns the time until `at`, at least a second.
fn wait_until(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default().max(Duration::from_secs(1))
}

/// Returns true if an automation of a namespace had no scan in this process yet.
fn has_unscanned(rollouts: &Rollouts, namespace: &str) -> bool {
    let automations = rollouts.automations.in_namespace(namespace);
    automations.iter().any(|automation| !rollouts.places.is_known(&ObjectName::of(automation.as_ref())))
}

/// Returns true if the controller's label selector selects a policy.
///
/// Of several controllers with a selector each, only one has the object.
async fn is_selected(rollouts: &Rollouts, policy: &ImagePolicy) -> Result<bool, ClusterError> {
    let Some(selector) = &rollouts.options.labels else { return Ok(true) };
    let namespace = policy.namespace().unwrap_or_default();
    let objects = rollouts.objects();
    let api: Api<ImagePolicy> = Api::namespaced(objects.client().clone(), &namespace);
    let field = format!("metadata.name={}", policy.name_any());
    let parameters = ListParams::default().labels(selector).fields(&field).limit(1);
    let found = objects.guard().send(&namespace, api.list_metadata(&parameters)).await?;
    Ok(!found.items.is_empty())
}

/// Returns the uid of the policy that owns an object; empty without one.
fn policy_uid(object: &DeploymentStatus) -> &str {
    let owners = object.metadata.owner_references.iter().flatten();
    let mut policies = owners.filter(|owner| owner.kind == ImagePolicy::kind(&()));
    policies.next().map_or("", |owner| &owner.uid)
}

/// Returns the object of a policy.
///
/// The policy owns it, without being its controller and without a delay of the policy's deletion.
fn new_object(policy: &ImagePolicy) -> DeploymentStatus {
    let name = policy.name_any();
    let spec = DeploymentStatusSpec { policy_ref: LocalObjectReference { name: name.clone() } };
    let mut object = DeploymentStatus::new(&name, spec);
    object.metadata.namespace = policy.namespace();
    object.metadata.labels.clone_from(&policy.metadata.labels);
    let owner = OwnerReference {
        api_version: ImagePolicy::api_version(&()).into_owned(),
        kind: ImagePolicy::kind(&()).into_owned(),
        name,
        uid: policy.uid().unwrap_or_default(),
        controller: None,
        block_owner_deletion: None,
    };
    object.metadata.owner_references = Some(vec![owner]);
    object
}
