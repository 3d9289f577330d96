//! Network: addresses, lookups, proxies, and the one builder of HTTP clients with its SSRF guard.
//!
//! | files | contents |
//! |---|---|
//! | `address`, `lookup` | hosts and local addresses; names resolved before a connection is made |
//! | `percent` | percent-encoding |
//! | `proxy`, `proxy_choice` | a proxy from a Secret, and the choice between it and those of the environment |
//! | `http_client`, `tls` | the builder of HTTP clients; the verification of servers at the TLS handshake |
//! | `http` | requests: rate limiters, retries, bounded responses, redaction |
//! | `ssrf_guard` | the SSRF guard: objects may not lead the controller to its own machine or network link |
//! | `retry_after`, `server_message` | the pause that a server asks for; messages about rate limits and archived repositories |
//! | `root_cause` | the root cause of an error of a connection |

mod address;
pub mod http;
mod http_client;
mod lookup;
pub mod percent;
mod proxy;
mod proxy_choice;
mod retry_after;
mod root_cause;
mod server_message;
mod ssrf_guard;
mod tls;

pub use address::{Host, LocalAddresses};
pub use http_client::{HttpClientError, HttpClientOptions};
pub use lookup::{LookupError, Pin, Server, addresses};
pub use proxy::Proxy;
pub use proxy_choice::ProxyChoice;
pub use retry_after::retry_after;
pub use root_cause::root_cause;
pub use server_message::{tells_archived, tells_rate_limit};
pub use ssrf_guard::{SsrfGuard, on_behalf_of, ssrf_refusal};
pub use tls::ClientCertificate;
