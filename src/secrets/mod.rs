//! Secrets: a type that prints dots, the data of a Secret, fingerprints, and redaction.
//!
//! | files | contents |
//! |---|---|
//! | `secret` | bytes that print as dots and are wiped from memory |
//! | `data` | the keys of a Kubernetes Secret, read one by one |
//! | `fingerprint` | SHA-256 hashes, which compare secrets and long texts without storing them |
//! | `redactor` | redaction of known secrets in text |
//! | `redact_url` | redaction of the secrets in a URL |

mod data;
mod fingerprint;
mod redact_url;
mod redactor;
mod secret;

pub use data::{SecretData, SecretDataError, data_size};
pub use fingerprint::Fingerprint;
pub use redact_url::redact_url;
pub use redactor::Redactor;
pub use secret::Secret;
