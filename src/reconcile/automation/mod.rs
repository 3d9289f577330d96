//! An ImageUpdateAutomation, once.

pub mod conclusion;
pub mod event;
pub mod login;
pub mod proposal;
pub mod report;
pub mod request;
pub mod run;
pub mod source;
pub mod transaction;
