//! Any bytes as objects that a watch of a cluster reports.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use kube::core::{ApiResource, GroupVersionKind, ObjectList, WatchEvent};
use serde_json::{Value, json};
use tagboat::printable::is_unprintable;
use tagboat::reference::ImageReference;
use tagboat::rollout::before::{AutomationView, BeforeRollout};
use tagboat::rollout::components::{Cluster, Contact, Inputs, components};
use tagboat::rollout::index::{ClusterIndex, PlaceIndex};
use tagboat::rollout::objects::{
    Application, ArgoRollout, Canary, CronJob, DaemonSet, Deployment, GenericObject, GitRepository,
    HelmRelease, Job, Kustomization, Pod, StatefulSet,
};
use tagboat::rollout::place::{Place, ScannedPlaces};
use tagboat::rollout::pods::{LastList, PodList};
use tagboat::rollout::report::{Observation, status};
use tagboat::rollout::tie::Stop;
use tagboat::rollout::watched::{WatchedId, WatchedObject};
use tagboat::update::{Field, ObjectIdentifier};
use tagboat_api::deployment_status::{
    ComponentStatus, DeploymentStatusStatus, MAX_CODE, MAX_COMPONENTS, MAX_MESSAGE, MAX_TEXT, State,
    StatusError,
};
use tagboat_api::{ImagePolicy, ImageUpdateAutomation, ObjectName};

/// The image that the policy has selected.
const IMAGE: &str = "ghcr.io/org/app:1.0.0";

/// The namespace of the policy and its automation.
const NAMESPACE: &str = "apps";

/// The number of objects of an input that get a marker.
const MAX_MARKED: usize = 64;

/// Reads the bytes as a list and as a watch event of each kind.
macro_rules! read {
    ($input:ident as $($type:ty),* => $wrap:expr) => {{
        let mut found = Vec::new();
        $(
            if let Ok(list) = serde_json::from_slice::<ObjectList<$type>>($input) {
                found.extend(list.items.into_iter().map($wrap));
            }
            if let Ok(WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object)) =
                serde_json::from_slice::<WatchEvent<$type>>($input)
            {
                found.push($wrap(object));
            }
        )*
        found
    }};
}

/// Reads bytes as lists and watch events of each kind, and computes a status.
///
/// Each object has a marker of the policy. The status is within its bounds, also after a further observation.
pub fn watched(input: &[u8]) {
    let objects = objects(input);
    let pods = read!(input as Pod => |pod| pod);
    let mut now: Timestamp = "2026-11-02T10:30:00Z".parse().expect("it is a time");
    let list = PodList { pods, listed_at: now };
    assert!(list.unavailable_in(|_| true).is_none_or(|wait| !wait.is_zero()));
    let pods: HashMap<WatchedId, LastList> =
        objects.iter().take(MAX_MARKED).map(|object| (object.id(), Ok(list.clone()))).collect();
    let scan = scan(&objects);
    let mut index = ClusterIndex::default();
    for object in objects {
        let id = object.id();
        index.insert(object);
        assert_eq!(index.get(&id).map(WatchedObject::id), Some(id));
    }
    let mut previous = None;
    for _ in 0..3 {
        let next = observe(&scan, (&index, &pods), previous.as_ref(), now);
        check(&next);
        previous = Some(next);
        now += jiff::SignedDuration::from_secs(90);
    }
}

/// Returns the objects of all kinds as which the bytes can be read.
fn objects(input: &[u8]) -> Vec<WatchedObject> {
    let widget = Arc::new(ApiResource::from_gvk(&GroupVersionKind::gvk("a.example", "v1", "Widget")));
    let other = |object: GenericObject| WatchedObject::Other(widget.clone(), Box::new(object));
    let mut objects = read!(input as GenericObject => other);
    macro_rules! known {
        ($($kind:ident),*) => {
            $(objects.extend(read!(input as $kind => |object| WatchedObject::$kind(Box::new(object))));)*
        };
    }
    known!(
        Deployment,
        StatefulSet,
        DaemonSet,
        Job,
        CronJob,
        ArgoRollout,
        Canary,
        Kustomization,
        HelmRelease,
        Application,
        GitRepository
    );
    objects
}

fn name(name: &str) -> ObjectName {
    ObjectName { namespace: NAMESPACE.to_owned(), name: name.to_owned() }
}

