//! The work queue of pull requests, as the runs of automations use it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tagboat_api::ObjectName;

use super::super::delivery::{CautiousAutomation, OwnerHash};
use super::super::forge_login::ForgeAccess;
use super::super::waiting::WriteGate;
use super::before_git::LookUp;
use super::order::PullRequestOrder;
use super::progress::PullRequestProgress;
use super::repository::{Repository, RepositoryKey};
use super::snapshot::Snapshot;
use super::tasks::{PullRequestQueueOptions, QueueState, SharedQueue};
use crate::cancel::StopToken;
use crate::forge::ForgeError;
use crate::git::BranchName;
use crate::secrets::Redactor;

/// The work queue of pull requests. Clones share it.
///
/// A task per repository works off the orders of its automations. No run of an automation waits for it.
#[derive(Clone)]
pub struct PullRequestQueue(Arc<SharedQueue>);

impl fmt::Debug for PullRequestQueue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PullRequestQueue").finish_non_exhaustive()
    }
}

impl PullRequestQueue {
    /// Makes an empty queue.
    pub fn new(options: PullRequestQueueOptions) -> Self {
        Self(Arc::new(SharedQueue::new(options)))
    }

    /// Runs the tasks of all repositories until it is dropped or stopped.
    pub async fn run(self, stop: StopToken) {
        self.0.run(stop).await;
    }

    /// Returns true if nothing is changed at a forge.
    pub fn is_dry_run(&self) -> bool {
        self.0.options.is_dry_run
    }

    /// Returns true if there are no tasks, and callers work on the repositories.
    pub fn has_no_tasks(&self) -> bool {
        self.0.options.on_progress.is_none()
    }

    /// Records the repository of an automation, with the present login.
    pub fn connect(&self, automation: &ObjectName, key: &RepositoryKey, access: ForgeAccess) {
        let mut state = self.0.state.lock();
        let before = state.automations.insert(automation.clone(), key.clone());
        if let Some(before) = before.filter(|before| before != key) {
            state.leave(automation, &before);
        }
        let access = Arc::new(access);
        let QueueState { repositories, kept, .. } = &mut *state;
        let repository = repositories
            .entry(key.clone())
            .or_insert_with(|| Repository::new(&access, kept.get(key.namespace.clone())));
        repository.access = access;
    }

    /// Forgets an automation: its pull requests stay as they are.
    pub fn forget(&self, automation: &ObjectName) {
        let mut state = self.0.state.lock();
        if let Some(key) = state.automations.remove(automation) {
            state.leave(automation, &key);
        }
        drop(state);
        self.0.options.metrics.forget_pull_requests(automation);
    }

    /// Returns the pull requests of a repository as they were listed last.
    ///
    /// With them comes true if git may change a branch by this list.
    pub fn snapshot(&self, key: &RepositoryKey) -> (Arc<Snapshot>, bool) {
        let state = self.0.state.lock();
        let Some(repository) = state.repositories.get(key) else { return (Arc::default(), false) };
        (Arc::clone(&repository.snapshot), repository.is_up_to_date(Instant::now()))
    }

    /// Returns a redactor of the present login of a repository.
    pub(super) fn redactor(&self, key: &RepositoryKey) -> Redactor {
        let access = self.0.state.lock().repositories.get(key).map(|found| Arc::clone(&found.access));
        access.map(|access| access.redactor()).unwrap_or_default()
    }

    /// Returns the automations of a repository and base with an order.
    pub fn owners(&self, key: &RepositoryKey, base: &BranchName) -> BTreeSet<OwnerHash> {
        let state = self.0.state.lock();
        state.repositories.get(key).map(|found| found.owners(base)).unwrap_or_default()
    }

    /// Returns true if git can go on with the branches of an automation.
    ///
    /// It must as well if no order is known, as after a restart.
    pub fn needs_git(&self, automation: &ObjectName) -> bool {
        let state = self.0.state.lock();
        let repository = state.repository_of(automation);
        repository.is_none_or(|found| {
            found.needs_git.contains(automation) || !found.orders.contains_key(automation)
        })
    }

