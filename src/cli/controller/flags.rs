//! Flags of the controller: those of both image controllers of Flux, and our own.
//!
//! The command line, its help and `docs/controller-flags.md` are generated from one table.

use std::fmt::Write as _;

use clap::Arg;

/// A flag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flag {
    /// The name without dashes.
    pub(super) name: &'static str,
    pub(super) value: Value,
    /// The default value.
    pub(super) default: &'static str,
    pub(super) owner: Owner,
    pub(super) effect: Effect,
}

/// The kind of a flag's value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    /// True or false; `--flag` alone is true.
    Switch,
    /// A text, with its name in the help.
    Text(&'static str),
}

/// The program that a flag comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// Flux's image-automation-controller.
    Automation,
    /// Flux's image-reflector-controller.
    Reflector,
    /// Both image controllers of Flux.
    Both,
    /// Tagboat only.
    Tagboat,
}

/// The effect of a flag.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effect {
    /// The effect, as a sentence.
    Does(&'static str),
    /// None, with the reason.
    Nothing(&'static str),
}

const OWN_STORE: &str = "tags are kept below --state, in one small file per repository";

use Effect::{Does, Nothing};
use Owner::{Automation, Both, Reflector, Tagboat};
use Value::{Switch, Text};

/// Makes flags from lines of `name, value, default, owner => effect;`.
macro_rules! flags {
    ($($name:literal, $value:expr, $default:literal, $owner:expr => $effect:expr;)*) => {
        &[$(Flag { name: $name, value: $value, default: $default, owner: $owner, effect: $effect }),*]
    };
}

/// All flags, in the order in which help shows them.
pub(super) const FLAGS: &[Flag] = flags! {
    "state", Text("DIR"), "", Tagboat =>
        Does("The directory of mirrors and tags [default: $TMPDIR, else /tmp]");
    "mirror-max-size", Text("SIZE"), "2GiB", Tagboat =>
        Does("The maximum size of the mirror of one repository");
    "mirrors-max-size", Text("SIZE"), "10GiB", Tagboat =>
        Does("The maximum size of all mirrors together; the least recently used ones of the namespace with \
         most are evicted first");
    "dry-run", Switch, "false", Tagboat =>
        Does("Write nothing, log what would be pushed, and compare it with what another controller pushes; node \
         pools are left alone");
    "watch-all-namespaces", Switch, "true", Both =>
        Does("Watch all namespaces instead of the one in RUNTIME_NAMESPACE");
    "watch-label-selector", Text("SELECTOR"), "", Both => Does("Reconcile only objects with these labels");
    "no-cross-namespace-refs", Switch, "false", Both =>
        Does("Refuse GitRepositories and ImageRepositories of other namespaces");
    "allow-local-addresses", Switch, "false", Tagboat =>
        Does("Allow GitRepositories, images and proxy Secrets with local and link-local addresses");
    "concurrent", Text("COUNT"), "4", Both =>
        Does("The maximum number of concurrent transactions with git servers");
    "min-retry-delay", Text("DURATION"), "750ms", Both =>
        Does("The delay after the first failure; it doubles with each further one");
    "max-retry-delay", Text("DURATION"), "15m", Both => Does("The maximum delay after a failure");
    "max-timeout", Text("DURATION"), "10m", Tagboat =>
        Does("The maximum timeout; a longer one of an object, given or derived from its interval, is reduced to it");
    "enable-leader-election", Switch, "false", Both =>
        Does("Write only while holding the Lease of Flux's controller");
    "leader-election-release-on-cancel", Switch, "true", Both => Does("Release the Lease at shutdown");
    "leader-election-lease-duration", Text("DURATION"), "35s", Both =>
        Does("The time after which others may take a Lease that is not renewed");
    "leader-election-renew-deadline", Text("DURATION"), "30s", Both =>
        Does("The time without a renewal after which the Lease counts as lost");
    "leader-election-retry-period", Text("DURATION"), "5s", Both =>
        Does("The time between two attempts to take or renew the Lease");
    "events-addr", Text("URL"), "", Both =>
        Does("The address to send events to, such as Flux's notification-controller");
    "warn-unresolved-markers", Switch, "false", Tagboat =>
        Does("Send the event about markers without an effect as a warning");
    "rollout", Switch, "true", Tagboat =>
        Does("Report in a DeploymentStatus per policy whether its image runs, if deploy/rollout is applied");
    "nodes", Switch, "true", Tagboat =>
        Does("Roll out OS images on the nodes of NodePools, if deploy/nodes is applied");
    "tag-resolution-interval", Text("DURATION"), "5m", Tagboat =>
        Does("The interval in which the tag of the image of a NodePool is resolved to a digest");
    "clusters", Text("DIR"), "", Tagboat =>
        Does("A directory, such as a mounted Secret, with a file NAME.kubeconfig for each other cluster in which images \
         of the policies run");
    "metrics-addr", Text("ADDRESS"), ":8080", Both => Does("The address of /metrics; 0 serves none");
    "health-addr", Text("ADDRESS"), ":9440", Both =>
        Does("The address of /healthz and /readyz; 0 serves none");
    "status-addr", Text("ADDRESS"), "", Tagboat =>
        Does("The address of the REST API with the status of deployments, such as 127.0.0.1:9797; none by default");
    "status-host", Text("LIST"), "", Tagboat =>
        Does("The host names, separated by commas, for which --status-addr accepts requests, beside localhost and \
         IP addresses");
    "status-endpoint", Text("URL"), "", Tagboat =>
        Does("The server that gets the status of each deployment when it changes, by a POST to \
         URL/api/v1/deployments/ID/status; none by default");
    "status-format", Text("FORMAT"), "seed", Tagboat =>
        Does("The form of the documents for --status-endpoint: seed or margo");
    "status-token-file", Text("FILE"), "", Tagboat =>
        Does("The file with the bearer token for --status-endpoint; it is read for each request");
    "cluster-name", Text("NAME"), "", Tagboat =>
        Does("The name of this cluster in the status of deployments; in the form of Margo the deviceId");
    "log-level", Text("LEVEL"), "info", Both => Does("The log level: trace, debug, info or error");
    "log-encoding", Text("ENCODING"), "json", Both => Does("The log format: json or console");
    "ssh-kex-algos", Text("LIST"), "", Automation =>
        Does("The key exchange algorithms of SSH, separated by commas; by default those of ssh");
    "ssh-hostkey-algos", Text("LIST"), "", Automation =>
        Does("The host key algorithms of SSH, separated by commas; by default those of ssh");
    "feature-gates", Text("LIST"), "", Both =>
        Does("Flux's feature gates, such as NAME=true,NAME=false; see docs/controller-flags.md");
    "requeue-dependency", Text("DURATION"), "30s", Reflector =>
        Does("The delay until a policy without tags is reconciled again, if no scan finds tags before");
    "controllers", Text("LIST"), "automation,reflector", Tagboat =>
        Does("The controllers to run, separated by commas: automation reconciles ImageUpdateAutomations, \
         reflector ImageRepositories and ImagePolicies");
    "update-polling-interval", Text("DURATION"), "", Tagboat =>
        Does("The interval of digest lookups of floating tags, for policies with `default`; 0 disables all \
         lookups [default: $UPDATE_POLLING_INTERVAL, else 12h]");
    "regression-scans", Text("COUNT"), "3", Tagboat =>
        Does("Hold a downgrade until this many complete scans in a row have found it");
    "regression-time", Text("DURATION"), "15m", Tagboat =>
        Does("Hold a downgrade for this long since the first of these scans");
    "forge-concurrency", Text("COUNT"), "4", Tagboat =>
        Does("The maximum number of concurrent calls to the API of a forge with one token");
    "forge-writes-per-minute", Text("COUNT"), "", Tagboat =>
        Does("The maximum number of writing calls a minute to the API of a forge with one token [default: 60 on public \
         forges, 600 elsewhere]");
    "registry-concurrency", Text("COUNT"), "16", Tagboat =>
        Does("The maximum number of concurrent requests to one registry, by all objects together");
    "registry-max-tags", Text("COUNT"), "250000", Tagboat =>
        Does("The maximum number of tags of a repository; the scan of a larger one fails");
    "default-service-account", Text("NAME"), "", Both =>
        Does("The service account, in the namespace of an object that names none, for logins to clouds \
         instead of the controller's own; needs the feature gate ObjectLevelWorkloadIdentity");
    "token-cache-max-size", Text("COUNT"), "100", Both =>
        Does("The maximum number of cached cloud credentials; 0 caches none");
    "token-cache-max-duration", Text("DURATION"), "1h", Both =>
        Does("The maximum time for which cloud credentials are cached");
    "kube-api-qps", Text("NUMBER"), "50", Both =>
        Nothing("API Priority and Fairness of the API server limits requests");
    "kube-api-burst", Text("COUNT"), "300", Both =>
        Nothing("API Priority and Fairness of the API server limits requests");
    "watch-configs-label-selector", Text("SELECTOR"), "reconcile.fluxcd.io/watch=Enabled", Both =>
        Nothing("no configuration objects are watched, as in Flux's image controllers");
    "storage-path", Text("DIR"), "/data", Reflector => Nothing(OWN_STORE);
    "storage-value-log-file-size", Text("BYTES"), "268435456", Reflector => Nothing(OWN_STORE);
    "storage-compression-threshold", Text("KIB"), "64", Reflector => Nothing(OWN_STORE);
    "gc-interval", Text("MINUTES"), "10", Reflector => Nothing(OWN_STORE);
};

/// A feature gate of Flux.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gate {
    pub(super) name: &'static str,
    pub(super) default: bool,
    /// The effect of the gate.
    pub(super) effect: Effect,
}

