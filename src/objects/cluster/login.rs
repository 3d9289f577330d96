//! The login of a kubeconfig, before a client is made of it.

use kube::Config;
use secrecy::ExposeSecret;

/// The login of a kubeconfig cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("its token has a line break or another character that an HTTP header cannot have")]
pub struct InvalidToken;

/// Checks that the token of a configuration can be sent.
///
/// The client of kube panics at one that cannot.
///
/// # Errors
///
/// If the token has a character that an HTTP header cannot have.
pub fn check_token(configuration: &Config) -> Result<(), InvalidToken> {
    let token = configuration.auth_info.token.as_ref().map(ExposeSecret::expose_secret);
    let is_sent = |token: &str| token.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f));
    if token.is_none_or(is_sent) { Ok(()) } else { Err(InvalidToken) }
}

#[cfg(test)]
mod tests {
    use kube::Client;

    use super::*;

    /// Returns the configuration of a token.
    fn with_token(token: &str) -> Config {
        let mut configuration = Config::new("https://127.0.0.1:1".parse().unwrap());
        configuration.auth_info.token = Some(token.to_owned().into());
        configuration
    }

    #[tokio::test]
    async fn a_token_is_checked_as_the_client_would() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        for token in ["abc", "a\tb", "a b", "é"] {
            let configuration = with_token(token);
            check_token(&configuration).unwrap();
            Client::try_from(configuration).unwrap();
        }
        for token in ["abc\n", "a\r\nb", "a\u{7}b", "a\u{7f}"] {
            assert_eq!(check_token(&with_token(token)), Err(InvalidToken), "{token:?}");
        }
        check_token(&Config::new("https://127.0.0.1:1".parse().unwrap())).unwrap();
    }
}
