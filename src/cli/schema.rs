//! `tagboat schema`: the shape of the JSON output.

use clap::Args;

use super::Failure;
use super::outcome::Outcome;
use super::terminal::print;

/// Print the JSON schema of what `--output json` prints
#[derive(Debug, Args)]
pub(super) struct SchemaArguments {}

pub(super) fn run(SchemaArguments {}: &SchemaArguments) -> Result<(), Failure> {
    let schema = schemars::schema_for!(Outcome);
    let text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    Ok(print(&format!("{text}\n"))?)
}