/// The gate that permits objects to log in to clouds as service accounts.
pub(super) const IDENTITY: &str = "ObjectLevelWorkloadIdentity";

/// The gate by which commits are added to an existing push branch.
pub(super) const ALL_REFERENCES: &str = "GitAllBranchReferences";

/// Flux's feature gates. Most have no effect: the better of two behaviours is always on.
pub(super) const GATES: &[Gate] = &[
    gate("GitForcePushBranch", true, Nothing("commits of others are never overwritten")),
    gate("GitShallowClone", true, Nothing("only needed objects are fetched")),
    gate(ALL_REFERENCES, true, Does(ALL_REFERENCES_EFFECT)),
    gate("GitSparseCheckout", false, Nothing("there is no work tree")),
    gate("CacheSecretsAndConfigMaps", false, Nothing("Secrets are read when needed and not cached")),
    gate(IDENTITY, false, Does(IDENTITY_EFFECT)),
    gate("FluxStorage", false, Nothing(OWN_STORE)),
];

const ALL_REFERENCES_EFFECT: &str = "commits are added to an existing push branch; if it is false, a push branch other than the \
    checked-out branch begins at the latter, as with tagboat.dev/delivery: branch";

const IDENTITY_EFFECT: &str = "an ImageRepository or GitRepository with a provider and a serviceAccountName logs in to \
    that cloud as this service account";

