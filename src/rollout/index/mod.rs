//! Indexes of watched objects and of places, by the keys that match them.
//!
//! A change of one object concerns few of many policies, and a policy has few of many objects. So neither is found by
//! reading all of them.
//!
//! | file | contents |
//! |---|---|
//! | `cluster` | the observation of a cluster: its objects, the state of its watches, its pods |
//! | `cluster_index` | the watched objects of one cluster |
//! | `share` | the shares that namespaces have of a bounded index |
//! | `place_index` | the places of all policies, and the policies that a changed object concerns |
//! | `image_key` | the part of an image's repository that its mirrors share |
//! | `git_address` | the address of a git repository, in any of its forms |
//! | `applier_source` | the directory of a git repository that an applier applies |
//! | `counted` | a map from keys to values that several holders share |

mod applier_source;
mod cluster;
mod cluster_index;
mod counted;
mod git_address;
mod image_key;
mod place_index;
mod share;

pub use cluster::{Cluster, ClusterObject, Contact};
pub use cluster_index::{ClusterIndex, FileApplier, Unlisted};
pub use git_address::GitAddress;
pub use image_key::ImageKey;
pub use place_index::{PlaceIndex, PolicyPlaces};
pub use share::{MAX_OBJECTS, MAX_TEXTS};
