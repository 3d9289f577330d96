//! Scenes for tests: policies, automations with places, objects and pods, written as YAML.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use kube::core::{ApiResource, GroupVersionKind};
use serde::Deserialize;
use serde_json::{Value, json};
use tagboat_api::deployment_status::{ComponentStatus, DeploymentStatusStatus};
use tagboat_api::{ImagePolicy, ImageUpdateAutomation, ObjectName};

use super::{Cluster, Components, Contact, Inputs, components};
use crate::reference::ImageName;
use crate::rollout::before::{AutomationView, BeforeRollout};
use crate::rollout::index::{ClusterIndex, PlaceIndex};
use crate::rollout::objects::Pod;
use crate::rollout::place::{Place, ScannedPlaces, Written};
use crate::rollout::pods::{LastList, PodList};
use crate::rollout::report::{self, Observation};
use crate::rollout::tie::Stop;
use crate::rollout::watched::{GroupKind, WatchedId, WatchedObject};
use crate::update::{Field, ObjectIdentifier};

/// The namespace of policies and automations.
pub(in crate::rollout) const NAMESPACE: &str = "apps";

/// The time of observations, unless a test changes it.
pub(in crate::rollout) const NOW: &str = "2026-11-02T10:30:00Z";

/// Policies and automations in their written form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Policies {
    /// The image of each policy; null if it has selected none.
    policies: BTreeMap<String, Option<String>>,
    automations: Vec<Automation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Automation {
    name: String,
    #[serde(default)]
    suspend: bool,
    #[serde(default = "revision")]
    revision: String,
    #[serde(default)]
    places: Vec<WrittenPlace>,
    #[serde(default)]
    removed: Vec<String>,
}

