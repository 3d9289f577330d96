//! The observation of a cluster.

use std::collections::HashMap;

use super::{ClusterIndex, Unlisted};
use crate::rollout::message::message;
use crate::rollout::pods::LastList;
use crate::rollout::watched::{WatchedId, WatchedObject};

/// The observation of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Cluster<'i> {
    /// The name of its kubeconfig; none for Tagboat's own cluster.
    pub name: Option<&'i str>,
    /// Its watched objects.
    pub index: &'i ClusterIndex,
    /// The state of its watches.
    pub contact: Contact,
    /// The reason why it is lost, if that is not its silence.
    pub problem: Option<&'i str>,
    /// The last list of pods of each object for which they were requested.
    pub pods: &'i HashMap<WatchedId, LastList>,
}

/// The state of a cluster's watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contact {
    /// All lists have arrived.
    Watched,
    /// A list has not arrived yet; components are those of the previous status.
    Listing,
    /// The cluster has not answered for 60 s; its components are pending.
    ///
    /// A cluster whose kubeconfig cannot be used is lost at once.
    Lost,
}

impl Cluster<'_> {
    /// Returns `true` for Tagboat's own cluster.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.name.is_none()
    }

    /// Returns the name of an object in statuses.
    ///
    /// It begins with the name of the cluster, unless this is Tagboat's own.
    #[must_use]
    pub fn name_of(&self, id: &WatchedId) -> String {
        self.name.map_or_else(|| id.to_string(), |cluster| format!("{cluster}/{id}"))
    }

    /// Returns a sentence about the state of the watches.
    #[must_use]
    pub fn describe_contact(&self) -> String {
        let name = self.name.map_or_else(|| "the cluster".to_owned(), |name| format!("cluster {name}"));
        message(&match (self.contact, self.problem) {
            (Contact::Watched, _) => format!("{name} is watched"),
            (Contact::Listing, _) => format!("{name} has not listed its objects yet"),
            (Contact::Lost, None) => format!("{name} does not respond"),
            (Contact::Lost, Some(problem)) => format!("{name} is not available: {problem}"),
        })
    }

    /// Returns a sentence about a kind whose objects are not known.
    #[must_use]
    pub fn describe_unlisted(&self, kind: &str, unlisted: Unlisted) -> String {
        let cluster = self.name.map(|name| format!(" in cluster {name}")).unwrap_or_default();
        message(&match unlisted {
            Unlisted::Expected => format!("objects of the kind {kind}{cluster} are not listed yet"),
            Unlisted::Skipped | Unlisted::Unwatched => {
                format!("objects of the kind {kind}{cluster} are not watched")
            }
        })
    }

    /// Returns `true` if the objects are known and current.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.contact == Contact::Watched
    }
}

/// An object of one of several clusters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterObject {
    /// The position of the cluster.
    pub cluster: usize,
    /// Its identity there.
    pub id: WatchedId,
}

impl ClusterObject {
    /// Returns the object, if it exists.
    #[must_use]
    pub fn get<'i>(&self, clusters: &[Cluster<'i>]) -> Option<&'i WatchedObject> {
        clusters[self.cluster].index.get(&self.id)
    }
}
