//! The appliers of an object, from its own to the one that reads git.
//!
//! A workload of a HelmRelease has two: the HelmRelease, and the Kustomization that applies it. Any of them can be the
//! reason why the image is not there. One that is not trusted is left out, see `tie::Reach`.

use tagboat_api::deployment_status::{ComponentStatus, State, StatusError, Tie};

use super::context::{Context, is_same_commit};
use crate::rollout::applier::{ApplierStatus, Attempt, Block, application, helm_release, kustomization};
use crate::rollout::assess::Failure;
use crate::rollout::index::{Cluster, ClusterIndex, ClusterObject};
use crate::rollout::message::message;
use crate::rollout::place::{Place, ScannedPlaces};
use crate::rollout::tie::{MAX_LINKS, Reach, TiedPlace, images, owner};
use crate::rollout::watched::{GroupKind, WatchedId, WatchedObject};

/// The appliers of an object.
#[derive(Default)]
pub(super) struct Chain {
    links: Vec<Link>,
    /// The revision of an object's place, or else that of the previous status.
    known_revision: Option<String>,
    /// The applier that refers to itself, directly or through others.
    cycle: Option<String>,
}

/// One applier.
struct Link {
    name: String,
    status: ApplierStatus,
    /// It applies the files of a git repository.
    reads_git: bool,
    is_component: bool,
}

/// The reason why the wanted image is not in an object.
#[derive(Default)]
pub(super) struct Verdict {
    /// The failure of an applier.
    pub(super) failure: Option<StatusError>,
    /// An applier that is suspended, out of sync, or at another revision.
    pub(super) not_applied: Option<String>,
    /// A sentence about an applier that has not finished.
    pub(super) message: Option<String>,
}

impl Chain {
    /// Returns the appliers of an object.
    ///
    /// An applier that is a component is its own first one.
    pub(super) fn of_object(
        context: &Context<'_>,
        position: usize,
        id: &WatchedId,
        tied: &TiedPlace<'_>,
    ) -> Self {
        let Some(object) = context.cluster(position).index.get(id) else { return Self::default() };
        let first = if object.is_remote_applier() {
            Some(ClusterObject { cluster: position, id: id.clone() })
        } else {
            owner(context.inputs.clusters, position, object)
        };
        let Some(reach) = context.reach(tied.automation) else { return Self::default() };
        let previous = context.previous.get(context.cluster(position).name_of(id).as_str());
        // Without a scan, the repository of the automation is not known.
        let known = previous.filter(|_| tied.scan.is_none()).and_then(|known| known.applier.as_deref());
        let mut chain = Self::from(context, first, reach, tied.place(), known);
        chain.known_revision = context.revision(tied.scan).map(str::to_owned);
        if let Some(first) = chain.links.first_mut() {
            first.is_component = object.is_remote_applier();
        }
        chain
    }

    /// Returns the appliers of a place without an object.
    ///
    /// The first one is that of the document, or else that of the file. A release that has objects with the image, which
    /// belong to another policy, is none.
    pub(super) fn of_place(context: &Context<'_>, scan: &ScannedPlaces, place: &Place) -> Self {
        let Some(reach) = context.reach(&scan.automation) else { return Self::default() };
        let watched = context.inputs.clusters.iter().enumerate().filter(|(_, cluster)| cluster.is_watched());
        let documents = watched.clone().flat_map(|(cluster, Cluster { index, .. })| {
            let appliers = reach.document_appliers(cluster, place).into_iter();
            let own = appliers.filter(move |id| !has_objects(context, index, id));
            own.map(move |id| ClusterObject { cluster, id })
        });
        let files = watched.flat_map(|(cluster, _)| {
            let appliers = reach.file_appliers(cluster, &place.file);
            let ids: Vec<WatchedId> = appliers.iter().map(|applier| applier.id.clone()).collect();
            ids.into_iter().map(move |id| ClusterObject { cluster, id })
        });
        let mut files: Vec<ClusterObject> = files.collect();
        // The applier of another tenant does not replace an own one.
        files.sort_by_key(|applier| !reach.is_own(&applier.id.namespace));
        let chains = documents.chain(files).map(|first| Self::from(context, Some(first), reach, place, None));
        chains.into_iter().find(|chain| !chain.links.is_empty()).unwrap_or_default()
    }

    /// Returns the trusted appliers from the first one on.
    ///
    /// `known` is the name of one that was trusted before.
    fn from(
        context: &Context<'_>,
        first: Option<ClusterObject>,
        reach: &Reach<'_>,
        place: &Place,
        known: Option<&str>,
    ) -> Self {
        let mut chain = Self::default();
        let mut seen: Vec<ClusterObject> = Vec::new();
        let mut next = first;
        while let Some(applier) = next {
            let cluster = context.cluster(applier.cluster);
            let name = cluster.name_of(&applier.id);
            if seen.contains(&applier) {
                chain.cycle = Some(name).filter(|_| !chain.links.is_empty());
                break;
            }
            let Some(object) = cluster.index.get(&applier.id) else { break };
            let source = || {
                let appliers = reach.file_appliers(applier.cluster, &place.file);
                let own = appliers.iter().find(|found| found.id == applier.id);
                own.map_or(0, |applier| applier.source)
            };
            let (status, reads_git) = match object {
                WatchedObject::Kustomization(object) => (kustomization::status(object), true),
                WatchedObject::HelmRelease(object) => (helm_release::status(object), false),
                WatchedObject::Application(object) => (application::status(object, source()), true),
                _ => break,
            };
            if reach.trusts(&applier) || known == Some(name.as_str()) {
                chain.links.push(Link { name, status, reads_git, is_component: false });
            }
            // An applier that reads git is the last one, unless the marker is in that applier.
            let has_marker = reach.document_appliers(applier.cluster, place).contains(&applier.id);
            next = owner(context.inputs.clusters, applier.cluster, object)
                .filter(|_| (!reads_git || has_marker) && seen.len() + 1 < MAX_LINKS);
            // Flux's first Kustomization applies itself.
            next = next.filter(|owner| !reads_git || *owner != applier);
            seen.push(applier);
        }
        chain
    }

