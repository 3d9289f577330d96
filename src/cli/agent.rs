//! `tagboat agent`: stages and boots the wanted image on the host of a node.

use std::env;
use std::time::Duration;

use clap::Args;
use tagboat_api::GoDuration;

use super::service::{self, ProbeAddresses, invalid, shutdown_signal};
use super::{Failure, kubeconfig, runtime};
use crate::agent::{self, AgentOptions, AgentTimes};
use crate::host::{
    DEFAULT_ADDRESS, DEFAULT_PREFIX, DEFAULT_SENTINEL, HostKind, HostOptions, OnHost, is_address,
};
use crate::metrics::Metrics;
use crate::objects::cluster::{counting_client, is_object_name};
use crate::telemetry::{self, LogEncoding, LogLevel};

/// The environment variable with the name of the node.
const NODE_NAME: &str = "NODE_NAME";

/// The shortest `--interval`.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

/// Stage the OS image of a node on its host, and boot it once approved
///
/// Runs in a privileged pod with hostPID on each node. It reads the host, publishes its state in labels and annotations of its
/// own node, stages the image that the controller wants, and reboots the host when the controller has approved that.
///
/// Exit status: 0 SIGTERM or SIGINT ended it, 1 something failed, 2 wrong usage.
#[derive(Debug, Args)]
pub(super) struct AgentArguments {
    /// The name of its node [default: $NODE_NAME]
    #[arg(long, value_name = "NAME")]
    node: Option<String>,

    /// The kind of the host: auto, bootc, update-engine or reboot-required
    #[arg(long, value_name = "KIND", default_value = "auto")]
    host: String,

    /// The words before each command, by which it runs on the host
    #[arg(long, value_name = "PREFIX", default_value = DEFAULT_PREFIX, allow_hyphen_values = true)]
    on_host: String,

    /// The address of the system bus (D-Bus), for the kind update-engine
    #[arg(long, value_name = "ADDRESS", default_value = DEFAULT_ADDRESS)]
    dbus_address: String,

    /// The file on the host that asks for a reboot, for the kind reboot-required
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SENTINEL)]
    reboot_sentinel: String,

    /// The time after which the state of the host is read again
    #[arg(long, value_name = "DURATION", default_value = "1m", allow_hyphen_values = true)]
    interval: String,

    /// The address of /metrics; 0 serves none
    #[arg(long, value_name = "ADDRESS", default_value = ":8080")]
    metrics_addr: String,

    /// The address of /healthz and /readyz; 0 serves none
    #[arg(long, value_name = "ADDRESS", default_value = ":9440")]
    health_addr: String,

    /// The log level: trace, debug, info or error
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: String,

    /// The log format: json or console
    #[arg(long, value_name = "ENCODING", default_value = "json")]
    log_encoding: String,
}

/// The options of the agent.
#[derive(Debug)]
struct Options {
    agent: AgentOptions,
    probes: ProbeAddresses,
    log: (LogLevel, LogEncoding),
}

impl AgentArguments {
    /// Parses the flags.
    fn read(&self) -> Result<Options, Failure> {
        let times = AgentTimes { interval: self.interval()?, ..AgentTimes::default() };
        Ok(Options {
            agent: AgentOptions { node: self.node()?, host: self.host()?, times },
            probes: ProbeAddresses {
                health: service::address("health-addr", &self.health_addr)?,
                metrics: service::address("metrics-addr", &self.metrics_addr)?,
            },
            log: (service::log_level(&self.log_level)?, service::log_encoding(&self.log_encoding)?),
        })
    }

    fn node(&self) -> Result<String, Failure> {
        let name = self.node.clone().or_else(|| env::var(NODE_NAME).ok()).unwrap_or_default();
        if name.is_empty() {
            return Err(Failure::Usage(format!(
                "--node is missing: write the name of the node, or set {NODE_NAME}"
            )));
        }
        if is_object_name(&name) { Ok(name) } else { Err(invalid("node", &name, "write the name of a Node")) }
    }

    fn host(&self) -> Result<HostOptions, Failure> {
        let kind = match self.host.as_str() {
            "auto" => HostKind::Auto,
            "bootc" => HostKind::Bootc,
            "update-engine" => HostKind::UpdateEngine,
            "reboot-required" => HostKind::RebootRequired,
            other => {
                return Err(invalid("host", other, "write auto, bootc, update-engine or reboot-required"));
            }
        };
        if !is_address(&self.dbus_address) {
            let example = "write an address such as unix:path=/run/dbus/system_bus_socket";
            return Err(invalid("dbus-address", &self.dbus_address, example));
        }
        if !self.reboot_sentinel.starts_with('/') {
            return Err(invalid("reboot-sentinel", &self.reboot_sentinel, "write an absolute path"));
        }
        let on_host = OnHost::new(&self.on_host);
        let (dbus_address, reboot_sentinel) = (self.dbus_address.clone(), self.reboot_sentinel.clone());
        Ok(HostOptions { kind, on_host, dbus_address, reboot_sentinel })
    }

    fn interval(&self) -> Result<Duration, Failure> {
        let value = GoDuration::new(&*self.interval);
        let interval = value.to_duration().map_err(|error| Failure::Usage(format!("--interval: {error}")))?;
        if interval < SHORTEST_INTERVAL {
            return Err(invalid("interval", &self.interval, "write a second or more, such as 1m"));
        }
        Ok(interval)
    }
}

pub(super) fn run(arguments: &AgentArguments) -> Result<(), Failure> {
    let options = arguments.read()?;
    telemetry::log(options.log.0, options.log.1);
    service::run(runtime::single_threaded()?, serve(options))
}

async fn serve(options: Options) -> Result<(), Failure> {
    let end = shutdown_signal()?;
    let metrics = Metrics::default();
    options.probes.serve(&metrics).await?;
    let configuration = kubeconfig::infer().await.map_err(Failure::new)?;
    let client = counting_client(configuration, metrics)
        .map_err(|error| Failure::new(format!("the kubeconfig cannot be used: {error}")))?;
    agent::run(client, options.agent, end).await;
    Ok(())
}
