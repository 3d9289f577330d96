//! A transport for the clients of `tagboat::forge`, which records and checks what it sends.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tagboat::forge::{ApiRequest, ApiResponse, Endpoint, ForgeError, Method, Transport};

use super::description::Description;

/// A request with its response.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    /// In lower case.
    pub(crate) method: String,
    /// The segments of the path below the base URL, decoded.
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: Option<Value>,
    pub(crate) status: u16,
    pub(crate) response: Value,
}

/// Sends requests to one base URL with one login.
#[derive(Clone)]
pub(crate) struct Wire {
    base: String,
    authorization: String,
    description: Option<Arc<Description>>,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
}

impl Wire {
    /// Sends to a base URL, with the value of the header `Authorization`.
    pub(crate) fn new(base: &str, authorization: &str) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self {
            base: base.to_owned(),
            authorization: authorization.to_owned(),
            description: None,
            exchanges: Arc::default(),
        }
    }

    /// Fails the test if an exchange does not conform to a description.
    pub(crate) fn checked_by(self, description: Description) -> Self {
        Self { description: Some(Arc::new(description)), ..self }
    }

    /// Every exchange so far.
    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.exchanges.lock().unwrap().clone()
    }

    pub(crate) fn endpoint() -> Endpoint {
        Endpoint { host: "127.0.0.1".to_owned(), login: "Secret apps/forge".to_owned(), has_given_url: false }
    }

    /// Sends a request of a test's own; the status must be a success.
    pub(crate) async fn call(&self, method: &str, path: &str, body: Value) -> Value {
        let url = format!("{}/{path}", self.base);
        let (status, _, text) = self.exchange(method, &url, (!body.is_null()).then_some(&body), &[]).await;
        assert!((200..300).contains(&status), "{method} {path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Sends a request of a test's own, and returns the status too.
    pub(crate) async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let (status, _, text) = self.exchange(method, &format!("{}/{path}", self.base), body, &[]).await;
        (status, serde_json::from_str(&text).unwrap_or_default())
    }

    async fn exchange(
        &self,
        method: &str,
        url: &str,
        body: Option<&Value>,
        headers: &[(&'static str, String)],
    ) -> (u16, Vec<(String, String)>, String) {
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)).build().unwrap();
        let mut request = client.request(method.to_uppercase().parse().unwrap(), url);
        request = request.header("authorization", &self.authorization);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let headers = response.headers().iter();
        let headers =
            headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
        (status, headers, response.text().await.unwrap())
    }
}

impl Transport for Wire {
    async fn send(&self, request: ApiRequest) -> Result<ApiResponse, ForgeError> {
        let method = match request.method {
            Method::Get => "get",
            Method::Post => "post",
            Method::Put => "put",
            Method::Patch => "patch",
            Method::Delete => "delete",
        };
        let mut url = url::Url::parse(&self.base).unwrap();
        let encoded = request.path.iter().map(|part| tagboat::net::percent::encode(part.as_bytes()));
        let path = format!("{}/{}", url.path().trim_end_matches('/'), encoded.collect::<Vec<_>>().join("/"));
        url.set_path(&path);
        if !request.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&request.query);
        }
        let (status, headers, text) =
            self.exchange(method, url.as_str(), request.body.as_ref(), &request.headers).await;
        let body = if text.trim().is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&text).map_err(|error| ForgeError::Malformed {
                host: "127.0.0.1".to_owned(),
                operation: request.operation,
                detail: error.to_string(),
            })?
        };
        let exchange = Exchange {
            method: method.to_owned(),
            path: request.path,
            query: request.query.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            body: request.body,
            status,
            response: body.clone(),
        };
        if let Some(description) = &self.description {
            description.check(&exchange);
        }
        self.exchanges.lock().unwrap().push(exchange);
        Ok(ApiResponse::new(status, headers, body))
    }
}
