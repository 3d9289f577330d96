//! The proposal of a run for the writer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tagboat_api::settings::Delivery;
use tagboat_api::{ImageRef, ImageUpdateAutomation};
use tracing::Instrument;

use super::Reconcile;
use super::start::Started;
use crate::git::CommitTime;
use crate::objects::ObjectName;
use crate::reconcile::automation::compare::CompareRun;
use crate::reconcile::automation::conclusion::Conclusion;
use crate::reconcile::automation::places::{PlaceScan, ScanOrigin};
use crate::reconcile::automation::proposal::Detail;
use crate::reconcile::automation::request::ImageOverrides;
use crate::reconcile::automation::reselection::Reselection;
use crate::reconcile::automation::siblings::Siblings;
use crate::reconcile::automation::transaction::{self, Prepared, TransactionOptions};
use crate::reconcile::automation::waiting::WriteRules;
use crate::reference::ImageReference;

impl Reconcile {
    /// Prepares the request for the writer, unless the reconcile is cancelled before.
    ///
    /// `batch_size` is the number of automations that are reconciled together, and `siblings` are all of the repository.
    pub(in super::super) async fn prepare(
        &self,
        batch_size: usize,
        siblings: &Siblings,
    ) -> Result<Prepared, Conclusion> {
        tokio::select! {
            prepared = self.prepare_transaction(batch_size, siblings).instrument(self.span.clone()) => prepared,
            () = self.in_flight.cancellation.cancelled() => Err(Conclusion::cancelled()),
        }
    }

    async fn prepare_transaction(
        &self,
        batch_size: usize,
        siblings: &Siblings,
    ) -> Result<Prepared, Conclusion> {
        let Started { automation, previous, inputs, .. } = self.started.as_ref();
        let (automations, objects, name) = (&self.automations, &self.objects, &self.in_flight.name);
        // The status from before the run tells what is known.
        let automation = ImageUpdateAutomation { status: Some(previous.clone()), ..automation.clone() };
        let mut selected = transaction::select(objects, &automation, &ImageOverrides::new()).await?;
        if automations.comparisons.is_some() {
            // The other controller knows the push branch only.
            selected.settings.delivery = Delivery::Push;
        } else {
            let capacity = &automations.options.login.capacity;
            selected =
                transaction::hold_groups(selected, &automation, &ImageOverrides::new(), capacity).await;
        }
        for unusable in &selected.request.unusable {
            tracing::warn!("{unusable}");
        }
        let awaits_git =
            selected.settings.delivery == Delivery::PullRequest && automations.pull_requests.needs_git(name);
        let options = TransactionOptions {
            ends_branches_only: false,
            given: ImageOverrides::new(),
            named: BTreeSet::new(),
            cross_namespace: automations.options.cross_namespace,
            login: automations.options.login.clone(),
            logins: self.logins.clone(),
            keyring: automations.options.keyring.clone(),
            time: CommitTime::now(),
            detail: Detail::Warnings,
            is_forced: automations.memory.has_changed(name, inputs)
                || automations.needs_scan(name)
                || awaits_git,
            times: automations.options.times,
            references: automations.options.references,
            pull_requests: automations.pull_requests.clone(),
            rules: automations
                .comparisons
                .is_none()
                .then(|| WriteRules { ignores_own: self.started.is_forced_now, ..automations.rules.clone() }),
            known_wait: automations.waiting.known(name),
            siblings: siblings.clone(),
        };
        let (known, namespace) = (objects.policies.clone(), name.namespace.clone());
        let reader = Arc::new(move || known.in_namespace(&namespace));
        let mut reselection = Reselection::new(automation.clone(), reader, selected.policies.clone());
        if automations.comparisons.is_some() {
            reselection = reselection.ignoring_groups();
        }
        let mut prepared = transaction::prepare(objects, &automation, selected, &options).await?;
        prepared.proposal.proposer.reselection = Some(reselection);
        prepared.proposal.cancellation = self.in_flight.cancellation.clone();
        prepared.proposal.proposer.places = self.place_scan(&prepared, batch_size);
        if let Some(comparisons) = &automations.comparisons {
            let before = comparisons.before(name);
            prepared.proposal.proposer.compare = Some(CompareRun { before, result: None });
        }
        Ok(prepared)
    }

    /// Creates the scan for places, if they are kept.
    fn place_scan(&self, prepared: &Prepared, batch_size: usize) -> Option<PlaceScan> {
        let name = &self.in_flight.name;
        let places = self.automations.places.as_ref().filter(|places| places.is_on())?;
        Some(PlaceScan::new(ScanOrigin {
            automation: name.clone(),
            source: self.started.automation.git_repository(),
            repository: prepared.mirror.url.clone(),
            target: prepared.proposal.target.clone(),
            previous: places.of_automation(name),
            observed: self.observed_images(),
            known_files: places.known_files(name),
            batch_size,
        }))
    }

    /// Returns the images of the policies in the last run that was reported.
    fn observed_images(&self) -> BTreeMap<ObjectName, ImageReference> {
        let observed = self.started.previous.observed_policies.iter();
        let image = |(name, image): (&String, &ImageRef)| {
            let policy = ObjectName { namespace: self.in_flight.name.namespace.clone(), name: name.clone() };
            let image = ImageReference::from_parts(&image.name, &image.tag, image.digest()).ok()?;
            Some((policy, image))
        };
        observed.filter_map(image).collect()
    }
}
