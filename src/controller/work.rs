//! Reconciles the automations of one repository together.

use std::sync::Arc;

use super::pass;
use super::shared::Shared;
use crate::objects::ObjectName;
use crate::objects::cluster::ClusterObjects;
use crate::reconcile::automation::batch::{self, Job};
use crate::reconcile::automation::batch_logins::BatchLogins;
use crate::reconcile::automation::conclusion::Conclusion;
use crate::reconcile::automation::proposal::UpdateProposal;
use crate::reconcile::automation::transaction::Prepared;

/// An automation that is due. Its run begins as the first step of its job, so that none waits for the beginning of another.
struct Due {
    shared: Arc<Shared>,
    objects: ClusterObjects,
    logins: BatchLogins,
    name: ObjectName,
    /// The run; none if it has not begun, or there is to be none.
    pass: Option<pass::Pass>,
}

impl Job for Due {
    async fn prepare(&mut self, is_first: bool) -> Result<Prepared, Conclusion> {
        if is_first {
            self.pass = pass::begin(&self.shared, &self.objects, &self.logins, self.name.clone()).await;
        }
        match &mut self.pass {
            Some(pass) => pass.prepare(is_first).await,
            None => Err(Conclusion::cancelled()),
        }
    }

    async fn conclude(&mut self, conclusion: Conclusion, proposal: Option<UpdateProposal>) {
        if let Some(pass) = &mut self.pass {
            pass.conclude(conclusion, proposal).await;
        }
    }
}

/// Carries out automations that go to one repository.
pub(super) async fn carry_out(shared: Arc<Shared>, names: Vec<ObjectName>) {
    let objects = shared.objects.with_secret_cache();
    let logins = BatchLogins::default();
    let due = |name| {
        let (shared, objects, logins) = (Arc::clone(&shared), objects.clone(), logins.clone());
        Due { shared, objects, logins, name, pass: None }
    };
    let mut jobs: Vec<Due> = names.into_iter().map(due).collect();
    batch::carry_out(jobs.iter_mut().collect(), &shared.writer, &shared.stop).await;
}