    /// Lists the pull requests of a repository, and looks the closed ones of branches up.
    pub(super) async fn look_up(&self, key: &RepositoryKey, wanted: LookUp<'_>) {
        self.0.look_up(key, wanted).await;
    }

    /// Hands an order over, in place of an earlier one of the automation.
    ///
    /// One that wants the same is worked on only if the last round is older than `age`, or has waited for this run of git.
    pub fn submit(&self, key: &RepositoryKey, order: PullRequestOrder, age: Duration) {
        let mut state = self.0.state.lock();
        let Some(repository) = state.repositories.get_mut(key) else { return };
        let was_awaited = repository.needs_git.remove(&order.automation);
        let order = Arc::new(order);
        let before = repository.put_order(&order);
        if order.awaiting_forge().next().is_some() {
            repository.arrived.notify_one();
        }
        if was_awaited || before.is_none_or(|before| !before.wants_same(&order)) {
            self.0.wake(key, repository);
            repository.changed.notify_one();
        } else if repository.is_older(age) {
            self.0.wake(key, repository);
            repository.end_delay(age);
        }
    }

    /// Has the pull requests of an automation listed again, unless that was done within `age`.
    ///
    /// The gate and the more cautious automations are those of the present run. Others of these are due at once.
    pub fn touch(
        &self,
        automation: &ObjectName,
        (gate, cautious): (Option<WriteGate>, Vec<CautiousAutomation>),
        age: Duration,
    ) {
        let mut state = self.0.state.lock();
        let Some(key) = state.automations.get(automation).cloned() else { return };
        let Some(repository) = state.repositories.get_mut(&key) else { return };
        repository.set_gate(automation, gate);
        if repository.set_cautious(automation, cautious) {
            self.0.wake(&key, repository);
            repository.changed.notify_one();
        } else if repository.is_older(age) {
            self.0.wake(&key, repository);
            repository.end_delay(age);
        }
    }

    /// Returns the progress of an automation's pull requests, with its order.
    ///
    /// There is none before the first round.
    pub fn progress(&self, automation: &ObjectName) -> Option<(PullRequestProgress, Arc<PullRequestOrder>)> {
        let state = self.0.state.lock();
        let repository = state.repository_of(automation)?;
        let progress = repository.progress.get(automation)?.clone();
        Some((progress, Arc::clone(repository.orders.get(automation)?)))
    }

    /// Returns true if git may have to delete branches of an automation.
    ///
    /// Their pull requests were closed because no policy renders them, or have ended after the branches were handed back.
    pub fn ends_branches(&self, automation: &ObjectName) -> bool {
        let state = self.0.state.lock();
        let Some(repository) = state.repository_of(automation) else { return false };
        let order = repository.orders.get(automation);
        order.is_some_and(|order| repository.snapshot.has_closed(&order.base, &order.owner))
    }

    /// Takes note of the progress that an automation has reported.
    ///
    /// What waits for the report is done next.
    pub fn announced(&self, automation: &ObjectName, reported: &PullRequestProgress) {
        let mut state = self.0.state.lock();
        let Some(key) = state.automations.get(automation).cloned() else { return };
        let Some(repository) = state.repositories.get_mut(&key) else { return };
        if repository.announced(automation, reported) {
            self.0.wake(&key, repository);
        }
    }

    /// Returns the error of the last list that git needed, if it failed.
    pub fn list_failure(&self, automation: &ObjectName) -> Option<ForgeError> {
        let state = self.0.state.lock();
        state.repository_of(automation)?.look_up_failure.clone()
    }

    /// Lists pull requests again before git ends the branches of closed ones.
    ///
    /// That is needed only after a long round: since its list, a person may have reopened one.
    pub async fn list_for_ends(&self) {
        let keys: Vec<RepositoryKey> = self.0.state.lock().repositories.keys().cloned().collect();
        for key in keys {
            self.0.list_for_ends(&key).await;
        }
    }

    /// Works on all repositories once.
    pub async fn run_once(&self) {
        let keys: Vec<RepositoryKey> = self.0.state.lock().repositories.keys().cloned().collect();
        for key in keys {
            self.0.round(&key).await;
        }
    }
}
