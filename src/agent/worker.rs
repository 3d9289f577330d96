//! The loop of the agent: reads the host, and does one step after the other.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::AgentTimes;
use super::own_node::OwnNode;
use super::retries::{Operation, Retries};
use super::staging::Staging;
use crate::backoff::Backoff;
use crate::error::chain;
use crate::host::{Host, HostError, HostKind, HostOptions, select};
use crate::nodes::{
    self, AgentReport, AgentStep, Node, OwnUpdate, acknowledgment_patch, agent_report, agent_step,
    image_to_stage, keys, report_patch,
};

/// The delays after failed writes; a change of the node ends one, too.
const WRITES: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(30) };

/// The agent at work.
pub(super) struct Worker {
    own: OwnNode,
    /// The states of the node that the watch delivers.
    nodes: watch::Receiver<Option<Node>>,
    options: HostOptions,
    times: AgentTimes,
    /// The node as the watch or the answer to our last patch has it.
    node: Option<Node>,
    /// The host, once its kind is known.
    host: Option<Arc<dyn Host>>,
    /// No kind applies at the moment; the host is of the last one that can.
    is_host_assumed: bool,
    /// The state of the host, as it was read last.
    state: nodes::Host,
    /// The time of the last reading; `None`: the state may be outdated.
    read_at: Option<Instant>,
    staging: Staging,
    /// The image whose staging has succeeded, until the state of the host shows it.
    staged: Option<String>,
    retries: Retries,
    failed_writes: u32,
    /// The last patch that was written, without its resource version.
    written: Option<Value>,
    /// The time before which nothing is written.
    quiet_until: Option<Instant>,
    rebooting_since: Option<Instant>,
}

/// The continuation after a step.
enum Next {
    /// The next step, at once.
    Again,
    /// Waits for a change, but not longer than this.
    Wait(Option<Instant>),
}

impl Worker {
    pub(super) fn new(
        own: OwnNode,
        nodes: watch::Receiver<Option<Node>>,
        options: HostOptions,
        times: AgentTimes,
    ) -> Self {
        Self {
            own,
            nodes,
            options,
            times,
            node: None,
            host: None,
            is_host_assumed: false,
            state: nodes::Host::default(),
            read_at: None,
            staging: Staging::Unknown,
            staged: None,
            retries: Retries::new(times.retries),
            failed_writes: 0,
            written: None,
            quiet_until: None,
            rebooting_since: None,
        }
    }

    /// Works until dropped.
    pub(super) async fn work(mut self) {
        loop {
            if self.nodes.has_changed().unwrap_or_default() {
                let node = self.nodes.borrow_and_update().clone();
                self.observe(node);
            }
            match self.advance().await {
                Next::Again => {}
                Next::Wait(until) => self.wait(until).await,
            }
        }
    }

    /// Takes over a state of the node.
    ///
    /// With another wish, failures are forgotten, and the host is read before the next step.
    fn observe(&mut self, node: Option<Node>) {
        if self.node.as_ref().map(wish) != node.as_ref().map(wish) {
            self.retries.forget();
            self.read_at = None;
            self.staged = None;
            self.rebooting_since = None;
        }
        self.node = node;
    }

