//! The nodes controller on a real API server; the tests play agents, kubelets and machines.

pub(super) mod drains;
mod pools;
mod rollouts;
pub(super) mod scene;
