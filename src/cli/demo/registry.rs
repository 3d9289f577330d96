//! Small registry on this machine, for the time of the demo.
//!
//! It answers pings, lists tags, and returns manifests by tag.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// The media type of an image manifest.
const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

/// The header of servers that speak the protocol.
const VERSION: (&str, &str) = ("docker-distribution-api-version", "registry/2.0");

/// The manifests by repository and tag.
type Manifests = Arc<Mutex<BTreeMap<String, BTreeMap<String, String>>>>;

/// A running registry. It stops when the value is dropped.
pub(super) struct DemoRegistry {
    address: SocketAddr,
    manifests: Manifests,
    _end: oneshot::Sender<()>,
}

impl DemoRegistry {
    /// Serves an empty registry on a free port of the loopback address.
    pub(super) fn start() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
        let address = listener.local_addr()?;
        let manifests = Manifests::default();
        let routes = Router::new().fallback(answer).with_state(manifests.clone());
        let (end, ended) = oneshot::channel();
        thread::Builder::new().name("registry".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = axum::serve(listener, routes) => {}
                    _ = ended => {}
                }
            });
        })?;
        Ok(Self { address, manifests, _end: end })
    }

    /// Returns host and port, as in an image.
    pub(super) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Pushes an image. Images with different `content` have different digests.
    pub(super) fn push(&self, repository: &str, tag: &str, content: &str) {
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "annotations": {"org.opencontainers.image.title": content},
            "layers": [],
        });
        let mut manifests = self.manifests.lock();
        manifests.entry(repository.to_owned()).or_default().insert(tag.to_owned(), manifest.to_string());
    }
}

/// Answers one request.
async fn answer(State(manifests): State<Manifests>, uri: Uri) -> Response {
    let manifests = manifests.lock();
    let Some(path) = uri.path().strip_prefix("/v2/") else { return StatusCode::NOT_FOUND.into_response() };
    if path.is_empty() {
        return [VERSION].into_response();
    }
    if let Some(repository) = path.strip_suffix("/tags/list") {
        let Some(tags) = manifests.get(repository) else {
            return error_response("NAME_UNKNOWN", "repository name not known to registry");
        };
        let list = json!({"name": repository, "tags": tags.keys().collect::<Vec<_>>()}).to_string();
        return ([VERSION, ("content-type", "application/json")], list).into_response();
    }
    let names = path.rsplit_once("/manifests/");
    match names.and_then(|(repository, tag)| manifests.get(repository)?.get(tag)) {
        Some(manifest) => {
            let digest = digest(manifest.as_bytes());
            let headers = [("docker-content-digest", digest.as_str()), ("content-type", MANIFEST_TYPE)];
            (headers, manifest.clone()).into_response()
        }
        None => error_response("MANIFEST_UNKNOWN", "manifest unknown"),
    }
}

/// Creates an error response, as registries send it.
fn error_response(code: &str, message: &str) -> Response {
    let body = json!({"errors": [{"code": code, "message": message}]}).to_string();
    (StatusCode::NOT_FOUND, [VERSION, ("content-type", "application/json")], body).into_response()
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{:x}", Sha256::digest(bytes))
}
