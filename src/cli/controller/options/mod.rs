//! Options of the controller, parsed from the flags.
//!
//! | module | flags |
//! |---|---|
//! | `status`, `push` | those of the REST API and the page; those of the status push |
//! | `clusters` | the name of the own cluster, and the other clusters |
//! | `idle` | warnings about flags without an effect |

mod clusters;
mod idle;
mod push;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};

use super::flags::{ALL_REFERENCES, FLAGS, GATES, IDENTITY};
use crate::backoff::Backoff;
use crate::cli::Failure;
use crate::cli::service::{ProbeAddresses, log_encoding, log_level};
use crate::cli::size::ByteSize;
use crate::forge::ForgeRateLimits;
use crate::git::SshAlgorithms;
use crate::metrics::Metrics;
use crate::net::LocalAddresses;
use crate::objects::remote_clusters::RemoteClusterOptions;
use crate::policy::DowngradeProtection;
use crate::polling::{self, PollingInterval};
use crate::reconcile::branch_references::BranchReferences;
use crate::reconcile::cross_namespace::CrossNamespace;
use crate::reconcile::policy::digest::FirstImage;
use crate::reconcile::policy::run::PolicyOptions;
use crate::reconcile::repository::request::ObjectIdentity;
use crate::reconcile::times::TimeBounds;
use crate::registry::{
    CloudEnvironment, CloudOptions, CredentialCacheOptions, RateLimitOptions, RegistryOptions,
};
use crate::telemetry::{LogEncoding, LogLevel};
use crate::tenancy::Capacity;
use crate::web::PushOptions;
use idle::idle_gates;
use status::StatusOptions;

/// The flags, as given.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct ControllerArguments {
    pub(super) values: BTreeMap<&'static str, String>,
    given: BTreeSet<&'static str>,
}

/// The options of the controller.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) state: PathBuf,
    pub(super) mirror_size: u64,
    /// The maximum size of all mirrors together, in bytes.
    pub(super) mirrors_size: u64,
    pub(super) watches_all_namespaces: bool,
    pub(super) labels: Option<String>,
    pub(super) cross_namespace: CrossNamespace,
    pub(super) references: BranchReferences,
    pub(super) local_addresses: LocalAddresses,
    pub(super) concurrent: usize,
    pub(super) backoff: Backoff,
    pub(super) election: Option<ElectionTimes>,
    pub(super) events: Option<String>,
    pub(super) probes: ProbeAddresses,
    /// The server of the status of deployments, if there is one.
    pub(super) status: Option<StatusOptions>,
    /// The push of the status of deployments, if there is one.
    pub(super) push: Option<PushOptions>,
    /// The name of the own cluster; may be empty.
    pub(super) cluster_name: String,
    pub(super) is_dry_run: bool,
    pub(super) reports_rollouts: bool,
    /// The interval of tag resolutions; none if node pools are not reconciled.
    pub(super) tag_resolution: Option<Duration>,
    /// The other clusters in which rollouts are observed, if a directory of them is given.
    pub(super) remote_clusters: Option<RemoteClusterOptions>,
    pub(super) log_level: LogLevel,
    pub(super) log_encoding: LogEncoding,
    pub(super) ssh_algorithms: SshAlgorithms,
    pub(super) warns_of_markers: bool,
    pub(super) controllers: BTreeSet<Controller>,
    pub(super) policies: PolicyOptions,
    pub(super) registries: RegistryOptions,
    /// The rate limits of calls to forges.
    pub(super) forge_limits: ForgeRateLimits,
    /// Limits of the timeouts of all objects.
    pub(super) times: TimeBounds,
    /// The metrics of this process and of its capacity.
    pub(super) measures: Metrics,
    /// The threads and the memory that all tenants of this process share.
    pub(super) capacity: Capacity,
    /// The service account for logins to clouds of objects that name none.
    pub(super) default_account: Option<String>,
    /// Warnings about flags without an effect, one sentence each.
    pub(super) warnings: Vec<String>,
}

/// A controller that the process can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Controller {
    /// Reconciles automations.
    Automation,
    /// Reconciles repositories and policies.
    Reflector,
}

/// The times of the leader election.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElectionTimes {
    pub(super) duration: Duration,
    pub(super) renew_deadline: Duration,
    pub(super) retry_period: Duration,
    pub(super) is_released: bool,
}

impl FromArgMatches for ControllerArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut arguments = Self::default();
        arguments.update_from_arg_matches(matches)?;
        Ok(arguments)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for flag in FLAGS {
            let Some(value) = matches.get_one::<String>(flag.name) else { continue };
            self.values.insert(flag.name, value.clone());
            if matches.value_source(flag.name) == Some(ValueSource::CommandLine) {
                self.given.insert(flag.name);
            }
        }
        Ok(())
    }
}

