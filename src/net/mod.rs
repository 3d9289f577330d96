//! Network: addresses, lookups, proxies, and the one builder of HTTP clients with its SSRF guard.
//!
//! | files | contents |
//! |---|---|
//! | `address`, `lookup` | hosts and local addresses; names resolved before a connection is made |
//! | `percent` | percent-encoding |
//! | `proxy`, `proxy_choice` | a proxy from a Secret, and the choice between it and those of the environment |
//! | `connections`, `trust` | the builder of HTTP clients; trust at the TLS handshake |
//! | `guard` | the SSRF guard: objects may not lead us to this machine or its network link |
//! | `cause` | the root cause of an error of a connection |

mod address;
mod cause;
mod connections;
mod guard;
mod lookup;
pub mod percent;
mod proxy;
mod proxy_choice;
mod trust;

pub use address::{Host, LocalAddresses};
pub use cause::innermost;
pub use connections::{ConnectionError, Connections, ProxyChoice};
pub use guard::{Guard, on_behalf_of, refusal};
pub use lookup::{LookupError, Pin, Server, addresses};
pub use proxy::Proxy;
pub use trust::ClientCertificate;
