//! Pull requests of automations: the decisions of `delivery`, carried out at a forge.
//!
//! Git comes first: a run makes the branches, then hands an order over, and does not wait for the forge.
//!
//! | file | contents |
//! |---|---|
//! | `order` | what one automation wants of the forge after a run |
//! | `snapshot`, `records` | the pull requests of a repository, as the forge listed them; what listings do not show |
//! | `searches`, `hand_back` | changes of a snapshot: closed pull requests are looked up; people hand branches back |
//! | `branchless` | open pull requests without a branch: which the forge still closes, and which people have reopened |
//! | `round` | one round of work on a repository: list, decide, act |
//! | `wanted`, `unwanted`, `second` | branches that are rendered; those that are not any more; further open pull requests of a branch |
//! | `sharers` | the automations that share a pull request |
//! | `action`, `put_off`, `merges` | an action as it was decided; changes that wait; merges that the forge was asked for |
//! | `refused_labels` | labels for which a permission is missing |
//! | `outcome` | the outcome for a branch |
//! | `progress`, `open_list` | the outcomes for all branches of an automation, as a condition and events; the list in its message |
//! | `run` | the part of one run of an automation |
//! | `queue`, `repository` | the work queue, as runs use it; what it knows of a repository |
//! | `tasks`, `answers`, `before_git` | one task per repository, with retries; answers for git while a round acts, and without tasks |

mod action;
mod answers;
mod before_git;
mod branchless;
mod hand_back;
mod merges;
mod open_list;
mod order;
mod outcome;
mod progress;
mod put_off;
mod queue;
mod records;
mod refused_labels;
mod repository;
mod round;
#[cfg(test)]
mod round_tests;
mod run;
mod searches;
mod second;
mod sharers;
mod snapshot;
mod tasks;
#[cfg(test)]
mod test_forge;
mod unwanted;
mod wanted;

pub use open_list::{PART, named, open_beside_problem, open_in, refused_in, with_open};
pub use order::{BranchContent, PullRequestOrder};
pub use outcome::{OutcomeReason, PullRequestOutcome, PullRequestVerb, WithheldChange};
pub use progress::{PullRequestEvent, PullRequestProgress};
pub use queue::PullRequestQueue;
pub use repository::RepositoryKey;
pub use run::{PullRequestRun, PullRequestSetupError};
pub use snapshot::Snapshot;
pub use tasks::{OnProgress, PullRequestQueueOptions};
