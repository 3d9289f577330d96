//! One ImageRepository, once: so far who asks for the tags, and which of them are left out.

pub mod access;
pub mod exclusion;
