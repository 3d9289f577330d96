//! The label selector of a workload's pods.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::Selector;
use serde::{Deserialize, Deserializer};

use super::readable::or_default;

/// The label selector of a workload's pods, as a query of a list.
///
/// Maps of labels would take ten times its memory, in each of many thousand objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodSelector(Option<Box<str>>);

impl PodSelector {
    /// Returns the query, such as `app=podinfo`.
    ///
    /// It is `None` if the selector is invalid or would select all pods.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl<'de> Deserialize<'de> for PodSelector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let selector = Selector::try_from(or_default::<_, LabelSelector>(deserializer)?).ok();
        let selective = selector.filter(|selector| !selector.selects_all());
        Ok(Self(selective.map(|selector| selector.to_string().into_boxed_str())))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn query(selector: Value) -> Option<String> {
        serde_json::from_value::<PodSelector>(selector).unwrap().query().map(str::to_owned)
    }

    #[test]
    fn a_query_has_labels_and_expressions() {
        let expression = |operator: &str| json!({"key": "tier", "operator": operator, "values": ["a", "b"]});
        assert_eq!(query(json!({"matchLabels": {"app": "podinfo"}})).unwrap(), "app=podinfo");
        let both = json!({"matchLabels": {"app": "x"}, "matchExpressions": [expression("In")]});
        let found = query(both).unwrap();
        assert!(found.contains("app=x") && found.contains("tier in (a,b)"), "{found}");
        assert_eq!(query(json!({"matchExpressions": [expression("Like")]})), None);
    }

    #[test]
    fn a_selector_of_all_pods_has_no_query() {
        assert_eq!(query(json!({})), None);
        assert_eq!(query(json!({"matchLabels": {}})), None);
        // A Rollout with `workloadRef` may have none.
        assert_eq!(query(json!(null)), None);
    }
}
