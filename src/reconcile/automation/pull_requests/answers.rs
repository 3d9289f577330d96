//! Answers about branches that git makes only once the forge was asked.
//!
//! A round that opens many pull requests takes minutes where writes are limited. Its own answers are passed on before it acts,
//! and orders that arrive meanwhile are answered beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tagboat_api::ObjectName;

use super::order::PullRequestOrder;
use super::repository::{Repository, RepositoryKey};
use super::round::RoundWork;
use super::tasks::{DEBOUNCE, SharedQueue};
use crate::forge::{Forge, ForgeError};
use crate::git::BranchName;

/// The maximum age of the listing by which an order is answered.
///
/// Git uses it for as long again.
const LISTING_AGE: Duration = Duration::from_secs(30);

impl SharedQueue {
    /// Passes the answers of a round on, before it acts.
    pub(super) fn publish(&self, key: &RepositoryKey, work: &RoundWork) {
        if work.outcome.failure.is_some() {
            return;
        }
        let snapshot = Arc::new(work.snapshot.clone());
        self.release(key, |repository| {
            (repository.snapshot, repository.listed) = (snapshot, work.outcome.listed);
        });
    }

    /// Answers orders that arrive while a round acts.
    ///
    /// Those that are not answered when the round ends belong to the next one.
    pub(super) async fn answer_arrivals(
        &self,
        key: &RepositoryKey,
        forge: &impl Forge,
        known: &BTreeMap<ObjectName, Arc<PullRequestOrder>>,
    ) -> Infallible {
        let arrived = self.state.lock().repositories.get(key).map(|found| Arc::clone(&found.arrived));
        let Some(arrived) = arrived else { return pending().await };
        loop {
            arrived.notified().await;
            tokio::time::sleep(DEBOUNCE).await;
            if let Err(error) = self.answer(key, forge, known).await {
                tracing::debug!(error = %error, "the next round asks the forge about new branches");
            }
        }
    }

    /// Answers the orders that have arrived since a round began.
    async fn answer(
        &self,
        key: &RepositoryKey,
        forge: &impl Forge,
        known: &BTreeMap<ObjectName, Arc<PullRequestOrder>>,
    ) -> Result<(), ForgeError> {
        let found = self.state.lock().repositories.get(key).map(|repository| {
            let is_recent = repository.listed.is_some_and(|at| at.elapsed() < LISTING_AGE);
            (repository.arrivals(known), Arc::clone(&repository.snapshot), is_recent, repository.heads())
        });
        let Some((arrivals, snapshot, is_recent, heads)) = found else { return Ok(()) };
        let mut asked = BTreeMap::<&BranchName, BTreeSet<BranchName>>::new();
        for order in &arrivals {
            asked.entry(&order.base).or_default().extend(order.awaiting_forge().cloned());
        }
        if asked.is_empty() {
            return Ok(());
        }
        let mut snapshot = Arc::unwrap_or_clone(snapshot);
        if !is_recent {
            snapshot.list(forge, &heads, true).await?;
            let (shared, listed) = (Arc::new(snapshot.clone()), Instant::now());
            self.release(key, |repository| {
                (repository.snapshot, repository.listed) = (shared, Some(listed));
            });
        }
        for (base, heads) in &asked {
            let searched = snapshot.look_up_many(forge, base, heads).await;
            // One that failed says nothing of the others.
            self.release(key, |repository| {
                Arc::make_mut(&mut repository.snapshot).take(&snapshot, base, heads);
            });
            searched?;
        }
        Ok(())
    }

    /// Changes a repository, and notifies the automations whose branches git can deal with since.
    fn release(&self, key: &RepositoryKey, change: impl FnOnce(&mut Repository)) {
        let free = match self.state.lock().repositories.get_mut(key) {
            Some(repository) => {
                change(repository);
                repository.release_git()
            }
            None => return,
        };
        if let Some(notify) = &self.options.on_progress {
            free.iter().for_each(|name| notify(name));
        }
    }
}
