//! The command `tagboat update` as its callers meet it: good and bad input, what is written, what is said.

mod choices;
mod closed_output;
mod demo;
mod given_manifests;
mod interruptions;
mod outcome_members;
mod speech;
mod writing;
