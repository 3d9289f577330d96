//! One request with a status, and its outcome.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use reqwest::{Client, Response};

use super::endpoint::Endpoint;
use super::quoting::Quoting;
use super::token::{TokenFile, bearer};
use crate::error::chain;
use crate::net::{HttpClientError, HttpClientOptions, retry_after};
use crate::secrets::redact_url;
use crate::web::http::JSON;

/// The time of a whole request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum size of what is read of a response, in bytes.
const MAX_RESPONSE: usize = 4 * 1024;

/// Sends statuses to a server. Clones share its connections.
#[derive(Clone)]
pub(super) struct StatusSender {
    client: Client,
    endpoint: Endpoint,
    token: Option<TokenFile>,
}

/// The outcome of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The server has accepted the status.
    Accepted,
    /// The server has refused the status, and would refuse it again.
    Refused {
        /// The message for users.
        message: String,
    },
    /// The status did not arrive, or the server cannot process it now.
    Failed {
        /// The cause without the text of the server, by which failures are compared.
        cause: String,
        /// The message for users.
        message: String,
        /// The pause that the server asks for.
        retry_after: Option<Duration>,
    },
}

impl StatusSender {
    /// Creates a sender to a server.
    ///
    /// The user of the program has chosen the server, so it may be at any address, also a local one.
    ///
    /// # Errors
    ///
    /// If the HTTP client cannot be made.
    pub(super) fn new(endpoint: Endpoint, token: Option<TokenFile>) -> Result<Self, HttpClientError> {
        let options = HttpClientOptions {
            timeout: Some(TIMEOUT),
            ..HttpClientOptions::with_timeouts(TIMEOUT, TIMEOUT)
        };
        Ok(Self { client: options.build()?, endpoint, token })
    }

    /// Returns the address of the server.
    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Sends the status of a deployment.
    pub(super) async fn send(&self, deployment_id: &str, document: String) -> Outcome {
        let mut quoting = Quoting::default();
        let mut request = self.client.post(self.endpoint.status_of(deployment_id));
        if let Some(file) = &self.token {
            let token = match file.token().await {
                Ok(token) => token,
                Err(error) => return failed(format!("--status-token-file: {}", chain(&error))),
            };
            quoting.forbid(&token);
            request = request.header(AUTHORIZATION, bearer(&token).expect("tokens are visible ASCII"));
        }
        match request.header(CONTENT_TYPE, JSON).body(document).send().await {
            Ok(response) => outcome(response, &quoting).await,
            Err(error) => failed(chain(&error.without_url())),
        }
    }
}

fn failed(message: String) -> Outcome {
    Outcome::Failed { cause: message.clone(), message, retry_after: None }
}

/// Returns the outcome that a response says.
async fn outcome(response: Response, quoting: &Quoting) -> Outcome {
    let status = response.status();
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    if status.is_success() {
        // Its content says nothing, so it is not read.
        return Outcome::Accepted;
    }
    let pause = header(RETRY_AFTER).and_then(|value| retry_after(value, Timestamp::now()));
    let message = if status.is_redirection() {
        let place = redact_url(header(LOCATION).unwrap_or("another place"));
        format!("the server redirects to {}, which is not followed", quoting.quote(&place))
    } else {
        let text = beginning(response).await;
        let text = quoting.quote(&text);
        let detail = if text.is_empty() { String::new() } else { format!(": {text}") };
        format!("the server responded with status {}{detail}", status.as_u16())
    };
    match status.as_u16() {
        // The same document would get the same response.
        400 | 403 | 422 => Outcome::Refused { message },
        code => Outcome::Failed { cause: format!("status {code}"), message, retry_after: pause },
    }
}

