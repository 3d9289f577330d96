//! The root cause of an error of a connection, as text for a message.

use std::error::Error;
use std::io;

use rustls::CertificateError;

/// Returns the root cause of an error, in the form of a message.
/// The root cause alone describes the failure.
pub fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut root = error;
    while let Some(cause) = root.source() {
        root = cause;
    }
    let text = certificate(root).unwrap_or_else(|| root.to_string());
    let text = text.split(" (os error ").next().unwrap_or_default();
    let mut characters = text.chars();
    let is_name = characters.clone().nth(1).is_some_and(char::is_uppercase);
    match characters.next() {
        Some(first) if !is_name => first.to_lowercase().chain(characters).collect(),
        _ => text.to_owned(),
    }
}

/// Returns the message of our certificate verifier, which the library would print with its wrapper.
fn certificate(error: &(dyn Error + 'static)) -> Option<String> {
    // I/O errors wrap the cause, perhaps several times.
    let mut inner = error;
    while let Some(wrapped) = inner.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        inner = wrapped;
    }
    let handshake = inner.downcast_ref::<rustls::Error>();
    match handshake {
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(error))) => {
            Some(format!("invalid peer certificate: {error}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn the_root_cause_is_worded_as_a_message() {
        let refused = io::Error::from_raw_os_error(111);
        assert_eq!(root_cause(&refused), "connection refused");
        assert_eq!(root_cause(&io::Error::other("TLS is broken")), "TLS is broken");
        assert_eq!(root_cause(&io::Error::other("")), "");
    }
}
