//! Pull requests of automations, on the real Gitea.

mod branches;
pub(crate) mod fleet;
mod kills;
mod life;
mod merges;
mod neighbours;
mod people;
