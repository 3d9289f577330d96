//! The steps before a run, and the record that it is in progress.

use jiff::Timestamp;
use parking_lot::Mutex;
use tagboat_api::ImageUpdateAutomation;
use tagboat_api::automation::ImageUpdateAutomationStatus;

use super::super::memory::ObservedInputs;
use super::super::state::Automations;
use crate::controller::engine::reconcile_steps::{Fetched, fetch, finalize, patch_status, status_of};
use crate::objects::ObjectName;
use crate::objects::cluster::ClusterError;
use crate::reconcile::automation::report::while_suspended;
use crate::reconcile::automation::transaction;
use crate::reconcile::run::{ReconcileRun, status_before};

/// An automation at the beginning of its run.
pub(super) struct Started {
    /// The automation, with the status that is stored as far as we know.
    pub(super) automation: ImageUpdateAutomation,
    /// The status before the run.
    pub(super) previous: ImageUpdateAutomationStatus,
    pub(super) run: ReconcileRun,
    pub(super) inputs: ObservedInputs,
    /// True if a person has forced this one run.
    ///
    /// The automation's own windows and quiet period do not count then.
    pub(super) is_forced_now: bool,
}

/// The steps before a run (`docs/flux-behaviour.md`, A reconcile). Returns `None` if there is no run.
pub(super) async fn start(
    automations: &Automations,
    name: &ObjectName,
) -> Result<Option<Box<Started>>, ClusterError> {
    let kind = &automations.kind;
    let is_dry_run = kind.context.is_dry_run;
    let mut automation = match fetch(automations, name).await? {
        Fetched::Gone => return Ok(None),
        Fetched::Deleted(known) => {
            finalize(kind, &known).await?;
            if !is_dry_run {
                automations.writer.forget(&name.namespace, transaction::proposal_name(&known));
            }
            return Ok(None);
        }
        Fetched::Suspended(automation) => {
            automations.pull_requests.forget(name);
            kind.context.metrics.forget_write_state(name);
            let status = |current: &ImageUpdateAutomation| {
                while_suspended(&status_of(current), current.metadata.generation.unwrap_or(1))
            };
            if !is_dry_run {
                patch_status(automations, &automation, &status).await?;
            }
            return Ok(None);
        }
        Fetched::Active(automation) => automation,
    };
    let inputs = ObservedInputs::of(&automation, automations.objects());
    let run = ReconcileRun::of(&automation, Timestamp::now());
    let comparisons = automations.comparisons.as_ref();
    let mut previous = comparisons.map_or_else(|| status_of(&automation), |known| known.status(name));
    let begin = run.begin(&previous);
    if is_dry_run {
        automation.status = Some(previous.clone());
    } else if begin.must_be_written {
        let stored = Mutex::new(previous.clone());
        let status = |current: &ImageUpdateAutomation| {
            let current = status_of(current);
            let begun = run.begin(&current).status;
            *stored.lock() = current;
            begun
        };
        let Some(written) = patch_status(automations, &automation, &status).await? else { return Ok(None) };
        previous = status_before(&previous, &begin.status, &stored.into_inner());
        (automation.metadata, automation.status) = (written.metadata, written.status);
    }
    let is_forced_now = run.is_forced(&automation, &previous);
    Ok(Some(Box::new(Started { automation, previous, run, inputs, is_forced_now })))
}
