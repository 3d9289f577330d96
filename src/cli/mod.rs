//! The command line: one module per subcommand, and the parts that they share.
//!
//! | module | contents |
//! |---|---|
//! | `agent`, `controller`, `demo`, `explain`, `history`, `lint`, `nodes`, `render`, `run`, `scan`, `status`, `update` | a subcommand each |
//! | `generate` | `tagboat crds`, `rbac`, `schema` and `completions` |
//! | `reconcile_arguments`, `inputs`, `choice`, `overrides` | arguments of every command that reconciles; manifests and Secrets; `--automation`; `--latest` |
//! | `namespace_rules` | the windows and freezes of the Namespaces among manifests |
//! | `cluster`, `kubeconfig` | `--kubeconfig` and `--context`; the kubeconfig of the environment |
//! | `registry_login`, `refused_login` | sources of registry logins; advice if a registry refused one |
//! | `values`, `size` | values of options: durations, numbers, sizes |
//! | `feed`, `wait` | objects of a cluster, kept up to date by a watch; the time limit of a wait for them |
//! | `table`, `age` | a table that grows; an age in it |
//! | `output`, `report` | output formats; the text report |
//! | `outcome`, `branch_outcome` | the JSON document of a run; its own branches and their pull requests |
//! | `runtime` | the async runtime of a command |
//! | `service` | the log, probes and end of a command that runs until a signal |
//! | `terminal`, `progress` | standard output and error, with colours; the progress line |
//! | `failure`, `warnings` | failures with their exit statuses; warnings about a valid request |

mod age;
mod agent;
mod branch_outcome;
mod choice;
mod cluster;
mod controller;
mod demo;
mod explain;
mod failure;
mod feed;
mod generate;
mod history;
mod inputs;
mod kubeconfig;
mod lint;
mod namespace_rules;
mod nodes;
mod outcome;
mod output;
mod overrides;
mod progress;
mod reconcile_arguments;
mod refused_login;
mod registry_login;
mod render;
mod report;
mod run;
mod runtime;
mod scan;
mod service;
mod size;
mod status;
mod table;
mod terminal;
mod update;
mod values;
mod wait;
mod warnings;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Failure;

pub use controller::flags_page;

/// Keep the image references in a git repository of Kubernetes manifests up to date.
///
/// A value with a marker comment, such as `image: ghcr.io/org/app:1.0 # {"$imagepolicy": "default:app"}`, is set to
/// the latest image of the ImagePolicy that the marker names. Nothing else in a file changes.
#[derive(Debug, Parser)]
#[command(name = "tagboat", version, max_term_width = 110)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::arguments::RunArguments),
    Scan(scan::ScanArguments),
    Update(update::UpdateArguments),
    Render(render::RenderArguments),
    Lint(lint::LintArguments),
    Controller(controller::ControllerArguments),
    Agent(agent::AgentArguments),
    Explain(explain::ExplainArguments),
    History(history::HistoryArguments),
    Status(status::StatusArguments),
    Nodes(nodes::NodesArguments),
    Demo(demo::DemoArguments),
    Crds(generate::CrdsArguments),
    Rbac(generate::RbacArguments),
    Schema(generate::SchemaArguments),
    Completions(generate::CompletionsArguments),
}

/// Runs the program with these arguments, of which the first is its name.
///
/// Exit status: 0 done, 1 something failed, 2 wrong usage.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(controller::normalize_args(arguments)) {
        Ok(arguments) => arguments,
        Err(error) => {
            let printed = error.print();
            return match printed {
                // An error that cannot be printed is still wrong usage.
                _ if error.use_stderr() => ExitCode::from(2),
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => Failure::from(error).report(),
            };
        }
    };
    let result = match arguments.command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Scan(arguments) => scan::run(&arguments),
        Command::Update(arguments) => update::run(&arguments),
        Command::Render(arguments) => render::run(&arguments),
        Command::Lint(arguments) => lint::run(&arguments),
        Command::Controller(arguments) => controller::run(&arguments),
        Command::Agent(arguments) => agent::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::History(arguments) => history::run(&arguments),
        Command::Status(arguments) => status::run(&arguments),
        Command::Nodes(arguments) => nodes::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Crds(arguments) => generate::crds(&arguments),
        Command::Rbac(arguments) => generate::rbac(&arguments),
        Command::Schema(arguments) => generate::schema(&arguments),
        Command::Completions(arguments) => generate::completions(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Returns the definition of the command line, for completions and tests.
pub fn command() -> clap::Command {
    <Arguments as clap::CommandFactory>::command()
}