    /// Does at most one step.
    async fn advance(&mut self) -> Next {
        let now = Instant::now();
        let Some(node) = self.node.clone().filter(Node::is_labeled) else {
            return self.leave(now).await;
        };
        if self.rebooting_since.is_some_and(|since| since + self.times.reboot_limit <= now) {
            self.rebooting_since = None;
            let limit = self.times.reboot_limit.as_secs();
            self.give_up(format!(
                "the host is still up {limit} s after the agent began its reboot; on the host, systemctl list-jobs \
                 shows what it waits for"
            ));
        }
        if self.retries.is_due(now) {
            self.read_at = None;
        }
        if self.next_reading(now).is_some_and(|at| at <= now) {
            self.read().await;
            // The node may have changed meanwhile.
            return Next::Again;
        }
        let report = agent_report(&node, &self.state, self.retries.message());
        if self.retries.message().is_none() {
            let target = image_to_stage(&node, &self.state);
            if self.staging.image().is_some_and(|image| target.as_deref() != Some(image)) {
                tracing::info!("the staging is stopped, because another image is wanted");
                self.stop_staging();
                return Next::Again;
            }
            if let Some(staged) = self.staged.take() {
                if target.as_ref() == Some(&staged) {
                    let message = format!("the host reports success, but has not staged {staged}");
                    self.fail(Operation::Stage, message);
                    return Next::Again;
                }
                self.retries.succeed(Operation::Stage);
            }
        }
        match agent_step(&node, &self.state, &report) {
            Some(AgentStep::Publish) => self.publish(&node, &report).await,
            Some(AgentStep::Stage(image)) => {
                self.stage(image);
                Next::Wait(None)
            }
            Some(AgentStep::Acknowledge(attempt)) => {
                let next = self.write(acknowledgment_patch(&node, &attempt)).await;
                if matches!(next, Next::Again) {
                    tracing::info!("the approval of a reboot is acknowledged");
                }
                next
            }
            Some(AgentStep::Reboot) if self.rebooting_since.is_none() => {
                self.reboot().await;
                Next::Again
            }
            Some(AgentStep::Reboot) | None => Next::Wait(None),
        }
    }

    /// Stops the staging of a node that has left its pool, until it has stopped.
    async fn leave(&mut self, now: Instant) -> Next {
        if self.staging.image().is_some() {
            self.stop_staging();
        }
        let is_delayed = !self.retries.is_due(now) && self.retries.message().is_some();
        let may_be_staging = matches!(self.staging, Staging::Unknown) && self.host.is_some();
        if may_be_staging && !is_delayed {
            self.read().await;
            return Next::Again;
        }
        Next::Wait(None)
    }

    /// Returns the time at which the host must be read.
    ///
    /// A host that stages an image has no news before the end. One that shuts down has none but errors.
    fn next_reading(&self, now: Instant) -> Option<Instant> {
        let is_busy = self.staging.image().is_some() || self.rebooting_since.is_some();
        let is_due = || self.read_at.map_or(now, |at| at + self.times.interval);
        let is_delayed = self.retries.message().is_some() && !self.retries.is_given_up();
        (!is_busy && !is_delayed).then(is_due)
    }

    async fn read(&mut self) {
        match self.read_host().await {
            Ok(state) => {
                self.state = state;
                self.read_at = Some(Instant::now());
                self.retries.succeed(Operation::Read);
                let has_wish =
                    self.node.as_ref().is_some_and(|node| node.annotation(keys::DESIRED_IMAGE).is_some());
                if !has_wish && self.state.own_update == OwnUpdate::None && self.retries.is_given_up() {
                    tracing::info!("the host does not ask for the reboot any more");
                    self.retries.forget();
                }
            }
            // A host that shuts down may not answer any more; another attempt at it would reboot it again.
            Err(error) if self.retries.is_given_up() => {
                tracing::error!("{}", chain(&error));
                self.read_at = Some(Instant::now());
            }
            Err(error) => self.fail(Operation::Read, chain(&error)),
        }
    }

    async fn read_host(&mut self) -> Result<nodes::Host, HostError> {
        let host = match &self.host {
            Some(host) if !self.is_host_assumed => Arc::clone(host),
            _ => self.select_host().await?,
        };
        if matches!(self.staging, Staging::Unknown) {
            host.stop_staging().await?;
            self.staging = Staging::None;
        }
        host.state().await
    }

    /// Finds out the kind of the host.
    ///
    /// A host that has asked for a reboot by a file, and was rebooted, does not have the file any more. It is assumed
    /// only until another kind applies: after a boot, update-engine may start later than the agent.
    async fn select_host(&mut self) -> Result<Arc<dyn Host>, HostError> {
        let attempt = self.node.as_ref().and_then(Node::attempt);
        let has_asked = attempt.is_some_and(|attempt| attempt.digest.is_empty());
        let options = self.options.clone();
        let selected = select(options.clone()).await;
        self.is_host_assumed = has_asked && matches!(selected, Err(HostError::Unknown { .. }));
        let host = match selected {
            Err(_) if self.is_host_assumed => {
                select(HostOptions { kind: HostKind::RebootRequired, ..options }).await?
            }
            result => result?,
        };
        Ok(Arc::clone(self.host.insert(Arc::from(host))))
    }

