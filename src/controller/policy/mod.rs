//! ImagePolicies in the reflector controller.
//!
//! `state` is shared by all reconciles, `reconcile` is one of them, and `memory` is kept between two. `predicates` tell
//! which changes of repositories make a policy due, `group` which changes of a policy concern its release group. The `poller` looks up the digests of tags that policies follow: it
//! writes nothing, but makes the policies due whose digest has changed.

pub(super) mod group;
mod memory;
mod poller;
pub(super) mod predicates;
mod reconcile;
mod state;

pub(super) use memory::Memory;
pub(super) use poller::{Poller, poll};
pub(super) use reconcile::reconcile;
pub(super) use state::Policies;
