//! The agent of a node: stages the wanted image, and reboots the host once approved.
//!
//! It reports the state of the host on the node. It is a thin shell: [`host`](crate::host) has the programs of the host, and [`nodes`](crate::nodes) the decisions. All
//! state is on the node and on the host, so the agent can be killed at any time.
//!
//! | file | contents |
//! |---|---|
//! | `worker` | the loop: reads the host, and does one step after the other |
//! | `own_node` | the watch of the agent's own node, and the patches of it |
//! | `staging` | the staging that is in progress |
//! | `retries` | the failure of the host that is reported, and the time of the next attempt |

mod own_node;
mod retries;
mod staging;
mod worker;

use std::future::Future;
use std::time::Duration;

use kube::Client;

use crate::backoff::Backoff;
use crate::host::HostOptions;
use own_node::OwnNode;
use worker::Worker;

/// The settings of an agent.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// The name of its node.
    pub node: String,
    /// The settings of the host.
    pub host: HostOptions,
    /// The times.
    pub times: AgentTimes,
}

/// The times of an agent.
#[derive(Clone, Copy, Debug)]
pub struct AgentTimes {
    /// The time after which the host is read again.
    pub interval: Duration,
    /// The delays after failures of the host.
    pub retries: Backoff,
    /// The time after which a host that still runs has failed to reboot.
    pub reboot_limit: Duration,
}

impl Default for AgentTimes {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(60),
            retries: Backoff { first: Duration::from_secs(5), longest: Duration::from_secs(320) },
            reboot_limit: Duration::from_secs(600),
        }
    }
}

/// Runs the agent until `end` has come.
///
/// A staging then goes on without it.
pub async fn run(client: Client, options: AgentOptions, end: impl Future<Output = ()>) {
    let node = OwnNode::new(client, options.node);
    let (watch, nodes) = node.watch();
    let worker = Worker::new(node, nodes, options.host, options.times);
    tokio::select! {
        () = watch => {}
        () = worker.work() => {}
        () = end => {}
    }
}
