//! References to objects of another namespace.

/// Allows or forbids references to objects of another namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrossNamespace {
    /// References to other namespaces are followed.
    Allowed,
    /// References to other namespaces are an error.
    Forbidden,
}
