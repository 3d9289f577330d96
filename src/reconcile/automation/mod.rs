//! An ImageUpdateAutomation, once.

pub mod request;
