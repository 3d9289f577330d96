//! GitHub: signed commits and pull requests, by its REST API and by GraphQL.
//!
//! | files | contents |
//! |---|---|
//! | `repository` | a repository, and requests to it |
//! | `signing` | commits that GitHub signs |
//! | `pull_requests` | pull requests |
//! | `graphql` | the documents of GraphQL, for merge queues and auto-merge |

mod graphql;
mod pull_requests;
mod repository;
#[cfg(test)]
mod schema;
mod signing;

pub use pull_requests::Github;
pub use repository::GithubRepository;
pub use signing::GithubSigner;
