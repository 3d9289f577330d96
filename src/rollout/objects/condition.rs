//! Conditions of any kind's status.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::readable::or_default;

/// A condition, with the fields that any kind's conditions may have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    /// The type, unique in its list.
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    #[serde(deserialize_with = "or_default")]
    pub status: String,
    /// The reason of the status, for programs.
    pub reason: Option<String>,
    /// The reason of the status, as a sentence.
    pub message: Option<String>,
    /// The time of the last change of the status.
    #[serde(deserialize_with = "time")]
    pub last_transition_time: Option<Time>,
    /// The time of the last change of any field, which few kinds have.
    #[serde(deserialize_with = "time")]
    pub last_update_time: Option<Time>,
    /// The generation that this condition describes, which few kinds have.
    pub observed_generation: Option<i64>,
}

/// Deserializes a time; none if it is malformed.
///
/// Some controllers write an empty text, and nothing but a time follows from it.
fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}

impl Condition {
    /// Returns `true` if the status is `True`.
    #[must_use]
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }

    /// Returns `true` if the status is `False`.
    #[must_use]
    pub fn is_false(&self) -> bool {
        self.status == "False"
    }

    /// Returns `true` for this reason.
    #[must_use]
    pub fn has_reason(&self, reason: &str) -> bool {
        self.reason() == reason
    }

    /// Returns the reason, or the empty string.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or_default()
    }

    /// Returns the message, or else the reason.
    #[must_use]
    pub fn text(&self) -> &str {
        self.message.as_deref().filter(|message| !message.is_empty()).unwrap_or(self.reason())
    }
}

/// Returns the condition of a type.
#[must_use]
pub fn find<'c>(conditions: &'c [Condition], kind: &str) -> Option<&'c Condition> {
    conditions.iter().find(|condition| condition.kind == kind)
}

/// Returns `true` if the condition of a type is `True`.
#[must_use]
pub fn is_true(conditions: &[Condition], kind: &str) -> bool {
    find(conditions, kind).is_some_and(Condition::is_true)
}
