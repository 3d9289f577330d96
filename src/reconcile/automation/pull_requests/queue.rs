//! The work queue of pull requests: one task per repository, with retries.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use tagboat_api::ObjectName;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::super::delivery::OwnerHash;
use super::super::forge_login::ForgeAccess;
use super::super::waiting::WriteGate;
use super::order::PullRequestOrder;
use super::outcome::{PullRequestOutcome, PullRequestVerb};
use super::progress::PullRequestProgress;
use super::repository::Repository;
use super::round::{Round, RoundOutcome, TEXT_AGE, closed_gate};
use super::snapshot::Snapshot;
use crate::backoff::Backoff;
use crate::cancel::StopToken;
use crate::forge::{AnyForge, ForgeClients, ForgeError, PullRequest};
use crate::git::BranchName;
use crate::metrics::Metrics;
use crate::tenancy::BlockingPool;

/// The maximum delay until changes are tried again that an automation may not make now.
const WITHHELD_DELAY: Duration = Duration::from_secs(60);

/// The time for which orders are collected.
pub(super) const DEBOUNCE: Duration = Duration::from_millis(200);

/// The delays between the tries after failures.
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(5), longest: Duration::from_secs(10 * 60) };

/// The repository of a queue.
///
/// Automations of two namespaces share nothing, even if they name the same GitRepository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RepositoryKey {
    /// The namespace of the automations.
    pub namespace: String,
    /// The GitRepository.
    pub source: ObjectName,
    /// The URL of the API.
    pub api: String,
    /// The full name of the repository at the forge.
    pub repository: String,
}

/// The branches of an automation whose pull requests are looked up before git.
pub(super) struct LookUp<'l> {
    /// The base.
    pub(super) base: &'l BranchName,
    /// The branches.
    pub(super) branches: &'l BTreeSet<BranchName>,
    /// The automation.
    pub(super) owner: OwnerHash,
    /// Decides whether it may write.
    pub(super) gate: Option<WriteGate>,
}

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

/// The work queue of pull requests. Clones share it.
///
/// A task per repository works off the orders of its automations. No run of an automation waits for it.
#[derive(Clone)]
pub struct PullRequestQueue(Arc<Shared>);

pub(super) struct Shared {
    pub(super) options: PullRequestQueueOptions,
    pub(super) state: Mutex<State>,
    /// Sends the repositories whose tasks are to be started.
    ///
    /// Each is in it at most once.
    starts: mpsc::UnboundedSender<RepositoryKey>,
    /// Receives them; none once the tasks run.
    started: Mutex<Option<mpsc::UnboundedReceiver<RepositoryKey>>>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) repositories: BTreeMap<RepositoryKey, Repository>,
    /// The repository of each automation.
    automations: BTreeMap<ObjectName, RepositoryKey>,
}

impl fmt::Debug for PullRequestQueue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PullRequestQueue").finish_non_exhaustive()
    }
}

impl PullRequestQueue {
    /// Makes an empty queue.
    pub fn new(options: PullRequestQueueOptions) -> Self {
        let (starts, started) = mpsc::unbounded_channel();
        let started = Mutex::new(Some(started));
        Self(Arc::new(Shared { options, state: Mutex::default(), starts, started }))
    }

