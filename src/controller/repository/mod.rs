//! ImageRepositories in the reflector controller.
//!
//! `state` is shared by all reconciles, `reconcile` is one of them, and `memory` is kept between two.

mod memory;
mod reconcile;
mod state;

pub(super) use memory::Memory;
pub(super) use reconcile::reconcile;
pub(super) use state::Repositories;
