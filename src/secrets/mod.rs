//! Secrets: a type that prints as dots, the data of a Kubernetes Secret, and redaction of text.
//!
//! | files | contents |
//! |---|---|
//! | `secret` | bytes that print as dots and are wiped from memory |
//! | `data` | the keys of a Kubernetes Secret, read one by one |
//! | `scrub` | redaction of known secrets in text |
//! | `url` | redaction of the secrets in a URL |

mod data;
mod scrub;
mod secret;
mod url;

pub use data::{SecretData, SecretDataError, data_size};
pub use scrub::Scrubber;
pub use secret::Secret;
pub use url::redact;
