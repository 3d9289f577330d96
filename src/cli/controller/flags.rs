//! The flags of the controller: Flux's, those of both its image controllers, and our own.
//!
//! One table says what each does here. The command line, its help and `docs/controller-flags.md` are made from it.

use std::fmt::Write as _;

use clap::Arg;

/// A flag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flag {
    /// Its name without dashes.
    pub(super) name: &'static str,
    pub(super) value: Value,
    /// The value where it is not given.
    pub(super) default: &'static str,
    pub(super) owner: Owner,
    pub(super) effect: Effect,
}

/// What kind of value a flag takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    /// Yes or no; `--flag` alone says yes.
    Switch,
    /// A text, which the help calls so.
    Text(&'static str),
}

/// Whose flag it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// Of Flux's image-automation-controller.
    Automation,
    /// Of Flux's image-reflector-controller.
    Reflector,
    /// Of both.
    Both,
    /// Ours alone.
    Tagboat,
}

/// What a flag does here.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effect {
    /// What the sentence says.
    Does(&'static str),
    /// Nothing, and why.
    Nothing(&'static str),
}

const fn does(
    name: &'static str,
    value: Value,
    default: &'static str,
    owner: Owner,
    what: &'static str,
) -> Flag {
    Flag { name, value, default, owner, effect: Effect::Does(what) }
}

const fn nothing(
    name: &'static str,
    value: Value,
    default: &'static str,
    owner: Owner,
    why: &'static str,
) -> Flag {
    Flag { name, value, default, owner, effect: Effect::Nothing(why) }
}

const OWN_STORE: &str = "the tags that were found are kept below --state, in one small file a repository";

use Owner::{Automation, Both, Reflector, Tagboat};
use Value::{Switch, Text};

/// All flags, in the order in which help shows them.
pub(super) const FLAGS: &[Flag] = &[
    does("state", Text("DIR"), "", Tagboat, "Where mirrors are kept; without it, $TMPDIR, else /tmp"),
    does(
        "mirror-max-size",
        Text("SIZE"),
        "2GiB",
        Tagboat,
        "The size that the mirror of one repository may have",
    ),
    does(
        "mirrors-max-size",
        Text("SIZE"),
        "10GiB",
        Tagboat,
        "The size that all mirrors may have together; the namespace with most loses its least recently used ones first",
    ),
    does(
        "dry-run",
        Switch,
        "false",
        Tagboat,
        "Write nothing, log what would be pushed, and compare it with what another controller pushes",
    ),
    does(
        "watch-all-namespaces",
        Switch,
        "true",
        Both,
        "Watch all namespaces, and not only that of RUNTIME_NAMESPACE",
    ),
    does("watch-label-selector", Text("SELECTOR"), "", Both, "Reconcile only objects with these labels"),
    does(
        "no-cross-namespace-refs",
        Switch,
        "false",
        Both,
        "Refuse GitRepositories and ImageRepositories of other namespaces",
    ),
    does(
        "allow-local-addresses",
        Switch,
        "false",
        Tagboat,
        "Let GitRepositories, images and proxy secrets name addresses of this machine and of its own network link",
    ),
    does(
        "concurrent",
        Text("COUNT"),
        "4",
        Both,
        "How many transactions with git servers may be under way at once",
    ),
    does(
        "min-retry-delay",
        Text("DURATION"),
        "750ms",
        Both,
        "The wait after the first failure; it doubles with each",
    ),
    does("max-retry-delay", Text("DURATION"), "15m", Both, "The longest wait after a failure"),
    does(
        "max-timeout",
        Text("DURATION"),
        "10m",
        Tagboat,
        "The longest timeout that counts; an object's longer one, given or derived from its interval, counts as this",
    ),
    does(
        "enable-leader-election",
        Switch,
        "false",
        Both,
        "Write only while holding the Lease that Flux's controller would hold",
    ),
    does("leader-election-release-on-cancel", Switch, "true", Both, "Give the Lease back at the end"),
    does(
        "leader-election-lease-duration",
        Text("DURATION"),
        "35s",
        Both,
        "How long others wait before they take the Lease from one that is silent",
    ),
    does(
        "leader-election-renew-deadline",
        Text("DURATION"),
        "30s",
        Both,
        "How long to go on without a renewal of the Lease",
    ),
    does(
        "leader-election-retry-period",
        Text("DURATION"),
        "5s",
        Both,
        "The time between two tries to take or renew the Lease",
    ),
    does(
        "events-addr",
        Text("URL"),
        "",
        Both,
        "Where to post events, such as the address of Flux's notification-controller",
    ),
    does(
        "warn-unresolved-markers",
        Switch,
        "false",
        Tagboat,
        "Make the event about markers that have no effect a warning",
    ),
    does("metrics-addr", Text("ADDRESS"), ":8080", Both, "Where to serve /metrics; 0 serves none"),
    does("health-addr", Text("ADDRESS"), ":9440", Both, "Where to serve /healthz and /readyz; 0 serves none"),
    does("log-level", Text("LEVEL"), "info", Both, "What to log: trace, debug, info or error"),
    does("log-encoding", Text("ENCODING"), "json", Both, "How to log: json or console"),
    does(
        "ssh-kex-algos",
        Text("LIST"),
        "",
        Automation,
        "The key exchanges that SSH may use, separated by commas; without it, its own",
    ),
    does(
        "ssh-hostkey-algos",
        Text("LIST"),
        "",
        Automation,
        "The host key algorithms that SSH may use, separated by commas; without it, its own",
    ),
    does(
        "feature-gates",
        Text("LIST"),
        "",
        Both,
        "Flux's feature gates, such as NAME=true,NAME=false; see docs/controller-flags.md",
    ),
    does(
        "requeue-dependency",
        Text("DURATION"),
        "30s",
        Reflector,
        "How long a policy waits for tags that are not there, if no scan brings them before",
    ),
    does(
        "controllers",
        Text("LIST"),
        "automation,reflector",
        Tagboat,
        "The controllers to run, separated by commas: automation reconciles ImageUpdateAutomations, reflector \
         ImageRepositories and ImagePolicies",
    ),
    does(
        "update-polling-interval",
        Text("DURATION"),
        "",
        Tagboat,
        "How often digests of floating tags are looked up where a policy says `default`, 0 for never and none at all; \
         without it, the variable UPDATE_POLLING_INTERVAL, else 12h",
    ),
    does(
        "regression-scans",
        Text("COUNT"),
        "3",
        Tagboat,
        "In how many complete scans in a row a lower winner must show before it counts",
    ),
    does(
        "regression-time",
        Text("DURATION"),
        "15m",
        Tagboat,
        "For how long a lower winner must show before it counts",
    ),
    does(
        "registry-concurrency",
        Text("COUNT"),
        "16",
        Tagboat,
        "How many requests one registry may be asked at the same time, by all objects together",
    ),
    does(
        "registry-max-tags",
        Text("COUNT"),
        "250000",
        Tagboat,
        "How many tags one repository may have; the scan of one with more fails",
    ),
    does(
        "default-service-account",
        Text("NAME"),
        "",
        Both,
        "The service account of an object's namespace as which it logs in at a cloud if it names none, so that none logs in \
         as the controller; needs the feature gate ObjectLevelWorkloadIdentity",
    ),
    does(
        "token-cache-max-size",
        Text("COUNT"),
        "100",
        Both,
        "How many logins at clouds are kept; 0 keeps none",
    ),
    does(
        "token-cache-max-duration",
        Text("DURATION"),
        "1h",
        Both,
        "How long a login at a cloud is kept at most",
    ),
    nothing(
        "kube-api-qps",
        Text("NUMBER"),
        "50",
        Both,
        "the API server's own priority and fairness says how fast it is asked",
    ),
    nothing(
        "kube-api-burst",
        Text("COUNT"),
        "300",
        Both,
        "the API server's own priority and fairness says how fast it is asked",
    ),
    nothing(
        "watch-configs-label-selector",
        Text("SELECTOR"),
        "reconcile.fluxcd.io/watch=Enabled",
        Both,
        "no configuration objects are watched, and Flux's image controllers do not do so either",
    ),
    nothing("storage-path", Text("DIR"), "/data", Reflector, OWN_STORE),
    nothing("storage-value-log-file-size", Text("BYTES"), "268435456", Reflector, OWN_STORE),
    nothing("storage-compression-threshold", Text("KIB"), "64", Reflector, OWN_STORE),
    nothing("gc-interval", Text("MINUTES"), "10", Reflector, OWN_STORE),
];

/// A feature gate of Flux's, and what it does here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gate {
    pub(super) name: &'static str,
    pub(super) default: bool,
    /// What it does here.
    pub(super) effect: Effect,
}

