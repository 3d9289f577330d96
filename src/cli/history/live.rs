//! The values that run in a cluster.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use tagboat_api::DeploymentStatus;
use tagboat_api::deployment_status::{ComponentStatus, Report, State, Target};

use super::document::joined;
use crate::cli::Failure;
use crate::cli::cluster::ClusterArguments;
use crate::cli::feed::{self, Feed};
use crate::cli::runtime;
use crate::cli::status::OBJECTS;
use crate::cli::terminal::say;
use crate::objects::ObjectName;
use crate::objects::cluster::Scope;
use crate::rollout::image::{ObjectImage, WantedImage};
use crate::update::history::{MarkerKey, Place, ValueChange};
use crate::update::{Field, Marker};

/// A component that has a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct LiveComponent {
    /// The name, as in the DeploymentStatus.
    name: String,
    /// The state of the value.
    state: LiveState,
    /// The number of ready pods with the value, at least; absent with the state `unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    ready: Option<i64>,
    /// The number of desired pods.
    desired: i64,
}

/// The state of a value in a component, from the most to the least severe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum LiveState {
    /// Its rollout failed.
    Failed,
    /// The component is being deleted.
    Removing,
    /// Its rollout is in progress.
    Installing,
    /// The component is not observed, for example because its cluster does not answer.
    Unknown,
    /// It is running.
    Running,
}

impl fmt::Display for LiveState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Failed => "failed",
            Self::Removing => "removing",
            Self::Installing => "installing",
            Self::Unknown => "unknown",
            Self::Running => "running",
        })
    }
}

/// All components that have a value, such as `running 4/4 in 2 components`.
pub(super) struct LiveSummary {
    state: LiveState,
    /// The known ready pods; `None` if none of the components is observed.
    ready: Option<i64>,
    desired: i64,
    components: usize,
}

impl LiveSummary {
    /// Returns the most severe state and the sums; `None` without components.
    pub(super) fn of(components: &[LiveComponent]) -> Option<Self> {
        Some(Self {
            state: components.iter().map(|component| component.state).min()?,
            ready: components.iter().filter_map(|component| component.ready).reduce(i64::saturating_add),
            desired: components.iter().map(|component| component.desired).fold(0, i64::saturating_add),
            components: components.len(),
        })
    }
}

impl fmt::Display for LiveSummary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { state, ready, desired, components } = self;
        write!(formatter, "{state}")?;
        if let Some(ready) = ready {
            write!(formatter, " {ready}/{desired}")?;
        }
        if *components == 1 { Ok(()) } else { write!(formatter, " in {components} components") }
    }
}

/// The deployments of a cluster, compared with changes from the newest to the oldest.
pub(super) struct LiveValues {
    deployments: HashMap<ObjectName, Arc<DeploymentStatus>>,
    /// The components that have the value of a newer change of the same marker.
    taken: HashSet<(Rc<MarkerKey>, String)>,
    /// The policies without a deployment.
    unknown: BTreeSet<ObjectName>,
}

impl LiveValues {
    /// Reads the deployments of a namespace, or of all.
    ///
    /// # Errors
    ///
    /// If there is no cluster, or its deployments cannot be listed.
    pub(super) fn read(cluster: &ClusterArguments, namespace: Option<&str>) -> Result<Self, Failure> {
        let runtime = runtime::single_threaded()?;
        let scope = Scope { namespace: namespace.map(str::to_owned), labels: None };
        let deployments = runtime.block_on(async {
            let connection = cluster.connect("; --live needs a cluster").await?;
            let feed: Feed<DeploymentStatus> = Feed::start(OBJECTS, connection.client, scope, None)
                .await
                .map_err(|error| feed::failure::<DeploymentStatus>(OBJECTS, &error, &connection.server))?;
            for (name, message) in feed.unreadable() {
                say(&format!("warning: {name} cannot be read: {message}"));
            }
            Ok::<_, Failure>(feed.objects())
        })?;
        Ok(Self::new(deployments))
    }

    fn new(deployments: Vec<Arc<DeploymentStatus>>) -> Self {
        let deployments =
            deployments.into_iter().map(|deployment| (ObjectName::of(&*deployment), deployment)).collect();
        Self { deployments, taken: HashSet::new(), unknown: BTreeSet::new() }
    }

