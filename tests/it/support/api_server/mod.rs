//! A real Kubernetes API for tests.
//! There is one kube-apiserver with its etcd for all tests, and a namespace for each.
//!
//! ```text
//! let cluster = Cluster::new().await;                       // a namespace of its own: cluster.namespace()
//! cluster.client();                                         // may do anything; its default namespace is the test's
//! cluster.client_as("system:serviceaccount:NAMESPACE:bot"); // may do what that user may
//! let token = cluster.token("bot").await;                   // of a service account, created if it does not exist
//! cluster.client_with(&token).await;
//! cluster.token_with_the_roles().await;                     // may do exactly what `deploy/rbac` allows
//! cluster.kubeconfig(&token);                               // a file for the program's `KUBECONFIG`
//!
//! let faults = Faults::default();                           // faults between a client and the server
//! let client = cluster.faulty_client(&faults);
//! faults.next(2, Fault::Conflict, |call| call.is("patch", "imageupdateautomations/status"));
//! faults.calls();                                           // every request, in order
//! cluster.faulty_kubeconfig(&faults).await;                 // the same for the program
//!
//! cluster.audit("tagboat");                                 // the answered requests of a service account
//! ```
//!
//! The kinds of `deploy/crds` are installed. No controller runs, so there is no garbage collection, and a
//! deleted namespace is not removed; tests leave theirs. The server is shared; a test that must stop a server
//! starts its own, with `Cluster::on(&ApiServer::start())`. Clients belong to the async runtime in which they
//! are made. `workloads` has a cluster with controllers.

mod access;
mod audit;
mod call;
mod cluster;
mod definitions;
mod etcd;
mod fault;
mod gateway;
mod objects;
mod server;

pub(crate) use access::ADMIN_TOKEN;
pub(crate) use audit::Audited;
pub(crate) use call::Call;
pub(crate) use cluster::Cluster;
pub(crate) use etcd::command as server_command;
pub(crate) use fault::{Ending, Fault, Faults};
pub(crate) use objects::{apply, documents};
pub(crate) use server::ApiServer;
