//! The controller: reconciles the objects of a cluster until it is told to end.
//!
//! | files | contents |
//! |---|---|
//! | `watches`, `trigger` | watches, and the objects that a change concerns |
//! | `queue` | the work queue: which objects are due when, with backoff and a rate limit |
//! | `work`, `pass` | automations of one repository that are reconciled together, and the part of one automation in that |
//! | `shared`, `options`, `run_ids` | shared state, options, and the names of runs |
//! | `under_way` | in-flight reconciles, which are cancelled when their object is deleted, suspended or no longer selected |
//! | `memory` | state between two reconciles that no status holds |
//! | `reflector` | the other half: repositories and policies |
//! | `possibility` | whether a cluster has what a half needs |
//! | `leadership` | leader election by a Lease |
//! | `shadow` | comparison with another controller, without a Lease and without writing |

mod leadership;
mod memory;
mod options;
mod pass;
pub mod possibility;
mod queue;
pub mod reflector;
mod run_ids;
mod shadow;
mod shared;
mod trigger;
mod under_way;
mod watches;
mod work;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use kube::Client;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::backoff::Backoff;
use crate::cancel::StopToken;
use crate::git::{MirrorStore, TransactionSlots, Writer, WriterContext, WriterOptions};
use crate::metrics::Metrics;
use crate::objects::ObjectName;
use crate::objects::cluster::{Announcer, Cache, ClusterObjects, FIELD_MANAGER, Gate, Notifier, Scope};
use crate::tenancy::Capacity;
use leadership::Leadership;
use queue::{DueNow, Queue, Signal};
use run_ids::RunIds;
use shadow::Shadows;
use shared::Shared;
use under_way::UnderWay;

pub use crate::permissions::lease_name;
pub use leadership::Election;
pub use options::RunOptions;

/// How long runs that are under way at the end may go on. This and what follows must fit into the ten seconds that the
/// Deployments of Flux give a pod to end.
const FINISHING: Duration = Duration::from_secs(3);

/// How long runs that have been told to stop may take to do so; git processes get two seconds for it.
const STOPPING: Duration = Duration::from_secs(3);

/// How long each of the last things may take: mirrors that are still tidied, and giving the Lease back.
const PARTING: Duration = Duration::from_secs(1);

/// How often mirrors are looked for that nobody uses any more.
const SWEEPING: Duration = Duration::from_secs(24 * 3600);

/// What is said at the beginning where nothing is written.
const SHADOWING: &str = "a dry run: looking at automations, writing nothing";

/// What a controller is to do, and how.
pub struct ControllerOptions {
    /// Which automations are ours, and where everything is watched.
    pub scope: Scope,
    /// How many transactions may be under way at once.
    pub concurrent: usize,
    /// How the waits after failures grow.
    pub backoff: Backoff,
    /// What runs depend on.
    pub run: RunOptions,
    /// The mirrors.
    pub mirrors: MirrorStore,
    /// How it is settled who of several controllers writes; `None`: this one does.
    pub election: Option<Election>,
    /// The way to the API server.
    pub gate: Gate,
    /// Who is notified of events.
    pub notifier: Option<Notifier>,
    /// Whether nothing is written anywhere, and what would be is compared with what another controller does. Nobody
    /// is notified then, and no election takes place.
    pub is_shadow: bool,
    /// The name of this process, for events.
    pub instance: String,
    /// A random UUID, from which runs get their names.
    pub process_id: String,
    /// The threads and the memory of this process.
    pub capacity: Capacity,
}

/// Why a controller ended though nobody told it to.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// Another took its place, or may have done so.
    #[error("the leadership is lost: {words}")]
    Deposed {
        /// What happened.
        words: String,
    },
}

/// Carries out automations until `end` is there, and ends in good order then.
///
/// # Errors
///
/// When another controller has become the leader. Whatever was under way has been ended by then.
pub async fn run(
    client: Client,
    options: ControllerOptions,
    metrics: Metrics,
    end: impl Future<Output = ()>,
) -> Result<(), ControllerError> {
    let mut end = pin!(end);
    // What is done in the cluster depends on the Lease alone: the last statuses are written after the word to stop.
    let permit = StopToken::default();
    let stop = permit.child_token();
    let (signals, inbox) = mpsc::unbounded_channel();
    let slots = TransactionSlots::limited(options.concurrent, &metrics);
    let context = WriterContext { stop: stop.clone(), metrics: metrics.clone(), capacity: options.capacity };
    let mirrors = options.mirrors.clone();
    let writer = WriterOptions { mirrors: options.mirrors, is_rehearsal: options.is_shadow, context, slots };
    let (election, notifier) =
        if options.is_shadow { (None, None) } else { (options.election, options.notifier) };
    let mut objects = ClusterObjects::behind(client.clone(), options.gate.until(permit.clone()));
    objects.automations = Cache::referring_by(|automation| Some(trigger::source_of(automation)));
    let shared = Arc::new(Shared {
        announcer: Announcer::new(&objects, notifier, FIELD_MANAGER, options.instance),
        objects,
        writer: Writer::new(writer),
        stop,
        options: options.run,
        metrics: metrics.clone(),
        memory: memory::Memory::default(),
        under_way: UnderWay::default(),
        shadows: options.is_shadow.then(Shadows::default),
        run_ids: RunIds::new(options.process_id),
        is_leader: watch::Sender::new(false),
        signals,
    });
    let mut watching = JoinSet::new();
    watching.spawn(sweep(mirrors));
    watching.spawn(watches::automations(shared.clone(), options.scope.clone()));
    watching.spawn(watches::policies(shared.clone(), options.scope.clone()));
    watching.spawn(watches::git_repositories(shared.clone(), options.scope));
    let mut leadership = Leadership::new(client, election, permit);
    let is_leader = tokio::select! {
        () = leadership.win() => true,
        () = &mut end => false,
    };
    let mut lost = None;
    if is_leader {
        metrics.set_leader(!options.is_shadow);
        shared.is_leader.send_replace(true);
        let mut dispatcher = Dispatcher {
            shared: shared.clone(),
            inbox,
            queue: Queue::new(options.backoff),
            runs: JoinSet::new(),
        };
        // The Lease is kept from the first moment: a cluster may take its time to list its objects.
        let work = async {
            shared.objects.complete().await;
            tracing::info!("{}", if options.is_shadow { SHADOWING } else { "carrying out automations" });
            dispatcher.dispatch().await;
        };
        lost = tokio::select! {
            () = work => None,
            () = &mut end => None,
            words = leadership.keep() => Some(words),
        };
        watching.shutdown().await;
        if lost.is_some() {
            dispatcher.break_off().await;
        }
        metrics.set_leader(false);
        dispatcher.finish().await;
    }
    shared.announcer.finish().await;
    shared.shadows.iter().for_each(Shadows::sum_up);
    if let Some(words) = lost {
        return Err(ControllerError::Deposed { words });
    }
    leadership.give_back().await;
    tracing::info!("ended");
    Ok(())
}