    /// Returns the components that have the new value of a change.
    ///
    /// Those that a newer change of the marker gave the same value are left out.
    pub(super) fn take(&mut self, change: &ValueChange) -> Vec<LiveComponent> {
        let Some(new) = &change.new else { return Vec::new() };
        let marker = Marker::of_setter(&new.key.setter);
        let report = self.deployments.get(&marker.policy).map(|found| found.status.as_ref());
        let Some(status) = report else {
            self.unknown.insert(marker.policy);
            return Vec::new();
        };
        let Some(report) = status.map(|status| &status.report) else { return Vec::new() };
        let Some(image) = image_of(report.target.as_ref(), marker.field, &new.value) else {
            return Vec::new();
        };
        let of_marker = report.components.iter().filter(|component| is_of_marker(component, new));
        let components = of_marker.filter_map(|component| live_component(report, component, &image));
        components.filter(|component| self.taken.insert((new.key.clone(), component.name.clone()))).collect()
    }

    /// Prints a note about the policies without a deployment.
    pub(super) fn report_unknown(&self) {
        let Some(first) = self.unknown.first() else { return };
        let others = match self.unknown.len() - 1 {
            0 => String::new(),
            1 => " and of another policy".to_owned(),
            count => format!(" and of {count} other policies"),
        };
        say(&format!(
            "note: the cluster has no DeploymentStatus of {first}{others}, so their values are unknown"
        ));
    }
}

/// Returns the image of a marked value; `None` if the value does not determine it.
fn image_of(target: Option<&Target>, field: Field, value: &str) -> Option<WantedImage> {
    let text = match field {
        Field::Reference => value.to_owned(),
        Field::Tag | Field::TagAndDigest => format!("{}:{value}", target?.name),
        Field::Digest => format!("{}@{value}", target?.name),
        Field::Name | Field::Unknown => return None,
    };
    let ObjectImage { name, tag, digest } = ObjectImage::parse(&text).ok()?;
    Some(WantedImage { repository: name, tag, digest })
}

/// Returns true if the marker of a component is in the same file or object.
fn is_of_marker(component: &ComponentStatus, place: &Place) -> bool {
    let file = component.place.as_deref().and_then(|place| place.rsplit_once(':')).map(|(file, _)| file);
    let object = &place.key.object;
    let title = joined([&object.kind, &object.namespace, &object.name]);
    let has_title = component
        .name
        .strip_suffix(&title)
        .is_some_and(|cluster| !title.is_empty() && (cluster.is_empty() || cluster.ends_with('/')));
    file == Some(&*place.file) || has_title
}

