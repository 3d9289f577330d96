//! Arguments of every command that reconciles automations.

use clap::Args;

use super::output::OutputFormat;

/// Arguments that `tagboat run` and `tagboat update` share.
#[derive(Clone, Debug, Args)]
pub(super) struct ReconcileArguments {
    /// Reconcile this automation only; `tagboat update` needs it if the manifests hold several
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    pub(super) automation: Option<String>,

    /// A policy's latest image, such as web=ghcr.io/org/web:1.2; takes precedence over its choice and its status
    #[arg(long, value_name = "[NAMESPACE/]NAME=IMAGE")]
    pub(super) latest: Vec<String>,

    /// Write and commit nothing; print a unified diff
    #[arg(long)]
    pub(super) dry_run: bool,

    /// The format of the result
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Text)]
    pub(super) output: OutputFormat,
}
