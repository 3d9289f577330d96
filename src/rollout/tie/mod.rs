//! Ties: the objects of all clusters that belong to the places of a policy.
//!
//! The first key that finds an object in any cluster ties a place; the keys after it are not tried. So an image that
//! unrelated workloads also use ties none of them, as long as its document, its release or its applier is known.
//!
//! | key | objects |
//! |---|---|
//! | `object` | the object of the document |
//! | `release` | the objects of the release, if the document is a HelmRelease |
//! | `applier` | the objects of the applier whose directory has the file, or of the applier in the document |
//! | – | that applier itself, if it applies to a cluster without a kubeconfig |
//! | `image` | all objects that use the image repository |
//!
//! Except for `object` in Tagboat's own cluster, an object has to use the image repository. In other clusters, the key
//! `release` comes before `object`: a document for the own cluster may have the name of an object there.
//!
//! Policies with the same repository compete for an object that several of them claim. It belongs to those whose places
//! have or had its image: the evidence. An object that another policy claims by its document, release or applier is
//! never tied by its image.
//!
//! A document whose object was deleted is not tied to another object that has a document of its own, even if it uses the
//! same image.
//!
//! Tenants share clusters and may name each other's objects. `reach` and `dispute` have the rules for that, and `effort`
//! bounds the work.
//!
//! | file | contents |
//! |---|---|
//! | `repository` | the image repository of a policy: does an object use it? |
//! | `evidence` | the images that a place has or had |
//! | `runner` | the object that runs a template: a component |
//! | `reach` | the appliers and objects that the places of one automation may lead to |
//! | `group` | equal places, which are matched once |
//! | `claim` | the objects of a key |
//! | `dispute` | the objects that other policies claim, too |
//! | `effort` | the bound of the work for one policy |
//! | `matching` | the ties of all places |

mod claim;
mod dispute;
mod effort;
mod evidence;
mod group;
mod matching;
mod reach;
mod repository;
mod runner;

pub use claim::runners;
pub(in crate::rollout) use effort::Effort;
pub use effort::{MAX_COMPARISONS, MAX_TIES, Stop};
pub(in crate::rollout) use evidence::Evidence;
pub use matching::{Matching, TiedPlace, Ties, Unmatched};
pub use reach::{MAX_LINKS, Reach, owner};
pub use repository::Repository;
pub use runner::images;
