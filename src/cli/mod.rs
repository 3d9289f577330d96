//! The command line: one file a subcommand, and what they share in showing results.

mod choice;
mod controller;
mod demo;
mod explain;
mod failure;
mod generate;
mod given;
mod inputs;
mod lint;
mod outcome;
mod output;
mod progress;
mod reconcile_arguments;
mod refused_login;
mod registry_login;
mod render;
mod report;
mod run;
mod scan;
mod size;
mod terminal;
mod update;
mod values;
mod warnings;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Failure;

pub use controller::flags_page;

/// Keeps the image references in a git repository of Kubernetes manifests up to date.
///
/// Values with a marker comment, such as `image: ghcr.io/org/app:1.0 # {"$imagepolicy": "default:app"}`, follow
/// the latest image of the ImagePolicy that the marker names. Nothing else in a file is touched.
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
    Explain(explain::ExplainArguments),
    Demo(demo::DemoArguments),
    Crds(generate::CrdsArguments),
    Rbac(generate::RbacArguments),
    Schema(generate::SchemaArguments),
    Completions(generate::CompletionsArguments),
}

/// Runs the program with these arguments, the first being its own name.
///
/// Exit status: 0 when the work is done, 1 when something failed, 2 when the arguments are wrong.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(controller::understood(arguments)) {
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
        Command::Explain(arguments) => explain::run(&arguments),
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

/// The command line's grammar, for completions and tests.
pub fn command() -> clap::Command {
    <Arguments as clap::CommandFactory>::command()
}
