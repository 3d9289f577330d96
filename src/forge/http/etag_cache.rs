//! Responses for conditional requests.

use std::sync::Arc;

use parking_lot::Mutex;
use url::Url;

use super::rate_limit::LimiterKey;
use crate::forge::exchange::ApiResponse;
use crate::tenancy::FairCache;

/// The maximum size in bytes of all cached responses, as received.
const MAX_BYTES: u64 = 32 * 1024 * 1024;

/// The maximum size in bytes of a cached response.
const MAX_RESPONSE: usize = 4 * 1024 * 1024;

/// The factor from the size of a body as received to its size in memory.
const OVERHEAD: u64 = 3;

/// A response with its `ETag`.
#[derive(Debug)]
pub(super) struct CachedResponse {
    /// The value of `ETag`.
    pub(super) etag: String,
    /// The response.
    pub(super) response: ApiResponse,
}

/// The cached responses of all logins.
///
/// The key has namespace, route and token, so no response is used for another login.
#[derive(Debug)]
pub(super) struct EtagCache(Mutex<FairCache<(LimiterKey, Url), Arc<CachedResponse>>>);

impl Default for EtagCache {
    fn default() -> Self {
        Self(Mutex::new(FairCache::sized(MAX_BYTES)))
    }
}

impl EtagCache {
    /// Returns the response to an earlier request of a login.
    pub(super) fn get(&self, login: &LimiterKey, url: &Url) -> Option<Arc<CachedResponse>> {
        self.0.lock().get(&(login.clone(), url.clone())).map(|cached| Arc::clone(cached))
    }

    /// Keeps a response of so many bytes, if it has an `ETag`.
    pub(super) fn insert(&self, login: &LimiterKey, url: &Url, response: &ApiResponse, bytes: usize) {
        let etag = response.headers.iter().find(|(name, _)| name == "etag").map(|(_, value)| value.clone());
        let Some(etag) = etag.filter(|_| response.status == 200 && bytes <= MAX_RESPONSE) else { return };
        let cached = Arc::new(CachedResponse { etag, response: response.clone() });
        let key = (login.clone(), url.clone());
        self.0.lock().insert_sized(&login.namespace, key, bytes as u64 * OVERHEAD, cached);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::secrets::Fingerprint;

    #[test]
    fn a_response_is_used_for_its_login_and_address_only() {
        let login = |namespace: &str, token: &str| LimiterKey {
            namespace: namespace.to_owned(),
            origin: "https://h".to_owned(),
            route: Fingerprint::of(["route"]),
            login: Fingerprint::of([token]),
        };
        let url = |path: &str| Url::parse(&format!("https://h/{path}")).unwrap();
        let response = |etag: Option<&str>| ApiResponse {
            status: 200,
            headers: etag.map(|etag| ("etag".to_owned(), etag.to_owned())).into_iter().collect(),
            body: json!([]),
        };
        let cache = EtagCache::default();
        cache.insert(&login("a", "x"), &url("1"), &response(Some("W/\"1\"")), 2);
        cache.insert(&login("a", "x"), &url("2"), &response(None), 2);
        cache.insert(&login("a", "x"), &url("3"), &response(Some("\"3\"")), MAX_RESPONSE + 1);
        assert_eq!(cache.get(&login("a", "x"), &url("1")).unwrap().etag, "W/\"1\"");
        for (login, path) in
            [(login("a", "y"), "1"), (login("b", "x"), "1"), (login("a", "x"), "2"), (login("a", "x"), "3")]
        {
            assert!(cache.get(&login, &url(path)).is_none(), "{login:?} {path}");
        }
    }
}
