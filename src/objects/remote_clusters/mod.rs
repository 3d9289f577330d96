//! The clusters of kubeconfigs in a directory, such as a mounted Secret.
//!
//! The directory has a file `NAME.kubeconfig` for each cluster. It is read again every few seconds, and each cluster
//! is probed by a task of its own, so that a slow cluster delays no other.
//!
//! | file | contents |
//! |---|---|
//! | `directory` | the files of the directory |
//! | `kubeconfig` | a kubeconfig without references to programs and files |
//! | `remote_cluster` | a cluster: its client, or the reason why it has none |
//! | `answers` | the number of a cluster's answers to probes |
//! | `clusters` | all clusters, kept up to date |

mod answers;
mod clusters;
mod directory;
mod kubeconfig;
mod remote_cluster;

pub use answers::Answers;
pub use clusters::{RemoteClusterOptions, RemoteClusters};
pub use directory::{DirectoryError, MAX_CLUSTERS};
pub use kubeconfig::{KubeconfigError, parse as parse_kubeconfig, undefined_user};
pub use remote_cluster::RemoteCluster;