const fn gate(name: &'static str, default: bool, effect: Effect) -> Gate {
    Gate { name, default, effect }
}

impl Effect {
    /// Returns the effect as a sentence, or `Nothing: ` and the reason.
    fn sentence(self) -> String {
        match self {
            Does(what) => what.to_owned(),
            Nothing(why) => format!("Nothing: {why}"),
        }
    }
}

impl Flag {
    /// Returns the flag as an argument of clap.
    pub(super) fn argument(&self) -> Arg {
        let argument = Arg::new(self.name).long(self.name);
        let argument = match self.value {
            // As in Go, the value of a switch follows an equals sign, or is omitted.
            Value::Switch => argument
                .value_name("BOOL")
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true")
                .value_parser(clap::builder::ValueParser::new(parse_switch)),
            Value::Text(name) => argument.value_name(name).allow_hyphen_values(true),
        };
        let argument = if self.default.is_empty() { argument } else { argument.default_value(self.default) };
        let argument = argument.help(self.effect.sentence());
        match self.effect {
            Does(_) => argument,
            Nothing(_) => argument.help_heading("Flags of Flux without an effect here"),
        }
    }
}

/// Reads a switch as Go does.
fn parse_switch(text: &str) -> Result<String, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok("true".to_owned()),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok("false".to_owned()),
        _ => Err("it must be true or false".to_owned()),
    }
}