/// Reads the beginning of a response, as far as it comes.
///
/// The last word is left out unless the response has ended: it may be a part of the token, which redaction would not
/// find.
async fn beginning(mut response: Response) -> String {
    let mut content = Vec::new();
    let has_ended = loop {
        match response.chunk().await {
            Ok(Some(chunk)) if content.len() + chunk.len() <= MAX_RESPONSE => {
                content.extend_from_slice(&chunk);
            }
            Ok(Some(chunk)) => {
                content.extend_from_slice(&chunk[..MAX_RESPONSE - content.len()]);
                break false;
            }
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    if !has_ended {
        let end = content.iter().rposition(u8::is_ascii_whitespace).unwrap_or_default();
        content.truncate(end);
    }
    String::from_utf8_lossy(&content).into_owned()
}

#[cfg(test)]
mod tests {
    use std::io;

    use axum::http;
    use futures::stream;
    use reqwest::Body;

    use super::*;
    use crate::secrets::Secret;

    /// Returns the outcome of a response whose body comes in pieces.
    async fn outcome_of(
        status: u16,
        headers: &[(&str, &str)],
        pieces: Vec<Result<&'static str, io::Error>>,
    ) -> Outcome {
        let mut quoting = Quoting::default();
        quoting.forbid(&Secret::new(b"hunter2-hunter2".to_vec()));
        let response = http::Response::builder().status(status);
        let response =
            headers.iter().fold(response, |response, (name, value)| response.header(*name, *value));
        let body = Body::wrap_stream(stream::iter(pieces));
        outcome(response.body(body).unwrap().into(), &quoting).await
    }

    #[tokio::test]
    async fn a_response_accepts_refuses_or_fails_by_its_status() {
        for (status, expected) in [
            (200, "accepted"),
            (201, "accepted"),
            (204, "accepted"),
            (400, "refused"),
            (403, "refused"),
            (422, "refused"),
            (301, "failed"),
            (304, "failed"),
            (307, "failed"),
            (401, "failed"),
            (404, "failed"),
            (409, "failed"),
            (413, "failed"),
            (429, "failed"),
            (500, "failed"),
            (503, "failed"),
        ] {
            let found = match outcome_of(status, &[], Vec::new()).await {
                Outcome::Accepted => "accepted",
                Outcome::Refused { .. } => "refused",
                Outcome::Failed { retry_after: None, .. } => "failed",
                Outcome::Failed { .. } => "failed with a pause",
            };
            assert_eq!(found, expected, "{status}");
        }
    }

    #[tokio::test]
    async fn a_pause_is_read_in_seconds_and_as_a_date() {
        let pause = async |value: &str| match outcome_of(503, &[("Retry-After", value)], Vec::new()).await {
            Outcome::Failed { retry_after, .. } => retry_after.map(|pause| pause.as_secs()),
            other => panic!("{other:?}"),
        };
        assert_eq!(pause("7").await, Some(7));
        assert_eq!(pause("soon").await, None);
        let date = Timestamp::now() + Duration::from_secs(100);
        let date = date.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        let seconds = pause(&date).await.unwrap();
        assert!((90..=100).contains(&seconds), "{seconds}");
    }

    #[tokio::test]
    async fn a_response_that_breaks_off_in_the_token_does_not_show_its_beginning() {
        let message = async |pieces| match outcome_of(400, &[], pieces).await {
            Outcome::Refused { message } => message,
            other => panic!("{other:?}"),
        };
        let begin = "the server responded with status 400";
        let broken = || Err(io::ErrorKind::ConnectionReset.into());
        for (pieces, expected) in [
            (vec![Ok("no Bearer hunter2-hunter2")], ": no Bearer ••••"),
            (vec![Ok("no Bearer hunter2-"), Ok("hunter2")], ": no Bearer ••••"),
            (vec![Ok("no Bearer hunter2-hun"), broken()], ": no Bearer"),
            (vec![Ok("no Bearer "), Ok("hunter2-"), broken()], ": no Bearer"),
            (vec![Ok("hunter2-hun"), broken()], ""),
            (vec![broken()], ""),
        ] {
            assert_eq!(message(pieces).await, format!("{begin}{expected}"));
        }
        let long: &'static str = "x ".repeat(MAX_RESPONSE / 2 - 4).leak();
        let cut = message(vec![Ok(long), Ok("hunter2-hunter2 and more")]).await;
        assert!(!cut.contains("hunter2"), "{cut}");
    }

    #[tokio::test]
    async fn failures_of_one_status_have_one_cause_whatever_the_server_says() {
        let cause = async |status, text| match outcome_of(status, &[], vec![Ok(text)]).await {
            Outcome::Failed { cause, .. } => cause,
            other => panic!("{other:?}"),
        };
        assert_eq!(cause(502, "request 1").await, cause(502, "request 2").await);
        assert_ne!(cause(502, "").await, cause(503, "").await);
    }
}
