//! Transactions with branches of proposals' own.
//!
//! Each branch is the base's tip and one commit per proposal.
//!
//! | file | contents |
//! |---|---|
//! | `model` | drafts, facts from outside, and results |
//! | `attempt`, `state`, `branch` | one attempt, from the listing to the plans; one proposal; one branch |
//! | `build` | the decisions on the branches, and the commits of those that are pushed |
//! | `delivery`, `pushes`, `refusal` | the push of an attempt, and the answers; one push for all branches, and its result; advice about a refusal |
//! | `found` | what is on the branches |
//! | `decision` | the wanted change and the branch that was found → an action |
//! | `apps` | the App for which the forge signs our commits |
//! | `beyond` | the commits of a branch beyond the base |
//! | `landed` | a branch without a wanted change, compared with the base |
//! | `ownership` | commits that only change what the proposals may change |
//! | `participation` | proposals with a part in a branch, and commits of those without one |
//! | `signing` | the signing of commits by a forge |
//! | `shared` | a branch that we pushed, compared with the wanted change of those who take part |
//! | `stack` | the trees of a branch's commits |
//! | `untold` | branches that a person has refused without a word about their change |

mod apps;
mod attempt;
mod beyond;
mod branch;
mod build;
mod decision;
mod delivery;
mod found;
mod landed;
mod model;
mod ownership;
mod participation;
mod pushes;
mod refusal;
mod shared;
mod signing;
mod stack;
mod state;
mod untold;

pub(super) use attempt::BranchAttempt;
pub use model::{
    Absence, Authorship, BranchAction, BranchDraft, BranchFacts, BranchOutcome, ClosedProposal, CommitPeople,
    DropReason, DroppedCommit, FileChange, LeftReason, PushDelay, Refresh,
};
pub(super) use ownership::with_people;
