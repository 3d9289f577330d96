//! The history of deployments, and commits.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::MAX_TEXT;
use crate::condition;

/// Commit that Tagboat pushed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitRef {
    /// Hash of the commit.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// Branch to which it was pushed.
    #[schemars(length(max = MAX_TEXT))]
    pub branch: String,
    /// Time of the push.
    #[schemars(schema_with = "condition::time_schema")]
    pub time: Time,
    /// Name of the automation that made it.
    #[schemars(length(max = MAX_TEXT))]
    pub automation: String,
}

impl CommitRef {
    /// Returns the beginning of the hash, for messages.
    #[must_use]
    pub fn short_id(&self) -> &str {
        short_hash(&self.id)
    }
}

/// Returns the first 7 characters of a commit's hash, as git abbreviates it.
fn short_hash(hash: &str) -> &str {
    hash.char_indices().nth(7).map_or(hash, |(end, _)| &hash[..end])
}

/// Image that was deployed, with the number of objects and the last time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// Digest of the image; absent if the policy reports none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_TEXT))]
    pub digest: Option<String>,
    /// Tag of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_TEXT))]
    pub version: Option<String>,
    /// Largest number of objects that had the image at the same time.
    pub object_count: i64,
    /// Last time at which the rollout of an object ended with the image.
    #[schemars(schema_with = "condition::time_schema")]
    pub last_deployed: Time,
    /// Hash of the commit that brought the image, if Tagboat pushed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub commit: Option<String>,
}

impl HistoryEntry {
    /// Returns the beginning of the hash of the commit, for messages.
    #[must_use]
    pub fn short_commit(&self) -> Option<&str> {
        self.commit.as_deref().map(short_hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_abbreviated_to_seven_characters() {
        for (hash, expected) in
            [("0123456789", "0123456"), ("0123456", "0123456"), ("ab", "ab"), ("ääääääää", "äääääää")]
        {
            assert_eq!(short_hash(hash), expected);
        }
    }
}
