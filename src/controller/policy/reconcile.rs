//! One reconcile of one ImagePolicy, from the object to its new status.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use tagboat_api::policy::ImagePolicyStatus;
use tagboat_api::{ImagePolicy, ImageRef, ImageRepository};

use super::group::{Members, bytes_of_annotations};
use super::memory::{GroupIntent, UserIntent};
use super::state::Policies;
use crate::controller::engine::in_flight::InFlight;
use crate::controller::engine::reconcile_steps::{
    self, Fetched, StatusMaker, fetch, finalize, status_of, with_progress_status,
};
use crate::objects::ObjectName;
use crate::objects::cluster::{ClusterError, ClusterObjects};
use crate::policy::downgrade::Trigger;
use crate::reconcile::action::Action;
use crate::reconcile::conditions::is_ready;
use crate::reconcile::policy::access::needs_labels;
use crate::reconcile::policy::report::Conclusion;
use crate::reconcile::policy::run::{NamespaceLabels, PolicyInputs, PolicyRunResult, Run};
use crate::reconcile::tags::Registry;
use crate::tenancy::INLINE_BYTES;

/// The requeue of a policy while its repository has not been reconciled yet.
///
/// The reconcile of the repository makes the policy due earlier.
const REPOSITORY_PENDING: Duration = Duration::from_secs(1);

/// Reconciles a policy.
pub(crate) async fn reconcile<R: Registry>(
    policies: &Arc<Policies<R>>,
    in_flight: &mut InFlight,
) -> Result<Action, ClusterError> {
    let own = policies.as_ref();
    let Policies { kind, repositories, options, memory, poller } = own;
    let name = in_flight.name.clone();
    let policy = match fetch(own, &name).await? {
        Fetched::Gone => return Ok(Action::AwaitChange),
        Fetched::Deleted(known) => {
            policies.unfollow(&name);
            finalize(kind, &known).await?;
            return Ok(Action::AwaitChange);
        }
        Fetched::Suspended(_) => {
            policies.unfollow(&name);
            return Ok(Action::AwaitChange);
        }
        Fetched::Active(policy) => Arc::new(policy),
    };
    let previous = status_of(policy.as_ref());
    let members = Members::of(&policy, &kind.cache, &repositories.kind.cache);
    // The annotations are YAML of any size that a cluster takes.
    let annotations = bytes_of_annotations(&policy) + members.as_ref().map_or(0, Members::annotation_bytes);
    let (reading, intents) = (policy.clone(), members.as_ref().map(Members::intents).unwrap_or_default());
    let run = move || {
        let now = Timestamp::now();
        (Run::of(reading, now), members.map(|members| members.into_group(now)))
    };
    // Waiting futures are boxed, so that a reconcile that does not wait yet takes little memory.
    let (run, group) = Box::pin(options.capacity.pool.run_sized(&name.namespace, annotations, run)).await;
    let begin = |current: &ImagePolicy| run.begin(&status_of(current)).status;
    let begin = run.begin(&previous).must_be_written.then_some(&begin as StatusMaker<'_, _, _>);
    let repository = run.repository().and_then(|name| repositories.kind.cache.get(name));
    let intent = GroupIntent { own: UserIntent::of(&policy, repository.as_deref()), members: intents };
    let is_pending =
        |run: &Run| run.repository().is_some_and(|name| !repositories.memory.is_reconciled(name));
    let is_repository_pending = repository.is_some() && is_pending(&run);
    let members = || group.iter().flat_map(|group| &group.members);
    let is_group_pending = members().any(|member| member.repository.is_some() && is_pending(&member.run));
    let trigger = memory.trigger(&name, &intent, members().map(|member| &member.run).chain([&run]));
    if trigger == Trigger::User {
        memory.share(intent.members.keys());
    }
    let all = members().map(|member| &member.repository).chain([&repository]);
    let is_needed = all.flatten().any(|repository| needs_labels(&name.namespace, repository));
    let policy_inputs = PolicyInputs {
        labels: Arc::new(Box::pin(labels(&kind.context.objects, &name.namespace, is_needed)).await),
        scan_failure: run.repository().and_then(|name| repositories.memory.scan_failure(name)),
        repository,
        trigger,
        polled: &|followed| poller.known(&name, followed),
        group,
    };
    if run.is_untouched(options, &policy_inputs) {
        return Ok(Action::AwaitChange);
    }
    let work = async {
        run.reconcile(options, policy_inputs, &repositories.tag_store, &repositories.registry).await
    };
    let object = ImagePolicy::clone(&policy);
    let done = Box::pin(with_progress_status(own, in_flight, object, begin, Box::pin(work))).await?;
    let Some((initial, result)) = done else { return Ok(Action::AwaitChange) };
    let has_no_tags =
        matches!(&result.conclusion, Conclusion::Failed(failure) if failure.retry_after.is_some());
    if (is_repository_pending && has_no_tags) || (is_group_pending && result.is_group_stopped) {
        return Ok(Action::RequeueAfter(REPOSITORY_PENDING));
    }
    if let (Conclusion::Failed(failure), Some(name)) = (&result.conclusion, run.repository())
        && failure.needs_scan
        && repositories.kind.cache.get(name).is_some_and(|repository| is_scanned(&repository))
    {
        // Its tags were evicted, and its next interval may be far.
        repositories.kind.enqueue(name.clone());
    }
    let now = Timestamp::now();
    let report = run.report(&previous, &result.conclusion, now);
    let status = |status: &ImagePolicyStatus| run.report(status, &result.conclusion, now).status;
    let written = reconcile_steps::report(own, &initial, &previous, &report.events, &status).await?;
    match result.conclusion {
        Conclusion::Resolved(_) if !result.is_provisional => memory.satisfied(&name, intent),
        Conclusion::Resolved(_) if trigger == Trigger::User => memory.defer(&name),
        _ => {}
    }
    let latest = written.and_then(|written| written.status).and_then(|status| status.latest_ref);
    follow(policies, &name, result, latest).await;
    Ok(report.action)
}

/// Follows the digest that a reconcile has ended with.
async fn follow<R: Registry>(
    policies: &Arc<Policies<R>>,
    name: &ObjectName,
    result: PolicyRunResult,
    latest: Option<ImageRef>,
) {
    // The members of a group are found in the annotations of all policies of the namespace.
    let is_in_group = result.followed.as_ref().is_some_and(|followed| followed.group.is_some());
    let bytes = if is_in_group { INLINE_BYTES } else { 0 };
    let (following, policy) = (policies.clone(), name.clone());
    let follow = move || following.poller.follow(&policy, &result, latest.as_ref(), &following.kind.cache);
    let pool = &policies.options.capacity.pool;
    for changed in Box::pin(pool.run_sized(&name.namespace, bytes, follow)).await {
        policies.kind.enqueue(changed);
    }
    policies.measure_next_poll(name);
}

/// Returns true if the last scan of a repository succeeded.
fn is_scanned(repository: &ImageRepository) -> bool {
    repository.status.as_ref().is_some_and(|status| is_ready(&status.conditions))
}

/// Returns the labels of a policy's namespace, if they decide about its access.
async fn labels(objects: &ClusterObjects, own: &str, is_needed: bool) -> NamespaceLabels {
    if !is_needed {
        return Ok(BTreeMap::new());
    }
    let api: Api<Namespace> = Api::all(objects.client().clone());
    let namespace = objects.guard().send(own, api.get(own)).await?;
    Ok(namespace.metadata.labels.unwrap_or_default())
}
