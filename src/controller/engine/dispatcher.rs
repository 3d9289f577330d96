//! Starts the reconciles of a kind when their objects are due.

use std::future::Future;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::queue::{self, Message, Queue};
use crate::objects::ObjectName;

/// The queue of a kind, and the tasks that reconcile its objects.
pub(crate) struct Dispatcher {
    queue: Queue,
    inbox: UnboundedReceiver<Message>,
    reconciles: JoinSet<()>,
}

impl Dispatcher {
    pub(super) fn new(queue: Queue, inbox: UnboundedReceiver<Message>) -> Self {
        Self { queue, inbox, reconciles: JoinSet::new() }
    }

    /// Starts the reconciles of due objects until the future is dropped.
    ///
    /// `start` takes the objects that are due and spawns their reconciles.
    pub(crate) async fn dispatch(&mut self, start: impl Fn(&mut Queue, &mut JoinSet<()>)) {
        loop {
            while self.reconciles.try_join_next().is_some() {}
            start(&mut self.queue, &mut self.reconciles);
            let next = self.queue.next();
            // The kind of the queue holds a sender, so messages never end before it.
            let Some(messages) = queue::receive(&mut self.inbox, next).await else { return };
            messages.into_iter().for_each(|message| self.handle(message));
        }
    }

    /// Reconciles each due object in a task of its own, until the future is dropped.
    pub(crate) async fn dispatch_each<F>(&mut self, reconcile: impl Fn(ObjectName) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.dispatch(|queue, reconciles| {
            for due in queue.take_due(Instant::now()) {
                reconciles.spawn(reconcile(due.name));
            }
        })
        .await;
    }

    fn handle(&mut self, message: Message) {
        let now = Instant::now();
        match message {
            Message::Enqueue(name, wait) => self.queue.enqueue(&name, now + wait),
            Message::Forget(name) => self.queue.forget(&name),
            Message::Done(name, action) => self.queue.done(&name, action, now),
        }
    }

    /// Waits until no reconcile is in flight, and returns whether that was so within `time`.
    pub(crate) async fn drain(&mut self, time: Duration) -> bool {
        timeout(time, async { while self.reconciles.join_next().await.is_some() {} }).await.is_ok()
    }

    /// Aborts the reconciles in flight.
    pub(crate) async fn abort(&mut self) {
        self.reconciles.shutdown().await;
    }
}
