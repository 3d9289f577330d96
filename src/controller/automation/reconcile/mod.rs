//! One reconcile of one automation, from the object to its new status.
//!
//! | file | contents |
//! |---|---|
//! | `start` | the steps before a run |
//! | `prepare` | the proposal for the writer |
//! | `finish`, `report` | the end of the run; its events, log and status |

mod finish;
mod prepare;
mod report;
mod start;

use std::sync::Arc;

use tracing::{Instrument, Span};

use self::start::{Started, start};
use super::state::Automations;
use crate::controller::engine::in_flight::InFlight;
use crate::controller::engine::kind::forget_if_gone;
use crate::objects::ObjectName;
use crate::objects::cluster::ClusterObjects;
use crate::reconcile::action::Action;
use crate::reconcile::automation::batch_logins::BatchLogins;
use crate::reconcile::automation::conclusion::Conclusion;
use crate::reconcile::automation::proposal::UpdateProposal;

/// A reconcile of an automation that has begun.
pub(super) struct Reconcile {
    automations: Arc<Automations>,
    /// The objects, on behalf of the automation's namespace; the members of a batch share secrets.
    objects: ClusterObjects,
    /// The logins that the members of a batch share.
    logins: BatchLogins,
    started: Box<Started>,
    in_flight: InFlight,
    span: Span,
}

impl Reconcile {
    /// Fetches an automation and writes that its run is in progress.
    ///
    /// Returns `None` if there is no run.
    pub(super) async fn begin(
        automations: &Arc<Automations>,
        objects: &ClusterObjects,
        logins: &BatchLogins,
        name: ObjectName,
    ) -> Option<Self> {
        let kind = &automations.kind;
        let span = kind.span(&name);
        let mut in_flight = kind.begin(name).await;
        let result = match start(automations, &in_flight.name).instrument(span.clone()).await {
            Ok(Some(started)) => {
                let (automations, logins) = (automations.clone(), logins.clone());
                let objects = objects.on_behalf_of(&in_flight.name.namespace);
                return Some(Self { automations, objects, logins, started, in_flight, span });
            }
            Ok(None) => Ok(Action::AwaitChange),
            Err(error) => Err(error),
        };
        span.in_scope(|| kind.end(&mut in_flight, result));
        forget_if_gone(automations.as_ref(), &in_flight.name);
        None
    }

    /// Reports the conclusion of the run, and requeues the automation.
    pub(super) async fn conclude(mut self, conclusion: Conclusion, proposal: Option<Box<UpdateProposal>>) {
        let span = self.span.clone();
        self.finish(&conclusion, proposal).instrument(span).await;
        forget_if_gone(self.automations.as_ref(), &self.in_flight.name);
        let known = self.automations.kind.cache.get(&self.in_flight.name);
        self.automations.forget_unused_key(&self.started.automation, known.as_deref());
    }
}
