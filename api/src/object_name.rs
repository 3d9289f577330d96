//! Names of objects.

use std::fmt;

use kube::ResourceExt;
use serde::Serialize;

/// The name of an object with its namespace, which is empty for a cluster-scoped object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ObjectName {
    /// The namespace; empty for a cluster-scoped object.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// Formats a name as `namespace/name`, or as `name` without a namespace.
impl fmt::Display for ObjectName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            return formatter.write_str(&self.name);
        }
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}

impl ObjectName {
    /// Returns the name of an object.
    pub fn of(object: &impl ResourceExt) -> Self {
        Self { namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
    }
}