/// Returns a scan with a place for each object, and one without an object.
fn scan(objects: &[WatchedObject]) -> ScannedPlaces {
    let document = |object: &WatchedObject| {
        let id = object.id();
        let group = id.kind.group();
        ObjectIdentifier {
            api_version: if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") },
            kind: id.kind.kind().to_owned(),
            name: id.name.clone(),
            namespace: id.namespace.clone(),
        }
    };
    let documents = objects.iter().take(MAX_MARKED).map(document).chain([ObjectIdentifier::default()]);
    let place = |(number, document)| Place {
        policy: name("app"),
        document,
        file: format!("apps/{number}.yaml"),
        line: 7,
        field: Field::Reference,
        pointer: (number % 2 == 0).then(|| "/spec/image".to_owned()),
        value: IMAGE.to_owned(),
        proposed: None,
        written: None,
    };
    let mut scan = ScannedPlaces {
        automation: name("fleet"),
        source: name("fleet"),
        repository: "https://git.example/org/fleet".to_owned(),
        revision: "main@sha1:1111111".to_owned(),
        checkout: Some("main".to_owned()),
        push: "main".to_owned(),
        places: documents.enumerate().map(place).collect(),
        omitted: 0,
        removed_files: Vec::new(),
    };
    scan.sort();
    scan
}

/// Returns the status of the policy, with the objects in two clusters.
fn observe(
    scan: &ScannedPlaces,
    (index, pods): (&ClusterIndex, &HashMap<WatchedId, LastList>),
    previous: Option<&DeploymentStatusStatus>,
    now: Timestamp,
) -> DeploymentStatusStatus {
    let (policy, automation) = (policy(), automation());
    let image = ImageReference::parse(IMAGE).expect("it is an image");
    let mut places = PlaceIndex::default();
    places.insert_scan(Arc::new(scan.clone()));
    places.set_repository(&name("app"), Some(image.name));
    let cluster = |name| Cluster { name, index, contact: Contact::Watched, problem: None, pods };
    let clusters = [cluster(None), cluster(Some("edge"))];
    let views = [AutomationView { automation: &automation, scan: Some(scan) }];
    let before = BeforeRollout { policy: &policy, automations: &views, previous };
    let stop = Stop(&|| false);
    let inputs = Inputs {
        before: &before,
        places: &places,
        clusters: &clusters,
        no_cross_namespace: false,
        now,
        stop,
    };
    let found = components(&inputs);
    let observation = Observation {
        deployment_id: "uid".to_owned(),
        target: before.target(),
        commit: before.commit(),
        revision: before.revision(),
        error: before.error().or(found.error),
        components: found.components,
    };
    status(observation, previous, now)
}

fn policy() -> ImagePolicy {
    let policy = json!({
        "apiVersion": "image.toolkit.fluxcd.io/v1", "kind": "ImagePolicy",
        "metadata": {"name": "app", "namespace": NAMESPACE, "uid": "uid"},
        "spec": {"imageRepositoryRef": {"name": "app"}, "policy": {"semver": {"range": "*"}}},
        "status": {"latestRef": {"name": "ghcr.io/org/app", "tag": "1.0.0"}},
    });
    serde_json::from_value(policy).expect("it is an ImagePolicy")
}

fn automation() -> ImageUpdateAutomation {
    let automation = json!({
        "apiVersion": "image.toolkit.fluxcd.io/v1", "kind": "ImageUpdateAutomation",
        "metadata": {"name": "fleet", "namespace": NAMESPACE},
        "spec": {"interval": "1m", "sourceRef": {"kind": "GitRepository", "name": "fleet"}},
    });
    serde_json::from_value(automation).expect("it is an ImageUpdateAutomation")
}

/// Checks the bounds that the schema of the status has.
fn check(status: &DeploymentStatusStatus) {
    let report = &status.report;
    assert!(report.components.len() <= MAX_COMPONENTS, "{}", report.components.len());
    assert!(!report.progress.is_empty() && report.progress.len() <= 64, "{}", report.progress);
    check_message(report.message.as_deref());
    report.error.iter().for_each(check_error);
    report.components.iter().for_each(check_component);
    // The API server stores it and sends it back.
    let text = serde_json::to_string(status).expect("a status is plain JSON");
    let stored: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(
        serde_json::from_value::<DeploymentStatusStatus>(stored).as_ref().ok(),
        Some(status),
        "{text}"
    );
}

fn check_component(component: &ComponentStatus) {
    assert!(is_within(&component.name, MAX_TEXT) && !component.name.is_empty(), "{component:?}");
    let ComponentStatus { image, automation, place, applier, applied_revision, .. } = component;
    let texts = [image, automation, place, applier, applied_revision];
    assert!(texts.into_iter().flatten().all(|text| is_within(text, MAX_TEXT)), "{component:?}");
    check_message(component.message.as_deref());
    assert_eq!(component.error.is_some(), component.state == State::Failed, "{component:?}");
    component.error.iter().for_each(check_error);
}

fn check_error(error: &StatusError) {
    let texts = [(&error.code, MAX_CODE), (&error.source, MAX_TEXT), (&error.message, MAX_MESSAGE)];
    assert!(texts.into_iter().all(|(text, max)| !text.is_empty() && is_within(text, max)), "{error:?}");
    check_message(Some(&error.message));
}

fn check_message(message: Option<&str>) {
    let message = message.unwrap_or_default();
    assert!(is_within(message, MAX_MESSAGE) && !message.contains(is_unprintable), "{message:?}");
}

fn is_within(text: &str, max: usize) -> bool {
    text.chars().count() <= max
}
