//! The clients of clusters, which are made here only.

use std::future::Future;
use std::time::Duration;

use axum::http::{Request, Response, Uri};
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use secrecy::ExposeSecret;
use tokio::time::timeout;
use tower::util::{MapFutureLayer, MapResultLayer};
use tower::{BoxError, service_fn};

use crate::metrics::Metrics;

/// The time in which the answer to a request begins.
///
/// The API server ends a request after 60 s by default. Without a limit, a watch whose request is lost on a dead connection would
/// wait for it forever.
const ANSWER_LIMIT: Duration = Duration::from_secs(75);

/// No client can be made of a kubeconfig.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Its token cannot be sent.
    #[error("its token has a line break or another character that an HTTP header cannot have")]
    Token,
    /// Its proxy has an unknown scheme.
    ///
    /// The message has no URL, which may contain a password.
    #[error("its proxy-url has an unknown scheme: write http://, https:// or socks5://")]
    Proxy,
    /// Its certificate or its authentication cannot be used.
    #[error(transparent)]
    Unusable(kube::Error),
}

impl From<kube::Error> for ClientError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::ProxyProtocolUnsupported { .. } | kube::Error::ProxyProtocolDisabled { .. } => {
                Self::Proxy
            }
            other => Self::Unusable(other),
        }
    }
}

/// Creates a client.
///
/// # Errors
///
/// If the configuration cannot be used.
pub fn client(configuration: Config) -> Result<Client, ClientError> {
    check_token(&configuration)?;
    Ok(ClientBuilder::try_from(configuration)?.with_layer(&MapFutureLayer::new(in_time)).build())
}

/// Creates a client whose requests are counted.
///
/// # Errors
///
/// If the configuration cannot be used.
pub fn counting_client(configuration: Config, metrics: Metrics) -> Result<Client, ClientError> {
    check_token(&configuration)?;
    let count = MapResultLayer::new(move |answer: Result<Response<_>, BoxError>| {
        metrics.api_request(answer.as_ref().ok().map(|answer| answer.status().as_u16()));
        answer
    });
    let builder = ClientBuilder::try_from(configuration)?.with_layer(&MapFutureLayer::new(in_time));
    Ok(builder.with_layer(&count).build())
}

/// Waits until an answer begins, but not longer than the limit.
async fn in_time<A>(answer: impl Future<Output = Result<A, BoxError>>) -> Result<A, BoxError> {
    match timeout(ANSWER_LIMIT, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("no answer within {} s", ANSWER_LIMIT.as_secs()).into()),
    }
}

/// Makes a client that reports the URI of each answered request, and whether it succeeded.
pub(super) fn observed_client(
    client: Client,
    observe: impl Fn(&Uri, bool) + Clone + Send + Sync + 'static,
) -> Client {
    let service = service_fn(move |request: Request<Body>| {
        let (client, observe, uri) = (client.clone(), observe.clone(), request.uri().clone());
        async move {
            match client.send(request).await {
                Ok(answer) => {
                    observe(&uri, answer.status().is_success());
                    Ok(answer)
                }
                Err(kube::Error::Service(cause)) => Err(cause),
                Err(error) => Err(error.into()),
            }
        }
    });
    Client::new(service, "default")
}

/// Checks that the token of a configuration can be sent.
///
/// The client of kube panics at one that cannot.
fn check_token(configuration: &Config) -> Result<(), ClientError> {
    let token = configuration.auth_info.token.as_ref().map(ExposeSecret::expose_secret);
    let is_sent = |token: &str| token.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f));
    if token.is_none_or(is_sent) { Ok(()) } else { Err(ClientError::Token) }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::Instant;
    use tower::Layer;

    use super::*;

    /// Returns the configuration of a token.
    fn with_token(token: &str) -> Config {
        let mut configuration = Config::new("https://127.0.0.1:1".parse().unwrap());
        configuration.auth_info.token = Some(token.to_owned().into());
        configuration
    }

    /// The watch of a node would have waited forever.
    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_never_answered_fails() {
        let silent = service_fn(|_: Request<Body>| pending::<Result<Response<Body>, BoxError>>());
        let client = Client::new(MapFutureLayer::new(in_time).layer(silent), "default");
        let begin = Instant::now();
        let error = client.apiserver_version().await.unwrap_err();
        assert!(error.to_string().contains("no answer within 75 s"), "{error}");
        assert_eq!(begin.elapsed().as_secs(), ANSWER_LIMIT.as_secs());
    }

    #[tokio::test]
    async fn an_unknown_proxy_is_refused_without_its_password() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        for scheme in ["socks5h", "ftp"] {
            let mut configuration = Config::new("https://127.0.0.1:1".parse().unwrap());
            configuration.proxy_url = Some(format!("{scheme}://user:s3cret@proxy.example").parse().unwrap());
            let refused = [client(configuration.clone()), counting_client(configuration, Metrics::default())];
            for message in refused.map(|refused| refused.err().unwrap().to_string()) {
                assert!(message.contains("unknown scheme") && !message.contains("s3cret"), "{message}");
            }
        }
    }

    #[tokio::test]
    async fn no_client_is_made_of_a_token_at_which_it_would_panic() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        for token in ["abc", "a\tb", "a b", "é"] {
            client(with_token(token)).unwrap();
            counting_client(with_token(token), Metrics::default()).unwrap();
        }
        for token in ["abc\n", "a\r\nb", "a\u{7}b", "a\u{7f}"] {
            assert!(matches!(client(with_token(token)), Err(ClientError::Token)), "{token:?}");
            let counting = counting_client(with_token(token), Metrics::default());
            assert!(matches!(counting, Err(ClientError::Token)), "{token:?}");
        }
        client(Config::new("https://127.0.0.1:1".parse().unwrap())).unwrap();
    }
}
