//! The half of the controller that scans repositories and carries out policies.
//!
//! [`trigger`] says which change concerns whom; [`repository_pass`] and [`policy_pass`] are one look at one object, from
//! the object as it stands to its new status; [`memory`] keeps what a status does not say. The [`poller`] looks at the
//! digests of tags that float. It writes nothing: it fills what is known, and wakes those whom that concerns.

mod memory;
mod policy_pass;
mod poller;
mod repository_pass;
mod shared;
mod trigger;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::Client;
use tagboat_api::{ImagePolicy, ImageRepository};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::ControllerError;
use super::leadership::{Election, Leadership};
use super::queue::{self, Queue};
use super::run_ids::RunIds;
use super::watches;
use crate::backoff::Backoff;
use crate::cancel::StopToken;
use crate::metrics::Metrics;
use crate::objects::ObjectName;
use crate::objects::cluster::{
    Announcer, ApiGuard, Cache, Change, ClusterObjects, Notifier, REFLECTOR, Scope,
};
use crate::reconcile::policy::request::repository_of;
use crate::reconcile::policy::run::PolicyOptions;
use crate::reconcile::tags::{Registry, Shelf};
use crate::tenancy::{FairSemaphore, SlotLimits};
use poller::Poller;
use shared::{Kind, Shared, Signal};

/// How long runs that are under way at the end may go on.
const FINISHING: Duration = Duration::from_secs(3);

/// The passes in flight at once, in all and of one namespace, beside those that wait for a registry.
const PASSES: SlotLimits = SlotLimits { total: 64, per_namespace: 32, overflow: None }.with_overflow(64);

/// What this half is to do, and how.
pub struct ReflectorOptions {
    /// Which objects are ours.
    pub scope: Scope,
    /// How the waits after failures grow.
    pub backoff: Backoff,
    /// What policies go by.
    pub policies: PolicyOptions,
    /// How it is settled who of several controllers writes; `None`: this one does.
    pub election: Option<Election>,
    /// The way to the API server.
    pub guard: ApiGuard,
    /// Who is notified of events.
    pub notifier: Option<Notifier>,
    /// The name of this process, for events.
    pub instance: String,
    /// A random UUID, from which runs get their names.
    pub process_id: String,
}

/// Where tags come from and where they are kept.
pub struct Sources<R> {
    /// The registries.
    pub registry: R,
    /// What was found in them.
    pub shelf: Shelf,
}

/// Scans and chooses until `end` is there, and ends in good order then.
///
/// # Errors
///
/// When another controller has become the leader. Whatever was under way has been ended by then.
pub async fn run<R: Registry>(
    client: Client,
    options: ReflectorOptions,
    sources: Sources<R>,
    metrics: Metrics,
    end: impl Future<Output = ()>,
) -> Result<(), ControllerError> {
    let mut end = pin!(end);
    let (signals, inbox) = mpsc::unbounded_channel();
    let permit = StopToken::default();
    let objects = ClusterObjects::with_guard(client.clone(), options.guard.with_fence(permit.clone()));
    let shared = Arc::new(Shared {
        announcer: Announcer::new(&objects, options.notifier, REFLECTOR, options.instance),
        writer: objects.writer_as(REFLECTOR),
        objects,
        repositories: Cache::default(),
        policies: Cache::indexed_by(|policy| Some(repository_of(policy))),
        registry: sources.registry,
        shelf: sources.shelf,
        options: options.policies,
        metrics: metrics.clone(),
        memory: memory::Memory::default(),
        poller: Poller::default(),
        run_ids: RunIds::new(options.process_id),
        places: FairSemaphore::new(PASSES),
        is_leader: watch::Sender::new(false),
        signals,
    });
    let mut watching = JoinSet::new();
    let scope = options.scope;
    watching.spawn(watches::watch(
        shared.clone(),
        scope.clone(),
        shared.repositories.clone(),
        |shared, change| {
            repository_changed(shared, &change);
        },
    ));
    watching.spawn(watches::watch(shared.clone(), scope, shared.policies.clone(), |shared, change| {
        shared.policy_changed(&change);
    }));
    let mut leadership = Leadership::new(client, options.election, permit);
    let is_leader = tokio::select! {
        () = leadership.win() => true,
        () = &mut end => false,
    };
    let mut lost = None;
    if is_leader {
        shared.is_leader.send_replace(true);
        let mut dispatcher = Dispatcher::new(shared.clone(), inbox, options.backoff);
        // The Lease is kept from the first moment: a cluster may take its time to list its objects.
        let work = async {
            tokio::join!(shared.repositories.wait_for_sync(), shared.policies.wait_for_sync());
            let swept = shared.clone();
            let sweep = move || swept.shelf.sweep(|name| swept.repositories.get(name).is_some());
            // No namespace of the cluster has this name.
            shared.options.capacity.pool.run("", sweep).await;
            tracing::info!("scanning repositories and carrying out policies");
            shared.poller.say_how(&shared.options.polling);
            tokio::join!(dispatcher.dispatch(), poller::poll(shared.clone()));
        };
        lost = tokio::select! {
            () = work => None,
            () = &mut end => None,
            words = leadership.keep() => Some(words),
        };
        watching.shutdown().await;
        dispatcher.finish(lost.is_none()).await;
    }
    shared.announcer.finish().await;
    if let Some(words) = lost {
        return Err(ControllerError::Deposed { words });
    }
    leadership.give_back().await;
    Ok(())
}

