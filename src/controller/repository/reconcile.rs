//! One reconcile of one ImageRepository, from the object to its new status.

use std::sync::Arc;

use jiff::Timestamp;
use tagboat_api::ImageRepository;
use tagboat_api::repository::ImageRepositoryStatus;

use super::state::Repositories;
use crate::controller::engine::in_flight::InFlight;
use crate::controller::engine::reconcile_steps::{
    self, Fetched, StatusMaker, fetch, finalize, status_of, with_progress_status,
};
use crate::objects::cluster::ClusterError;
use crate::objects::{Event, EventType, ObjectName};
use crate::reconcile::action::Action;
use crate::reconcile::repository::run::Run;
use crate::reconcile::tags::Registry;
use crate::registry::left_out_warning;

/// The reason of the event about names in a list that are no tags.
const NAMES_LEFT_OUT: &str = "NamesLeftOut";

/// Reconciles a repository.
pub(crate) async fn reconcile<R: Registry>(
    repositories: &Arc<Repositories<R>>,
    in_flight: &mut InFlight,
) -> Result<Action, ClusterError> {
    let result = reconcile_once(repositories, in_flight).await;
    if repositories.memory.set_reconciled(&in_flight.name) {
        // Its policies have waited for this, even if there are no tags.
        for policy in repositories.policies.cache.referrers(&in_flight.name) {
            repositories.policies.enqueue(ObjectName::of(policy.as_ref()));
        }
    }
    result
}

async fn reconcile_once<R: Registry>(
    repositories: &Arc<Repositories<R>>,
    in_flight: &mut InFlight,
) -> Result<Action, ClusterError> {
    let own = repositories.as_ref();
    let Repositories { kind, registry, tag_store, memory, .. } = own;
    let repository = match fetch(own, &in_flight.name).await? {
        Fetched::Gone | Fetched::Suspended(_) => return Ok(Action::AwaitChange),
        Fetched::Deleted(known) => {
            if let Err(message) = tag_store.delete(&in_flight.name).await {
                tracing::error!(error = message, "cannot delete the tags, retrying");
                return Ok(Action::Retry);
            }
            finalize(kind, &known).await?;
            return Ok(Action::AwaitChange);
        }
        Fetched::Active(repository) => Arc::new(repository),
    };
    let previous = status_of(repository.as_ref());
    let run = Run::of(repository.clone(), &repositories.options, tag_store, Timestamp::now()).await;
    let begin = |current: &ImageRepository| run.begin(&status_of(current)).status;
    let begin = run.begin(&previous).must_be_written.then_some(&begin as StatusMaker<'_, _, _>);
    let work = Box::pin(run.reconcile(registry, tag_store));
    let object = ImageRepository::clone(&repository);
    let done = Box::pin(with_progress_status(own, in_flight, object, begin, work)).await?;
    let Some((initial, conclusion)) = done else { return Ok(Action::AwaitChange) };
    memory.scanned(&repository, &conclusion);
    let now = Timestamp::now();
    let report = run.report(&previous, &conclusion, now);
    let left_out = memory.newly_left_out(&in_flight.name, &conclusion).map(|number| Event {
        type_: EventType::Warning,
        reason: NAMES_LEFT_OUT.to_owned(),
        message: left_out_warning(number),
    });
    let events: Vec<Event> = left_out.into_iter().chain([report.event]).collect();
    let status = |status: &ImageRepositoryStatus| run.report(status, &conclusion, now).status;
    reconcile_steps::report(own, &initial, &previous, &events, &status).await?;
    Ok(report.action)
}
