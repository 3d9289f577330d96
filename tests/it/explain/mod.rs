//! Tests of `tagboat explain`.
//! Policies are explained on the tags of a file, on those of a real registry, and with a real cluster; automations with a
//! real cluster, and with manifests and the state of runs.

mod automation_of_cluster;
mod automations;
mod cluster;
mod registry;
mod release_groups;
mod tags;

use serde_json::Value;

use crate::support::program::tagboat_without_cluster as program;

/// Each tag with its outcome.
fn outcomes(document: &Value) -> Vec<(&str, &str)> {
    let tags = document["tags"].as_array().unwrap().iter();
    tags.map(|tag| (tag["tag"].as_str().unwrap(), tag["outcome"].as_str().unwrap())).collect()
}

/// The reason of a tag's outcome.
fn reason<'d>(document: &'d Value, tag: &str) -> &'d str {
    let tags = document["tags"].as_array().unwrap();
    let found = tags.iter().find(|one| one["tag"] == tag).unwrap_or_else(|| panic!("no {tag}: {document:#}"));
    found["reason"].as_str().unwrap()
}

/// The time some hours ago, in the format of images.
fn ago(hours: i64) -> String {
    (jiff::Timestamp::now() - jiff::SignedDuration::from_hours(hours)).to_string()
}
