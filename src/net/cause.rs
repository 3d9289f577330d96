//! What an error says in the end.

use std::error::Error;
use std::io;

use rustls::CertificateError;

/// The innermost cause of an error, which alone says what happened, in the form of a message.
pub fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    let text = certificate(innermost).unwrap_or_else(|| innermost.to_string());
    let text = text.split(" (os error ").next().unwrap_or_default();
    let mut characters = text.chars();
    let is_name = characters.clone().nth(1).is_some_and(char::is_uppercase);
    match characters.next() {
        Some(first) if !is_name => first.to_lowercase().chain(characters).collect(),
        _ => text.to_owned(),
    }
}

/// What a verifier of ours says of a certificate: the library would print how it keeps that.
fn certificate(error: &(dyn Error + 'static)) -> Option<String> {
    // Input and output wrap what happened, perhaps several times.
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
    fn the_innermost_cause_is_worded_as_a_message() {
        let refused = io::Error::from_raw_os_error(111);
        assert_eq!(innermost(&refused), "connection refused");
        assert_eq!(innermost(&io::Error::other("TLS is broken")), "TLS is broken");
        assert_eq!(innermost(&io::Error::other("")), "");
    }
}
