//! `tagboat explain automation`: explains why nothing is written.
//!
//! | file | contents |
//! |---|---|
//! | `facts` | the automation with its policies, and the windows and freezes of its Namespace |
//! | `cluster`, `manifests` | the facts in a cluster; those of manifests and a state directory |
//! | `judge` | the facts and a time → the explanation |
//! | `held`, `refused` | the images that the status names as held; those of pull requests that people have closed |
//! | `report` | the explanation as JSON and as text |

mod cluster;
mod facts;
mod held;
mod judge;
#[cfg(test)]
mod judge_tests;
mod manifests;
mod refused;
mod report;

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::query::ObjectQuery;
use crate::cli::Failure;
use crate::cli::cluster::ClusterArguments;
use crate::cli::output::{OutputFormat, to_json};
use crate::cli::runtime;
use crate::cli::terminal::{Palette, print, say};
use crate::schedule::{EntryDefect, parse_time};
use facts::Found;
use judge::Moment;
pub(in crate::cli) use report::Explanation;

/// The namespace of the controllers in Flux's installation.
const DEFAULT_NAMESPACE: &str = "flux-system";

/// Say which images an ImageUpdateAutomation does not write, and why
///
/// Shows the image of each selected policy and whether it is written, the windows and freezes that apply, and their
/// next changes. The automation is read from the cluster that kubectl uses, or from manifests (--policies). Nothing is
/// scanned, and no git repository is read.
///
/// Exit status: 0 nothing is held, waiting or wrong, 1 something is, 2 wrong usage.
#[derive(Debug, Args)]
#[command(override_usage = "tagboat explain automation <NAME> [--policies <PATH>...] [OPTIONS]")]
pub(super) struct AutomationArguments {
    /// The automation's name
    #[arg(value_name = "NAME")]
    name: String,

    /// Manifests instead of a cluster: files, directories, or - for standard input
    #[arg(
        long,
        value_name = "PATH",
        num_args = 1..,
        conflicts_with_all = ["kubeconfig", "context", "controller_namespace"]
    )]
    policies: Vec<PathBuf>,

    /// With --policies, the state directory of `tagboat run`
    #[arg(long, value_name = "DIR", requires = "policies")]
    state: Option<PathBuf>,

    /// The automation's namespace; needed if several namespaces have an automation of this name
    #[arg(long, short, value_name = "NAMESPACE")]
    namespace: Option<String>,

    #[command(flatten)]
    cluster: ClusterArguments,

    /// The namespace of the controller, whose tagboat.dev/freeze-all counts; otherwise $RUNTIME_NAMESPACE, or flux-system
    #[arg(long, value_name = "NAMESPACE")]
    controller_namespace: Option<String>,

    /// The answer for this time, such as 2026-12-18T12:00 in UTC or 2026-12-18T12:00+01:00; otherwise for now
    #[arg(long, value_name = "TIME", value_parser = time)]
    at: Option<Timestamp>,

    /// The format of the result
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Text)]
    output: OutputFormat,
}

impl AutomationArguments {
    /// Returns the namespace of the controller.
    fn controller_namespace(&self) -> String {
        let given = self.controller_namespace.clone().or_else(|| std::env::var("RUNTIME_NAMESPACE").ok());
        given.filter(|name| !name.is_empty()).unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned())
    }
}

/// Reads a time as that of a window, in UTC unless it has an offset.
fn time(text: &str) -> Result<Timestamp, String> {
    parse_time("the time", text, &TimeZone::UTC).map_err(|defect| match defect {
        EntryDefect::Time { .. } => {
            "write a time such as 2026-12-18T12:00, or with an offset such as 2026-12-18T12:00+01:00"
                .to_owned()
        }
        defect => defect.to_string(),
    })
}

pub(super) fn run(arguments: &AutomationArguments) -> Result<(), Failure> {
    let query = ObjectQuery::new(&arguments.name, arguments.namespace.as_deref())?;
    let found = if arguments.policies.is_empty() {
        let controller = arguments.controller_namespace();
        let facts = cluster::facts(&arguments.cluster, &query, &controller);
        runtime::single_threaded()?.block_on(facts)?
    } else {
        manifests::facts(&arguments.policies, arguments.state.as_deref(), &query)?
    };
    let now = Timestamp::now();
    let moment = Moment { at: arguments.at.unwrap_or(now), now, is_now: arguments.at.is_none() };
    let (explanation, is_valid) = match found {
        Found::Facts(facts) => (judge::explain(&facts, moment), true),
        Found::Invalid { name, sentences } => (Explanation::of_invalid(name, moment, &sentences), false),
    };
    let text = match arguments.output {
        OutputFormat::Json => {
            explanation.notes.iter().for_each(|note| say(&format!("note: {note}")));
            to_json(&explanation)
        }
        // There is nothing to print but the error.
        OutputFormat::Text if !is_valid => String::new(),
        OutputFormat::Text => report::render(&explanation, Palette::for_output()),
    };
    Failure::after(print(&text), explanation.done())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_utc_unless_it_has_an_offset() {
        for (text, expected) in [
            ("2026-12-18T12:00", "2026-12-18T12:00:00Z"),
            ("2026-12-18T12:00:30", "2026-12-18T12:00:30Z"),
            ("2026-12-18T12:00Z", "2026-12-18T12:00:00Z"),
            ("2026-12-18T12:00+01:00", "2026-12-18T11:00:00Z"),
        ] {
            assert_eq!(time(text).unwrap().to_string(), expected, "{text}");
        }
    }

    /// A time zone was ignored, so that the answer was for another time.
    #[test]
    fn a_time_of_another_form_than_that_of_windows_is_refused() {
        for text in [
            "",
            "tomorrow",
            "12:00",
            "2026-12-18",
            "2026-13-18T12:00",
            "-1h",
            "2026-12-18T12:00[America/New_York]",
            "2026-12-18T12:00-05:00[America/New_York]",
            "2026-12-18T12",
            "20261218T1200",
            "2026-12-18T23:59:60",
        ] {
            assert!(time(text).unwrap_err().starts_with("write a time such as "), "{text}");
        }
        assert!(time("9999-12-31T23:59").unwrap_err().contains("which is too late"));
    }
}