    /// Runs the tasks of all repositories until it is dropped or stopped.
    pub async fn run(self, stop: StopToken) {
        let Some(mut started) = self.0.started.lock().take() else { return };
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some(key) = started.recv() => {
                    let shared = Arc::clone(&self.0);
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
        let repository = state.repositories.entry(key.clone()).or_insert_with(|| Repository::new(&access));
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
    ///
    /// They are listed once for all automations. The next round reports an error.
    pub(super) async fn look_up(&self, key: &RepositoryKey, wanted: LookUp<'_>) {
        let LookUp { base, branches, .. } = wanted;
        let Some((access, _)) = self.0.access(key) else { return };
        let looked_up = async {
            let forge = AnyForge::new(&self.0.options.clients, &access.address, &access.login)?;
            self.list_first(key, &forge, branches).await?;
            self.take_back(key, &forge, &wanted).await?;
            let mut snapshot = self.0.access(key).map(|(_, snapshot)| snapshot).unwrap_or_default();
            snapshot.look_up_many(&forge, base, branches).await?;
            for branch in branches {
                snapshot.look_up(&forge, base, branch).await?;
            }
            Ok(snapshot)
        };
        let looked_up: Result<Snapshot, ForgeError> = looked_up.await;
        match looked_up {
            Ok(snapshot) => self.merge(key, &snapshot, &wanted),
            Err(error) => {
                if let Some(repository) = self.0.state.lock().repositories.get_mut(key) {
                    repository.look_up_failure = Some(error);
                }
            }
        }
    }

    /// Lists the pull requests, unless another automation has done so or has waited in vain.
    async fn list_first(
        &self,
        key: &RepositoryKey,
        forge: &AnyForge,
        branches: &BTreeSet<BranchName>,
    ) -> Result<(), ForgeError> {
        let listing = self.0.state.lock().repositories.get(key).map(|found| Arc::clone(&found.first_listing));
        let Some(listing) = listing else { return Ok(()) };
        let _listing = listing.lock().await;
        let failure = {
            let state = self.0.state.lock();
            let Some(repository) = state.repositories.get(key) else { return Ok(()) };
            if repository.listed.is_some() {
                return Ok(());
            }
            repository.look_up_failure.clone()
        };
        failure.map_or(Ok(()), Err)?;
        let Some((_, mut snapshot)) = self.0.access(key) else { return Ok(()) };
        // Git waits for the answer, to make branches whose pull requests are to be opened.
        let listed = snapshot.list(forge, branches, true).await.map(|()| snapshot);
        let mut state = self.0.state.lock();
        let Some(repository) = state.repositories.get_mut(key) else { return Ok(()) };
        repository.take_list(listed, Instant::now())
    }

    /// Takes the branches back that people have handed back.
    ///
    /// Automations that share a branch wait for each other, so the label is removed once. A label that the forge does not
    /// remove keeps no other branch from being taken back.
    async fn take_back(
        &self,
        key: &RepositoryKey,
        forge: &AnyForge,
        wanted: &LookUp<'_>,
    ) -> Result<(), ForgeError> {
        let LookUp { base, branches, owner, gate } = wanted;
        let listing = self.0.state.lock().repositories.get(key).map(|found| Arc::clone(&found.first_listing));
        let Some(listing) = listing else { return Ok(()) };
        let _listing = listing.lock().await;
        let Some((_, mut snapshot)) = self.0.access(key) else { return Ok(()) };
        let owners = BTreeSet::from([owner.clone()]);
        let labelled: Vec<PullRequest> =
            branches.iter().filter_map(|branch| snapshot.handed_back((base, branch), &owners)).collect();
        let gates = gate.iter().cloned().collect();
        if labelled.is_empty() || closed_gate(&self.0.options.pool, gates).await.is_some() {
            return Ok(());
        }
        let done = snapshot.take_back_all(forge, &labelled, self.is_dry_run()).await;
        self.merge(key, &snapshot, wanted);
        done
    }

    /// Takes what a snapshot has about the branches of an automation.
    fn merge(&self, key: &RepositoryKey, snapshot: &Snapshot, LookUp { base, branches, .. }: &LookUp<'_>) {
        if let Some(repository) = self.0.state.lock().repositories.get_mut(key) {
            Arc::make_mut(&mut repository.snapshot).take(snapshot, base, branches);
        }
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
    /// The gate is that of the present run.
    pub fn touch(&self, automation: &ObjectName, gate: Option<WriteGate>, age: Duration) {
        let mut state = self.0.state.lock();
        let Some(key) = state.automations.get(automation).cloned() else { return };
        let Some(repository) = state.repositories.get_mut(&key) else { return };
        repository.set_gate(automation, gate);
        if repository.is_older(age) {
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

    /// Returns true if git has to delete a branch of an automation.
    ///
    /// Its pull request was closed because no policy renders it.
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

impl State {
    fn repository_of(&self, automation: &ObjectName) -> Option<&Repository> {
        self.repositories.get(self.automations.get(automation)?)
    }

    /// Removes an automation from a repository, and the repository with its last automation.
    fn leave(&mut self, automation: &ObjectName, key: &RepositoryKey) {
        if let Some(repository) = self.repositories.get_mut(key) {
            repository.orders.remove(automation);
            repository.progress.remove(automation);
            repository.needs_git.remove(automation);
        }
        if !self.automations.values().any(|other| other == key) {
            self.repositories.remove(key);
        }
    }
}

impl Shared {
    fn access(&self, key: &RepositoryKey) -> Option<(Arc<ForgeAccess>, Snapshot)> {
        let state = self.state.lock();
        let repository = state.repositories.get(key)?;
        Some((Arc::clone(&repository.access), Snapshot::clone(&repository.snapshot)))
    }

    async fn list_for_ends(&self, key: &RepositoryKey) {
        let heads = {
            let state = self.state.lock();
            let found = state.repositories.get(key);
            found.filter(|found| found.needs_list_for_ends(Instant::now())).map(Repository::heads)
        };
        let (Some(heads), Some((access, mut snapshot))) = (heads, self.access(key)) else { return };
        let listed = match AnyForge::new(&self.options.clients, &access.address, &access.login) {
            Ok(forge) => snapshot.list(&forge, &heads, true).await.map(|()| snapshot),
            Err(error) => Err(error),
        };
        if let Some(repository) = self.state.lock().repositories.get_mut(key) {
            // An error is kept, and the branches stay.
            let _ = repository.take_list(listed, Instant::now());
        }
    }

    /// Makes a repository due, and starts its task.
    fn wake(&self, key: &RepositoryKey, repository: &mut Repository) {
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
            let is_due = self.state.lock().repositories.get_mut(key).is_some_and(Repository::begin);
            if !is_due {
                return;
            }
            delay = self.round(key).await.unwrap_or(DEBOUNCE);
        }
    }

    /// Makes one round; returns the delay until the next try, if one is needed.
    async fn round(&self, key: &RepositoryKey) -> Option<Duration> {
        let (access, mut snapshot) = self.access(key)?;
        let (orders, handled, merges, failures, reports, unreported) = {
            let state = self.state.lock();
            let found = state.repositories.get(key)?;
            // Without tasks, the round is reported with all that it did.
            let unreported = self.options.on_progress.is_some().then(|| found.awaiting_report());
            let (orders, handled, merges) =
                (found.orders.clone(), found.handled.clone(), found.merges.clone());
            (orders, handled, merges, found.failures, found.reports, unreported)
        };
        if orders.is_empty() {
            return None;
        }
        let mut merges = Mutex::new(merges);
        let (mut has_withheld, mut has_put_off) = (false, false);
        let mut outcome = match AnyForge::new(&self.options.clients, &access.address, &access.login) {
            Err(error) => RoundOutcome { failure: Some(error), ..RoundOutcome::default() },
            Ok(forge) => {
                let round = Round {
                    forge: &forge,
                    pool: &self.options.pool,
                    limit: access.address.kind.features().body_limit,
                    separate: access.address.kind.features().separate,
                    orders: &orders,
                    handled: &handled,
                    merges: &merges,
                    unreported: unreported.as_ref(),
                    text_age: TEXT_AGE,
                    has_settled: AtomicBool::default(),
                    has_withheld: AtomicBool::default(),
                    has_put_off: AtomicBool::default(),
                    is_dry_run: self.options.is_dry_run,
                };
                let asked = round.ask(&mut snapshot).await;
                self.publish(key, &snapshot, &asked);
                let outcome = tokio::select! {
                    outcome = round.act(&mut snapshot, asked) => outcome,
                    never = self.answer_arrivals(key, &forge, &orders) => match never {},
                };
                (has_withheld, has_put_off) =
                    (round.has_withheld.into_inner(), round.has_put_off.into_inner());
                outcome
            }
        };
        let before_git = self.state.lock().repositories.get_mut(key)?.look_up_failure.take();
        outcome.failure = outcome.failure.or(before_git);
        if self.renews_login(key, &access, &outcome) {
            return Some(BACKOFF.first);
        }
        let has_failed = outcome.failure.is_some() || outcome.all().any(PullRequestOutcome::has_failed);
        let delay = has_failed.then(|| match &outcome.failure {
            Some(ForgeError::RateLimited { retry_after, .. }) => (*retry_after).max(BACKOFF.first),
            _ => BACKOFF.after(failures + 1),
        });
        let retry = delay.filter(|_| self.options.on_progress.is_some()).and_then(time_after);
        let notified = {
            let mut state = self.state.lock();
            let repository = state.repositories.get_mut(key)?;
            snapshot.complete(&repository.snapshot);
            repository.snapshot = Arc::new(snapshot);
            repository.last_round = Some(Instant::now());
            repository.listed = outcome.listed.or(repository.listed);
            repository.merges = std::mem::take(merges.get_mut());
            let snapshot = Arc::clone(&repository.snapshot);
            repository.merges.retain(|number| snapshot.is_open(number));
            repository.failures = if has_failed { failures + 1 } else { 0 };
            // The report may have come during the round.
            repository.awaits_report = has_put_off;
            repository.is_due |= has_failed || has_withheld || has_put_off && repository.reports != reports;
            repository.end_overrides(&orders);
            let notified = repository.take(&orders, &outcome, retry);
            repository.forget_past(&orders);
            notified
        };
        self.count(&orders, &outcome);
        if let Some(notify) = &self.options.on_progress {
            notified.iter().for_each(|name| notify(name));
        }
        let end = outcome.all().filter_map(|one| one.withheld()?.rule.until).min();
        delay.or_else(|| has_withheld.then(|| withheld_delay(end, Timestamp::now())))
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
    shared: &'r Shared,
    key: &'r RepositoryKey,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(repository) = self.shared.state.lock().repositories.get_mut(self.key) {
            repository.is_running = false;
        }
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
    use super::*;

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
