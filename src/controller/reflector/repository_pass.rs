//! One look at one ImageRepository, from the object as it stands to its new status.

use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::repository::ImageRepositoryStatus;
use tagboat_api::{FINALIZER, ImageRepository};
use tracing::Instrument;

use super::shared::{Done, Kind, Shared, StatusMaker, saying_so, span, verdict};
use crate::controller::queue::Verdict;
use crate::objects::cluster::ClusterError;
use crate::objects::{Event, EventType, ObjectName};
use crate::reconcile::course::{Next, reported_on};
use crate::reconcile::repository::run::Run;
use crate::reconcile::tags::Registry;
use crate::registry::left_out_in_words;

/// The reason of the event about names in a list that are no tags.
const NAMES_LEFT_OUT: &str = "NamesLeftOut";

/// Carries out a repository that is due.
pub(super) async fn carry_out<R: Registry>(shared: Arc<Shared<R>>, name: ObjectName) {
    let span = span(&shared, Kind::Repository, &name);
    let mut done = shared.begin(Kind::Repository, name).await;
    Box::pin(async {
        let ended = pass(&shared, &mut done).await;
        shared.ended(&done, ended);
        if shared.memory.see(&done.name) {
            // There is something to say now, be it that no tags could be had.
            for policy in shared.policies.referrers(&done.name) {
                shared.wake(Kind::Policy, ObjectName::of(policy.as_ref()));
            }
        }
        shared.forget_if_gone(done.kind, &done.name);
    })
    .instrument(span)
    .await;
}

async fn pass<R: Registry>(shared: &Arc<Shared<R>>, done: &mut Done) -> Result<bool, ClusterError> {
    let Some(known) = shared.repositories.get(&done.name) else {
        done.verdict = Verdict::Wait;
        return Ok(true);
    };
    if known.metadata.deletion_timestamp.is_some() {
        if let Err(words) = shared.shelf.delete(&done.name).await {
            tracing::error!(error = words, "cannot forget the tags, trying again");
            return Ok(false);
        }
        shared.writer.remove_finalizer(known.as_ref(), FINALIZER).await?;
        done.verdict = Verdict::Wait;
        return Ok(true);
    }
    let Some(repository) = shared.writer.add_finalizer(known.as_ref(), FINALIZER).await? else {
        done.verdict = Verdict::Wait;
        return Ok(true);
    };
    observe(shared, &repository);
    if repository.spec.suspend {
        // A request that comes meanwhile is for the time after.
        tracing::info!("reconciliation is suspended for this object");
        done.verdict = Verdict::Wait;
        return Ok(true);
    }
    let previous = repository.status.clone().unwrap_or_default();
    let repository = Arc::new(repository);
    let run = Run::of(repository.clone(), &shared.options.scans(), &shared.shelf, Timestamp::now()).await;
    let begin = |current: &ImageRepository| run.begin(&current.status.clone().unwrap_or_default()).status;
    let begin = run.begin(&previous).is_to_be_written.then_some(&begin as StatusMaker<'_, _, _>);
    let work = run.carry_out(&shared.registry, &shared.shelf);
    done.make_room();
    let said =
        Box::pin(saying_so(&shared.writer, ImageRepository::clone(&repository), begin, Box::pin(work)))
            .await?;
    done.take_place().await;
    let Some((begun, conclusion)) = said else {
        done.verdict = Verdict::Wait;
        return Ok(true);
    };
    observe(shared, &begun);
    shared.memory.scanned(&repository, &conclusion);
    let now = Timestamp::now();
    let report = run.report(&previous, &conclusion, now);
    let begun_with = begun.status.clone().unwrap_or_default();
    let status = |current: &ImageRepository| -> ImageRepositoryStatus {
        let stored = current.status.clone().unwrap_or_default();
        run.report(&reported_on(&previous, &begun_with, &stored), &conclusion, now).status
    };
    let left_out = shared.memory.newly_left_out(&done.name, &conclusion).map(|number| Event {
        type_: EventType::Warning,
        reason: NAMES_LEFT_OUT.to_owned(),
        message: left_out_in_words(number),
    });
    let announcing = async {
        for event in left_out.iter().chain([&report.event]) {
            shared.announce(done.kind, &begun, event).await;
        }
    };
    let ((), written) = tokio::join!(announcing, shared.writer.update_status(&begun, &status));
    let written = written?;
    written.iter().for_each(|written| observe(shared, written));
    done.verdict = verdict(report.next);
    Ok(report.next != Next::Retry)
}

/// Takes note of a repository as an answer of the API server has it, and wakes those whom that concerns.
fn observe<R: Registry>(shared: &Arc<Shared<R>>, repository: &ImageRepository) {
    let mut repository = repository.clone();
    repository.managed_fields_mut().clear();
    if let Some(change) = shared.repositories.apply_written(repository) {
        super::repository_changed(shared, &change);
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
