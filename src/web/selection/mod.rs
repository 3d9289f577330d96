//! The filters of a request, and the deployments that match.

mod selector;

use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};
use tagboat_api::DeploymentStatus;
use tagboat_api::deployment_status::State;
use tagboat_api::object_name::{validate_name, validate_namespace};

use super::http::{Problem, Query};
use super::store::{Snapshot, Stores};

/// The parameters of a selection.
pub(super) const PARAMETERS: [&str; 5] = ["namespace", "selector", "automation", "cluster", "state"];

/// The maximum length of the name of a cluster, in bytes.
const MAX_CLUSTER: usize = 253;

/// The filters of a request; a deployment must match all of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Selection {
    namespace: Option<String>,
    selector: Option<Selector>,
    automation: Option<String>,
    cluster: Option<String>,
    state: Option<State>,
}

impl Selection {
    /// Parses the filters.
    ///
    /// # Errors
    ///
    /// If a value is invalid.
    pub(super) fn parse(query: &Query) -> Result<Self, Problem> {
        let invalid = |name: &str, value: &str, advice: &str| {
            Problem::bad_request(format!("{name} {value:?} is invalid: {advice}"))
        };
        let namespace = query.get("namespace");
        if let Some(namespace) = namespace {
            validate_namespace(namespace)
                .map_err(|_| invalid("namespace", namespace, "it cannot be the name of a namespace"))?;
        }
        let automation = query.get("automation");
        if let Some(automation) = automation {
            validate_name(automation)
                .map_err(|_| invalid("automation", automation, "it cannot be the name of an object"))?;
        }
        let cluster = query.get("cluster");
        if let Some(cluster) = cluster.filter(|cluster| cluster.len() > MAX_CLUSTER) {
            return Err(invalid("cluster", cluster, "it is too long for the name of a cluster"));
        }
        let state = query.get("state").map(|name| {
            let state = State::BY_SEVERITY.into_iter().find(|state| state.as_str() == name);
            state.ok_or_else(|| invalid("state", name, &format!("write {}", states())))
        });
        let selector = query
            .get("selector")
            .map(|text| selector::parse(text).map_err(|error| invalid("selector", text, &error.to_string())));
        Ok(Self {
            namespace: namespace.map(str::to_owned),
            selector: selector.transpose()?,
            automation: automation.map(str::to_owned),
            cluster: cluster.map(str::to_owned),
            state: state.transpose()?,
        })
    }

    /// Returns the deployments that match.
    pub(super) fn of(&self, snapshot: Snapshot, stores: &Stores) -> Snapshot {
        let own_cluster = stores.clusters.own_name();
        snapshot.filter(|object, state| self.matches(object, state, own_cluster))
    }

    fn matches(&self, object: &DeploymentStatus, state: State, own_cluster: &str) -> bool {
        let metadata = &object.metadata;
        let components = || object.status.iter().flat_map(|status| &status.report.components);
        self.state.is_none_or(|wanted| wanted == state)
            && self.namespace.as_ref().is_none_or(|namespace| metadata.namespace.as_ref() == Some(namespace))
            && self.selector.as_ref().is_none_or(|selector| selector.matches(object.labels()))
            && self.automation.as_ref().is_none_or(|automation| {
                components().any(|component| component.automation.as_ref() == Some(automation))
            })
            && self.cluster.as_ref().is_none_or(|cluster| {
                components().any(|component| component.cluster().unwrap_or(own_cluster) == cluster)
            })
    }
}

/// Returns the names of all states as a list in a sentence.
fn states() -> String {
    let names = State::BY_SEVERITY.map(State::as_str);
    let (last, others) = names.split_last().expect("there are states");
    format!("{} or {last}", others.join(", "))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn object() -> DeploymentStatus {
        let time = Timestamp::UNIX_EPOCH.to_string();
        let component = |name: &str, automation: &str| json!({"name": name, "state": "installed", "since": time, "automation": automation});
        serde_json::from_value(json!({
            "apiVersion": "tagboat.dev/v1alpha1",
            "kind": "DeploymentStatus",
            "metadata": {"namespace": "apps", "name": "web", "labels": {"team": "edge", "tier": "front"}},
            "spec": {"policyRef": {"name": "web"}},
            "status": {
                "deploymentId": "1", "timeStamp": time, "state": "installing", "since": time, "progress": "0/1",
                "summary": {},
                "components": [component("Deployment/apps/web", "fleet"), component("edge-1/Job/apps/web", "other")],
            },
        }))
        .unwrap()
    }

    fn matches(query: &str) -> Result<bool, String> {
        let uri = format!("/?{query}").parse().unwrap();
        let selection = Query::parse(&uri, &PARAMETERS).and_then(|query| Selection::parse(&query));
        let selection = selection.map_err(|problem| problem.to_string())?;
        Ok(selection.matches(&object(), State::Installing, "in-cluster"))
    }

    #[test]
    fn a_deployment_matches_all_filters_or_is_left_out() {
        for (query, expected) in [
            ("", true),
            ("namespace=apps", true),
            ("namespace=app", false),
            ("selector=team%3Dedge,tier+in+(front,back)", true),
            ("selector=team!=edge", false),
            ("selector=!team", false),
            ("automation=other", true),
            ("automation=another", false),
            ("cluster=in-cluster", true),
            ("cluster=edge-1", true),
            ("cluster=edge-2", false),
            ("cluster=Deployment", false),
            ("state=installing", true),
            ("state=installed", false),
            ("namespace=apps&state=installing&automation=fleet&selector=team", true),
            ("namespace=apps&state=installing&automation=fleet&selector=teams", false),
        ] {
            assert_eq!(matches(query), Ok(expected), "{query}");
        }
    }

    #[test]
    fn invalid_filters_are_refused_in_a_sentence() {
        for (query, expected) in [
            ("namespace=a/b", "namespace \"a/b\" is invalid: it cannot be the name of a namespace"),
            ("automation=%0a", "automation \"\\n\" is invalid: it cannot be the name of an object"),
            (
                "state=Failed",
                "state \"Failed\" is invalid: write failed, removing, installing, pending, removed or installed",
            ),
            ("selector=a%3D%3D%3Db", "selector \"a===b\" is invalid: "),
        ] {
            let found = matches(query).unwrap_err();
            assert!(found.starts_with(&format!("400 Bad Request: {expected}")), "{found}");
        }
    }
}
