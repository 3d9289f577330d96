//! An ImageUpdateAutomation, once.

pub mod request;
pub mod source;
