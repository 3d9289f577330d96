//! The tasks of the work queue: one per repository, with retries.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use tagboat_api::ObjectName;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::super::forge_login::ForgeAccess;
use super::branchless::CLOSING_TIME;
use super::merges::AskedMerges;
use super::order::PullRequestOrder;
use super::outcome::PullRequestVerb;
use super::refused_labels::RefusedLabels;
use super::repository::{Repository, RepositoryKey};
use super::round::{Round, RoundMode, RoundOutcome, RoundWork, TEXT_AGE};
use super::snapshot::Snapshot;
use crate::backoff::Backoff;
use crate::cancel::StopToken;
use crate::forge::{AnyForge, ForgeClients, ForgeError};
use crate::git::{BranchName, CommitId};
use crate::metrics::Metrics;
use crate::tenancy::{BlockingPool, InUseMap, KeptMemory};

/// The maximum delay until changes are tried again that an automation may not make now.
const WITHHELD_DELAY: Duration = Duration::from_secs(60);

/// The time for which orders are collected.
pub(super) const DEBOUNCE: Duration = Duration::from_millis(200);

/// The delays between the tries after failures.
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(5), longest: Duration::from_secs(10 * 60) };

/// Is called with an automation that is due, for a report or for git.
pub type OnProgress = Arc<dyn Fn(&ObjectName) + Send + Sync>;

/// The options of the work queue.
#[derive(Clone)]
pub struct PullRequestQueueOptions {
    /// The connections to forges.
    pub clients: ForgeClients,
    /// The pool on which texts are rendered.
    pub pool: BlockingPool,
    /// The metrics.
    pub metrics: Metrics,
    /// Is called when there is something to report; without it, there are no tasks.
    pub on_progress: Option<OnProgress>,
    /// True if nothing is changed at a forge.
    pub is_dry_run: bool,
}

/// The state of a work queue, which its clones share.
pub(super) struct SharedQueue {
    pub(super) options: PullRequestQueueOptions,
    pub(super) state: Mutex<QueueState>,
    /// Sends the repositories whose tasks are to be started.
    ///
    /// Each is in it at most once.
    starts: mpsc::UnboundedSender<RepositoryKey>,
    /// Receives them; none once the tasks run.
    started: Mutex<Option<mpsc::UnboundedReceiver<RepositoryKey>>>,
}

/// The repositories of a work queue.
#[derive(Default)]
pub(super) struct QueueState {
    pub(super) repositories: BTreeMap<RepositoryKey, Repository>,
    /// The repository of each automation.
    pub(super) automations: BTreeMap<ObjectName, RepositoryKey>,
    /// The memory of each namespace, which its repositories share.
    pub(super) kept: InUseMap<String, KeptMemory>,
}

/// The state in which a round begins.
struct Begun {
    access: Arc<ForgeAccess>,
    orders: BTreeMap<ObjectName, Arc<PullRequestOrder>>,
    handled: BTreeMap<BranchName, CommitId>,
    mode: RoundMode,
    /// The number of reports until then.
    reports: u64,
}

impl QueueState {
    pub(super) fn repository_of(&self, automation: &ObjectName) -> Option<&Repository> {
        self.repositories.get(self.automations.get(automation)?)
    }

    /// Removes an automation from a repository.
    pub(super) fn leave(&mut self, automation: &ObjectName, key: &RepositoryKey) {
        if let Some(repository) = self.repositories.get_mut(key) {
            repository.orders.remove(automation);
            repository.progress.remove(automation);
            repository.needs_git.remove(automation);
        }
        self.forget_unused(key);
    }

    /// Begins a round of a repository if one is due; else its task ends.
    fn begin(&mut self, key: &RepositoryKey) -> bool {
        let is_due = self.repositories.get_mut(key).is_some_and(Repository::begin);
        if !is_due {
            self.forget_unused(key);
        }
        is_due
    }

