//! User intent: the user's inputs to a selection.
//!
//! After a change, a downgrade is accepted at once.
//!
//! A user who suspends a policy, changes its interval or raises a timeout has not asked for another image, so fields
//! without influence on the selection are left out. For a repository these include the connection: other credentials
//! show the same tags.

use std::collections::BTreeMap;

use serde::Serialize;
use tagboat_api::policy::ImagePolicySpec;
use tagboat_api::repository::ImageRepositorySpec;
use tagboat_api::settings::own_annotations;
use tagboat_api::{GoDuration, ImagePolicy, ImageRepository};

/// Our settings that decide when to look up, and not which tag to select.
const ABOUT_POLLING: [&str; 2] = ["tagboat.dev/poll-interval", "tagboat.dev/poll-group"];

/// The user's intent in a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyIntent {
    spec: ImagePolicySpec,
    settings: BTreeMap<String, String>,
}

/// The user's intent in a repository: the tags to select from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RepositoryIntent {
    image: String,
    exclusions: Vec<String>,
    settings: BTreeMap<String, String>,
}

impl PolicyIntent {
    /// Extracts the intent of a policy: its spec without suspension and interval.
    pub fn of(policy: &ImagePolicy) -> Self {
        let spec = ImagePolicySpec { suspend: false, interval: None::<GoDuration>, ..policy.spec.clone() };
        Self { spec, settings: settings(policy.metadata.annotations.as_ref()) }
    }
}

impl RepositoryIntent {
    /// Extracts the intent of a repository: its image and excluded tags.
    pub fn of(repository: &ImageRepository) -> Self {
        let ImageRepositorySpec { image, .. } = &repository.spec;
        Self {
            image: image.clone(),
            exclusions: repository.spec.effective_exclusion_list(),
            settings: settings(repository.metadata.annotations.as_ref()),
        }
    }
}

/// Our annotations that influence a selection.
fn settings(annotations: Option<&BTreeMap<String, String>>) -> BTreeMap<String, String> {
    let own = annotations.into_iter().flat_map(own_annotations);
    own.filter(|(name, _)| !ABOUT_POLLING.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn changed<T: serde::de::DeserializeOwned>(mut whole: Value, pointer: &str, value: Value) -> T {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let parent = whole.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        parent.insert(name.replace("~1", "/"), value);
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn fields_without_effect_on_the_selection_do_not_change_the_intent_of_a_policy() {
        let whole = json!({
            "metadata": {"namespace": "n", "name": "p", "annotations": {}},
            "spec": {"imageRepositoryRef": {"name": "r"}, "policy": {"semver": {"range": "1.x"}}},
        });
        let known = PolicyIntent::of(&serde_json::from_value(whole.clone()).unwrap());
        for (pointer, value, is_wish) in [
            ("/spec/suspend", json!(true), false),
            ("/spec/interval", json!("5m"), false),
            ("/metadata/annotations/tagboat.dev~1poll-interval", json!("6h"), false),
            ("/metadata/annotations/tagboat.dev~1poll-group", json!("web"), false),
            ("/metadata/annotations/example.com~1note", json!("x"), false),
            ("/metadata/labels", json!({"a": "b"}), false),
            ("/spec/policy", json!({"semver": {"range": "2.x"}}), true),
            ("/spec/filterTags", json!({"pattern": "^1"}), true),
            ("/spec/imageRepositoryRef", json!({"name": "s"}), true),
            ("/spec/digestReflectionPolicy", json!("Always"), true),
            ("/metadata/annotations/tagboat.dev~1exclude", json!("[1.1.0]"), true),
            ("/metadata/annotations/tagboat.dev~1order", json!("natural"), true),
            ("/metadata/annotations/tagboat.dev~1minimum-age", json!("3d"), true),
            ("/metadata/annotations/tagboat.dev~1unknown-age", json!("accept"), true),
        ] {
            let now = PolicyIntent::of(&changed(whole.clone(), pointer, value));
            assert_eq!(now != known, is_wish, "{pointer}");
        }
    }

    #[test]
    fn fields_without_effect_on_the_tags_do_not_change_the_intent_of_a_repository() {
        let whole = json!({
            "metadata": {"namespace": "n", "name": "r", "annotations": {}},
            "spec": {"image": "r.io/app", "interval": "1m"},
        });
        let known = RepositoryIntent::of(&serde_json::from_value(whole.clone()).unwrap());
        for (pointer, value, is_wish) in [
            ("/spec/suspend", json!(true), false),
            ("/spec/interval", json!("5m"), false),
            ("/spec/timeout", json!("5s"), false),
            ("/spec/secretRef", json!({"name": "login"}), false),
            ("/spec/certSecretRef", json!({"name": "authority"}), false),
            ("/spec/proxySecretRef", json!({"name": "proxy"}), false),
            ("/spec/serviceAccountName", json!("puller"), false),
            ("/spec/provider", json!("aws"), false),
            ("/spec/insecure", json!(true), false),
            ("/spec/accessFrom", json!({"namespaceSelectors": []}), false),
            ("/spec/image", json!("r.io/other"), true),
            ("/spec/exclusionList", json!(["^9"]), true),
        ] {
            let now = RepositoryIntent::of(&changed(whole.clone(), pointer, value));
            assert_eq!(now != known, is_wish, "{pointer}");
        }
    }
}
