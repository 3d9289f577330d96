//! HTTP: the one place where clients are made, and where they may not lead.
//!
//! [`Connections`] says how connections are made, [`Guard`] where none may lead, and [`innermost`] what an error of one
//! says in the end.

mod cause;
mod connections;
mod guard;
mod proxy;
mod trust;

pub use cause::innermost;
pub use connections::{ConnectionError, Connections, ProxyChoice};
pub use guard::{Guard, on_behalf_of, refusal};
pub use trust::ClientCertificate;
