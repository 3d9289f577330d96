//! Scans each repository of a run once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::{ImageRepository, RECONCILE_REQUEST_ANNOTATION};

use super::sources::{Repositories, Scanned, Sources};
use crate::cli::Failure;
use crate::cli::progress::ProgressLine;
use crate::cli::refused_login::advice;
use crate::error::chain;
use crate::objects::ObjectName;
use crate::objects::manifests::StateError;
use crate::reconcile::conditions::{ConditionType, find};
use crate::reconcile::lookup::LookupFailureKind;
use crate::reconcile::repository::access::{NamespacePool, access};
use crate::reconcile::repository::report::{Conclusion, RunFailure};
use crate::reconcile::repository::run::Run;

/// The time between two updates of the progress line.
const INTERVAL: Duration = Duration::from_millis(100);

impl Sources {
    /// Scans all repositories that are not suspended.
    pub(super) async fn scan(
        &self,
        repositories: &BTreeMap<ObjectName, ImageRepository>,
    ) -> Result<Repositories, Failure> {
        let mut scans: FuturesUnordered<_> = repositories
            .iter()
            .map(async |(name, manifest)| Ok((name.clone(), self.scan_one(manifest).await?)))
            .collect();
        let mut found = Repositories::new();
        let mut line = ProgressLine::new();
        let mut interval = tokio::time::interval(INTERVAL);
        loop {
            line.show_text(|| {
                format!("{} of {} image repositories scanned", found.len(), repositories.len())
            });
            tokio::select! {
                scanned = scans.next() => match scanned {
                    None => return Ok(found),
                    Some(Ok((name, scanned))) => {
                        found.insert(name, scanned);
                    }
                    Some(Err(error)) => {
                        let error: StateError = error;
                        return Err(Failure::new(chain(&error)));
                    }
                },
                _ = interval.tick() => {}
            }
        }
    }

    /// Returns the error of a scan, with advice if the registry refused the login.
    ///
    /// The message of the condition is that of Flux, without advice.
    async fn sentence(&self, object: &ImageRepository, failure: &RunFailure) -> String {
        let status = object.status.as_ref();
        let ready = status.and_then(|status| find(&status.conditions, ConditionType::Ready));
        let mut message = ready.map(|ready| ready.message.clone()).unwrap_or_default();
        let namespace = object.namespace().unwrap_or_default();
        let namespace_pool = NamespacePool { pool: self.registry.registries.pool(), namespace: &namespace };
        if matches!(failure, RunFailure::Listing(LookupFailureKind::Denied, _))
            && let Ok(found) =
                access(&self.registry.objects, object, &self.registry.logins, namespace_pool).await
            && let Some(advice) = advice(object, &self.registry.logins, &found.access.login)
        {
            message = format!("{message}; {advice}");
        }
        message
    }

    async fn scan_one(&self, manifest: &ImageRepository) -> Result<Scanned, StateError> {
        let known = self.state.repository(manifest)?;
        if known.spec.suspend {
            return Ok(Scanned { object: Arc::new(known), manifest: manifest.clone(), failure: None });
        }
        let started = Timestamp::now();
        let mut asked = known.clone();
        // A run is a request for a scan, regardless of the interval.
        asked.annotations_mut().insert(RECONCILE_REQUEST_ANNOTATION.to_owned(), started.to_string());
        let previous = known.status.clone().unwrap_or_default();
        let run = Run::of(Arc::new(asked.clone()), &self.policies.scans(), &self.tag_store, started).await;
        let conclusion = run.reconcile(&self.registry, &self.tag_store).await;
        let report = run.report(&previous, &conclusion, Timestamp::now());
        if let Some(state) = self.state.writable() {
            state.save_repository(&known, &report.status)?;
        }
        let object = Arc::new(ImageRepository { status: Some(report.status), ..asked });
        let failure = match &conclusion {
            Conclusion::Failed(failure) => Some(self.sentence(&object, failure).await),
            _ => None,
        };
        Ok(Scanned { object, manifest: manifest.clone(), failure })
    }
}
