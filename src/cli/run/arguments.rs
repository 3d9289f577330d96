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
/// Reads ImageUpdateAutomations, GitRepositories, ImagePolicies, ImageRepositories and Secrets from manifest files. The
/// ImageRepositories that the automations' policies name are scanned, and the policies choose; where a policy's
/// ImageRepository is not among the manifests, the image of its status counts. Then the marked values in each git
/// repository are updated without checking it out, and one commit is pushed for each automation that has something to
/// change.
///
/// Exit status: 0 done (markers that could not be resolved and files that could not be read are reported), 1 an
/// automation, a scan, a choice or the look-up of a digest failed or a manifest could not be read, 2 wrong usage.
#[derive(Clone, Debug, Args)]
#[command(override_usage = "tagboat run <PATH>... [OPTIONS]")]
pub(in crate::cli) struct RunArguments {
    /// Manifests: files, directories, or - for standard input
    #[arg(value_name = "PATH", required = true)]
    pub(super) manifests: Vec<PathBuf>,

    #[command(flatten)]
    pub(super) reconcile: ReconcileArguments,

    /// Scan no registry; the images are those that the state has, or else those of the policies' status
    #[arg(long)]
    pub(super) no_scan: bool,

    /// Where to keep mirrors, tags and the status of each object, so that the next run costs only what is new
    #[arg(long, value_name = "DIR")]
    pub(super) state: Option<PathBuf>,

    /// How long to wait for another run that uses the same state; 0s does not wait
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = duration,
        default_value = "1m",
        requires = "state",
        allow_hyphen_values = true
    )]
    pub(super) wait_for_state: Duration,

    /// A secret as a directory with one file per key; counts more than one among the manifests
    #[arg(long, value_name = "[NAMESPACE/]NAME=DIR")]
    pub(super) secret: Vec<String>,

    /// Who logs in to git servers: the secrets, or your own set-up of git (credential helpers, SSH agent)
    #[arg(long, value_name = "SOURCE", value_enum, default_value_t = GitLogin::Secrets)]
    pub(super) git_login: GitLogin,

    /// Who logs in to registries: the secrets, or you, with the logins of docker's config.json
    #[arg(long, value_name = "SOURCE", value_enum, default_value_t = RegistryLogin::Secrets)]
    pub(super) registry_login: RegistryLogin,

    /// In how many scans in a row a lower image must be a policy's latest before it counts; takes --state [default: 3]
    #[arg(long, value_name = "NUMBER", value_parser = whole_number::<u32>, allow_hyphen_values = true)]
    pub(super) regression_scans: Option<u32>,

    /// For how long that must be so since the first of them; takes --state [default: 15m]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    pub(super) regression_time: Option<Duration>,

    /// The size that the mirror of one repository may have
    #[arg(long, value_name = "SIZE", default_value = "2GiB", allow_hyphen_values = true)]
    pub(super) mirror_max_size: ByteSize,

    /// The size that all mirrors may have together; the least recently used ones are removed first
    #[arg(long, value_name = "SIZE", default_value = "10GiB", allow_hyphen_values = true)]
    pub(super) mirrors_max_size: ByteSize,
}

impl RunArguments {
    /// Returns the arguments of `tagboat run MANIFESTS --state STATE`.
    pub(in crate::cli) fn with_state(manifests: PathBuf, state: PathBuf) -> Self {
        let words = ["run".into(), manifests.into_os_string(), "--state".into(), state.into_os_string()];
        let matches = Self::augment_args(Command::new("run")).try_get_matches_from(words);
        let arguments = matches.and_then(|matches| Self::from_arg_matches(&matches));
        arguments.expect("`run` takes a path and `--state`")
    }
}

/// The login at git servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum GitLogin {
    /// The secrets that the GitRepositories name.
    Secrets,
    /// The caller's own set-up of git.
    User,
}
