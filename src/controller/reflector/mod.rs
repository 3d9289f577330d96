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

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use tagboat_api::{ImagePolicy, ImageRepository};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::ControllerError;
use super::leadership::{Election, Leadership};
use super::queue::{self, Queue, RetryDelays};
use super::watches::watch;
use super::work::RunIds;
use crate::git::StopSignal;
use crate::metrics::Metrics;
use crate::objects::ObjectName;
use crate::objects::cluster::{Announcer, ClusterError, REFLECTOR};
use crate::objects::cluster::{Cache, Change, ClusterObjects, Notifier, Scope};
use crate::reconcile::policy::run::PolicyOptions;
use crate::reconcile::tags::{Registry, Shelf};
use poller::Poller;
use shared::{Kind, Shared, Signal};

/// How long runs that are under way at the end may go on.
const FINISHING: Duration = Duration::from_secs(3);

/// How long it takes until it is seen that the cluster serves the kinds by now.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// What this half is to do, and how.
pub struct ReflectorOptions {
    /// Which objects are ours.
    pub scope: Scope,
    /// How the waits after failures grow.
    pub retry_delays: RetryDelays,
    /// What policies go by.
    pub policies: PolicyOptions,
    /// How it is settled who of several controllers writes; `None`: this one does.
    pub election: Option<Election>,
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
    let objects = ClusterObjects::new(client.clone());
    let shared = Arc::new(Shared {
        announcer: Announcer::new(&objects, options.notifier, REFLECTOR, options.instance),
        writer: objects.writer_as(REFLECTOR),
        objects,
        repositories: Cache::default(),
        policies: Cache::default(),
        registry: sources.registry,
        shelf: sources.shelf,
        options: options.policies,
        metrics: metrics.clone(),
        memory: memory::Memory::default(),
        poller: Poller::default(),
        run_ids: RunIds::new(options.process_id),
        signals,
    });
    let mut watching = JoinSet::new();
    let scope = options.scope;
    watching.spawn(watch(shared.clone(), scope.clone(), shared.repositories.clone(), |shared, change| {
        repository_changed(shared, &change);
    }));
    watching.spawn(watch(shared.clone(), scope, shared.policies.clone(), |shared, change| {
        shared.policy_changed(&change);
    }));
    let mut leadership = Leadership::new(client, options.election, StopSignal::default());
    let is_leader = tokio::select! {
        () = leadership.win() => true,
        () = &mut end => false,
    };
    let mut lost = None;
    if is_leader {
        let mut dispatcher = Dispatcher::new(shared.clone(), inbox, options.retry_delays);
        // The Lease is kept from the first moment: a cluster may take its time to list its objects.
        let work = async {
            tokio::join!(shared.repositories.complete(), shared.policies.complete());
            shared.shelf.sweep(|name| shared.repositories.get(name).is_some());
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

/// Waits until the cluster serves both kinds and lets us write to them, and says once why it does not.
///
/// So one process may serve a cluster that has one half of the kinds only.
pub async fn is_possible(client: &Client, namespace: Option<&str>) {
    let mut said = String::new();
    while let Some(words) = obstacle(client, namespace).await {
        if said.is_empty() {
            tracing::info!("repositories and policies are left alone: {words}");
            said = words;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Why this half cannot work.
async fn obstacle(client: &Client, namespace: Option<&str>) -> Option<String> {
    for resource in ["imagerepositories", "imagepolicies"] {
        for (verb, subresource) in
            [("list", None), ("watch", None), ("patch", None), ("patch", Some("status"))]
        {
            let attributes = ResourceAttributes {
                group: Some(tagboat_api::IMAGE_GROUP.to_owned()),
                namespace: namespace.map(str::to_owned),
                resource: Some(resource.to_owned()),
                subresource: subresource.map(str::to_owned),
                verb: Some(verb.to_owned()),
                ..Default::default()
            };
            let review = SelfSubjectAccessReview {
                spec: SelfSubjectAccessReviewSpec {
                    resource_attributes: Some(attributes),
                    non_resource_attributes: None,
                },
                ..Default::default()
            };
            let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
            // Whoever cannot even ask is shown by the watch what is wrong.
            let Ok(answer) = api.create(&PostParams::default(), &review).await else { continue };
            if !answer.status.is_some_and(|status| status.allowed) {
                let name = subresource.map_or(resource.to_owned(), |part| format!("{resource}/{part}"));
                return Some(format!("the role of the controller does not allow it to {verb} {name}"));
            }
        }
    }
    let one = ListParams::default().limit(1);
    let listed = match namespace {
        Some(namespace) => {
            Api::<ImageRepository>::namespaced(client.clone(), namespace).list(&one).await.err()
        }
        None => Api::<ImageRepository>::all(client.clone()).list(&one).await.err(),
    };
    let error = ClusterError::from(listed?);
    error
        .is_not_found()
        .then(|| "the CustomResourceDefinition of ImageRepository is not installed".to_owned())
}

/// What follows from a change of a repository.
fn repository_changed<R: Registry>(shared: &Arc<Shared<R>>, change: &Change<ImageRepository>) {
    match &change.new {
        None => shared.signal(Signal::Forget(Kind::Repository, change.name.clone())),
        Some(new) if trigger::concerns_itself(change.old.as_deref(), new.as_ref()) => {
            shared.wake(Kind::Repository, change.name.clone());
        }
        Some(_) => {}
    }
    for policy in shared.policies.all() {
        if trigger::repository_of(&policy) == change.name
            && trigger::concerns_policy(&policy, change.old.as_deref(), change.new.as_deref())
        {
            shared.wake(Kind::Policy, ObjectName::of(policy.as_ref()));
        }
    }
}

impl<R: Registry> Shared<R> {
    /// What follows from a change of a policy.
    fn policy_changed(&self, change: &Change<ImagePolicy>) {
        match &change.new {
            None => {
                self.memory.forget(&change.name);
                self.poller.unsubscribe(&change.name);
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
    fn new(shared: Arc<Shared<R>>, inbox: UnboundedReceiver<Signal>, delays: RetryDelays) -> Self {
        let (repositories, policies) = (Queue::new(delays), Queue::new(delays));
        Self { shared, inbox, repositories, policies, runs: JoinSet::new() }
    }

    /// Works until the future is dropped.
    async fn dispatch(&mut self) {
        loop {
            self.start_due();
            let next = [self.repositories.next(), self.policies.next()].into_iter().flatten().min();
            tokio::select! {
                () = queue::until(next) => {}
                signal = self.inbox.recv() => match signal {
                    Some(signal) => self.take_note(signal),
                    // We hold a sender ourselves.
                    None => return,
                },
            }
            // Whatever else is there is settled before anything is started.
            while let Ok(signal) = self.inbox.try_recv() {
                self.take_note(signal);
            }
        }
    }

    fn take_note(&mut self, signal: Signal) {
        let now = Instant::now();
        match signal {
            Signal::Wake(kind, name) => self.queue(kind).wake(name, now),
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
