//! Sends requests to the API of a forge over HTTP.
//!
//! | files | contents |
//! |---|---|
//! | `clients` | the state that all calls share: connections, limiters, cached responses |
//! | `transport` | one API with one login: retries, redirects, conditional requests |
//! | `exchange`, `body` | one HTTP request, and its response of bounded size and memory |
//! | `credential` | a login, and its header |
//! | `rate_limit`, `quota` | rate limiters per origin and token; the limits that a server states |
//! | `etag_cache` | responses for conditional requests |
//! | `refusal` | the error of a response that refuses a request |

mod body;
mod clients;
mod credential;
mod etag_cache;
mod exchange;
mod quota;
mod rate_limit;
mod refusal;
mod transport;

pub use clients::{ForgeClientOptions, ForgeClients};
pub use credential::ForgeCredential;
pub use rate_limit::ForgeRateLimits;
pub use refusal::{Call, refusal};
pub use transport::{ApiLogin, HttpTransport};
