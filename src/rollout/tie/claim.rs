//! The objects of a key, for one place.

use tagboat_api::deployment_status::Tie;

use super::Repository;
use super::group::PlaceGroup;
use super::reach::{Reach, marked};
use super::runner::{images, runner};
use crate::rollout::index::{Cluster, ClusterObject, ImageKey};
use crate::rollout::place::Place;
use crate::rollout::watched::{GroupKind, WatchedId, WatchedObject, can_be_component, document, has_text};

/// A place that looks for its objects in all watched clusters.
#[derive(Clone, Copy)]
pub(super) struct Claim<'c, 'i> {
    pub(super) clusters: &'i [Cluster<'i>],
    pub(super) group: &'c PlaceGroup<'i>,
    pub(super) reach: &'c Reach<'i>,
    pub(super) repository: Option<&'c Repository>,
}

impl Claim<'_, '_> {
    fn place(&self) -> &Place {
        self.group.place
    }

    /// Returns the objects of the place's own document.
    ///
    /// Those with `true` are named by the document alone. Others count only if they use the image repository: the
    /// document has no namespace, or the object is in another cluster than Tagboat's own, where the same name may be
    /// that of an unrelated object.
    pub(super) fn documents(&self) -> Vec<(ClusterObject, bool)> {
        let Some(id) = document(&self.place().document).filter(can_be_component) else { return Vec::new() };
        let found = self.watched().flat_map(|cluster| {
            let index = self.clusters[cluster].index;
            let ids: Vec<&WatchedId> = if id.namespace.is_empty() {
                index.named(&id.kind, &id.name).map(|(id, _)| id).collect()
            } else {
                index.get_key(&id).into_iter().collect()
            };
            ids.into_iter().map(move |id| ClusterObject { cluster, id: id.clone() })
        });
        let is_exact = |found: &ClusterObject| {
            self.clusters[found.cluster].is_own()
                && (!id.namespace.is_empty() || found.id.namespace.is_empty())
        };
        found
            .map(|found| {
                let is_exact = is_exact(&found);
                (found, is_exact)
            })
            .collect()
    }

    /// Returns the objects of the release that is the place's document.
    pub(super) fn of_release(&self) -> Vec<ClusterObject> {
        let Some(id) = document(&self.place().document) else { return Vec::new() };
        if id.kind != GroupKind::HELM_RELEASE {
            return Vec::new();
        }
        let found = self.watched().flat_map(|cluster| {
            let found = self.clusters[cluster].index.of_release(&id.namespace, &id.name);
            found.map(move |id| ClusterObject { cluster, id: id.clone() }).collect::<Vec<_>>()
        });
        found.collect()
    }

    /// Returns the appliers of the place with the keys that find them.
    ///
    /// The key is that of the document if an applier is the document.
    pub(super) fn appliers(&self) -> Vec<PlaceApplier> {
        let found = self.watched().flat_map(|cluster| {
            let found = self.reach.appliers(cluster, self.place());
            let tie = if found.is_of_document { Tie::Object } else { Tie::Applier };
            found.ids.into_iter().map(move |id| {
                let marked = marked(self.clusters, cluster, &id).into_iter().collect();
                PlaceApplier { tie, applier: ClusterObject { cluster, id }, marked }
            })
        });
        found.collect()
    }

    fn watched(&self) -> impl Iterator<Item = usize> {
        watched(self.clusters)
    }

    /// Returns `true` if an object uses the image repository.
    ///
    /// `is_known` is the answer for an object with unreadable images.
    pub(super) fn uses(&self, found: &ClusterObject, is_known: &dyn Fn(&ClusterObject) -> bool) -> bool {
        let Some(object) = found.get(self.clusters) else { return false };
        if let WatchedObject::Other(_, object) = object {
            let is_used = |text: &str| {
                text == self.place().value
                    || self.repository.is_some_and(|repository| repository.has_text(text))
            };
            return has_text(&object.spec, &is_used);
        }
        match images(self.clusters[found.cluster].index, object) {
            Ok(images) => self
                .repository
                .is_some_and(|repository| images.iter().any(|image| repository.has_text(image))),
            Err(_) => is_known(found),
        }
    }
}

/// An applier of a place.
pub(super) struct PlaceApplier {
    pub(super) tie: Tie,
    pub(super) applier: ClusterObject,
    /// The objects with its mark in watched clusters.
    pub(super) marked: Vec<ClusterObject>,
}

/// Returns the positions of the clusters that are watched now.
pub(super) fn watched(clusters: &[Cluster<'_>]) -> impl Iterator<Item = usize> {
    clusters.iter().enumerate().filter(|(_, cluster)| cluster.is_watched()).map(|(position, _)| position)
}

/// Returns the objects that may use an image repository, in all watched clusters.
pub(super) fn with_image(clusters: &[Cluster<'_>], repository: &Repository) -> Vec<ClusterObject> {
    let key = ImageKey::from(&repository.name);
    let found = watched(clusters).flat_map(|cluster| {
        let found = clusters[cluster].index.with_image(&key);
        found.map(move |id| ClusterObject { cluster, id: id.clone() }).collect::<Vec<_>>()
    });
    found.collect()
}

/// Returns the components that run the templates of objects, each once.
#[must_use]
pub fn runners(
    clusters: &[Cluster<'_>],
    found: impl IntoIterator<Item = ClusterObject>,
) -> Vec<ClusterObject> {
    let run = |ClusterObject { cluster, id }| {
        Some(ClusterObject { cluster, id: runner(clusters[cluster].index, &id)? })
    };
    let mut runners: Vec<ClusterObject> = found.into_iter().filter_map(run).collect();
    runners.sort();
    runners.dedup();
    runners
}