    /// Removes a repository without automations, unless its task runs.
    ///
    /// An automation that comes back meanwhile goes on with it, so that no second task works beside that one.
    fn forget_unused(&mut self, key: &RepositoryKey) {
        let is_running = self.repositories.get(key).is_some_and(|repository| repository.is_running);
        if !is_running && !self.automations.values().any(|other| other == key) {
            self.repositories.remove(key);
        }
    }
}

impl SharedQueue {
    /// Makes a queue without repositories.
    pub(super) fn new(options: PullRequestQueueOptions) -> Self {
        let (starts, started) = mpsc::unbounded_channel();
        let started = Mutex::new(Some(started));
        Self { options, state: Mutex::default(), starts, started }
    }

    /// Runs the tasks of all repositories until it is dropped or stopped.
    pub(super) async fn run(self: Arc<Self>, stop: StopToken) {
        let Some(mut started) = self.started.lock().take() else { return };
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some(key) = started.recv() => {
                    let shared = Arc::clone(&self);
                    tasks.spawn(async move {
                        let running = Running { shared: &shared, key: &key };
                        shared.work(&key).await;
                        // It has marked itself as ended, and another task may run already.
                        std::mem::forget(running);
                    });
                }
                Some(ended) = tasks.join_next() => {
                    if let Err(error) = ended {
                        tracing::error!(error = %error, "the work on pull requests of a repository failed");
                    }
                }
            }
        }
    }

    pub(super) fn access(&self, key: &RepositoryKey) -> Option<(Arc<ForgeAccess>, Snapshot)> {
        let (access, snapshot) = {
            let state = self.state.lock();
            let repository = state.repositories.get(key)?;
            (Arc::clone(&repository.access), Arc::clone(&repository.snapshot))
        };
        Some((access, Arc::unwrap_or_clone(snapshot)))
    }

    /// Makes a repository due, and starts its task.
    pub(super) fn wake(&self, key: &RepositoryKey, repository: &mut Repository) {
        repository.is_due = true;
        if repository.is_running || self.options.on_progress.is_none() {
            return;
        }
        // The receiver is there as long as tasks may run.
        repository.is_running = self.starts.send(key.clone()).is_ok();
    }

    /// Works on a repository until it is not due any more.
    async fn work(&self, key: &RepositoryKey) {
        let mut delay = DEBOUNCE;
        loop {
            let changed = {
                let state = self.state.lock();
                let Some(repository) = state.repositories.get(key) else { return };
                Arc::clone(&repository.changed)
            };
            tokio::time::sleep(DEBOUNCE).await;
            // A rate limit holds the calls back by itself.
            let _ = timeout(delay.saturating_sub(DEBOUNCE), changed.notified()).await;
            if !self.state.lock().begin(key) {
                return;
            }
            delay = self.round(key).await.unwrap_or(DEBOUNCE);
        }
    }

    /// Makes one round; returns the delay until the next try, if one is needed.
    pub(super) async fn round(&self, key: &RepositoryKey) -> Option<Duration> {
        let (begun, mut work) = self.begin(key)?;
        let Begun { access, orders, handled, mode, .. } = &begun;
        match AnyForge::new(&self.options.clients, &access.address, &access.login) {
            Err(error) => work.outcome.failure = Some(error),
            Ok(forge) => {
                let features = access.address.kind.features();
                let is_present = |base: &BranchName, branch: &BranchName| {
                    let state = self.state.lock();
                    let found = state.repositories.get(key);
                    found.is_some_and(|found| found.has_terms_of(orders, (base, branch)))
                };
                let round = Round {
                    forge: &forge,
                    pool: &self.options.pool,
                    limit: features.body_limit,
                    separate: features.separate,
                    orders,
                    handled,
                    text_age: TEXT_AGE,
                    mode: mode.clone(),
                    is_present: &is_present,
                };
                round.ask(&mut work).await;
                self.publish(key, &work);
                tokio::select! {
                    () = round.act(&mut work) => {}
                    never = self.answer_arrivals(key, &forge, orders) => match never {},
                }
            }
        }
        self.end(key, &begun, work)
    }

    /// Returns the state in which a round begins; none without an order.
    fn begin(&self, key: &RepositoryKey) -> Option<(Begun, RoundWork)> {
        let (begun, snapshot, (merges, labels)) = self.state_of_begin(key)?;
        let snapshot = Arc::unwrap_or_clone(snapshot);
        Some((begun, RoundWork { snapshot, merges, labels, ..RoundWork::default() }))
    }

    fn state_of_begin(
        &self,
        key: &RepositoryKey,
    ) -> Option<(Begun, Arc<Snapshot>, (AskedMerges, RefusedLabels))> {
        let state = self.state.lock();
        let found = state.repositories.get(key).filter(|found| !found.orders.is_empty())?;
        let mode = match &self.options.on_progress {
            _ if self.options.is_dry_run => RoundMode::DryRun,
            // Without tasks, the round is reported with all that it did.
            None => RoundMode::Single,
            Some(_) => RoundMode::Repeated { unreported: found.awaiting_report() },
        };
        let begun = Begun {
            access: Arc::clone(&found.access),
            orders: found.orders.clone(),
            handled: found.handled.clone(),
            mode,
            reports: found.reports,
        };
        let answers = (found.merges.clone(), found.labels.clone());
        Some((begun, Arc::clone(&found.snapshot), answers))
    }

    /// Takes the outcome of a round, and returns the delay until the next try.
    fn end(&self, key: &RepositoryKey, begun: &Begun, work: RoundWork) -> Option<Duration> {
        let RoundWork { snapshot, mut merges, labels, mut outcome, .. } = work;
        let before_git = self.state.lock().repositories.get_mut(key)?.look_up_failure.take();
        outcome.failure = outcome.failure.or(before_git);
        if self.renews_login(key, &begun.access, &outcome) {
            return Some(BACKOFF.first);
        }
        let (delay, notified) = {
            let mut state = self.state.lock();
            let repository = state.repositories.get_mut(key)?;
            repository.snapshot = Arc::new(repository.snapshot.after_round(snapshot));
            repository.last_round = Some(Instant::now());
            repository.listed = repository.listed.max(outcome.listed);
            merges.retain(|number| repository.snapshot.is_open(number));
            (repository.merges, repository.labels) = (merges, labels);
            let has_failed = outcome.has_failed();
            repository.failures = if has_failed { repository.failures + 1 } else { 0 };
            let delay = has_failed.then(|| delay_after(&outcome, repository.failures));
            // The report may have come during the round.
            repository.awaits_report = outcome.has_put_off;
            repository.is_due |= has_failed
                || outcome.has_outdated
                || outcome.has_withheld
                || outcome.has_early_merge
                || outcome.may_close
                || outcome.has_put_off && repository.reports != begun.reports;
            repository.end_overrides(&begun.orders);
            let retry = delay.filter(|_| self.options.on_progress.is_some()).and_then(time_after);
            let notified = repository.take(&begun.orders, &outcome, retry, &begun.access);
            repository.forget_past(&begun.orders);
            (delay, notified)
        };
        self.count(&begun.orders, &outcome);
        if let Some(notify) = &self.options.on_progress {
            notified.iter().for_each(|name| notify(name));
        }
        let end = outcome.all().filter_map(|one| one.withheld()?.rule.until).min();
        let closing = outcome.may_close.then_some(CLOSING_TIME);
        let soon = outcome.has_early_merge.then_some(BACKOFF.first).or(closing);
        delay.or(soon).or_else(|| outcome.has_withheld.then(|| withheld_delay(end, Timestamp::now())))
    }

    /// Has a new token requested once if the API has refused it.
    ///
    /// The next runs of the automations bring it, before the next try. Nothing is reported until then.
    fn renews_login(&self, key: &RepositoryKey, access: &ForgeAccess, outcome: &RoundOutcome) -> bool {
        let mut state = self.state.lock();
        let Some(repository) = state.repositories.get_mut(key) else { return false };
        let is_renewed = repository.renews_login(outcome);
        let (Some(entry), Some(notify)) = (&access.entry, &self.options.on_progress) else { return false };
        if !is_renewed {
            return false;
        }
        entry.refuse();
        if outcome.listed.is_some() {
            return false;
        }
        repository.is_due = true;
        let names: Vec<ObjectName> = repository.orders.keys().cloned().collect();
        drop(state);
        names.iter().for_each(|name| notify(name));
        true
    }

    /// Counts the actions of a round, and the pull requests of each automation.
    fn count(&self, orders: &BTreeMap<ObjectName, Arc<PullRequestOrder>>, outcome: &RoundOutcome) {
        let metrics = &self.options.metrics;
        for one in outcome.all() {
            if one.is_opened {
                metrics.pull_request_action(PullRequestVerb::Opened.name());
            }
            if matches!(
                one.action,
                PullRequestVerb::Refreshed | PullRequestVerb::Closed | PullRequestVerb::Merged
            ) {
                metrics.pull_request_action(one.action.name());
            }
        }
        let state = self.state.lock();
        for name in orders.keys() {
            let progress = state.repository_of(name).and_then(|found| found.progress.get(name));
            if let Some(progress) = progress {
                metrics.pull_requests(name, progress.open().len(), progress.refused().len());
            }
        }
    }
}

