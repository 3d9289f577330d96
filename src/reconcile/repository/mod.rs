//! An ImageRepository, once.
//!
//! [`request`] says what to scan, [`decision`] whether it is time to, [`access`] who asks and by which way ([`logins`], of
//! secrets by `pull_secrets`); what the registry lists goes through the [`exclusion`] and becomes a [`scan`]'s result, and [`report`] says what the status then is, what is
//! announced, and when to look again. A [`run`] goes through all of it.

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
