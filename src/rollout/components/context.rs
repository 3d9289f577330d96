//! The facts about a policy that all of its components share.

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tagboat_api::ObjectName;
use tagboat_api::deployment_status::{ComponentStatus, HistoryEntry, Report};

use super::Inputs;
use crate::reference::{Digest, ImageName, ImageReference, Tag};
use crate::rollout::absent::Absent;
use crate::rollout::before::AutomationView;
use crate::rollout::image::WantedImage;
use crate::rollout::index::{Cluster, ClusterObject};
use crate::rollout::place::{Place, ScannedPlaces};
use crate::rollout::tie::{Evidence, Matching, Reach, Repository, Ties};

/// The facts about a policy that all of its components share.
pub(super) struct Context<'i> {
    pub(super) inputs: &'i Inputs<'i>,
    pub(super) policy: ObjectName,
    /// The image that the policy has selected.
    pub(super) image: Option<ImageReference>,
    repository: Option<Repository>,
    deployed: Vec<WantedImage>,
    /// The components of the previous status, by name.
    pub(super) previous: HashMap<&'i str, &'i ComponentStatus>,
    /// Those of the previous status that had no object.
    pub(super) absent: Absent<'i>,
    /// The reach of each automation of the policy.
    reaches: BTreeMap<ObjectName, Reach<'i>>,
    pub(super) now: Time,
}

impl<'i> Context<'i> {
    pub(super) fn new(inputs: &'i Inputs<'i>) -> Self {
        let report = inputs.before.previous.map(|previous| &previous.report);
        let image = inputs.before.image();
        let repository = image.as_ref().map(Repository::from).or_else(|| previous_repository(report?));
        let history = report.map_or(&[][..], |report| &report.deploy_history);
        let deployed = |repository: &Repository| {
            history.iter().filter_map(|entry| deployed(&repository.name, entry)).collect()
        };
        let components = report.map_or(&[][..], |report| &report.components);
        Self {
            inputs,
            policy: ObjectName::of(inputs.before.policy),
            deployed: repository.as_ref().map(deployed).unwrap_or_default(),
            image,
            repository,
            absent: Absent::new(components),
            previous: components.iter().map(|component| (component.name.as_str(), component)).collect(),
            reaches: inputs.before.automations.iter().map(|view| reach(inputs, view)).collect(),
            now: Time(inputs.now),
        }
    }

    /// Returns `true` if objects of a namespace can be components.
    pub(super) fn admits(&self, namespace: &str) -> bool {
        !self.inputs.no_cross_namespace || namespace == self.policy.namespace
    }