/// What follows from a change of a repository.
fn repository_changed<R: Registry>(shared: &Arc<Shared<R>>, change: &Change<ImageRepository>) {
    match &change.new {
        None => {
            shared.forget(Kind::Repository, &change.name);
            shared.signal(Signal::Forget(Kind::Repository, change.name.clone()));
        }
        Some(new) if trigger::concerns_itself(change.old.as_deref(), new.as_ref()) => {
            shared.wake(Kind::Repository, change.name.clone());
        }
        Some(_) => {}
    }
    for policy in shared.policies.referrers(&change.name) {
        if trigger::concerns_policy(&policy, change.old.as_deref(), change.new.as_deref()) {
            shared.wake(Kind::Policy, ObjectName::of(policy.as_ref()));
        }
    }
}

impl<R: Registry> Shared<R> {
    /// What follows from a change of a policy.
    fn policy_changed(&self, change: &Change<ImagePolicy>) {
        match &change.new {
            None => {
                self.forget(Kind::Policy, &change.name);
                self.signal(Signal::Forget(Kind::Policy, change.name.clone()));
            }
            Some(new) if trigger::concerns_itself(change.old.as_deref(), new.as_ref()) => {
                self.wake(Kind::Policy, change.name.clone());
            }
            Some(_) => {}
        }
    }
}

/// Hands what is due to those who carry it out.
struct Dispatcher<R> {
    shared: Arc<Shared<R>>,
    inbox: UnboundedReceiver<Signal>,
    repositories: Queue,
    policies: Queue,
    runs: JoinSet<()>,
}

impl<R: Registry> Dispatcher<R> {
    fn new(shared: Arc<Shared<R>>, inbox: UnboundedReceiver<Signal>, backoff: Backoff) -> Self {
        let (repositories, policies) = (Queue::new(backoff), Queue::new(backoff));
        Self { shared, inbox, repositories, policies, runs: JoinSet::new() }
    }

    /// Works until the future is dropped.
    async fn dispatch(&mut self) {
        loop {
            self.start_due();
            let next = [self.repositories.next(), self.policies.next()].into_iter().flatten().min();
            // We hold a sender ourselves, so there is always somebody left.
            let Some(signals) = queue::hear(&mut self.inbox, next).await else { return };
            signals.into_iter().for_each(|signal| self.take_note(signal));
        }
    }

    fn take_note(&mut self, signal: Signal) {
        let now = Instant::now();
        match signal {
            Signal::Wake(kind, name) => self.queue(kind).wake(&name, now),
            Signal::Forget(kind, name) => self.queue(kind).forget(&name),
            Signal::Done(kind, name, verdict) => self.queue(kind).done(&name, verdict, now),
        }
    }

    fn queue(&mut self, kind: Kind) -> &mut Queue {
        match kind {
            Kind::Repository => &mut self.repositories,
            Kind::Policy => &mut self.policies,
        }
    }

    fn start_due(&mut self) {
        while self.runs.try_join_next().is_some() {}
        let now = Instant::now();
        for due in self.repositories.take_due(now) {
            self.runs.spawn(repository_pass::carry_out(self.shared.clone(), due.name));
        }
        for due in self.policies.take_due(now) {
            self.runs.spawn(policy_pass::carry_out(self.shared.clone(), due.name));
        }
    }

    /// Lets what is under way come to its end for a while, if it still may, and breaks it off then.
    async fn finish(mut self, may_write: bool) {
        if may_write {
            let _ = timeout(FINISHING, async { while self.runs.join_next().await.is_some() {} }).await;
        }
        self.runs.shutdown().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::registries::KnownRegistries;

    type Registered = KnownRegistries<ClusterObjects>;

    fn size<F: Future>(_: impl FnOnce(Arc<Shared<Registered>>, ObjectName) -> F) -> usize {
        size_of::<F>()
    }

    /// What is due waits in memory, and a restart makes everything due.
    #[test]
    fn a_pass_that_waits_takes_little_memory() {
        for size in [size(repository_pass::carry_out), size(policy_pass::carry_out)] {
            assert!(size < 1024, "{size} bytes until it has a place");
        }
        for size in [repository_pass::size::<Registered>(), policy_pass::size::<Registered>()] {
            assert!(size < 8192, "{size} bytes while it waits for a registry");
        }
    }
}
