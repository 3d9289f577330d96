//! Pull requests of automations, on the real Gitea.

mod fleet;
mod life;
mod merges;
mod people;