/// Finds a flag by name.
pub(super) fn find(name: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.name == name)
}

/// Returns `docs/controller-flags.md`, the page about all flags.
pub fn page() -> String {
    let mut page = String::from(PAGE);
    page.push_str("| flag | default | origin | effect |\n|---|---|---|---|\n");
    for flag in FLAGS {
        let default = if flag.default.is_empty() { "–".to_owned() } else { format!("`{}`", flag.default) };
        let owner = match flag.owner {
            Owner::Automation => "Flux's automation controller",
            Owner::Reflector => "Flux's reflector controller",
            Owner::Both => "both of Flux's",
            Owner::Tagboat => "Tagboat",
        };
        let effect = flag.effect.sentence();
        let _ = writeln!(page, "| `--{}` | {default} | {owner} | {effect}. |", flag.name);
    }
    page.push_str("\n## Feature gates\n\n");
    page.push_str("A gate without an effect logs a warning with the reason if it is set to another value than its default.\n");
    page.push_str("An unknown one is an error.\n\n");
    page.push_str("| gate | default | effect |\n|---|---|---|\n");
    for gate in GATES {
        let effect = gate.effect.sentence();
        let _ = writeln!(page, "| `{}` | `{}` | {effect}. |", gate.name, gate.default);
    }
    page
}

const PAGE: &str = "<!-- Generated from src/cli/controller/flags.rs: TAGBOAT_REGENERATE=1 cargo test --test it -- help -->\n\
# The flags of `tagboat controller`\n\
\n\
All flags of Flux's two image controllers are accepted, with their names and defaults. A flag without an effect logs a\n\
warning if it has another value than its default. Flags without a subcommand start the controller, so the arguments of\n\
Flux's Deployment need no change; `-log-level=info` equals `--log-level=info`, and `--flag` equals `--flag=true`.\n\
\n\
The environment variable `RUNTIME_NAMESPACE` is the namespace that is watched with `--watch-all-namespaces=false`, and\n\
the namespace of the Lease.\n\
\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_is_in_the_table_once() {
        let mut names: Vec<_> = FLAGS.iter().map(|flag| flag.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FLAGS.len());
        // Flux's flags, as in its documentation.
        for name in [
            "metrics-addr",
            "health-addr",
            "events-addr",
            "concurrent",
            "default-service-account",
            "ssh-kex-algos",
            "ssh-hostkey-algos",
            "kube-api-qps",
            "kube-api-burst",
            "log-encoding",
            "log-level",
            "enable-leader-election",
            "leader-election-release-on-cancel",
            "leader-election-lease-duration",
            "leader-election-renew-deadline",
            "leader-election-retry-period",
            "no-cross-namespace-refs",
            "min-retry-delay",
            "max-retry-delay",
            "feature-gates",
            "watch-all-namespaces",
            "watch-label-selector",
            "watch-configs-label-selector",
            "token-cache-max-size",
            "token-cache-max-duration",
            "storage-path",
            "storage-value-log-file-size",
            "storage-compression-threshold",
            "gc-interval",
            "requeue-dependency",
        ] {
            assert!(find(name).is_some(), "{name}");
        }
    }
}
