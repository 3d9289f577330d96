//! The arguments of `tagboat run`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Command, FromArgMatches, ValueEnum};

use crate::cli::reconcile_arguments::ReconcileArguments;
use crate::cli::registry_login::RegistryLogin;
use crate::cli::size::ByteSize;
use crate::cli::values::{duration, whole_number};

/// Scan registries and reconcile automations on their git repositories, once
///
/// Reads ImageUpdateAutomations, GitRepositories, ImagePolicies, ImageRepositories and Secrets from manifest files.
/// Scans the ImageRepositories of the policies that the automations select, and lets the policies choose; if the
/// ImageRepository of a policy is not among the manifests, the image of its status counts. Then updates the marked
/// values in each git repository without checking it out, and pushes one commit per automation with changes.
///
/// Exit status: 0 done (unresolved markers and unreadable files are reported), 1 an automation, a scan, a choice or
/// the lookup of a digest failed or a manifest could not be read, 2 wrong usage.
#[derive(Clone, Debug, Args)]
#[command(override_usage = "tagboat run <PATH>... [OPTIONS]")]
pub(in crate::cli) struct RunArguments {
    /// Manifests: files, directories, or - for standard input
    #[arg(value_name = "PATH", required = true)]
    pub(super) manifests: Vec<PathBuf>,

    #[command(flatten)]
    pub(super) reconcile: ReconcileArguments,

    /// Write despite the windows and quiet periods of automations; rules of Namespaces still count
    #[arg(long)]
    pub(super) now: bool,

    /// Scan no registry; use the images of the state, or else those of the policies' status
    #[arg(long)]
    pub(super) no_scan: bool,

    /// Keep mirrors, tags and the status of each object in DIR, so that the next run only fetches what is new
    #[arg(long, value_name = "DIR")]
    pub(super) state: Option<PathBuf>,

    /// Wait up to DURATION for another run that uses the same state; 0s does not wait
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = duration,
        default_value = "1m",
        requires = "state",
        allow_hyphen_values = true
    )]
    pub(super) wait_for_state: Duration,

    /// A Secret as a directory with one file per key; takes precedence over one among the manifests
    #[arg(long, value_name = "[NAMESPACE/]NAME=DIR")]
    pub(super) secret: Vec<String>,

    /// The source of git logins
    #[arg(long, value_name = "SOURCE", value_enum, default_value_t = GitLogin::Secrets)]
    pub(super) git_login: GitLogin,

    /// The source of registry logins
    #[arg(long, value_name = "SOURCE", value_enum, default_value_t = RegistryLogin::Secrets)]
    pub(super) registry_login: RegistryLogin,

    /// Hold a downgrade until this many scans in a row have found it; needs --state [default: 3]
    #[arg(long, value_name = "NUMBER", value_parser = whole_number::<u32>, allow_hyphen_values = true)]
    pub(super) regression_scans: Option<u32>,

    /// Hold a downgrade for this long since the first of these scans; needs --state [default: 15m]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    pub(super) regression_time: Option<Duration>,

    /// The maximum size of the mirror of one repository
    #[arg(long, value_name = "SIZE", default_value = "2GiB", allow_hyphen_values = true)]
    pub(super) mirror_max_size: ByteSize,

    /// The maximum size of all mirrors together; the least recently used ones are evicted first
    #[arg(long, value_name = "SIZE", default_value = "10GiB", allow_hyphen_values = true)]
    pub(super) mirrors_max_size: ByteSize,
}

impl RunArguments {
    /// Returns the arguments of `tagboat run MANIFESTS --state STATE`.
    pub(in crate::cli) fn with_state(manifests: PathBuf, state: PathBuf) -> Self {
        let command_line =
            ["run".into(), manifests.into_os_string(), "--state".into(), state.into_os_string()];
        let matches = Self::augment_args(Command::new("run")).try_get_matches_from(command_line);
        let arguments = matches.and_then(|matches| Self::from_arg_matches(&matches));
        arguments.expect("`run` takes a path and `--state`")
    }
}

/// The source of git logins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum GitLogin {
    /// The Secrets that the GitRepositories name.
    Secrets,
    /// Your own git configuration: credential helpers and SSH agent.
    User,
}
