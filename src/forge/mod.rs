//! Forges: pull requests and signed commits, by the HTTP API of each.
//!
//! | files | contents |
//! |---|---|
//! | `kind` | the forges, and the features that each has |
//! | `address` | the forge of a repository, the URL of its API, and the place of the repository there |
//! | `pull_request` | a pull request, and the changes that are made to one |
//! | `exchange` | a request to an API and its response, as values |
//! | `api` | the operations on pull requests that every forge has |

mod address;
mod api;
mod error;
mod exchange;
mod kind;
mod pull_request;

pub use address::{AddressError, ApiUrlDefect, ForgeAddress, ForgeRepository, PathDefect};
pub use api::Forge;
pub use error::ForgeError;
pub use exchange::{ApiRequest, ApiResponse, Cost, Method, Transport};
pub use kind::{ForgeFeatures, ForgeKind, UnknownForge};
pub use pull_request::{
    Merge, MergeAnswer, MergeMethod, MergeTime, NewPullRequest, Opened, PullRequest, PullRequestEdit,
    PullRequestState,
};
