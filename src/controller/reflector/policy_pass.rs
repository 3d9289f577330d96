//! One look at one ImagePolicy, from the object as it stands to its new status.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt};
use tagboat_api::policy::ImagePolicyStatus;
use tagboat_api::{FINALIZER, ImagePolicy, ImageRepository};
use tracing::Instrument;

use super::memory::Wishes;
use super::shared::{Done, Kind, Shared, StatusMaker, saying_so, span, verdict};
use crate::controller::queue::Verdict;
use crate::objects::cluster::ClusterError;
use crate::objects::{ObjectName, ObjectsError};
use crate::policy::regression::Cause;
use crate::reconcile::conditions::is_ready;
use crate::reconcile::course::{Next, reported_on};
use crate::reconcile::policy::access::needs_labels;
use crate::reconcile::policy::report::Conclusion;
use crate::reconcile::policy::run::{Run, Scene};
use crate::reconcile::tags::Registry;
use crate::tenancy::INLINE_BYTES;

/// The time after which one looks again who waits for its repository to be carried out, if nobody wakes it before.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Carries out a policy that is due.
pub(super) async fn carry_out<R: Registry>(shared: Arc<Shared<R>>, name: ObjectName) {
    let span = span(&shared, Kind::Policy, &name);
    let mut done = shared.begin(Kind::Policy, name).await;
    Box::pin(async {
        let ended = pass(&shared, &mut done).await;
        shared.ended(&done, ended);
        shared.forget_if_gone(done.kind, &done.name);
    })
    .instrument(span)
    .await;
}