impl Args for ControllerArguments {
    fn augment_args(command: Command) -> Command {
        let command = command.about(ABOUT).long_about(LONG_ABOUT);
        FLAGS.iter().fold(command, |command, flag| command.arg(flag.argument()))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

const ABOUT: &str = "Reconcile the image automations, repositories and policies of a Kubernetes cluster";

const LONG_ABOUT: &str = "Reconcile the image automations, repositories and policies of a Kubernetes cluster\n\n\
    Replaces Flux's image-automation-controller and image-reflector-controller, with the same objects, flags, statuses, \
    events and metrics. The cluster is that of $KUBECONFIG, or that of the pod.\n\n\
    Exit status: 0 SIGTERM or SIGINT ended it, 1 something failed or another controller has become the leader, 2 wrong usage.";

impl ControllerArguments {
    /// Parses the flags.
    ///
    /// # Errors
    ///
    /// If a value is invalid; the message names its flag.
    pub(super) fn read(&self) -> Result<Options, Failure> {
        const WRITES: &str = "forge-writes-per-minute";
        let duration = self.duration("leader-election-lease-duration")?;
        let renew_deadline = self.duration("leader-election-renew-deadline")?;
        let retry_period = self.duration("leader-election-retry-period")?;
        if renew_deadline >= duration || retry_period >= renew_deadline || retry_period.is_zero() {
            return Err(Failure::Usage(
                "--leader-election-retry-period must be longer than 0s, --leader-election-renew-deadline longer than that, \
                 and --leader-election-lease-duration the longest"
                    .to_owned(),
            ));
        }
        let times = ElectionTimes {
            duration,
            renew_deadline,
            retry_period,
            is_released: self.switch("leader-election-release-on-cancel"),
        };
        let (shortest, longest) = (self.duration("min-retry-delay")?, self.duration("max-retry-delay")?);
        let cross_namespace = if self.switch("no-cross-namespace-refs") {
            CrossNamespace::Forbidden
        } else {
            CrossNamespace::Allowed
        };
        let controllers = self.controllers()?;
        let mut warnings = self.idle_flags(&controllers);
        let gates = self.gates()?;
        warnings.extend(idle_gates(&gates));
        let identity = match gates.get(IDENTITY) {
            Some(true) => ObjectIdentity::On,
            _ => ObjectIdentity::Off,
        };
        let references = match gates.get(ALL_REFERENCES) {
            Some(false) => BranchReferences::Fresh,
            _ => BranchReferences::All,
        };
        let default_account = self.text("default-service-account").map(str::to_owned);
        if default_account.is_some() && identity == ObjectIdentity::Off {
            return Err(Failure::Usage(
                "cannot set default service accounts when the feature gate ObjectLevelWorkloadIdentity is not enabled"
                    .to_owned(),
            ));
        }
        let (polling, warning) = self.polling();
        warnings.extend(warning);
        let local_addresses = if self.switch("allow-local-addresses") {
            LocalAddresses::Allowed
        } else {
            LocalAddresses::Refused
        };
        let push = self.push()?.filter(|_| self.pushes(&controllers));
        let (bounds, measures) = (self.times()?, Metrics::default());
        let capacity = Capacity::measured(&measures);
        Ok(Options {
            state: self.text("state").map_or_else(std::env::temp_dir, PathBuf::from),
            mirror_size: self.parsed::<ByteSize>("mirror-max-size")?.0,
            mirrors_size: self.parsed::<ByteSize>("mirrors-max-size")?.0,
            watches_all_namespaces: self.switch("watch-all-namespaces"),
            labels: self.text("watch-label-selector").map(str::to_owned),
            cross_namespace,
            references,
            local_addresses,
            concurrent: self.number::<NonZeroUsize>("concurrent")?.get(),
            backoff: Backoff { first: shortest, longest: longest.max(shortest) },
            election: self.switch("enable-leader-election").then_some(times),
            events: self.text("events-addr").map(str::to_owned),
            probes: ProbeAddresses {
                health: self.address("health-addr")?,
                metrics: self.address("metrics-addr")?,
            },
            status: self.status()?,
            push,
            cluster_name: self.cluster_name()?,
            is_dry_run: self.switch("dry-run"),
            reports_rollouts: self.switch("rollout"),
            tag_resolution: self.tag_resolution()?,
            remote_clusters: self.remote_clusters(),
            log_level: log_level(self.value("log-level"))?,
            log_encoding: log_encoding(self.value("log-encoding"))?,
            ssh_algorithms: SshAlgorithms {
                key_exchange: self.list("ssh-kex-algos")?,
                host_keys: self.list("ssh-hostkey-algos")?,
            },
            warns_of_markers: self.switch("warn-unresolved-markers"),
            controllers,
            policies: PolicyOptions {
                cross_namespace,
                identity,
                requeue_dependency: self.duration("requeue-dependency")?,
                downgrade_protection: DowngradeProtection {
                    scans: self.number("regression-scans")?,
                    time: self.duration("regression-time")?,
                },
                polling,
                first_image: FirstImage::Counts,
                times: bounds,
                capacity: capacity.clone(),
            },
            forge_limits: ForgeRateLimits {
                concurrency: self.number::<NonZeroUsize>("forge-concurrency")?.get(),
                writes_per_minute: self
                    .text(WRITES)
                    .map(|_| self.number::<NonZeroU32>(WRITES))
                    .transpose()?
                    .map(NonZeroU32::get),
            },
            registries: RegistryOptions {
                rate_limits: RateLimitOptions {
                    concurrency: self.number::<NonZeroUsize>("registry-concurrency")?.get(),
                    ..RateLimitOptions::default()
                },
                local_addresses,
                max_tags: self.number::<NonZeroUsize>("registry-max-tags")?.get(),
                clouds: CloudOptions {
                    environment: CloudEnvironment::from_env(),
                    credential_cache: CredentialCacheOptions {
                        max_entries: self.number("token-cache-max-size")?,
                        max_ttl: self.duration("token-cache-max-duration")?,
                    },
                    ..CloudOptions::default()
                },
                ..RegistryOptions::default()
            },
            times: bounds,
            capacity,
            measures,
            default_account,
            warnings,
        })
    }

    /// Returns the controllers to run, at least one.
    fn controllers(&self) -> Result<BTreeSet<Controller>, Failure> {
        const NAME: &str = "controllers";
        let names = self.value(NAME).split(',').map(str::trim);
        let controllers = names.map(|name| match name {
            "automation" => Ok(Controller::Automation),
            "reflector" => Ok(Controller::Reflector),
            _ => Err(self.invalid(NAME, "write automation, reflector or both, separated by commas")),
        });
        controllers.collect()
    }

    /// Returns the interval of tag resolutions, unless node pools are not reconciled.
    fn tag_resolution(&self) -> Result<Option<Duration>, Failure> {
        const NAME: &str = "tag-resolution-interval";
        let interval = self.duration(NAME)?;
        if interval < Duration::from_secs(1) {
            return Err(self.invalid(NAME, "write a second or more, such as 5m"));
        }
        Ok((self.switch("nodes") && !self.switch("dry-run")).then_some(interval))
    }

    /// Returns the limits of timeouts.
    fn times(&self) -> Result<TimeBounds, Failure> {
        const NAME: &str = "max-timeout";
        let longest_timeout = self.duration(NAME)?;
        if longest_timeout < Duration::from_secs(1) {
            return Err(self.invalid(NAME, "write a second or more, such as 10m"));
        }
        Ok(TimeBounds { longest_timeout })
    }

    /// Returns the interval of digest lookups, and a warning if it is invalid.
    ///
    /// It is that of the flag, or else of the environment.
    fn polling(&self) -> (PollingInterval, Option<String>) {
        const NAME: &str = "update-polling-interval";
        if let Some(text) = self.text(NAME) {
            return PollingInterval::read(&format!("--{NAME} {text:?}"), Some(text));
        }
        let variable = polling::interval::VARIABLE;
        PollingInterval::read(variable, std::env::var(variable).ok().as_deref())
    }

    /// Parses the feature gates; as in Flux, an unknown one is an error.
    fn gates(&self) -> Result<BTreeMap<&'static str, bool>, Failure> {
        let mut gates = BTreeMap::new();
        for item in self.value("feature-gates").split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let (name, value) = item.split_once('=').unwrap_or((item, ""));
            let Some(gate) = GATES.iter().find(|gate| gate.name == name) else {
                return Err(Failure::Usage(format!("feature-gate '{name}' not supported")));
            };
            let value = match value {
                "true" => true,
                "false" => false,
                _ => {
                    return Err(
                        self.invalid("feature-gates", "write NAME=true or NAME=false, separated by commas")
                    );
                }
            };
            gates.insert(gate.name, value);
        }
        Ok(gates)
    }
}

#[cfg(test)]
mod tests;
