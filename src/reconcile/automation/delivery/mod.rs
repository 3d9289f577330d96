//! Delivery by branches and pull requests: pure decisions, which other code carries out.
//!
//! | file | contents |
//! |---|---|
//! | `base` | the branch that gets the changes in the end |
//! | `series` | a branch that several automations render, and those that can have no commit on it |
//! | `bundle`, `branch_name` | the division of policies into branches; rendered texts made into names |
//! | `caution` | automations for which merges of another one wait |
//! | `options` | the settings of a pull request, united over automations; features that a forge lacks |
//! | `ownership` | the commits and changes that count as ours |
//! | `memory`, `known` | the last line of a body, from which pull requests are recognized; pull requests with their lines |
//! | `text`, `body`, `table` | title and body of a pull request; a body within the limit; the table of changes |
//! | `found` | the pull requests of a branch, and the facts about the branch that follow from them |
//! | `decision` | the action on the pull request of a branch |

mod base;
mod body;
mod branch_name;
mod bundle;
mod caution;
mod decision;
mod found;
mod known;
mod memory;
mod options;
mod ownership;
mod series;
mod table;
mod text;

pub use base::{BaseError, base_of};
pub use body::without_parts;
pub use branch_name::{BranchNameError, ReferenceName, branch_name};
pub use bundle::{
    BundleError, BundleRequest, Bundles, InvalidBranch, InvalidBranchCause, SelectedPolicy, bundles,
    only_branch,
};
pub use caution::{CautiousAutomation, Standstill};
pub use decision::{
    BranchState, Decision, LeftBranch, OtherBranch, PullRequestAction, PullRequestReason,
    UnwantedPullRequest, WantedPullRequest, decide, decide_second, decide_unwanted,
};
pub use found::{FoundPullRequests, REBUILD_LABEL, branch_facts, past_of};
pub use known::{OpenPullRequest, PastPullRequest};
pub use memory::{ClosedReason, ImageHash, Memory, OwnerHash, PolicyHash, TextHash};
pub use options::{PullRequestOptions, UnsupportedSetting, check_support};
pub use ownership::OwnershipScope;
pub use series::{BranchSeries, RenderedBranches};
pub use text::{MAX_TITLE, PullRequestText, TextError, TextSource, Texts};