async fn pass<R: Registry>(shared: &Arc<Shared<R>>, done: &mut Done) -> Result<bool, ClusterError> {
    let Some(known) = shared.policies.get(&done.name) else {
        done.verdict = Verdict::Wait;
        return Ok(true);
    };
    if known.metadata.deletion_timestamp.is_some() {
        shared.unfollow(&done.name);
        shared.writer.remove_finalizer(known.as_ref(), FINALIZER).await?;
        done.verdict = Verdict::Wait;
        return Ok(true);
    }
    let Some(policy) = shared.writer.add_finalizer(known.as_ref(), FINALIZER).await? else {
        done.verdict = Verdict::Wait;
        return Ok(true);
    };
    observe(shared, &policy);
    if policy.spec.suspend {
        // A request that comes meanwhile is for the time after.
        tracing::info!("reconciliation is suspended for this object");
        shared.unfollow(&done.name);
        done.verdict = Verdict::Wait;
        return Ok(true);
    }
    let previous = policy.status.clone().unwrap_or_default();
    let policy = Arc::new(policy);
    // The annotations are YAML of any size that a cluster takes.
    let annotations: usize = policy.annotations().values().map(String::len).sum();
    let reading = policy.clone();
    let run = move || Run::of(reading, Timestamp::now());
    let (pool, namespace) = (&shared.options.capacity.pool, &done.name.namespace);
    // What waits is boxed, so that a pass that does not wait yet takes little memory.
    let run = Box::pin(pool.run_sized(namespace, annotations, run)).await;
    let begin = |current: &ImagePolicy| run.begin(&current.status.clone().unwrap_or_default()).status;
    let begin = run.begin(&previous).is_to_be_written.then_some(&begin as StatusMaker<'_, _, _>);
    let repository = run.repository().and_then(|name| shared.repositories.get(name));
    let wishes = Wishes::of(&policy, repository.as_deref());
    let is_unseen =
        repository.is_some() && run.repository().is_some_and(|name| !shared.memory.has_seen(name));
    let name = done.name.clone();
    let cause = shared.memory.cause(&name, &wishes, &run);
    let scene = Scene {
        labels: Box::pin(labels(shared, &name.namespace, repository.as_deref())).await,
        scan_trouble: run.repository().and_then(|name| shared.memory.scan_trouble(name)),
        repository,
        cause,
        polled: &|followed| shared.poller.known(&name, followed),
    };
    if run.is_untouched(&shared.options, &scene) {
        done.verdict = Verdict::Wait;
        return Ok(true);
    }
    let work = async { run.carry_out(&shared.options, scene, &shared.shelf, &shared.registry).await };
    done.make_room();
    let said =
        Box::pin(saying_so(&shared.writer, ImagePolicy::clone(&policy), begin, Box::pin(work))).await?;
    done.take_place().await;
    let Some((begun, ended)) = said else {
        done.verdict = Verdict::Wait;
        return Ok(true);
    };
    observe(shared, &begun);
    let is_waiting = matches!(&ended.conclusion, Conclusion::Stopped(stop) if stop.retry_after.is_some());
    if is_unseen && is_waiting {
        done.verdict = Verdict::After(LOOK_AGAIN);
        return Ok(true);
    }
    if let (Conclusion::Stopped(stop), Some(name)) = (&ended.conclusion, run.repository())
        && stop.needs_scan
        && shared.repositories.get(name).is_some_and(|repository| is_scanned(&repository))
    {
        // Its tags were removed to make room for others, and its next interval may be far.
        shared.wake(Kind::Repository, name.clone());
    }
    let now = Timestamp::now();
    let report = run.report(&previous, &ended.conclusion, now);
    let announcing = async {
        for event in &report.events {
            shared.announce(done.kind, &begun, event).await;
        }
    };
    let begun_with = begun.status.clone().unwrap_or_default();
    let status = |current: &ImagePolicy| -> ImagePolicyStatus {
        let stored = current.status.clone().unwrap_or_default();
        run.report(&reported_on(&previous, &begun_with, &stored), &ended.conclusion, now).status
    };
    let ((), written) = tokio::join!(announcing, shared.writer.update_status(&begun, &status));
    let written = written?;
    written.iter().for_each(|written| observe(shared, written));
    match ended.conclusion {
        Conclusion::Resolved(_) if !ended.is_provisional => shared.memory.met(&done.name, wishes),
        Conclusion::Resolved(_) if cause == Cause::Person => shared.memory.put_off(&done.name),
        _ => {}
    }
    let latest = written.and_then(|written| written.status).and_then(|status| status.latest_ref);
    // The members of a group are found in the annotations of all policies of the namespace.
    let is_in_group = ended.followed.as_ref().is_some_and(|followed| followed.group.is_some());
    let bytes = if is_in_group { INLINE_BYTES } else { 0 };
    let (following, name) = (shared.clone(), done.name.clone());
    let follow = move || following.poller.follow(&name, &ended, latest.as_ref(), &following.policies);
    let pool = &shared.options.capacity.pool;
    for woken in Box::pin(pool.run_sized(&done.name.namespace, bytes, follow)).await {
        shared.wake(Kind::Policy, woken);
    }
    shared.measure_next_poll(&done.name);
    done.verdict = verdict(report.next);
    Ok(report.next != Next::Retry)
}

/// Returns true if the last scan of a repository succeeded.
fn is_scanned(repository: &ImageRepository) -> bool {
    repository.status.as_ref().is_some_and(|status| is_ready(&status.conditions))
}

/// The labels of a policy's namespace, where they decide about its access.
async fn labels<R: Registry>(
    shared: &Shared<R>,
    own: &str,
    repository: Option<&ImageRepository>,
) -> Result<BTreeMap<String, String>, ObjectsError> {
    if !repository.is_some_and(|repository| needs_labels(own, repository)) {
        return Ok(BTreeMap::new());
    }
    let api: Api<Namespace> = Api::all(shared.objects.client().clone());
    let namespace = shared.objects.guard().send(own, api.get(own)).await?;
    Ok(namespace.metadata.labels.unwrap_or_default())
}

/// Takes note of a policy as an answer of the API server has it.
fn observe<R: Registry>(shared: &Arc<Shared<R>>, policy: &ImagePolicy) {
    let mut policy = policy.clone();
    policy.managed_fields_mut().clear();
    if let Some(change) = shared.policies.apply_written(policy) {
        shared.policy_changed(&change);
    }
}

/// How much memory a pass takes that has a place.
#[cfg(test)]
pub(super) fn size<R: Registry>() -> usize {
    fn of<'a, R: Registry, F: Future>(_: impl FnOnce(&'a Arc<Shared<R>>, &'a mut Done) -> F) -> usize {
        size_of::<F>()
    }
    of::<R, _>(|shared, done| pass(shared, done))
}