    /// Returns the name of the object's applier, and the revision that it has applied.
    pub(super) fn applier(&self) -> Option<(&str, Option<&str>)> {
        let link = self.links.iter().find(|link| !link.is_component)?;
        Some((&link.name, link.status.applied_revision.as_deref()))
    }

    /// Returns the revision that a component has applied which is an applier itself.
    pub(super) fn own_revision(&self) -> Option<&str> {
        self.links.first().filter(|link| link.is_component)?.status.applied_revision.as_deref()
    }

    /// Returns the reason why an object lacks the image of a place.
    pub(super) fn verdict(
        &self,
        scan: Option<&ScannedPlaces>,
        place: &Place,
        previous: Option<&ComponentStatus>,
    ) -> Verdict {
        let failure = self.failure(previous);
        let blocks = || self.links.iter().find_map(|link| Some(block(link.status.block?, &link.name)));
        let commit = place.written.as_ref().map(|written| written.commit.id.as_str());
        let scanned = scan.map(|scan| scan.revision.as_str()).or(self.known_revision.as_deref());
        let revisions: Vec<&str> = scanned.into_iter().chain(commit).collect();
        let elsewhere = || {
            let link = self.links.iter().find(|link| link.reads_git).filter(|_| !revisions.is_empty())?;
            match link.status.applied_revision.as_deref().filter(|revision| !revision.is_empty()) {
                None => Some(format!("{} has applied no revision yet", link.name)),
                Some(applied) if revisions.iter().any(|revision| is_same_commit(applied, revision)) => None,
                Some(applied) => Some(format!("{} has applied revision {applied}", link.name)),
            }
        };
        let text = self
            .links
            .iter()
            .find_map(|link| link.status.message.as_ref().map(|text| format!("{}: {text}", link.name)));
        let cycle = self.cycle.as_ref().map(|name| format!("{name} refers to itself"));
        Verdict {
            failure,
            not_applied: blocks().or_else(elsewhere).map(|text| message(&text)),
            message: text.or(cycle).map(|text| message(&text)),
        }
    }

    /// Returns the failure of the first applier that fails.
    ///
    /// The failure of the previous status stays until a retry has ended.
    pub(super) fn failure(&self, previous: Option<&ComponentStatus>) -> Option<StatusError> {
        let failed = self.links.iter().find_map(|link| match &link.status.attempt {
            Attempt::Failed(failure) => Some(error(&link.name, failure)),
            Attempt::InProgress | Attempt::Succeeded => None,
        });
        let before = previous.filter(|previous| previous.state == State::Failed);
        let before = before.and_then(|previous| previous.error.as_ref());
        failed.or_else(|| {
            let is_retried = |link: &Link| {
                link.status.attempt == Attempt::InProgress
                    && before.is_some_and(|error| error.source == link.name)
            };
            self.links.iter().any(is_retried).then(|| before.cloned()).flatten()
        })
    }

    /// Returns the failed test of the object's release, which can fail after a complete rollout.
    pub(super) fn failed_test(&self) -> Option<StatusError> {
        self.links.iter().filter(|link| !link.reads_git).find_map(|link| match &link.status.attempt {
            Attempt::Failed(failure) if failure.code == "TestFailed" => Some(error(&link.name, failure)),
            _ => None,
        })
    }
}

/// Returns `true` for a HelmRelease with objects that use the image.
fn has_objects(context: &Context<'_>, index: &ClusterIndex, id: &WatchedId) -> bool {
    let uses = |id: &WatchedId| {
        let object = index.get(id).map(|object| images(index, object).unwrap_or_default());
        object.is_some_and(|images| images.iter().any(|image| context.has_repository(image)))
    };
    id.kind == GroupKind::HELM_RELEASE && index.of_release(&id.namespace, &id.name).any(uses)
}

fn error(source: &str, failure: &Failure) -> StatusError {
    StatusError { code: failure.code.clone(), source: source.to_owned(), message: failure.message.clone() }
}

fn block(block: Block, name: &str) -> String {
    match block {
        Block::Suspended => format!("{name} is suspended"),
        Block::OutOfSync => format!("{name} is out of sync and has no automated sync"),
    }
}

/// Returns the rank of a tied place.
///
/// Of places with the same key, one that the object's own applier applies comes first.
pub(super) fn rank(
    context: &Context<'_>,
    position: usize,
    object: &WatchedObject,
    tied: &TiedPlace<'_>,
) -> (usize, bool) {
    let key = match tied.tie {
        Tie::Object => 0,
        Tie::Release => 1,
        Tie::Applier => 2,
        Tie::Image => 3,
    };
    let clusters = context.inputs.clusters;
    let mut owner_of = owner(clusters, position, object);
    if let Some(release) = owner_of.clone().filter(|owner| owner.id.kind == GroupKind::HELM_RELEASE) {
        let found = release.get(clusters);
        owner_of = found.and_then(|found| owner(clusters, release.cluster, found));
    }
    let is_in_directory = owner_of.zip(context.reach(tied.automation)).is_some_and(|(owner, reach)| {
        let appliers = reach.file_appliers(owner.cluster, &tied.place().file);
        appliers.iter().any(|applier| applier.id == owner.id)
    });
    (key, !is_in_directory)
}
