//! Reconciles ImagePolicies.
//!
//! | file | contents |
//! |---|---|
//! | `request` | the checked fields and annotations of a policy |
//! | `access` | the permission to use the ImageRepository (`accessFrom`, cross-namespace references) |
//! | `ages` | the ages of images, looked up if a minimum age is set |
//! | `choice` | the selected tag, or an earlier one that remains |
//! | `group`, `survey` | the choice in a release group; the rankings of its members |
//! | `digest`, `following` | the digest of the tag; subscriptions to the digests of floating tags |
//! | `selection` | the selection of a tag, from its inputs to the choice |
//! | `run` | one reconcile through all of these |
//! | `report` | the status, the events and the requeue |

pub mod access;
pub mod ages;
pub mod choice;
pub mod digest;
pub mod following;
pub mod group;
pub mod report;
pub mod request;
pub mod run;
mod selection;
mod survey;
