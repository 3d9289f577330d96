//! A run of an ImageRepository, from the object to its report.

use std::sync::Arc;

use jiff::Timestamp;
use tagboat_api::repository::{ImageRepositoryStatus, ScanResult};
use tagboat_api::{GoDuration, ImageRepository, Reason};

use super::decision::Decision;
use super::exclusion::Exclusion;
use super::report::{Conclusion, Planned, Report, RunFailure, initial_status, report};
use super::request::{ObjectIdentity, Request, RequestError};
use super::scan;
use crate::error::chain;
use crate::objects::ObjectName;
use crate::reconcile::run::{ReconcileRun, Started};
use crate::reconcile::tags::{ListFailure, Registry, RepositoryTarget, SharedTagStore};
use crate::reconcile::times::TimeBounds;
use crate::registry::store::{Scan, StoredHead, StoredTags};
use crate::registry::{Listed, Listing};
use crate::tenancy::{Capacity, Checkpoint, Interrupted};

/// The options of all scans.
#[derive(Clone, Debug)]
pub struct ScanOptions {
    /// Allows or forbids repositories to log in as a service account of their own.
    pub identity: ObjectIdentity,
    /// Bounds on timeouts.
    pub times: TimeBounds,
    /// The threads and the memory that all tenants share.
    pub capacity: Capacity,
}

/// A run that is about to begin.
#[derive(Clone, Debug)]
pub struct Run {
    repository: Arc<ImageRepository>,
    run: ReconcileRun,
    request: Result<Request, RequestError>,
    decision: Option<Decision>,
    /// The head of the stored list of the same repository.
    stored: Option<StoredHead>,
    capacity: Capacity,
}

impl Run {
    /// Begins a run of an object.
    pub async fn of(
        repository: Arc<ImageRepository>,
        options: &ScanOptions,
        tag_store: &SharedTagStore,
        now: Timestamp,
    ) -> Self {
        let run = ReconcileRun::of(repository.as_ref(), now);
        let request = Request::of(&repository, options.identity, options.times);
        let previous = repository.status.clone().unwrap_or_default();
        let (mut decision, mut stored) = (None, None);
        if let Ok(request) = &request {
            let name = ObjectName::of(repository.as_ref());
            stored = tag_store.head(&name.namespace, &name, &request.address.canonical()).await;
            decision = Some(Decision::of(request, &run, &previous, stored.is_some()));
        }
        Self { repository, run, request, decision, stored, capacity: options.capacity.clone() }
    }

    /// Makes the status with which the run begins.
    pub fn begin(&self, previous: &ImageRepositoryStatus) -> Started<ImageRepositoryStatus> {
        let is_reported_at_start =
            matches!(self.decision, Some(Decision::Scan(reason)) if reason.is_reported_at_start());
        Started {
            status: initial_status(&self.run, previous, self.decision),
            must_be_written: is_reported_at_start || self.run.begin(previous).must_be_written,
        }
    }

    /// Scans, if a scan is due.
    pub async fn reconcile(&self, registry: &impl Registry, tag_store: &SharedTagStore) -> Conclusion {
        let (request, decision) = match (&self.request, self.decision) {
            (Err(error), _) => return Conclusion::Failed(RunFailure::stall(error)),
            (Ok(request), Some(decision)) => (request, decision),
            (Ok(_), None) => unreachable!("what is understood is decided on"),
        };
        if let Decision::NotDue(rest) = decision {
            return Conclusion::Skipped(rest);
        }
        let object = ObjectName::of(self.repository.as_ref());
        let (pool, namespace) = (&self.capacity.pool, &object.namespace);
        // An invalid pattern is found before any request; Flux finds it afterwards.
        let patterns = request.exclusions.clone();
        let exclusion = match pool.run(namespace, move || Exclusion::parse(&patterns)).await {
            Ok(exclusion) => exclusion,
            Err(error) => return Conclusion::Failed(RunFailure::Scan(chain(&error))),
        };
        let target = RepositoryTarget {
            repository: self.repository.clone(),
            address: request.address.clone(),
            timeout: request.timeout,
            referred_from: None,
        };
        // The exclusion was applied to the stored list. It stands for the registry's list only if the exclusion is the
        // same.
        let known = self.stored.as_ref().and_then(|stored| stored.etag.as_deref());
        let known = known.filter(|_| self.has_same_exclusions(request));
        let mut listed = Box::pin(registry.tags(&target, known)).await;
        if let Ok(Listed::Unchanged) = listed {
            match self.renew(request, &object, tag_store).await {
                Ok(Some(result)) => return Conclusion::Scanned(result, None),
                // It was evicted meanwhile.
                Ok(None) => listed = Box::pin(registry.tags(&target, None)).await,
                Err(failure) => return Conclusion::Failed(failure),
            }
        }
        match listed {
            Ok(Listed::Tags(listing)) => {
                let left_out = listing.left_out;
                match Box::pin(self.keep(request, exclusion, listing, tag_store)).await {
                    Ok(result) => Conclusion::Scanned(result, Some(left_out)),
                    Err(failure) => Conclusion::Failed(failure),
                }
            }
            Ok(Listed::Unchanged) => {
                let message = "the registry reports an unchanged tag list, but no list is stored";
                Conclusion::Failed(RunFailure::Scan(message.to_owned()))
            }
            Err(ListFailure::Login(message)) => Conclusion::Failed(RunFailure::Login(message)),
            Err(ListFailure::Forbidden(message)) => {
                Conclusion::Failed(RunFailure::Stall(Reason::AccessDenied, message))
            }
            Err(ListFailure::Scan(kind, message)) => Conclusion::Failed(RunFailure::Listing(kind, message)),
        }
    }

