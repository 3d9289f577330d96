//! Names of objects.

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

/// Formats a name as `namespace/name`.
impl fmt::Display for ObjectName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}

impl ObjectName {
    /// Returns the name of an object.
    pub fn of(object: &impl ResourceExt) -> Self {
        Self { namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
    }
}

impl From<&ObjectName> for PolicyName {
    fn from(name: &ObjectName) -> Self {
        Self { namespace: name.namespace.clone(), name: name.name.clone() }
    }
}
