//! Options of the controller, parsed from the flags.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};

use super::flags::{Effect, FLAGS, GATES, IDENTITY, find};
use crate::backoff::Backoff;
use crate::cli::Failure;
use crate::cli::size::ByteSize;
use crate::git::SshAlgorithms;
use crate::metrics::Metrics;
use crate::net::LocalAddresses;
use crate::policy::DowngradeProtection;
use crate::polling::{self, PollingInterval};
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
    pub(super) local_addresses: LocalAddresses,
    pub(super) concurrent: usize,
    pub(super) backoff: Backoff,
    pub(super) election: Option<ElectionTimes>,
    pub(super) events: Option<String>,
    pub(super) metrics: Option<String>,
    pub(super) health: Option<String>,
    pub(super) is_dry_run: bool,
    pub(super) log_level: LogLevel,
    pub(super) log_encoding: LogEncoding,
    pub(super) ssh_algorithms: SshAlgorithms,
    pub(super) warns_of_markers: bool,
    pub(super) controllers: BTreeSet<Controller>,
    pub(super) policies: PolicyOptions,
    pub(super) registries: RegistryOptions,
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
        let mut warnings = self.idle_flags();
        let gates = self.gates()?;
        warnings.extend(idle_gates(&gates));
        let identity = match gates.get(IDENTITY) {
            Some(true) => ObjectIdentity::On,
            _ => ObjectIdentity::Off,
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
        let (bounds, measures) = (self.times()?, Metrics::default());
        let capacity = Capacity::measured(&measures);
        Ok(Options {
            state: self.text("state").map_or_else(std::env::temp_dir, PathBuf::from),
            mirror_size: self.parsed::<ByteSize>("mirror-max-size")?.0,
            mirrors_size: self.parsed::<ByteSize>("mirrors-max-size")?.0,
            watches_all_namespaces: self.switch("watch-all-namespaces"),
            labels: self.text("watch-label-selector").map(str::to_owned),
            cross_namespace,
            local_addresses,
            concurrent: self.number::<NonZeroUsize>("concurrent")?.get(),
            backoff: Backoff { first: shortest, longest: longest.max(shortest) },
            election: self.switch("enable-leader-election").then_some(times),
            events: self.text("events-addr").map(str::to_owned),
            metrics: self.address("metrics-addr")?,
            health: self.address("health-addr")?,
            is_dry_run: self.switch("dry-run"),
            log_level: match self.value("log-level") {
                "trace" => LogLevel::Trace,
                "debug" => LogLevel::Debug,
                "info" => LogLevel::Info,
                "error" => LogLevel::Error,
                _ => return Err(self.invalid("log-level", "write trace, debug, info or error")),
            },
            log_encoding: match self.value("log-encoding") {
                "json" => LogEncoding::Json,
                "console" => LogEncoding::Console,
                _ => return Err(self.invalid("log-encoding", "write json or console")),
            },
            ssh_algorithms: SshAlgorithms {
                key_exchange: self.list("ssh-kex-algos")?,
                host_keys: self.list("ssh-hostkey-algos")?,
            },
            warns_of_markers: self.switch("warn-unresolved-markers"),
            controllers: self.controllers()?,
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

    /// Returns a warning for each flag without an effect that is not its default.
    fn idle_flags(&self) -> Vec<String> {
        let given = self.given.iter().filter_map(|name| find(name));
        given
            .filter(|flag| self.value(flag.name) != flag.default)
            .filter_map(|flag| match flag.effect {
                Effect::Does(_) => None,
                Effect::Nothing(why) => Some(format!("--{} has no effect: {why}", flag.name)),
            })
            .collect()
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

/// Returns a warning for each feature gate without an effect that is not its default.
fn idle_gates(gates: &BTreeMap<&'static str, bool>) -> Vec<String> {
    let set = GATES.iter().filter(|gate| gates.get(gate.name).is_some_and(|value| *value != gate.default));
    set.filter_map(|gate| match gate.effect {
        Effect::Does(_) => None,
        Effect::Nothing(why) => Some(format!("the feature gate {} has no effect: {why}", gate.name)),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(flags: &[&str]) -> Result<ControllerArguments, clap::Error> {
        let command = ControllerArguments::augment_args(Command::new("controller").no_binary_name(true));
        ControllerArguments::from_arg_matches(&command.try_get_matches_from(flags)?)
    }

    fn options(flags: &[&str]) -> Result<Options, Failure> {
        arguments(flags).unwrap().read()
    }

    #[test]
    fn defaults_match_flux() {
        let options = options(&[]).unwrap();
        assert!(options.watches_all_namespaces && options.election.is_none() && options.labels.is_none());
        assert_eq!(options.local_addresses, LocalAddresses::Refused);
        assert!(!options.warns_of_markers);
        let defaults = RegistryOptions::default();
        assert_eq!(options.registries.rate_limits, defaults.rate_limits);
        assert_eq!(options.registries.local_addresses, LocalAddresses::Refused);
        assert_eq!(options.registries.max_tags, defaults.max_tags);
        assert_eq!(options.registries.clouds.credential_cache, defaults.clouds.credential_cache);
        assert_eq!((options.policies.identity, options.default_account), (ObjectIdentity::Off, None));
        assert_eq!((options.concurrent, options.cross_namespace), (4, CrossNamespace::Allowed));
        assert_eq!(options.backoff.first, Duration::from_millis(750));
        assert_eq!(options.backoff.longest, Duration::from_secs(900));
        assert_eq!((options.metrics.as_deref(), options.health.as_deref()), (Some(":8080"), Some(":9440")));
        assert_eq!((options.log_level, options.log_encoding), (LogLevel::Info, LogEncoding::Json));
        assert_eq!(options.controllers, BTreeSet::from([Controller::Automation, Controller::Reflector]));
        assert!(options.warnings.is_empty() && options.events.is_none());
    }

    #[test]
    fn the_arguments_of_flux_are_accepted() {
        let options = options(&[
            "--events-addr=http://notification-controller.flux-system.svc.cluster.local./",
            "--watch-all-namespaces=false",
            "--log-level=debug",
            "--log-encoding",
            "console",
            "--enable-leader-election",
            "--leader-election-release-on-cancel=0",
            "--watch-label-selector=sharding.fluxcd.io/key=shard1",
            "--no-cross-namespace-refs=true",
            "--ssh-hostkey-algos=rsa-sha2-512,rsa-sha2-256",
            "--controllers=reflector",
        ])
        .unwrap();
        assert_eq!(options.controllers, BTreeSet::from([Controller::Reflector]));
        assert!(!options.watches_all_namespaces);
        assert!(!options.election.unwrap().is_released);
        assert_eq!(options.labels.as_deref(), Some("sharding.fluxcd.io/key=shard1"));
        assert_eq!(options.cross_namespace, CrossNamespace::Forbidden);
        assert_eq!(options.ssh_algorithms.host_keys, ["rsa-sha2-512", "rsa-sha2-256"]);
        assert_eq!((options.log_level, options.log_encoding), (LogLevel::Debug, LogEncoding::Console));
    }

    #[test]
    fn flags_without_an_effect_are_warned_of_once_if_they_change_a_default() {
        let options = options(&[
            "--kube-api-qps=100",
            "--kube-api-burst=300",
            "--feature-gates=GitShallowClone=false,GitSparseCheckout=false,ObjectLevelWorkloadIdentity=true",
            "--default-service-account=x",
        ])
        .unwrap();
        assert_eq!(options.policies.identity, ObjectIdentity::On);
        assert_eq!(options.default_account.as_deref(), Some("x"));
        let begins: Vec<&str> = options.warnings.iter().filter_map(|text| text.split(':').next()).collect();
        assert_eq!(
            begins,
            ["--kube-api-qps has no effect", "the feature gate GitShallowClone has no effect",]
        );
    }

    #[test]
    fn a_warning_about_an_invalid_polling_interval_names_its_flag() {
        let options = options(&["--update-polling-interval=1d"]).unwrap();
        assert_eq!(options.policies.polling, PollingInterval::default());
        let begin = "--update-polling-interval \"1d\" is invalid, using 12h0m0s: `1d` is not a duration";
        assert!(options.warnings[0].starts_with(begin), "{:?}", options.warnings);
    }

    #[test]
    fn invalid_values_are_refused_with_the_name_of_the_flag() {
        for (flags, sentence) in [
            (
                &["--log-level=loud"][..],
                "--log-level \"loud\" cannot be used: write trace, debug, info or error",
            ),
            (
                &["--concurrent=x"],
                "--concurrent \"x\" cannot be used: write a whole number without a sign, such as 4",
            ),
            (&["--concurrent=-1"], "--concurrent \"-1\" cannot be used: write a whole number without a sign"),
            (&["--concurrent=0"], "--concurrent \"0\" cannot be used: write a whole number of 1 or more"),
            (
                &["--registry-max-tags=0"],
                "--registry-max-tags \"0\" cannot be used: write a whole number of 1 or more",
            ),
            (&["--mirror-max-size=0"], "--mirror-max-size \"0\": it must be larger than 0, such as 2GiB"),
            (&["--mirrors-max-size=0GiB"], "--mirrors-max-size \"0GiB\": it must be larger than 0"),
            (
                &["--registry-concurrency=0"],
                "--registry-concurrency \"0\" cannot be used: write a whole number of 1 or more",
            ),
            (
                &["--registry-concurrency=18446744073709551616"],
                "--registry-concurrency \"18446744073709551616\" cannot be used: write a smaller number",
            ),
            (
                &["--registry-max-tags=many"],
                "--registry-max-tags \"many\" cannot be used: write a whole number",
            ),
            (&["--min-retry-delay=5"], "--min-retry-delay: `5` is not a duration"),
            (
                &["--max-timeout=10ms"],
                "--max-timeout \"10ms\" cannot be used: write a second or more, such as 10m",
            ),
            (&["--feature-gates=Nope=true"], "feature-gate 'Nope' not supported"),
            (&["--feature-gates=foo"], "feature-gate 'foo' not supported"),
            (
                &["--metrics-addr=x"],
                "--metrics-addr \"x\" cannot be used: write HOST:PORT, :PORT, or 0 for none",
            ),
            (&["--metrics-addr=localhost:http"], "--metrics-addr \"localhost:http\" cannot be used"),
            (&["--health-addr=:65536"], "--health-addr \":65536\" cannot be used"),
            (
                &["--default-service-account=x"],
                "cannot set default service accounts when the feature gate ObjectLevelWorkloadIdentity is not enabled",
            ),
            (
                &["--default-service-account=x", "--feature-gates=ObjectLevelWorkloadIdentity=false"],
                "cannot set default service accounts when the feature gate ObjectLevelWorkloadIdentity is not enabled",
            ),
            (&["--leader-election-renew-deadline=40s"], "--leader-election-retry-period must be"),
            (
                &["--controllers=both"],
                "--controllers \"both\" cannot be used: write automation, reflector or both, separated by commas",
            ),
            (&["--controllers="], "--controllers \"\" cannot be used: write automation, reflector or both"),
            (
                &["--controllers=automation,"],
                "--controllers \"automation,\" cannot be used: write automation",
            ),
            (&["--ssh-kex-algos=a b"], "--ssh-kex-algos \"a b\" cannot be used"),
        ] {
            let failure = options(flags).unwrap_err();
            let Failure::Usage(text) = failure else { panic!("{flags:?} is wrong usage: {failure:?}") };
            assert!(text.starts_with(sentence), "{text}");
        }
        assert!(arguments(&["--watch-all-namespaces=perhaps"]).is_err());
        assert!(arguments(&["--aws-autologin-for-ecr"]).is_err());
    }
}
