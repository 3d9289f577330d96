//! What the tests share: the program, trees of files, manifests.

pub(crate) mod fleet;
pub(crate) mod manifests;
pub(crate) mod patches;
pub(crate) mod program;
pub(crate) mod trees;
pub(crate) mod unwritable;