fn revision() -> String {
    "main@sha1:1111111".to_owned()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPlace {
    policy: String,
    /// `file:line`.
    at: String,
    /// `apiVersion Kind [namespace/]name`; empty for a file without objects.
    #[serde(default)]
    document: String,
    field: String,
    pointer: Option<String>,
    /// The value; that of the policy's image if absent.
    value: Option<String>,
    former: Option<String>,
    proposed: Option<String>,
}

impl WrittenPlace {
    fn place(&self, images: &BTreeMap<String, Option<String>>) -> Place {
        let field = match self.field.as_str() {
            "reference" => Field::Reference,
            "tag" => Field::Tag,
            "digest" => Field::Digest,
            "tagAndDigest" => Field::TagAndDigest,
            other => panic!("no field: {other}"),
        };
        let image = images.get(&self.policy).cloned().flatten();
        let current =
            image.and_then(|image| field.value_in(&crate::reference::ImageReference::parse(&image).unwrap()));
        let (file, line) = self.at.rsplit_once(':').unwrap();
        let parts: Vec<&str> = self.document.split_whitespace().collect();
        let document = match parts[..] {
            [api_version, kind, name] => {
                let (namespace, name) = name.split_once('/').unwrap_or(("", name));
                let text = str::to_owned;
                ObjectIdentifier {
                    api_version: text(api_version),
                    kind: text(kind),
                    name: text(name),
                    namespace: text(namespace),
                }
            }
            _ => ObjectIdentifier::default(),
        };
        let commit = || {
            serde_json::from_value(json!({"id": "2222222", "branch": "main", "time": "2026-11-02T10:00:00Z", "automation": "fleet"})).unwrap()
        };
        Place {
            policy: name(&self.policy),
            document,
            file: file.to_owned(),
            line: line.parse().unwrap(),
            field,
            pointer: self.pointer.clone(),
            value: self.value.clone().or(current).unwrap_or_default(),
            proposed: self.proposed.clone(),
            written: self.former.clone().map(|former| Written { former, commit: commit() }),
        }
    }
}

/// Returns the name of an object in [`NAMESPACE`].
pub(in crate::rollout) fn name(name: &str) -> ObjectName {
    ObjectName { namespace: NAMESPACE.to_owned(), name: name.to_owned() }
}

/// One cluster of a scene.
pub(in crate::rollout) struct SceneCluster {
    name: Option<String>,
    pub(in crate::rollout) index: ClusterIndex,
    pub(in crate::rollout) contact: Contact,
    pub(in crate::rollout) problem: Option<&'static str>,
    pub(in crate::rollout) pods: HashMap<WatchedId, LastList>,
}

/// Everything from which components are computed, with the previous statuses.
pub(in crate::rollout) struct Scene {
    policies: BTreeMap<String, ImagePolicy>,
    pub(in crate::rollout) automations: Vec<(ImageUpdateAutomation, Option<ScannedPlaces>)>,
    pub(in crate::rollout) clusters: Vec<SceneCluster>,
    pub(in crate::rollout) previous: BTreeMap<String, DeploymentStatusStatus>,
    pub(in crate::rollout) no_cross_namespace: bool,
    /// Policies of other namespaces, with the repositories of their images and their places.
    pub(in crate::rollout) rivals: Vec<(ObjectName, String, ScannedPlaces)>,
    pub(in crate::rollout) now: Timestamp,
}

impl Scene {
    /// Creates a scene without objects.
    pub(in crate::rollout) fn new(policies: &str) -> Self {
        let mut scene = Self {
            policies: BTreeMap::new(),
            automations: Vec::new(),
            clusters: Vec::new(),
            previous: BTreeMap::new(),
            no_cross_namespace: false,
            rivals: Vec::new(),
            now: NOW.parse().unwrap(),
        };
        scene.add_cluster(None);
        scene.set(policies);
        scene
    }

    /// Adds a cluster.
    pub(in crate::rollout) fn add_cluster(&mut self, name: Option<&str>) {
        self.clusters.push(SceneCluster {
            name: name.map(str::to_owned),
            index: ClusterIndex::default(),
            contact: Contact::Watched,
            problem: None,
            pods: HashMap::new(),
        });
    }

    /// Replaces policies and automations: a new image, or a new scan.
    pub(in crate::rollout) fn set(&mut self, policies: &str) {
        let Policies { policies: images, automations } = serde_saphyr::from_str(policies).unwrap();
        self.policies =
            images.iter().map(|(name, image)| (name.clone(), policy(name, image.as_deref()))).collect();
        self.automations = automations
            .iter()
            .map(|automation| {
                let object = json!({
                    "apiVersion": "image.toolkit.fluxcd.io/v1", "kind": "ImageUpdateAutomation",
                    "metadata": {"name": automation.name, "namespace": NAMESPACE},
                    "spec": {"interval": "1m", "sourceRef": {"kind": "GitRepository", "name": "fleet", "namespace": "flux-system"}, "suspend": automation.suspend},
                });
                let mut scan = ScannedPlaces {
                    automation: name(&automation.name),
                    source: ObjectName { namespace: "flux-system".to_owned(), name: "fleet".to_owned() },
                    repository: "ssh://git@git.example/org/fleet.git".to_owned(),
                    revision: automation.revision.clone(),
                    checkout: Some("main".to_owned()),
                    push: "main".to_owned(),
                    places: automation.places.iter().map(|place| place.place(&images)).collect(),
                    omitted: 0,
                    removed_files: automation.removed.clone(),
                };
                scan.sort();
                (serde_json::from_value(object).unwrap(), Some(scan))
            })
            .collect();
    }

    /// Lets a policy choose another image, which no automation has committed yet.
    pub(in crate::rollout) fn choose(&mut self, name: &str, image: &str) {
        self.policies.insert(name.to_owned(), policy(name, Some(image)));
    }

    /// Lets all policies fail, which keep their images.
    pub(in crate::rollout) fn fail_policies(&mut self) {
        for policy in self.policies.values_mut() {
            let condition = json!({
                "type": "Ready", "status": "False", "reason": "DependencyNotReady", "message": "failed",
                "lastTransitionTime": NOW,
            });
            policy.status.as_mut().unwrap().conditions = vec![serde_json::from_value(condition).unwrap()];
        }
    }

    /// Forgets the scans of all automations: the controller restarts.
    pub(in crate::rollout) fn forget_scans(&mut self) {
        self.automations.iter_mut().for_each(|(_, scan)| *scan = None);
    }

    /// Adds or replaces objects of Tagboat's own cluster, as documents of YAML.
    pub(in crate::rollout) fn insert(&mut self, objects: &str) {
        self.insert_into(0, objects);
    }

    /// Adds or replaces objects of a cluster.
    pub(in crate::rollout) fn insert_into(&mut self, cluster: usize, objects: &str) {
        for object in serde_saphyr::from_multiple::<Value>(objects).unwrap() {
            self.clusters[cluster].index.insert(watched(object));
        }
    }

    /// Lists the pods of an object of Tagboat's own cluster now.
    pub(in crate::rollout) fn list_pods(&mut self, id: &WatchedId, pods: Value) {
        let pods: Vec<Pod> = serde_json::from_value(pods).unwrap();
        let listed_at = self.now;
        self.clusters[0].pods.insert(id.clone(), Ok(PodList { pods, listed_at }));
    }

    /// Removes an object of Tagboat's own cluster.
    pub(in crate::rollout) fn remove(&mut self, kind: &GroupKind, namespace: &str, name: &str) {
        let id = WatchedId::new(kind.clone(), namespace, name);
        assert!(self.clusters[0].index.remove(&id).is_some(), "{id}");
    }

    /// Returns the names of the policies.
    pub(in crate::rollout) fn policies(&self) -> Vec<String> {
        self.policies.keys().cloned().collect()
    }

    /// Returns the places of all automations.
    pub(in crate::rollout) fn places(&self) -> PlaceIndex {
        let mut places = PlaceIndex::default();
        for scan in self.automations.iter().filter_map(|(_, scan)| scan.as_ref()) {
            places.insert_scan(Arc::new(scan.clone()));
        }
        for (policy, object) in &self.policies {
            let image = object.status.as_ref().and_then(|status| status.latest_ref.as_ref());
            places.set_repository(&name(policy), image.map(|image| ImageName::parse(&image.name).unwrap()));
        }
        for (policy, repository, scan) in &self.rivals {
            places.insert_scan(Arc::new(scan.clone()));
            places.set_repository(policy, Some(ImageName::parse(repository).unwrap()));
        }
        places
    }

    /// Returns the components of a policy.
    pub(in crate::rollout) fn components(&self, policy: &str) -> Components {
        self.components_until(policy, Stop(&|| false))
    }

    /// Returns the components of a policy, unless this is stopped.
    pub(in crate::rollout) fn components_until(&self, policy: &str, stop: Stop<'_>) -> Components {
        let views = self.views();
        let before = self.before(policy, &views);
        let clusters: Vec<Cluster<'_>> = self
            .clusters
            .iter()
            .map(|cluster| Cluster {
                name: cluster.name.as_deref(),
                index: &cluster.index,
                contact: cluster.contact,
                problem: cluster.problem,
                pods: &cluster.pods,
            })
            .collect();
        components(&Inputs {
            before: &before,
            places: &self.places(),
            clusters: &clusters,
            no_cross_namespace: self.no_cross_namespace,
            now: self.now,
            stop,
        })
    }

    fn views(&self) -> Vec<AutomationView<'_>> {
        let views = self.automations.iter();
        views.map(|(automation, scan)| AutomationView { automation, scan: scan.as_ref() }).collect()
    }

    fn before<'s>(&'s self, policy: &str, views: &'s [AutomationView<'s>]) -> BeforeRollout<'s> {
        let previous = self.previous.get(policy);
        BeforeRollout { policy: &self.policies[policy], automations: views, previous }
    }

    /// Computes the status of a policy, which becomes the previous one, and returns its components.
    pub(in crate::rollout) fn report(&mut self, policy: &str) -> Vec<ComponentStatus> {
        let (views, found) = (self.views(), self.components(policy));
        let before = self.before(policy, &views);
        let observation = Observation {
            deployment_id: "uid".to_owned(),
            target: before.target(),
            commit: before.commit(),
            revision: before.revision(),
            error: before.error().or(found.error),
            components: found.components,
        };
        let status = report::status(observation, self.previous.get(policy), self.now);
        let components = status.report.components.clone();
        self.previous.insert(policy.to_owned(), status);
        components
    }

    /// Computes the status of a policy, and returns its components as lines.
    pub(in crate::rollout) fn lines(&mut self, policy: &str) -> Vec<String> {
        self.report(policy).iter().map(line).collect()
    }
}

