//! The name by which an object is known.

use std::fmt;

use kube::ResourceExt;

use crate::update::PolicyName;

/// The name of an object with its namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// Prints as in `namespace/name`.
impl fmt::Display for ObjectName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}

impl ObjectName {
    /// The name of an object in a namespace.
    pub fn of(object: &impl ResourceExt) -> Self {
        Self { namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
    }
}

impl From<&ObjectName> for PolicyName {
    fn from(name: &ObjectName) -> Self {
        Self { namespace: name.namespace.clone(), name: name.name.clone() }
    }
}
