//! ServiceAccounts of manifests, of which only the pull secrets are read.

use serde_json::Value;

/// A ServiceAccount of a manifest.
#[derive(Debug)]
pub struct ServiceAccountManifest {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The names of its pull secrets; `None` if they cannot be read.
    pub pull_secrets: Option<Vec<String>>,
}

impl ServiceAccountManifest {
    /// Reads an object that has a name and a namespace.
    pub(super) fn read(value: &Value) -> Self {
        let text = |field: &str| value["metadata"][field].as_str().unwrap_or_default().to_owned();
        Self {
            namespace: text("namespace"),
            name: text("name"),
            pull_secrets: names(&value["imagePullSecrets"]),
        }
    }
}

fn names(list: &Value) -> Option<Vec<String>> {
    match list {
        Value::Null => Some(Vec::new()),
        Value::Array(items) => items.iter().map(|item| item["name"].as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pull_secrets_are_a_list_of_names() {
        for (account, expected) in [
            (json!({}), Some(&[][..])),
            (json!({"imagePullSecrets": null}), Some(&[])),
            (json!({"imagePullSecrets": [{"name": "b"}, {"name": "a"}]}), Some(&["b", "a"])),
            (json!({"imagePullSecrets": ["a"]}), None),
            (json!({"imagePullSecrets": {"name": "a"}}), None),
        ] {
            let found = ServiceAccountManifest::read(&account).pull_secrets;
            let expected = expected.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
            assert_eq!(found, expected, "{account}");
        }
    }
}
