//! Small registry on this machine, for the time of the demo.
//!
//! It answers pings, lists tags, and stores manifests and returns them by tag and by digest.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::image_store::{ImageStore, Manifest};

/// The media type of an image manifest.
pub(super) const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

/// The header of servers that speak the protocol.
const VERSION: (&str, &str) = ("docker-distribution-api-version", "registry/2.0");

type Shared = Arc<Mutex<ImageStore>>;

/// A running registry. It stops when the value is dropped.
pub(super) struct DemoRegistry {
    address: SocketAddr,
    _end: oneshot::Sender<()>,
}

impl DemoRegistry {
    /// Serves an empty registry on a free port of the loopback address.
    pub(super) fn start() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
        let address = listener.local_addr()?;
        let routes = Router::new().fallback(answer).with_state(Shared::default());
        let (end, ended) = oneshot::channel();
        thread::Builder::new().name("registry".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = axum::serve(listener, routes) => {}
                    _ = ended => {}
                }
            });
        })?;
        Ok(Self { address, _end: end })
    }

    /// Returns host and port, as in an image.
    pub(super) fn address(&self) -> String {
        self.address.to_string()
    }
}

/// Answers one request.
async fn answer(
    State(store): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut store = store.lock();
    let Some(path) = uri.path().strip_prefix("/v2/") else { return StatusCode::NOT_FOUND.into_response() };
    if path.is_empty() {
        return [VERSION].into_response();
    }
    if let Some(repository) = path.strip_suffix("/tags/list") {
        return match store.tags(repository).filter(|_| method == Method::GET) {
            Some(tags) => {
                let list = serde_json::json!({"name": repository, "tags": tags}).to_string();
                ([VERSION, ("content-type", "application/json")], list).into_response()
            }
            None => error_response("NAME_UNKNOWN", "repository name not known to registry"),
        };
    }
    let Some((repository, reference)) = path.rsplit_once("/manifests/") else {
        return error_response("UNSUPPORTED", "the demo's registry has tags and manifests only");
    };
    match method {
        Method::PUT => {
            let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
            let kind = kind.unwrap_or(MANIFEST_TYPE).to_owned();
            let digest = digest(&body);
            store.put(repository, reference, &digest, Manifest { kind, bytes: body.to_vec() });
            let place = format!("/v2/{repository}/manifests/{digest}");
            (StatusCode::CREATED, [("docker-content-digest", digest), ("location", place)]).into_response()
        }
        // axum removes the body of a response to HEAD, and keeps its length.
        Method::GET | Method::HEAD => match store.manifest(repository, reference) {
            Some((digest, Manifest { kind, bytes })) => {
                let headers = [("docker-content-digest", digest), ("content-type", kind.as_str())];
                let mut response = (headers, bytes.clone()).into_response();
                if method == Method::HEAD {
                    let length = HeaderValue::from(bytes.len());
                    response.headers_mut().insert(header::CONTENT_LENGTH, length);
                    *response.body_mut() = axum::body::Body::empty();
                }
                response
            }
            None => error_response("MANIFEST_UNKNOWN", "manifest unknown"),
        },
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}

/// Creates an error response, as registries send it.
fn error_response(code: &str, message: &str) -> Response {
    let words = serde_json::json!({"errors": [{"code": code, "message": message}]}).to_string();
    (StatusCode::NOT_FOUND, [VERSION, ("content-type", "application/json")], words).into_response()
}

fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}