    /// Stops waiting for the staging; the host ends it before it is read again.
    fn stop_staging(&mut self) {
        self.staging = Staging::Unknown;
        self.read_at = None;
    }

    fn stage(&mut self, image: String) {
        if let (None, Some(host)) = (self.staging.image(), &self.host) {
            tracing::info!("staging {image}");
            self.staging = Staging::begin(Arc::clone(host), image);
        }
    }

    /// Takes over the end of the staging.
    fn staged(&mut self, result: Result<(), HostError>) {
        self.read_at = None;
        match result {
            Ok(()) => {
                self.staged = self.staging.image().map(str::to_owned);
                self.staging = Staging::None;
            }
            Err(error) => {
                self.staging = Staging::Unknown;
                self.fail(Operation::Stage, chain(&error));
            }
        }
    }

    async fn reboot(&mut self) {
        let Some(host) = self.host.clone() else { return };
        tracing::info!("the host reboots");
        match host.reboot().await {
            Ok(()) => self.rebooting_since = Some(Instant::now()),
            Err(error) => self.fail(Operation::Reboot, chain(&error)),
        }
    }

    async fn publish(&mut self, node: &Node, report: &AgentReport) -> Next {
        tracing::info!(message_of_node = report.message, "the agent is {}", report.state.as_str());
        self.write(report_patch(node, report)).await
    }

    /// Patches the node.
    ///
    /// A node that has changed meanwhile is awaited from the watch. The same patch twice in a row means that another
    /// program reverts it, and is followed by a delay.
    async fn write(&mut self, patch: Value) -> Next {
        if let Some(until) = self.quiet_until.filter(|until| *until > Instant::now()) {
            return Next::Wait(Some(until));
        }
        match self.own.patch(&patch).await {
            Ok(node) => {
                let mut content = patch;
                content["metadata"]["resourceVersion"] = Value::Null;
                if self.written.as_ref() == Some(&content) {
                    self.quiet_until = Some(self.after_failed_write());
                } else {
                    self.failed_writes = 0;
                }
                self.written = Some(content);
                self.observe(Some(node));
                Next::Again
            }
            Err(error) => {
                if error.is_conflict() {
                    tracing::debug!("the node has changed meanwhile");
                } else {
                    tracing::error!("the node cannot be patched: {}", chain(&error));
                }
                Next::Wait(Some(self.after_failed_write()))
            }
        }
    }

    /// Returns the time of the next attempt to write.
    fn after_failed_write(&mut self) -> Instant {
        self.failed_writes = self.failed_writes.saturating_add(1);
        Instant::now() + WRITES.after(self.failed_writes)
    }

    fn fail(&mut self, operation: Operation, message: String) {
        tracing::error!("{message}");
        self.retries.fail(operation, message, Instant::now());
    }

    fn give_up(&mut self, message: String) {
        tracing::error!("{message}");
        self.retries.give_up(message);
    }

    /// Waits for a change, the end of the staging, or a time.
    async fn wait(&mut self, until: Option<Instant>) {
        let overdue = self.rebooting_since.map(|since| since + self.times.reboot_limit);
        let reading = self.next_reading(Instant::now()).filter(|_| self.is_in_pool());
        let wake = [until, overdue, self.retries.next(), reading].into_iter().flatten().min();
        let host = self.host.clone();
        let notice = async {
            match host {
                Some(host) => host.changed().await,
                None => pending().await,
            }
        };
        let timer = async {
            match wake {
                Some(wake) => sleep_until(wake).await,
                None => pending().await,
            }
        };
        tokio::select! {
            changed = self.nodes.changed() => if changed.is_ok() {
                let node = self.nodes.borrow_and_update().clone();
                self.observe(node);
            } else {
                // The watch has ended, and so will this.
                pending::<()>().await;
            },
            result = self.staging.end() => self.staged(result),
            () = notice => self.read_at = None,
            () = timer => {}
        }
    }

    fn is_in_pool(&self) -> bool {
        self.node.as_ref().is_some_and(Node::is_labeled)
    }
}

/// Returns the parts of a node that say what the agent shall do.
fn wish(node: &Node) -> (Option<&str>, Option<&str>) {
    (node.labels.get(keys::STATE).map(String::as_str), node.annotation(keys::DESIRED_IMAGE))
}
