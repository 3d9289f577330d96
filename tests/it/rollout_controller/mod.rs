//! DeploymentStatus objects, made by the program on a real Kubernetes API with real controllers.

mod availability;
mod clusters;
mod existence;
mod kills;
mod kinds;
mod refusals;
mod reports;
pub(crate) mod scene;
mod writes;