/// Marks the task of a repository as ended when dropped, even by a panic.
struct Running<'r> {
    shared: &'r SharedQueue,
    key: &'r RepositoryKey,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        if let Some(repository) = state.repositories.get_mut(self.key) {
            repository.is_running = false;
        }
        state.forget_unused(self.key);
    }
}

/// Returns the delay until the next try after some failures.
fn delay_after(outcome: &RoundOutcome, failures: u32) -> Duration {
    match &outcome.failure {
        Some(ForgeError::RateLimited { retry_after, .. }) => (*retry_after).max(BACKOFF.first),
        _ => BACKOFF.after(failures),
    }
}

/// Returns the delay until withheld changes are tried again.
///
/// `end` is the first end of a rule that is known.
fn withheld_delay(end: Option<Timestamp>, now: Timestamp) -> Duration {
    let left = end.map(|end| Duration::try_from(end.duration_since(now)).unwrap_or_default());
    left.map_or(WITHHELD_DELAY, |left| left.min(WITHHELD_DELAY))
}

/// Returns the time after a delay, in whole seconds.
fn time_after(delay: Duration) -> Option<Timestamp> {
    let seconds = Timestamp::now().as_second().checked_add(i64::try_from(delay.as_secs()).ok()?)?;
    Timestamp::from_second(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::super::repository::tests::repository;
    use super::super::round_tests::order;
    use super::*;

    /// Two tasks worked beside each other, and Gitea got two pull requests of a branch.
    #[test]
    fn an_automation_that_is_resumed_during_a_round_goes_on_with_its_repository() {
        let automation = order(&["a"]).automation;
        let (source, text) = (automation.clone(), String::new);
        let key = RepositoryKey { namespace: text(), source, api: text(), repository: text() };
        for (is_running, is_kept) in [(true, true), (false, false)] {
            let mut state = QueueState::default();
            state.repositories.insert(key.clone(), Repository { is_running, ..repository() });
            state.leave(&automation, &key);
            assert_eq!(state.repositories.contains_key(&key), is_kept);
            // The automation is back when the task ends, and then it leaves.
            state.automations.insert(automation.clone(), key.clone());
            assert!(!state.begin(&key));
            assert_eq!(state.repositories.contains_key(&key), is_kept);
            state.automations.clear();
            state.leave(&automation, &key);
            assert!(state.repositories.is_empty());
        }
    }

    #[test]
    fn withheld_changes_are_tried_again_when_their_rule_ends_or_after_a_minute() {
        let at = |second| Timestamp::from_second(second).unwrap();
        for (end, expected) in
            [(None, 60), (Some(1_007), 7), (Some(5_000), 60), (Some(1_000), 0), (Some(10), 0)]
        {
            let delay = withheld_delay(end.map(at), at(1_000));
            assert_eq!(delay, Duration::from_secs(expected), "{end:?}");
        }
    }
}
