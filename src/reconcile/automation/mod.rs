//! An ImageUpdateAutomation, once.

pub mod conclusion;
pub mod event;
pub mod report;
pub mod request;
pub mod run;
pub mod source;