    /// Stores a list again as the result of a scan now.
    ///
    /// Returns `None` if it is not stored any more.
    async fn renew(
        &self,
        request: &Request,
        object: &ObjectName,
        tag_store: &SharedTagStore,
    ) -> Result<Option<ScanResult>, RunFailure> {
        let (canonical, scanned) = (request.address.canonical(), Timestamp::now());
        let result = move |stored: &StoredTags| scan::result(&stored.tags, stored.tags.revision(), scanned);
        let renewed = Box::pin(tag_store.renew(object, &canonical, scanned, result)).await;
        renewed.map_err(|message| storage_error(&canonical, &message))
    }

    /// Stores the tags of a list that are not excluded.
    ///
    /// All of that is one job on the pool, with the memory that was reserved for the list, so nothing large
    /// waits for a thread beyond that.
    async fn keep(
        &self,
        request: &Request,
        exclusion: Exclusion,
        listing: Listing,
        tag_store: &SharedTagStore,
    ) -> Result<ScanResult, RunFailure> {
        let object = ObjectName::of(self.repository.as_ref());
        let turn = listing.turn().await;
        let memory = if listing.is_reserved() { None } else { tag_store.reserve_for_scan(&object).await };
        let (count, timeout, canonical) = (listing.tags.len(), request.timeout, request.address.canonical());
        let (namespace, tag_store) = (object.namespace.clone(), tag_store.clone());
        let job = move |checkpoint: &Checkpoint| {
            let _held = (turn, memory);
            let tags = exclusion.apply(&listing.tags, || checkpoint.check())?;
            let (etag, _list) = listing.leave_tags();
            let scanned = Timestamp::now();
            let scan = Scan { canonical: canonical.clone(), scanned, etag, tags };
            let saved = tag_store.keep(&object, scan);
            Ok(saved
                .map(|saved| scan::result(&saved.tags, saved.tags.revision(), scanned))
                .map_err(|message| storage_error(&canonical, &message)))
        };
        let saved: Result<_, Interrupted> = self.capacity.pool.run_within(&namespace, timeout, job).await;
        saved.unwrap_or_else(|_| {
            Err(RunFailure::Scan(format!(
                "spec.exclusionList could not be applied to all {count} tags within {}: use fewer or simpler expressions, or a \
                 longer spec.timeout",
                GoDuration::from(timeout)
            )))
        })
    }

    fn has_same_exclusions(&self, request: &Request) -> bool {
        let status = self.repository.status.as_ref();
        status.is_some_and(|status| status.observed_exclusion_list == request.exclusions)
    }

    /// Makes the report of the run, given the status before it.
    pub fn report(
        &self,
        previous: &ImageRepositoryStatus,
        conclusion: &Conclusion,
        now: Timestamp,
    ) -> Report {
        let planned = Planned { request: self.request.as_ref().ok(), decision: self.decision };
        report(&self.run, planned, previous, conclusion, now)
    }
}

/// Makes the failure of tags that cannot be stored.
fn storage_error(canonical: &str, message: &str) -> RunFailure {
    RunFailure::Scan(format!("failed to set tags for {canonical:?}: {message}"))
}
