//! A registry with any number of repositories, which counts its requests.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, Response, StatusCode, header};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;

/// The default number of tags per page.
const PAGE: usize = 100;

/// A running registry, which stops with the runtime.
pub(crate) struct Catalog {
    address: SocketAddr,
    state: Arc<RegistryState>,
}

#[derive(Default)]
struct RegistryState {
    /// The tags of each repository, in ascending order.
    tags: RwLock<BTreeMap<String, Vec<String>>>,
    requests: AtomicUsize,
}

impl Catalog {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, state) = (listener.local_addr().unwrap(), Arc::<RegistryState>::default());
        let router = Router::new().fallback(answer).with_state(state.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, state }
    }

    /// Adds tags to a repository, which is created if necessary.
    pub(crate) fn add(&self, repository: &str, tags: impl IntoIterator<Item = String>) {
        let mut state = self.state.tags.write().unwrap();
        let list = state.entry(repository.to_owned()).or_default();
        list.extend(tags);
        list.sort_unstable();
    }

    /// Returns the image name of a repository.
    pub(crate) fn image(&self, repository: &str) -> String {
        format!("{}/{repository}", self.address)
    }

    pub(crate) fn requests(&self) -> usize {
        self.state.requests.load(Ordering::Relaxed)
    }
}

async fn answer(State(state): State<Arc<RegistryState>>, request: Request<Body>) -> Response<Body> {
    state.requests.fetch_add(1, Ordering::Relaxed);
    let path = request.uri().path().trim_start_matches("/v2/");
    if path.is_empty() {
        return Response::new(Body::empty());
    }
    if let Some(repository) = path.strip_suffix("/tags/list") {
        return listing(&state, repository, request.uri().query().unwrap_or_default());
    }
    match path.split_once("/manifests/") {
        Some((repository, tag)) => manifest(&state, repository, tag),
        None => status(StatusCode::NOT_FOUND),
    }
}

fn listing(state: &RegistryState, repository: &str, query: &str) -> Response<Body> {
    let parameter = |wanted: &str| {
        let mut pairs = url::form_urlencoded::parse(query.as_bytes());
        pairs.find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
    };
    let tags = state.tags.read().unwrap();
    let Some(all) = tags.get(repository) else { return status(StatusCode::NOT_FOUND) };
    let count = parameter("n").and_then(|text| text.parse().ok()).unwrap_or(PAGE);
    let start = parameter("last").map_or(0, |last| all.partition_point(|tag| *tag <= last));
    let part = &all[start..all.len().min(start + count)];
    let mut answer = Response::builder().header(header::CONTENT_TYPE, "application/json");
    if let Some(last) = part.last().filter(|_| start + part.len() < all.len()) {
        let link = format!("</v2/{repository}/tags/list?n={count}&last={last}>; rel=\"next\"");
        answer = answer.header(header::LINK, link);
    }
    let body = serde_json::json!({"name": repository, "tags": part}).to_string();
    answer.body(Body::from(body)).unwrap()
}

fn manifest(state: &RegistryState, repository: &str, tag: &str) -> Response<Body> {
    let tags = state.tags.read().unwrap();
    let is_there = tags.get(repository).is_some_and(|all| all.binary_search(&tag.to_owned()).is_ok());
    if !is_there {
        return status(StatusCode::NOT_FOUND);
    }
    let hex: String =
        Sha256::digest(format!("{repository}:{tag}")).iter().map(|byte| format!("{byte:02x}")).collect();
    Response::builder()
        .header(header::CONTENT_TYPE, "application/vnd.oci.image.manifest.v1+json")
        .header("docker-content-digest", format!("sha256:{hex}"))
        .body(Body::empty())
        .unwrap()
}

fn status(status: StatusCode) -> Response<Body> {
    Response::builder().status(status).body(Body::empty()).unwrap()
}
