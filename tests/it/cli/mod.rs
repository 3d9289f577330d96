//! The command `tagboat update` as its callers meet it: good and bad input, what is written, what is said.

mod bounds;
mod choices;
mod closed_output;
mod demo;
mod exit_status;
mod given_manifests;
mod interruptions;
mod manifest_directories;
mod outcome_members;
mod rendering;
mod special_files;
mod speech;
mod writing;
