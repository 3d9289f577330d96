//! An ImageUpdateAutomation, once.

pub mod label;
pub mod request;
pub mod selector;
