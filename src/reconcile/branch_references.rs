//! The treatment of an existing push branch that is not checked out.

/// The treatment of an existing push branch that is not checked out (Flux's gate `GitAllBranchReferences`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BranchReferences {
    /// Commits are added to it.
    #[default]
    All,
    /// It begins at the checkout each time.
    Fresh,
}
