//! A run of an ImageRepository, from the object as it stands to what is said of it.

use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::repository::ImageRepositoryStatus;
use tagboat_api::{GoDuration, ImageRepository, Reason};

use super::decision::Decision;
use super::exclusion::Exclusion;
use super::report::{Conclusion, Planned, Report, Stop, begun, report};
use super::request::{ObjectIdentity, Request, RequestError};
use super::scan;
use crate::objects::ObjectName;
use crate::reconcile::course::{Beginning, Course};
use crate::reconcile::tags::{Found, ListFailure, Place, Registry, Shelf};
use crate::reconcile::times::TimeBounds;
use crate::reference::TagList;
use crate::registry::store::Scan;
use crate::sentence::chain;
use crate::tenancy::{Capacity, Checkpoint};

/// Settings of the process for all scans.
#[derive(Clone, Debug)]
pub struct ScanOptions {
    /// Whether a repository may act as a service account of its own.
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
    course: Course,
    request: Result<Request, RequestError>,
    decision: Option<Decision>,
    capacity: Capacity,
}

impl Run {
    /// The run of an object that begins now.
    pub async fn of(
        repository: Arc<ImageRepository>,
        options: &ScanOptions,
        shelf: &Shelf,
        now: Timestamp,
    ) -> Self {
        let course = Course::of(repository.as_ref(), now);
        let request = Request::of(&repository, options.identity, options.times);
        let previous = repository.status.clone().unwrap_or_default();
        let mut decision = None;
        if let Ok(request) = &request {
            let name = ObjectName::of(repository.as_ref());
            let stored = shelf.read(&name.namespace, &name, &request.address.canonical()).await;
            decision = Some(Decision::of(request, &course, &previous, stored.is_some()));
        }
        Self { repository, course, request, decision, capacity: options.capacity.clone() }
    }

    /// The status with which the run begins.
    pub fn begin(&self, previous: &ImageRepositoryStatus) -> Beginning<ImageRepositoryStatus> {
        let is_worth_saying =
            matches!(self.decision, Some(Decision::Scan(reason)) if reason.is_worth_saying());
        Beginning {
            status: begun(&self.course, previous, self.decision),
            is_to_be_written: is_worth_saying || self.course.begin(previous).is_to_be_written,
        }
    }

    /// Scans, if it is time to, and says how that ended.
    pub async fn carry_out(&self, registry: &impl Registry, shelf: &Shelf) -> Conclusion {
        let (request, decision) = match (&self.request, self.decision) {
            (Err(error), _) => return Conclusion::Stopped(Stop::stall(error)),
            (Ok(request), Some(decision)) => (request, decision),
            (Ok(_), None) => unreachable!("what is understood is decided on"),
        };
        if let Decision::Rest(rest) = decision {
            return Conclusion::Rested(rest);
        }
        let object = ObjectName::of(self.repository.as_ref());
        let (pool, namespace) = (&self.capacity.pool, &object.namespace);
        // A pattern that is none is found before anybody is asked; Flux notices it afterwards.
        let patterns = request.exclusions.clone();
        let exclusion = match pool.run(namespace, move || Exclusion::parse(&patterns)).await {
            Ok(exclusion) => exclusion,
            Err(error) => return Conclusion::Stopped(Stop::Scan(chain(&error))),
        };
        let place = Place {
            repository: self.repository.clone(),
            address: request.address.clone(),
            timeout: request.timeout,
            referred_from: None,
        };
        let canonical = request.address.canonical();
        // What is stored went through the exclusion. It stands for the list only where that is the same.
        let known = shelf.read(namespace, &object, &canonical).await;
        let known = known.filter(|_| self.has_same_exclusions(request));
        let (tags, etag) = match (registry.tags(&place, known.as_deref()).await, known) {
            (Ok(Found::Tags(tags, etag)), _) => match self.exclude(request, exclusion, tags).await {
                Ok(tags) => (tags, etag),
                Err(stop) => return Conclusion::Stopped(stop),
            },
            (Ok(Found::Unchanged), Some(known)) => (known.tags.clone(), known.etag.clone()),
            (Ok(Found::Unchanged), None) => {
                let words = "the registry calls the list of tags unchanged, and nothing is known of it";
                return Conclusion::Stopped(Stop::Scan(words.to_owned()));
            }
            (Err(ListFailure::Login(words)), _) => return Conclusion::Stopped(Stop::Login(words)),
            (Err(ListFailure::Forbidden(words)), _) => {
                return Conclusion::Stopped(Stop::Stall(Reason::AccessDenied, words));
            }
            (Err(ListFailure::Scan(kind, words)), _) => {
                return Conclusion::Stopped(Stop::Listing(kind, words));
            }
        };
        let (scanned, kept_bytes) = (Timestamp::now(), tags.size());
        match shelf.keep(&object, Scan { canonical: canonical.clone(), scanned, etag, tags }).await {
            Ok(kept) => {
                let result = move || scan::result(&kept.tags, kept.tags.revision(), scanned);
                Conclusion::Scanned(pool.run_sized(namespace, kept_bytes, result).await)
            }
            Err(words) => {
                Conclusion::Stopped(Stop::Scan(format!("failed to set tags for {canonical:?}: {words}")))
            }
        }
    }

    /// The tags that the repository does not leave out, found on the pool.
    async fn exclude(&self, request: &Request, exclusion: Exclusion, tags: TagList) -> Result<TagList, Stop> {
        let (count, timeout) = (tags.len(), request.timeout);
        let namespace = self.repository.namespace().unwrap_or_default();
        let job = move |checkpoint: &Checkpoint| exclusion.apply(&tags, || checkpoint.check());
        self.capacity.pool.run_within(&namespace, timeout, job).await.map_err(|_| {
            Stop::Scan(format!(
                "spec.exclusionList could not be applied to all {count} tags within {}: use fewer or simpler expressions, or a \
                 longer spec.timeout",
                GoDuration::from(timeout)
            ))
        })
    }

    fn has_same_exclusions(&self, request: &Request) -> bool {
        let status = self.repository.status.as_ref();
        status.is_some_and(|status| status.observed_exclusion_list == request.exclusions)
    }

    /// What is to be said of the run, where the status before it was `previous`.
    pub fn report(
        &self,
        previous: &ImageRepositoryStatus,
        conclusion: &Conclusion,
        now: Timestamp,
    ) -> Report {
        let planned = Planned { request: self.request.as_ref().ok(), decision: self.decision };
        report(&self.course, planned, previous, conclusion, now)
    }
}
