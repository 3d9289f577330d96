//! What could not be read, and which object that is.

use serde_json::Value;

use tagboat_api::Kind;

use super::ManifestError;
use super::kind::ManifestKind;
use crate::objects::ObjectName;

/// Where an object without a namespace belongs, as `kubectl` has it.
pub(super) const DEFAULT_NAMESPACE: &str = "default";

/// Something wrong among manifests.
#[derive(Debug)]
pub struct Flaw {
    /// What is wrong.
    pub error: ManifestError,
    object: Option<(ManifestKind, ObjectName)>,
}

impl Flaw {
    /// A flaw of one object.
    pub(super) fn of(object: Option<(ManifestKind, ObjectName)>, error: ManifestError) -> Self {
        Self { error, object }
    }

    /// The ImagePolicy that cannot be read, if it is one.
    pub fn policy(&self) -> Option<&ObjectName> {
        self.named(ManifestKind::Flux(Kind::Policy))
    }

    /// The ImageRepository that cannot be read, if it is one.
    pub fn repository(&self) -> Option<&ObjectName> {
        self.named(ManifestKind::Flux(Kind::Repository))
    }

    /// Returns whether nothing tells which object it is, so that it may be any, and more than one.
    pub fn is_of_unknown(&self) -> bool {
        self.object.is_none()
    }

    fn named(&self, wanted: ManifestKind) -> Option<&ObjectName> {
        self.object.as_ref().filter(|(kind, _)| *kind == wanted).map(|(_, name)| name)
    }
}

/// What cannot be laid at the door of an object.
impl From<ManifestError> for Flaw {
    fn from(error: ManifestError) -> Self {
        Self { error, object: None }
    }
}

/// The name of an object, with the namespace where it belongs if it says none.
pub(super) fn name_of(value: &Value) -> Option<ObjectName> {
    let text = |field: &str| value["metadata"][field].as_str().filter(|text| !text.is_empty());
    let namespace = text("namespace").unwrap_or(DEFAULT_NAMESPACE).to_owned();
    text("name").map(|name| ObjectName { namespace, name: name.to_owned() })
}
