//! Pull requests of automations: the decisions of `delivery`, carried out at a forge.
//!
//! Git comes first: a run makes the branches, then hands an order over, and does not wait for the forge.
//!
//! | file | contents |
//! |---|---|
//! | `order` | what one automation wants of the forge after a run |
//! | `snapshot`, `records` | the pull requests of a repository, as the forge listed them; what listings do not show |
//! | `round` | one round of work on a repository: list, decide, act |
//! | `second` | further open pull requests of branches that have one |
//! | `outcome`, `progress` | the outcome for a branch; that of all branches of an automation, as a condition and events |
//! | `run` | the part of one run of an automation |
//! | `answers` | answers for git while a round acts |
//! | `queue`, `repository` | the work queue: one task per repository, with retries; what it knows of a repository |

mod answers;
mod merges;
mod order;
mod outcome;
mod progress;
mod queue;
mod records;
mod repository;
mod round;
#[cfg(test)]
mod round_tests;
mod run;
mod second;
mod snapshot;

pub use order::{BranchContent, PullRequestOrder};
pub use outcome::{OutcomeReason, PullRequestOutcome, PullRequestVerb, WithheldChange};
pub use progress::{PullRequestEvent, PullRequestProgress, open_beside_problem, open_in, with_open};
pub use queue::{OnProgress, PullRequestQueue, PullRequestQueueOptions, RepositoryKey};
pub use run::{PullRequestRun, PullRequestSetupError};
pub use snapshot::Snapshot;
