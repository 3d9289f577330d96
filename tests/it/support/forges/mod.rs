//! Forges for tests, and the check of exchanges against published descriptions.
//!
//! | files | contents |
//! |---|---|
//! | `wire` | a transport for the clients of `tagboat::forge`, which records what it sends |
//! | `description` | the published description of an API, and exchanges that do not conform to it |
//! | `hub` | the state of a test server: pull requests beside a bare repository, in which merges are real |
//! | `github`, `gitlab`, `bitbucket`, `bitbucket_data_center`, `azure_devops` | the API of one forge in front of a hub |

pub(crate) mod azure_devops;
pub(crate) mod bitbucket;
pub(crate) mod bitbucket_data_center;
pub(crate) mod description;
pub(crate) mod github;
pub(crate) mod gitlab;
pub(crate) mod hub;
pub(crate) mod wire;