/// The gate behind which objects act as service accounts at clouds.
pub(super) const IDENTITY: &str = "ObjectLevelWorkloadIdentity";

/// Flux's feature gates. Most have no effect here: what they choose between is always the better of the two.
pub(super) const GATES: &[Gate] = &[
    Gate {
        name: "GitForcePushBranch",
        default: true,
        effect: Effect::Nothing("no commit of others is ever overwritten"),
    },
    Gate {
        name: "GitShallowClone",
        default: true,
        effect: Effect::Nothing("only what a run needs is ever fetched"),
    },
    Gate {
        name: "GitAllBranchReferences",
        default: true,
        effect: Effect::Nothing("a push branch that exists is always built upon"),
    },
    Gate {
        name: "GitSparseCheckout",
        default: false,
        effect: Effect::Nothing("there is no work tree that could be sparse"),
    },
    Gate {
        name: "CacheSecretsAndConfigMaps",
        default: false,
        effect: Effect::Nothing("secrets are read when they are needed, and kept nowhere"),
    },
    Gate {
        name: IDENTITY,
        default: false,
        effect: Effect::Does(
            "an ImageRepository with a provider and a serviceAccountName logs in at that cloud as this service account",
        ),
    },
    Gate { name: "FluxStorage", default: false, effect: Effect::Nothing(OWN_STORE) },
];