fn policy(name: &str, image: Option<&str>) -> ImagePolicy {
    let latest = image.map(|image| {
        let image = crate::reference::ImageReference::parse(image).unwrap();
        json!({"name": image.name.as_str(), "tag": image.tag.as_str(), "digest": image.digest.map(|digest| digest.to_string())})
    });
    serde_json::from_value(json!({
        "apiVersion": "image.toolkit.fluxcd.io/v1", "kind": "ImagePolicy",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"imageRepositoryRef": {"name": name}, "policy": {"semver": {"range": "*"}}},
        "status": {"latestRef": latest},
    }))
    .unwrap()
}

/// Returns a component as `name state reason code: message`, without what is absent.
pub(in crate::rollout) fn line(component: &ComponentStatus) -> String {
    let reason = component.reason.map(|reason| reason.to_string());
    let code = component.error.as_ref().map(|error| format!("{} of {}", error.code, error.source));
    let words = [Some(component.name.clone()), Some(component.state.to_string()), reason, code];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Returns a watched object.
pub(in crate::rollout) fn watched(object: Value) -> WatchedObject {
    fn parse<T: serde::de::DeserializeOwned>(object: Value) -> T {
        serde_json::from_value(object).unwrap()
    }
    let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    match GroupKind::new(&api_version, &kind) {
        kind if kind == GroupKind::DEPLOYMENT => WatchedObject::Deployment(parse(object)),
        kind if kind == GroupKind::STATEFUL_SET => WatchedObject::StatefulSet(parse(object)),
        kind if kind == GroupKind::DAEMON_SET => WatchedObject::DaemonSet(parse(object)),
        kind if kind == GroupKind::JOB => WatchedObject::Job(parse(object)),
        kind if kind == GroupKind::CRON_JOB => WatchedObject::CronJob(parse(object)),
        kind if kind == GroupKind::ARGO_ROLLOUT => WatchedObject::ArgoRollout(parse(object)),
        kind if kind == GroupKind::CANARY => WatchedObject::Canary(parse(object)),
        kind if kind == GroupKind::KUSTOMIZATION => WatchedObject::Kustomization(parse(object)),
        kind if kind == GroupKind::HELM_RELEASE => WatchedObject::HelmRelease(parse(object)),
        kind if kind == GroupKind::APPLICATION => WatchedObject::Application(parse(object)),
        kind if kind == GroupKind::GIT_REPOSITORY => WatchedObject::GitRepository(parse(object)),
        other => {
            let version = api_version.rsplit('/').next().unwrap_or_default();
            let kind = GroupVersionKind::gvk(other.group(), version, other.kind());
            WatchedObject::Other(Arc::new(ApiResource::from_gvk(&kind)), parse(object))
        }
    }
}
