//! The arguments of `tagboat run`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::cli::output::OutputFormat;
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
    pub(in crate::cli) manifests: Vec<PathBuf>,

    /// Reconcile this automation only
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    pub(in crate::cli) automation: Option<String>,

    /// A policy's latest image, such as web=ghcr.io/org/web:1.2; counts more than what it would choose, and than its status
    #[arg(long, value_name = "[NAMESPACE/]NAME=IMAGE")]
    pub(in crate::cli) latest: Vec<String>,

    /// Commit nothing and print a unified diff
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,

    /// How to print the result
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Text)]
    pub(in crate::cli) output: OutputFormat,

    /// Scan no registry; the images are those that the state has, or else those of the policies' status
    #[arg(long)]
    pub(in crate::cli) no_scan: bool,

    /// Where to keep mirrors, tags and the status of each object, so that the next run costs only what is new
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) state: Option<PathBuf>,

    /// How long to wait for another run that uses the same state; 0s does not wait
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = duration,
        default_value = "1m",
        requires = "state",
        allow_hyphen_values = true
    )]
    pub(in crate::cli) wait_for_state: Duration,

    /// A secret as a directory with one file per key; counts more than one among the manifests
    #[arg(long, value_name = "[NAMESPACE/]NAME=DIR")]
    pub(in crate::cli) secret: Vec<String>,

    /// Who logs in to git servers: the secrets, or your own set-up of git (credential helpers, SSH agent)
    #[arg(long, value_name = "SOURCE", value_enum, default_value_t = GitLogin::Secrets)]
    pub(in crate::cli) git_login: GitLogin,

    /// Who logs in to registries: the secrets, or you, with the logins of docker's config.json
    #[arg(long, value_name = "SOURCE", value_enum, default_value_t = RegistryLogin::Secrets)]
    pub(in crate::cli) registry_login: RegistryLogin,

    /// In how many scans in a row a lower image must be a policy's latest before it counts; takes --state [default: 3]
    #[arg(long, value_name = "NUMBER", value_parser = whole_number::<u32>, allow_hyphen_values = true)]
    pub(in crate::cli) regression_scans: Option<u32>,

    /// For how long that must be so since the first of them; takes --state [default: 15m]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    pub(in crate::cli) regression_time: Option<Duration>,

    /// The size that the mirror of one repository may have
    #[arg(long, value_name = "SIZE", default_value = "2GiB", allow_hyphen_values = true)]
    pub(in crate::cli) mirror_max_size: ByteSize,

    /// The size that all mirrors may have together; the least recently used ones are removed first
    #[arg(long, value_name = "SIZE", default_value = "10GiB", allow_hyphen_values = true)]
    pub(in crate::cli) mirrors_max_size: ByteSize,
}

/// The login at git servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum GitLogin {
    /// The secrets that the GitRepositories name.
    Secrets,
    /// The caller's own set-up of git.
    User,
}