impl Flag {
    /// The flag as an argument of the command line.
    pub(super) fn argument(&self) -> Arg {
        let argument = Arg::new(self.name).long(self.name);
        let argument = match self.value {
            // As in Go: the value of a switch stands behind an equals sign or not at all.
            Value::Switch => argument
                .value_name("BOOL")
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true")
                .value_parser(clap::builder::ValueParser::new(parse_switch)),
            Value::Text(name) => argument.value_name(name).allow_hyphen_values(true),
        };
        let argument = if self.default.is_empty() { argument } else { argument.default_value(self.default) };
        match self.effect {
            Effect::Does(what) => argument.help(what),
            Effect::Nothing(why) => {
                argument.help(format!("Nothing: {why}")).help_heading("Flags of Flux without an effect here")
            }
        }
    }
}

/// Reads a switch as Go does.
fn parse_switch(text: &str) -> Result<String, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok("true".to_owned()),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok("false".to_owned()),
        _ => Err("it is neither true nor false".to_owned()),
    }
}

/// The flag of a name.
pub(super) fn find(name: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.name == name)
}

/// The page of the manual about all flags.
pub fn page() -> String {
    let mut page = String::from(PAGE);
    page.push_str("| flag | default | of | what it does here |\n|---|---|---|---|\n");
    for flag in FLAGS {
        let default = if flag.default.is_empty() { "–".to_owned() } else { format!("`{}`", flag.default) };
        let owner = match flag.owner {
            Owner::Automation => "Flux's automation controller",
            Owner::Reflector => "Flux's reflector controller",
            Owner::Both => "both of Flux's",
            Owner::Tagboat => "Tagboat",
        };
        let effect = match flag.effect {
            Effect::Does(what) => what.to_owned(),
            Effect::Nothing(why) => format!("Nothing: {why}"),
        };
        let _ = writeln!(page, "| `--{}` | {default} | {owner} | {effect}. |", flag.name);
    }
    page.push_str("\n## Feature gates\n\n");
    page.push_str("A gate without an effect that is set to another value than its default is answered with a warning that says why.\n");
    page.push_str("An unknown one is an error.\n\n");
    page.push_str("| gate | default | what it does here |\n|---|---|---|\n");
    for gate in GATES {
        let effect = match gate.effect {
            Effect::Does(what) => what.to_owned(),
            Effect::Nothing(why) => format!("Nothing: {why}"),
        };
        let _ = writeln!(page, "| `{}` | `{}` | {effect}. |", gate.name, gate.default);
    }
    page
}

const PAGE: &str = "<!-- Made from src/cli/controller/flags.rs: TAGBOAT_REGENERATE=1 cargo test --test it -- help -->\n\
# The flags of `tagboat controller`\n\
\n\
All flags of Flux's two image controllers are taken, with their names and defaults. One that has no effect here is\n\
answered with a warning, once, if it is given another value than its default. A list of Flux's flags without a\n\
subcommand starts the controller, so the arguments of Flux's Deployment can stay as they are; `-log-level=info` and\n\
`--log-level=info` are the same, and so are `--flag` and `--flag=true`.\n\
\n\
The environment variable `RUNTIME_NAMESPACE` names the namespace that is watched with `--watch-all-namespaces=false`,\n\
and the namespace of the Lease.\n\
\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_stands_in_the_table_once() {
        let mut names: Vec<_> = FLAGS.iter().map(|flag| flag.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FLAGS.len());
        // Flux's, as its own documentation has them.
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
