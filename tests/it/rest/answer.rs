//! Responses of the server, each validated with the description of the API.

use reqwest::header::HeaderMap;
use reqwest::{Client, Method};
use serde_json::Value;

use super::openapi;

/// A client without a proxy.
pub(crate) fn client() -> Client {
    // Fails if there is one already, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().build().unwrap()
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(super) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    /// Sends a request, and validates the response.
    pub(crate) async fn of(method: Method, address: &str, path: &str, headers: &[(&str, &str)]) -> Self {
        let client = client();
        let url = format!("http://{address}{path}");
        let request = client.request(method.clone(), url);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let answer = Self { status, headers, body: response.text().await.unwrap() };
        answer.check_headers();
        if method != Method::HEAD {
            openapi::validate(path, &answer);
        }
        answer
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// A header; empty without it.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The headers that every response has.
    fn check_headers(&self) {
        assert_eq!(self.header("x-content-type-options"), "nosniff");
        assert_eq!(self.header("cache-control"), "no-store");
        assert_eq!(self.header("referrer-policy"), "no-referrer");
        assert_eq!(self.header("cross-origin-resource-policy"), "same-origin");
        let policy = self.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none';"), "{policy}");
    }
}
