//! `tagboat update`: good and bad input, what it writes, what it prints.

mod arguments;
mod closed_output;
mod exit_status;
mod golden;
mod interruptions;
mod invalid_manifests;
mod json_outcome;
mod limits;
mod manifest_directories;
mod output;
mod paths;
mod special_files;
mod symbolic_links;
mod writing;
