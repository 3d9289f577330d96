//! Reconciles ImageRepositories.
//!
//! | file | contents |
//! |---|---|
//! | `request` | the checked fields of a repository |
//! | `decision` | whether a scan is due, and the reason |
//! | `access`, `logins`, `pull_secrets`, `access_error` | credentials, proxy and certificates from Secrets and service accounts |
//! | `exclusion`, `scan` | the tags that `spec.exclusionList` leaves; the result of a scan |
//! | `run` | one reconcile through all of these |
//! | `report` | the status, the events and the requeue |

pub mod access;
pub mod access_error;
pub mod decision;
pub mod exclusion;
pub mod logins;
mod pull_secrets;
pub mod report;
pub mod request;
pub mod run;
pub mod scan;
