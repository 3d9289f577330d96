//! DeploymentStatus objects, made by the program on a real Kubernetes API with real controllers.

mod automations;
mod availability;
mod cluster_log;
mod clusters;
mod existence;
mod kills;
mod kinds;
mod node_pools;
mod refusals;
mod removals;
mod replicas;
mod reports;
mod restarts;
pub(crate) mod scene;
mod statuses;
mod writes;
