//! A cluster with real controllers, and a scheduler and kubelet of the test.
//!
//! ```text
//! let cluster = WorkloadCluster::new().await;               // a namespace of its own, as with `Cluster::new()`
//! apply(&cluster.client(), &deployment, false).await;       // its pods are scheduled, and are ready at once
//! let pods = cluster.kubelet();
//! pods.set_image("podinfo:2.0.0", PodState::waiting("ImagePullBackOff", "…"));  // its pods, now and later
//! pods.set_pod("db-1", PodState::Unready);                  // one pod, with any image
//! cluster.add_node("one").await;                            // for DaemonSets with `node_selector()`
//!
//! let west = Arc::new(server.start_beside("west"));         // a second cluster, on the same etcd
//! install_kinds(&west);
//! let controllers = Controllers::start(&west);              // until dropped
//! let cluster = WorkloadCluster::on(west).await;
//! ```
//!
//! All clusters of `WorkloadCluster::new()` share one API server, which is not that of `Cluster::new()`: here, a
//! deleted namespace is removed, and objects without their owners are deleted. Beside the kinds of `deploy/crds` and
//! `deploy/rollout/crds` it has Flux's Kustomization and HelmRelease, Argo CD's Application, Argo's Rollout and
//! Flagger's Canary, with any fields and without controllers. Tests play what no controller does here: the status
//! of ResourceQuotas, and services and volumes.

mod cluster;
mod controllers;
mod kinds;
mod kubelet;
mod pod_state;

pub(crate) use cluster::WorkloadCluster;
pub(crate) use controllers::Controllers;
pub(crate) use kinds::install_kinds;
pub(crate) use pod_state::{Ended, PodState};
