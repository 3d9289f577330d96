//! Forges: pull requests and signed commits, by the HTTP API of each.
//!
//! | files | contents |
//! |---|---|
//! | `kind` | the forges, and the features that each has |
//! | `address` | the forge of a repository, the URL of its API, and the place of the repository there |
//! | `pull_request` | a pull request, and the changes that are made to one |
//! | `exchange` | a request to an API and its response, as values |
//! | `http` | sends requests: login, rate limiters, redaction, limits of size and time |
//! | `github` | GitHub: signed commits |
//! | `api`, `any` | the operations on pull requests that every forge has; a client of any of them |
//! | `listing`, `paging` | the open pull requests that a listing returns; its pages, which become smaller if they are too large |
//! | `client`, `reading` | failures; the parts of responses, which are not trusted |
//! | `gitea`, `gitlab`, `bitbucket`, `bitbucket_data_center`, `azure_devops` | a forge each |

mod address;
mod any;
mod api;
mod azure_devops;
mod bitbucket;
mod bitbucket_data_center;
mod client;
#[cfg(test)]
mod conformance;
mod error;
mod exchange;
mod gitea;
pub mod github;
mod gitlab;
mod http;
mod kind;
#[cfg(test)]
mod large_pages;
mod listing;
mod paging;
mod pull_request;
mod reading;
#[cfg(test)]
mod script;

pub use address::{AddressError, ApiUrlDefect, ForgeAddress, ForgeRepository, PathDefect};
pub use any::AnyForge;
pub use api::Forge;
pub use azure_devops::{AzureDevops, AzureRepository};
pub use bitbucket::{Bitbucket, BitbucketRepository};
pub use bitbucket_data_center::{BitbucketDataCenter, DataCenterRepository};
pub use client::Endpoint;
pub use error::{ForgeError, SizeLimit};
pub use exchange::{ApiRequest, ApiResponse, Cost, Method, Transport};
pub use gitea::{Gitea, GiteaRepository};
pub use gitlab::{Gitlab, GitlabProject};
pub use http::{
    ApiLogin, Call, ForgeClientOptions, ForgeClients, ForgeCredential, ForgeRateLimits, HttpTransport,
    refusal,
};
pub use kind::{ForgeFeatures, ForgeKind, SeparateParts, UnknownForge};
pub use listing::Listing;
pub use pull_request::{
    Edited, Merge, MergeAnswer, MergeMethod, MergeTime, NewPullRequest, Opened, PullRequest, PullRequestEdit,
    PullRequestState,
};
