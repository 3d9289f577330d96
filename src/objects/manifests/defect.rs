//! Errors of manifests, with the object that they belong to.

use serde_json::Value;

use tagboat_api::Kind;

use super::ManifestError;
use super::kind::ManifestKind;
use crate::objects::ObjectName;

/// The namespace of an object without one, as in `kubectl`.
pub(super) const DEFAULT_NAMESPACE: &str = "default";

/// An error among manifests.
#[derive(Debug)]
pub struct Defect {
    /// The error.
    pub error: ManifestError,
    object: Option<(ManifestKind, ObjectName)>,
}

impl Defect {
    /// Makes the error of one object.
    pub(super) fn of(object: Option<(ManifestKind, ObjectName)>, error: ManifestError) -> Self {
        Self { error, object }
    }

    /// Returns the ImageUpdateAutomation that cannot be read, if it is one.
    pub fn automation(&self) -> Option<&ObjectName> {
        self.named(ManifestKind::Flux(Kind::Automation))
    }

    /// Returns the ImagePolicy that cannot be read, if it is one.
    pub fn policy(&self) -> Option<&ObjectName> {
        self.named(ManifestKind::Flux(Kind::Policy))
    }

    /// Returns the ImageRepository that cannot be read, if it is one.
    pub fn repository(&self) -> Option<&ObjectName> {
        self.named(ManifestKind::Flux(Kind::Repository))
    }

    /// Returns whether it is a Namespace that cannot be read, with any freeze of its.
    pub fn is_of_namespace(&self) -> bool {
        self.object.as_ref().is_some_and(|(kind, _)| *kind == ManifestKind::Namespace)
    }

    /// Returns whether the object is unknown.
    ///
    /// It may then be any object, and more than one.
    pub fn is_unattributed(&self) -> bool {
        self.object.is_none()
    }

    fn named(&self, wanted: ManifestKind) -> Option<&ObjectName> {
        self.object.as_ref().filter(|(kind, _)| *kind == wanted).map(|(_, name)| name)
    }
}

/// For an error that belongs to no known object.
impl From<ManifestError> for Defect {
    fn from(error: ManifestError) -> Self {
        Self { error, object: None }
    }
}

/// Returns the name of an object, in the default namespace if it has none.
pub(super) fn name_of(value: &Value) -> Option<ObjectName> {
    let text = |field: &str| value["metadata"][field].as_str().filter(|text| !text.is_empty());
    let namespace = text("namespace").unwrap_or(DEFAULT_NAMESPACE).to_owned();
    text("name").map(|name| ObjectName { namespace, name: name.to_owned() })
}
