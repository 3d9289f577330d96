//! The server's audit log: the user, the request and its status.

use serde_json::Value;

/// A request with its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Audited {
    /// `admin`, or `system:serviceaccount:NAMESPACE:NAME`.
    pub(crate) user: String,
    /// The verb of a role.
    pub(crate) verb: String,
    /// The resource of a role: the plural with the subresource.
    /// It is empty for paths without a resource.
    pub(crate) resource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The status of the answer.
    pub(crate) code: u64,
}

impl Audited {
    /// One line of the log.
    pub(super) fn read(line: &str) -> Self {
        let entry: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let text = |place: &str| entry.pointer(place).and_then(Value::as_str).unwrap_or_default().to_owned();
        let subresource = text("/objectRef/subresource");
        let slash = if subresource.is_empty() { "" } else { "/" };
        Self {
            user: text("/user/username"),
            verb: text("/verb"),
            resource: format!("{}{slash}{subresource}", text("/objectRef/resource")),
            namespace: text("/objectRef/namespace"),
            name: text("/objectRef/name"),
            code: entry.pointer("/responseStatus/code").and_then(Value::as_u64).unwrap_or_default(),
        }
    }

    /// Returns whether the request could change anything.
    /// A review of the user's own access is a POST, and changes nothing.
    pub(crate) fn writes(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch") && self.resource != "selfsubjectaccessreviews"
    }
}
