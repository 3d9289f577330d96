//! The status push: sends statuses of deployments to a server when they change.
//!
//! | module | contents |
//! |---|---|
//! | `endpoint` | the address of the server, and the address of each deployment there |
//! | `token` | the token of the requests, from a file |
//! | `quoting` | quotes of the server's text, without the token |
//! | `significance` | the parts of a status whose change is sent |
//! | `queue` | the next status to send, and when: a value without a clock |
//! | `sender` | one request, and its outcome |
//! | `run` | the loop around them, for as long as this process is the leader |
//!
//! The store has the statuses; the queue has only fingerprints of what was sent. So the latest status replaces an
//! unsent one, and a server that hangs costs the memory of a few requests.

mod endpoint;
mod queue;
mod quoting;
mod run;
mod sender;
mod significance;
mod token;

pub use endpoint::{Endpoint, InvalidEndpoint};
pub use run::{PushOptions, push};
pub use token::{TokenError, TokenFile};
