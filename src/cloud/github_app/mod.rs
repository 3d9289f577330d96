//! Logins of GitHub Apps: an installation token for one repository.
//!
//! | file | contents |
//! |---|---|
//! | `keys` | the keys of an App, parsed from a Secret |
//! | `api` | the requests to GitHub: the installation of an owner, and a token |
//! | `tokens` | tokens of Apps and their cache |

mod api;
mod keys;
mod tokens;

pub use keys::{GithubApp, GithubAppError, Installation};
pub use tokens::AppTokenRequest;
pub(super) use tokens::AppTokens;