    /// Returns the reach of an automation of the policy.
    pub(super) fn reach(&self, automation: &ObjectName) -> Option<&Reach<'i>> {
        self.reaches.get(automation)
    }

    /// Returns the ties of the scanned places.
    pub(super) fn ties(&self) -> Ties<'_> {
        let matching = Matching {
            policy: &self.policy,
            repository: self.repository.as_ref(),
            places: self.inputs.places,
            clusters: self.inputs.clusters,
            reaches: &self.reaches,
            previous: &self.previous,
            deployed: &self.deployed,
            no_cross_namespace: self.inputs.no_cross_namespace,
            stop: self.inputs.stop,
        };
        let scans = self.inputs.before.automations.iter().filter_map(|view| view.scan);
        let places =
            scans.flat_map(|scan| scan.of_policy(&self.policy).iter().map(move |place| (scan, place)));
        matching.ties(&places.collect::<Vec<_>>())
    }

    /// Returns the images that a place has or had.
    pub(super) fn evidence(&self, place: &Place) -> Evidence {
        Evidence::new(place, self.repository.as_ref(), &self.deployed)
    }

    /// Returns the revision of a scan.
    ///
    /// Without a scan, it is that of the previous status.
    pub(super) fn revision<'s>(&'s self, scan: Option<&'s ScannedPlaces>) -> Option<&'s str> {
        let known = || self.inputs.before.previous?.report.revision.as_deref();
        scan.map(|scan| scan.revision.as_str()).or_else(known)
    }

    /// Returns `true` for an image of the policy's repository.
    pub(super) fn has_repository(&self, image: &str) -> bool {
        self.repository.as_ref().is_some_and(|repository| repository.has_text(image))
    }

    pub(super) fn cluster(&self, position: usize) -> &'i Cluster<'i> {
        &self.inputs.clusters[position]
    }

    /// Returns the automation of a component, and its scan.
    pub(super) fn view(&self, component: &ComponentStatus) -> Option<&'i AutomationView<'i>> {
        let name = component.automation.as_deref()?;
        let namespace = &self.policy.namespace;
        self.inputs.before.automations.iter().find(|view| {
            let automation = ObjectName::of(view.automation);
            automation.name == name && automation.namespace == *namespace
        })
    }

    /// Returns the cluster of a component by its name, and the rest of the name.
    ///
    /// A name that begins with no known cluster's name is that of an object in Tagboat's own cluster. Returns `None` if
    /// its form is that of an object in another cluster, which has no kubeconfig any more.
    pub(super) fn cluster_of<'n>(&self, name: &'n str) -> Option<(usize, &'n str)> {
        let clusters = self.inputs.clusters.iter().enumerate();
        let rest = |cluster: &Cluster<'_>| name.strip_prefix(cluster.name?)?.strip_prefix('/');
        let remote = clusters.filter_map(|(position, cluster)| Some((position, rest(cluster)?))).next();
        let own = || {
            let own = self.inputs.clusters.iter().position(|cluster| cluster.name.is_none())?;
            (!names_cluster(name)).then_some((own, name))
        };
        remote.or_else(own)
    }

    /// Returns the object of a component of the previous status, if it exists.
    pub(super) fn object_of(&self, component: &ComponentStatus) -> Option<ClusterObject> {
        let (cluster, rest) = self.cluster_of(&component.name)?;
        let parts: Vec<&str> = rest.split('/').collect();
        let index = self.cluster(cluster).index;
        let id = match parts[..] {
            [kind, namespace, name] => index.find(kind, namespace, name)?,
            [kind, name] => index.find(kind, "", name)?,
            _ => return None,
        };
        Some(ClusterObject { cluster, id: id.clone() })
    }
}

/// Returns `true` if the name of an object begins with that of another cluster.
///
/// A namespace has no capital letter, and a kind begins with one.
fn names_cluster(object: &str) -> bool {
    let parts: Vec<&str> = object.split('/').collect();
    match parts[..] {
        [_, kind, _] => kind.starts_with(|letter: char| letter.is_ascii_uppercase()),
        _ => parts.len() > 3,
    }
}

/// Returns the name of an automation, and its reach.
fn reach<'i>(inputs: &Inputs<'i>, view: &AutomationView<'i>) -> (ObjectName, Reach<'i>) {
    let (automation, no_cross_namespace) = (view.automation, inputs.no_cross_namespace);
    let namespace = automation.metadata.namespace.as_deref().unwrap_or_default();
    let source = match view.scan {
        Some(scan) => scan.source.namespace.as_str(),
        None => automation.spec.source_ref.namespace.as_deref().unwrap_or(namespace),
    };
    let reach = Reach::new(inputs.clusters, namespace, source, view.scan, no_cross_namespace);
    (ObjectName::of(automation), reach)
}

/// Returns the file of a component's place.
pub(super) fn file(component: &ComponentStatus) -> Option<&str> {
    component.place.as_deref()?.rsplit_once(':').map(|(file, _)| file)
}

/// Returns `true` if two revisions have the same commit, such as `main@sha1:0123…` and `0123…`.
pub(super) fn is_same_commit(left: &str, right: &str) -> bool {
    let hash = |revision: &str| revision.rsplit([':', '@']).next().unwrap_or_default().to_owned();
    !left.is_empty() && hash(left) == hash(right)
}

/// Returns `true` if a scan has a place of the policy in a file.
pub(super) fn has_place_in(scan: &ScannedPlaces, policy: &ObjectName, file: &str) -> bool {
    scan.of_policy(policy).iter().any(|place| place.file == file)
}

fn previous_repository(report: &Report) -> Option<Repository> {
    let name = ImageName::parse(&report.target.as_ref()?.name).ok()?;
    Some(Repository { name, digest: None })
}

fn deployed(repository: &ImageName, entry: &HistoryEntry) -> Option<WantedImage> {
    let tag = entry.version.as_deref().and_then(|version| Tag::parse(version).ok());
    let digest = entry.digest.as_deref().and_then(|digest| Digest::parse(digest).ok());
    (tag.is_some() || digest.is_some()).then(|| WantedImage { repository: repository.clone(), tag, digest })
}