/// Removes mirrors that nothing uses any more or that are too many, now and every day.
async fn sweep(mirrors: MirrorStore) {
    loop {
        let mirrors = mirrors.clone();
        let swept = tokio::task::spawn_blocking(move || mirrors.sweep(SystemTime::now())).await;
        if let Ok(Err(error)) = swept {
            tracing::warn!(error = %error, "mirrors that nothing uses cannot be removed");
        }
        tokio::time::sleep(SWEEPING).await;
    }
}

/// Hands what is due to those who carry it out.
struct Dispatcher {
    shared: Arc<Shared>,
    inbox: UnboundedReceiver<Signal>,
    queue: Queue,
    runs: JoinSet<()>,
}

/// Those that are due and go to one repository.
#[derive(Default)]
struct Group {
    names: Vec<ObjectName>,
    /// The longest of the intervals whose end it is, where it is the end of one.
    interval: Option<Duration>,
}

impl Dispatcher {
    /// Works until the future is dropped.
    async fn dispatch(&mut self) {
        loop {
            self.start_due();
            let next = self.queue.next();
            // We hold a sender ourselves, so there is always somebody left.
            let Some(signals) = queue::hear(&mut self.inbox, next).await else { return };
            signals.into_iter().for_each(|signal| self.take_note(signal));
        }
    }

    fn take_note(&mut self, signal: Signal) {
        let now = Instant::now();
        match signal {
            Signal::Wake(name, wait) => self.queue.wake(&name, now + wait),
            Signal::Forget(name) => self.queue.forget(&name),
            Signal::Done(name, verdict) => self.queue.done(&name, verdict, now),
        }
    }

    /// Starts what is due, those of one namespace and one repository together.
    fn start_due(&mut self) {
        while self.runs.try_join_next().is_some() {}
        let now = Instant::now();
        let mut groups: BTreeMap<(String, ObjectName), Group> = BTreeMap::new();
        for DueNow { name, interval } in self.queue.take_due(now) {
            // One that has gone has no repository, and nobody to go with.
            let source = self.shared.source_of(&name).unwrap_or_else(|| name.clone());
            let group = groups.entry((name.namespace.clone(), source)).or_default();
            group.interval = group.interval.max(interval);
            group.names.push(name);
        }
        for ((namespace, source), Group { mut names, interval }) in groups {
            // One listing of the remote does for all that look at it about now.
            let others = self.shared.objects.automations.referring_to(&source).into_iter();
            let others = others.map(|automation| ObjectName::of(automation.as_ref()));
            let others = others.filter(|other| other.namespace == namespace);
            let along = self.queue.take_along(now, interval, others);
            names.extend(along.into_iter().map(|due| due.name));
            self.runs.spawn(work::carry_out(self.shared.clone(), names));
        }
    }

    /// Ends what is under way where another may write by now: first what would still be written in the cluster.
    async fn break_off(&mut self) {
        self.shared.stop.cancel();
        self.runs.shutdown().await;
        self.finish_mirrors(STOPPING).await;
    }

    /// Lets what is under way come to its end for a while, and ends it then.
    async fn finish(mut self) {
        if timeout(FINISHING, self.rest()).await.is_err() {
            tracing::info!("ending what is still under way");
            self.shared.stop.cancel();
            let _ = timeout(STOPPING, self.rest()).await;
        }
        self.shared.stop.cancel();
        self.runs.shutdown().await;
        // Mirrors may still be tidied. That can be broken off at any time.
        self.finish_mirrors(PARTING).await;
    }

    /// Waits until nobody works on a mirror, but not for long.
    async fn finish_mirrors(&self, patience: Duration) {
        let _ = timeout(patience, self.shared.writer.finish()).await;
    }

    /// Waits until nothing is under way.
    async fn rest(&mut self) {
        while self.runs.join_next().await.is_some() {}
    }
}

impl Shared {
    /// The git repository of an automation that is known.
    fn source_of(&self, name: &ObjectName) -> Option<ObjectName> {
        self.objects.automations.get(name).map(|automation| trigger::source_of(&automation))
    }
}
