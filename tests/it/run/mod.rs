//! `tagboat run` on real git servers and a real registry.

mod branches;
mod checkout_and_push;
mod concurrency;
mod images;
mod logins;
mod output;
mod process_audit;
mod providers;
mod refusals;
mod refused_settings;
mod revert_pushes;
mod reverts;
pub(crate) mod scene;
mod shared_branch;
mod waiting;
