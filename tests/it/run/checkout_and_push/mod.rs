//! Tests of one run from the checkout to the push.
//! They cover references, trees, commits and their messages, refspecs and redirects.

mod checkout;
mod commit_messages;
mod commits;
mod redirects;
mod refspecs;
mod replaced_branches;
mod short_circuit;
mod trees;
