//! One look at one ImageRepository, from the object as it stands to its new status.

use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::repository::ImageRepositoryStatus;
use tagboat_api::{FINALIZER, ImageRepository};
use tracing::Instrument;

use super::shared::{Done, Kind, Shared, span, verdict};
use crate::controller::queue::Verdict;
use crate::objects::ObjectName;
use crate::objects::cluster::ClusterError;
use crate::reconcile::course::{Next, reported_on};
use crate::reconcile::repository::run::Run;
use crate::reconcile::tags::Registry;

/// Carries out a repository that is due.
pub(super) async fn carry_out<R: Registry>(shared: Arc<Shared<R>>, name: ObjectName) {
    let span = span(&shared, &name);
    let mut done = shared.begin(Kind::Repository, name);
    async {
        let ended = pass(&shared, &mut done).await;
        shared.ended(&done, ended);
    }
    .instrument(span)
    .await;
}

async fn pass<R: Registry>(shared: &Arc<Shared<R>>, done: &mut Done) -> Result<bool, ClusterError> {
    let Some(known) = shared.repositories.get(&done.name) else {
        done.verdict = Verdict::Wait;
        return Ok(true);
    };
    if known.metadata.deletion_timestamp.is_some() {
        if let Err(words) = shared.shelf.delete(&done.name) {
            tracing::error!(error = words, "cannot forget the tags, trying again");
            return Ok(false);
        }
        shared.writer.remove_finalizer(known.as_ref(), FINALIZER).await?;
        shared.forget_measures(done.kind, &done.name);
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
    let mut begun = repository.clone();
    let identity = shared.options.identity;
    let run = Run::of(Arc::new(repository), identity, &shared.shelf, Timestamp::now());
    if run.begin(&previous).is_to_be_written {
        let status =
            |current: &ImageRepository| run.begin(&current.status.clone().unwrap_or_default()).status;
        let Some(written) = shared.writer.update_status(&begun, &status).await? else {
            done.verdict = Verdict::Wait;
            return Ok(true);
        };
        observe(shared, &written);
        begun = written;
    }
    let conclusion = run.carry_out(&shared.registry, &shared.shelf).await;
    let now = Timestamp::now();
    let report = run.report(&previous, &conclusion, now);
    shared.announce(&begun, &report.event).await;
    let begun_with = begun.status.clone().unwrap_or_default();
    let status = |current: &ImageRepository| -> ImageRepositoryStatus {
        let stored = current.status.clone().unwrap_or_default();
        run.report(&reported_on(&previous, &begun_with, &stored), &conclusion, now).status
    };
    let written = shared.writer.update_status(&begun, &status).await?;
    written.iter().for_each(|written| observe(shared, written));
    done.verdict = verdict(report.next);
    Ok(report.next != Next::Retry)
}

/// Takes note of a repository as an answer of the API server has it, and wakes those whom that concerns.
fn observe<R: Registry>(shared: &Arc<Shared<R>>, repository: &ImageRepository) {
    let mut repository = repository.clone();
    repository.managed_fields_mut().clear();
    if let Some(change) = shared.repositories.refresh(repository) {
        super::repository_changed(shared, &change);
    }
}
