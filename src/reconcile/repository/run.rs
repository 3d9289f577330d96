//! A run of an ImageRepository, from the object as it stands to what is said of it.

use std::sync::Arc;

use jiff::Timestamp;
use tagboat_api::repository::ImageRepositoryStatus;
use tagboat_api::{ImageRepository, Reason};

use super::decision::Decision;
use super::exclusion::Exclusion;
use super::report::{Conclusion, Planned, Report, Stop, begun, report};
use super::request::{ObjectIdentity, Request, RequestError};
use super::scan;
use crate::objects::ObjectName;
use crate::reconcile::course::{Beginning, Course};
use crate::reconcile::tags::{Found, ListFailure, Place, Registry, Shelf};
use crate::registry::store::Scan;
use crate::sentence::chain;

/// A run that is about to begin.
#[derive(Clone, Debug)]
pub struct Run {
    repository: Arc<ImageRepository>,
    course: Course,
    request: Result<Request, RequestError>,
    decision: Option<Decision>,
}

impl Run {
    /// The run of an object that begins now.
    pub fn of(
        repository: Arc<ImageRepository>,
        identity: ObjectIdentity,
        shelf: &Shelf,
        now: Timestamp,
    ) -> Self {
        let course = Course::of(repository.as_ref(), now);
        let request = Request::of(&repository, identity);
        let previous = repository.status.clone().unwrap_or_default();
        let decision = request.as_ref().ok().map(|request| {
            let stored = shelf.read(&ObjectName::of(repository.as_ref()), &request.address.canonical());
            Decision::of(request, &course, &previous, stored.is_some())
        });
        Self { repository, course, request, decision }
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
        // A pattern that is none is found before anybody is asked; Flux notices it afterwards.
        let exclusion = match Exclusion::parse(&request.exclusions) {
            Ok(exclusion) => exclusion,
            Err(error) => return Conclusion::Stopped(Stop::Scan(chain(&error))),
        };
        let place = Place {
            repository: self.repository.clone(),
            address: request.address.clone(),
            timeout: request.timeout,
        };
        let (object, canonical) = (ObjectName::of(self.repository.as_ref()), request.address.canonical());
        // What is stored went through the exclusion. It stands for the list only where that is the same.
        let known = shelf.read(&object, &canonical).filter(|_| self.has_same_exclusions(request));
        let (tags, etag) = match (registry.tags(&place, known.as_deref()).await, known) {
            (Ok(Found::Tags(tags, etag)), _) => (exclusion.apply(&tags), etag),
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
        let scanned = Timestamp::now();
        match shelf.keep(&object, Scan { canonical: canonical.clone(), scanned, etag, tags }) {
            Ok(kept) => Conclusion::Scanned(scan::result(&kept.tags, kept.tags.revision(), scanned)),
            Err(words) => {
                Conclusion::Stopped(Stop::Scan(format!("failed to set tags for {canonical:?}: {words}")))
            }
        }
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
