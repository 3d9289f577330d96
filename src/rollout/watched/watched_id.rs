//! The identity of an object in its cluster.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use tagboat_api::ObjectName;

use super::GroupKind;

/// The identity of an object in its cluster. Clones share it.
///
/// The order is by kind, name and namespace, so the objects of a name in all namespaces are neighbours.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchedId(Arc<Parts>);

/// The parts of an identity, in the order in which they compare.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parts {
    /// The kind.
    pub kind: GroupKind,
    /// The name.
    pub name: String,
    /// The namespace; empty for a cluster-scoped object.
    pub namespace: String,
}

impl WatchedId {
    /// Creates the identity of an object.
    #[must_use]
    pub fn new(kind: GroupKind, namespace: &str, name: &str) -> Self {
        Self(Arc::new(Parts { kind, name: name.to_owned(), namespace: namespace.to_owned() }))
    }

    /// Returns the identity of the object of the same kind and name without a namespace.
    #[must_use]
    pub fn without_namespace(&self) -> Self {
        Self::new(self.kind.clone(), "", &self.name)
    }

    /// Returns the name with the namespace.
    #[must_use]
    pub fn object_name(&self) -> ObjectName {
        ObjectName { namespace: self.namespace.clone(), name: self.name.clone() }
    }
}

impl Deref for WatchedId {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// Formats as `Kind/namespace/name`, or `Kind/name` without a namespace: the name of a component.
impl fmt::Display for WatchedId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts { kind, namespace, name } = &**self;
        if namespace.is_empty() {
            write!(formatter, "{kind}/{name}")
        } else {
            write!(formatter, "{kind}/{namespace}/{name}")
        }
    }
}
