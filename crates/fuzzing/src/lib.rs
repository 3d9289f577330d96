//! The bodies of the fuzz targets in `fuzz/`: functions that panic on a defect.
//!
//! `cargo test` also runs them, on the seeds and on some thousand inputs derived from these, so that a target stays
//! usable between two campaigns.

mod choices;
mod forge;
mod forge_address;
mod git_tree;
mod host;
mod known_hosts;
mod kubeconfig;
mod marker;
mod policy;
mod pull_request_body;
mod registry;
mod registry_json;
mod rewrite;
mod schedule;
mod signing_key;
mod template;
mod text;
mod version;
mod watched;

pub use forge::forge;
pub use forge_address::forge_address;
pub use git_tree::git_tree;
pub use host::host;
pub use known_hosts::known_hosts;
pub use kubeconfig::kubeconfig;
pub use marker::marker;
pub use policy::policy;
pub use pull_request_body::pull_request_body;
pub use registry::registry;
pub use registry_json::registry_json;
pub use rewrite::{rewrite, rewrite_generated, show_generated};
pub use schedule::schedule;
pub use signing_key::signing_key;
pub use template::template;
pub use version::version;
pub use watched::watched;

/// A fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The name: that of the file in `fuzz/fuzz_targets` and of the folder in `fuzz/seeds`.
    pub name: &'static str,
    /// The body; it panics if the input reveals a defect.
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: [Target; 18] = [
    Target { name: "forge", run: forge },
    Target { name: "forge_address", run: forge_address },
    Target { name: "git_tree", run: git_tree },
    Target { name: "host", run: host },
    Target { name: "known_hosts", run: known_hosts },
    Target { name: "kubeconfig", run: kubeconfig },
    Target { name: "marker", run: marker },
    Target { name: "policy", run: policy },
    Target { name: "pull_request_body", run: pull_request_body },
    Target { name: "registry", run: registry },
    Target { name: "registry_json", run: registry_json },
    Target { name: "rewrite", run: rewrite },
    Target { name: "rewrite_generated", run: rewrite_generated },
    Target { name: "schedule", run: schedule },
    Target { name: "signing_key", run: signing_key },
    Target { name: "template", run: template },
    Target { name: "version", run: version },
    Target { name: "watched", run: watched },
];
