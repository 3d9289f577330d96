//! Appliers: the objects that apply a file of git to a cluster.
//!
//! An applier says why the wanted image is not in a workload yet: it is suspended, at another revision, or failing.
//! For a cluster without a kubeconfig it is the component itself, and `assess_remote` judges it by its own status.
//!
//! | files | applier |
//! |---|---|
//! | `kustomization`, `helm_release` | Flux |
//! | `application` | Argo CD |
//! | `flux` | the conditions of both kinds of Flux |
//! | `applier_status` | the result |

pub mod application;
mod applier_status;
mod flux;
pub mod helm_release;
pub mod kustomization;

pub use applier_status::{ApplierStatus, Attempt, Block};
