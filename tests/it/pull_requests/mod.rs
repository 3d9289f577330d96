//! Pull requests of automations, on the real Gitea.

mod branches;
mod fleet;
mod life;
mod merges;
mod people;
