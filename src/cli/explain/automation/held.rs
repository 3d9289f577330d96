//! The images that the status of an automation names as held.

use schemars::JsonSchema;
use serde::Serialize;
use tagboat_api::{ImageRef, ObjectName};

use crate::reconcile::automation::reverts::HeldRecord;

/// An image that is not written, as the reports of runs have it.
///
/// The status does not have the files in a form that can be read.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ExplainedHold {
    /// The policy, as namespace/name.
    policy: String,
    /// The image that is not written; null if it is not known.
    image: Option<String>,
    /// The value in the file; null, because no file is read.
    value: Option<String>,
    /// The file; null as well.
    file: Option<String>,
    /// The line; null as well.
    line: Option<usize>,
    /// The commits between which the value was changed; null if they are not known.
    between: Option<[String; 2]>,
    /// The author of the change; null unless the second commit is the only one.
    author: Option<String>,
    /// `hold` or `pause`.
    mode: &'static str,
}

impl ExplainedHold {
    /// Returns the reason as a sentence.
    pub(super) fn reason(&self) -> String {
        let between = self.between.as_ref().map(|[from, to]| format!(" between {from} and {to}"));
        let author = self.author.as_ref().map(|author| format!(" by {author:?}"));
        let (between, author) = (between.unwrap_or_default(), author.unwrap_or_default());
        let end = match self.mode {
            "pause" => "until the wanted value is in the file, or the annotation changes",
            _ => "until the policy selects another image, or the wanted value is in the file",
        };
        format!("taken back in git{between}{author}; tagboat.dev/on-revert is {}: {end}", self.mode)
    }

    /// Takes the hold of a policy from the record of the last run.
    ///
    /// `wanted` is the image of a policy that the record does not name.
    pub(super) fn of(policy: &ObjectName, wanted: Option<&ImageRef>, record: &HeldRecord) -> Self {
        let held = record.named().get(&policy.name);
        let between = held.and_then(|held| held.between.as_ref());
        Self {
            policy: policy.to_string(),
            image: held.map(|held| held.image.clone()).or_else(|| wanted.map(ImageRef::to_string)),
            value: None,
            file: None,
            line: None,
            between: between.map(|between| [between.from.to_string(), between.to.to_string()]),
            author: between.and_then(|between| between.author.clone()),
            mode: record.mode.as_str(),
        }
    }
}