/// Returns the component with the state of the image, if it has the image.
fn live_component(
    report: &Report,
    component: &ComponentStatus,
    image: &WantedImage,
) -> Option<LiveComponent> {
    let has = ObjectImage::parse(component.image.as_deref()?).ok()?;
    if !image.is_met_by(&has) {
        return None;
    }
    let target = report.target.as_ref().and_then(|target| {
        let tag = image.tag.as_ref().map_or(String::new(), |_| format!(":{}", target.tag));
        let digest = target.digest.as_ref().map_or(String::new(), |digest| format!("@{digest}"));
        ObjectImage::parse(&format!("{}{tag}{digest}", target.name)).ok()
    });
    let is_wanted = target.is_some_and(|target| image.is_met_by(&target));
    let ready = component.updated_ready;
    let state = match (component.state, ready) {
        (State::Removed, _) => return None,
        (State::Removing, _) => LiveState::Removing,
        (State::Failed, _) if is_wanted => LiveState::Failed,
        (_, None) => LiveState::Unknown,
        (State::Installing, _) => LiveState::Installing,
        (State::Installed, _) => LiveState::Running,
        // A component without the wanted image runs the image that it has, unless its rollout has not ended.
        (State::Failed | State::Pending, Some(ready)) => {
            let is_complete = component.complete_since.is_some() || ready >= component.desired;
            if is_complete { LiveState::Running } else { LiveState::Installing }
        }
    };
    Some(LiveComponent { name: component.name.clone(), state, ready, desired: component.desired })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;

    use super::*;
    use crate::update::ObjectIdentifier;

    /// Creates the deployment `apps:web` of an image `ghcr.io/org/web`.
    ///
    /// A component is its name, state, image tag and place.
    fn deployment(target: &str, components: &[(&str, &str, &str, &str)]) -> Arc<DeploymentStatus> {
        let since = Time(Timestamp::UNIX_EPOCH);
        let component = |(name, state, tag, place): &(&str, &str, &str, &str)| {
            json!({
                "name": name, "state": state, "image": format!("ghcr.io/org/web:{tag}"), "since": since,
                "place": place, "ready": 3, "updatedReady": 2, "desired": 3, "completeSince": since,
            })
        };
        let components: Vec<_> = components.iter().map(component).collect();
        let object = json!({
            "apiVersion": "tagboat.dev/v1alpha1",
            "kind": "DeploymentStatus",
            "metadata": {"name": "web", "namespace": "apps"},
            "spec": {"policyRef": {"name": "web"}},
            "status": {
                "deploymentId": "1", "timeStamp": since, "state": "pending", "since": since, "progress": "2/3",
                "target": {"name": "ghcr.io/org/web", "tag": target}, "summary": {}, "components": components,
            },
        });
        Arc::new(serde_json::from_value(object).unwrap())
    }

    /// Creates a change to a value in a file, of an object `Deployment/NAMESPACE/web`.
    fn change(setter: &str, namespace: &str, file: &str, value: &str) -> ValueChange {
        let object = ObjectIdentifier {
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: namespace.to_owned(),
            name: "web".to_owned(),
        };
        let key = Rc::new(MarkerKey { object, setter: setter.to_owned(), ordinal: 0 });
        ValueChange { old: None, new: Some(Place { file: file.into(), key, value: value.into(), line: 7 }) }
    }

    fn summary(values: &mut LiveValues, change: &ValueChange) -> String {
        LiveSummary::of(&values.take(change)).map(|live| live.to_string()).unwrap_or_default()
    }

    #[test]
    fn each_form_of_a_value_is_compared_with_the_image() {
        let deployed = deployment("2.0.0", &[("Deployment/prod/web", "installed", "2.0.0", "web.yaml:7")]);
        for (setter, value, expected) in [
            ("apps:web", "ghcr.io/org/web:2.0.0", "running 2/3"),
            ("apps:web", "ghcr.io/org/web:1.0.0", ""),
            ("apps:web", "ghcr.io/org/other:2.0.0", ""),
            ("apps:web:tag", "2.0.0", "running 2/3"),
            ("apps:web:tag", "2.0", ""),
            ("apps:web:tag", "no tag", ""),
            ("apps:web:name", "ghcr.io/org/web", ""),
        ] {
            let mut values = LiveValues::new(vec![deployed.clone()]);
            assert_eq!(
                summary(&mut values, &change(setter, "prod", "web.yaml", value)),
                expected,
                "{setter} {value}"
            );
        }
    }

    #[test]
    fn the_state_is_that_of_the_value_and_not_that_of_the_wanted_image() {
        for (state, tag, value, expected) in [
            ("installing", "2.0.0", "2.0.0", "installing 2/3"),
            ("failed", "2.0.0", "2.0.0", "failed 2/3"),
            ("removing", "2.0.0", "2.0.0", "removing 2/3"),
            ("removed", "2.0.0", "2.0.0", ""),
            ("pending", "1.0.0", "1.0.0", "running 2/3"),
            ("failed", "1.0.0", "1.0.0", "running 2/3"),
            ("pending", "1.0.0", "2.0.0", ""),
        ] {
            let deployed = deployment("2.0.0", &[("Deployment/prod/web", state, tag, "web.yaml:7")]);
            let mut values = LiveValues::new(vec![deployed]);
            let found = summary(&mut values, &change("apps:web:tag", "prod", "web.yaml", value));
            assert_eq!(found, expected, "{state} {tag} {value}");
        }
    }

    /// Returns the summary of the value 1.0.0 of a component.
    ///
    /// The component has the value, and the fields of `change`.
    fn summary_with(state: &str, change: impl Fn(&mut ComponentStatus)) -> String {
        let target = if state == "pending" { "2.0.0" } else { "1.0.0" };
        let mut deployed = deployment(target, &[("Deployment/prod/web", state, "1.0.0", "web.yaml:7")]);
        let status = Arc::make_mut(&mut deployed).status.as_mut().unwrap();
        change(&mut status.report.components[0]);
        let mut values = LiveValues::new(vec![deployed]);
        summary(&mut values, &super::tests::change("apps:web:tag", "prod", "web.yaml", "1.0.0"))
    }

    #[test]
    fn the_old_pods_of_a_stuck_rollout_do_not_run_the_value() {
        let stuck = |component: &mut ComponentStatus| {
            (component.updated, component.ready, component.updated_ready) = (1, 3, Some(0));
            component.complete_since = None;
        };
        assert_eq!(summary_with("installing", stuck), "installing 0/3");
        assert_eq!(summary_with("failed", stuck), "failed 0/3");
        // The policy has selected another image meanwhile.
        assert_eq!(summary_with("pending", stuck), "installing 0/3");
        let complete = |component: &mut ComponentStatus| component.updated_ready = Some(3);
        assert_eq!(summary_with("pending", complete), "running 3/3");
        let restarted = |component: &mut ComponentStatus| component.updated_ready = Some(1);
        assert_eq!(summary_with("pending", restarted), "running 1/3");
    }

    #[test]
    fn the_value_of_a_component_whose_cluster_does_not_answer_is_unknown() {
        let unobserved = |component: &mut ComponentStatus| component.updated_ready = None;
        assert_eq!(summary_with("pending", unobserved), "unknown");
        assert_eq!(summary_with("removing", unobserved), "removing");
        let named = |name: &str, ready: Option<i64>| LiveComponent {
            name: name.to_owned(),
            state: if ready.is_some() { LiveState::Running } else { LiveState::Unknown },
            ready,
            desired: 3,
        };
        let both = LiveSummary::of(&[named("web", Some(3)), named("edge/web", None)]).unwrap();
        assert_eq!(both.to_string(), "unknown 3/6 in 2 components");
    }

    #[test]
    fn only_the_newest_change_to_a_value_is_live() {
        let deployed = deployment("2.0.0", &[("Deployment/prod/web", "installed", "2.0.0", "web.yaml:7")]);
        let mut values = LiveValues::new(vec![deployed]);
        let mut found = |value| summary(&mut values, &change("apps:web:tag", "prod", "web.yaml", value));
        assert_eq!(["3.0.0", "2.0.0", "1.0.0", "2.0.0"].map(&mut found), ["", "running 2/3", "", ""]);
    }

    #[test]
    fn components_belong_to_the_marker_in_their_file_or_object() {
        let deployed = deployment(
            "2.0.0",
            &[
                ("Deployment/prod/web", "installed", "2.0.0", "prod/web.yaml:7"),
                ("edge/Deployment/prod/web", "pending", "1.0.0", "edge/web.yaml:7"),
                ("west/Deployment/test/web", "installed", "2.0.0", "test/web.yaml:7"),
            ],
        );
        for (namespace, file, value, expected) in [
            ("prod", "old/web.yaml", "2.0.0", "running 2/3"),
            ("", "prod/web.yaml", "2.0.0", "running 2/3"),
            ("", "test/web.yaml", "2.0.0", "running 2/3"),
            ("prod", "test/web.yaml", "2.0.0", "running 4/6 in 2 components"),
            ("prod", "old/web.yaml", "1.0.0", "running 2/3"),
            ("other", "old/web.yaml", "2.0.0", ""),
        ] {
            let mut values = LiveValues::new(vec![deployed.clone()]);
            let found = summary(&mut values, &change("apps:web:tag", namespace, file, value));
            assert_eq!(found, expected, "{namespace} {file} {value}");
        }
    }

    #[test]
    fn a_policy_without_a_deployment_is_unknown() {
        let mut values = LiveValues::new(Vec::new());
        assert_eq!(summary(&mut values, &change("apps:web", "prod", "web.yaml", "x")), "");
        assert_eq!(values.unknown.iter().map(ToString::to_string).collect::<Vec<_>>(), ["apps/web"]);
    }
}
