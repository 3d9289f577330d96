//! Logins at clouds: AWS, Azure and Google.
//!
//! | file | contents |
//! |---|---|
//! | `provider`, `credential` | the clouds; user name and password, or a token |
//! | `clouds`, `aws`, `azure`, `google` | logins at clouds, for this process or a service account |
//! | `git_login`, `github_app` | logins at git servers and their cache; installation tokens of GitHub Apps |
//! | `jwt` | JSON Web Tokens that are signed with RSA |
//! | `account` | service accounts of a cluster and their tokens |
//! | `context`, `options`, `environment` | the context of one login; endpoints; environment variables |
//! | `network`, `pattern` | HTTP requests to clouds; regular expressions for host names |
//! | `cache` | the credential cache |
//! | `error` | the errors of logins |

mod account;
mod aws;
mod azure;
mod cache;
mod clouds;
mod context;
mod credential;
mod environment;
mod error;
mod git_login;
mod github_app;
mod google;
mod jwt;
mod network;
mod options;
mod pattern;
mod provider;

pub use account::{Accounts, CloudAccount, CloudIdentity, IdentityError, ServiceAccounts};
pub use azure::is_azure_dev_ops;
pub use cache::CredentialCacheOptions;
pub use clouds::{CloudLogin, Clouds};
pub use credential::Credential;
pub use environment::CloudEnvironment;
pub use error::{AccountError, LoginError};
pub use git_login::{GitIdentity, GitLogin, GitLoginEntry, GitLoginRequest, GitSecret, check_git_url};
pub use github_app::{AppTokenRequest, GithubApp, GithubAppError, Installation};
pub use options::{CloudEndpoints, CloudOptions};
pub use provider::CloudProvider;
