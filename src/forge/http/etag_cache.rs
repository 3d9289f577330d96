//! Responses for conditional requests.

use std::sync::Arc;

use parking_lot::Mutex;
use url::Url;

use super::rate_limit::LimiterKey;
use crate::tenancy::FairCache;

/// The maximum size in bytes of all cached responses, as received.
const MAX_BYTES: u64 = 32 * 1024 * 1024;

/// The maximum size in bytes of a cached response.
const MAX_RESPONSE: usize = 4 * 1024 * 1024;

/// A response with its `ETag`.
#[derive(Debug)]
pub(super) struct CachedResponse {
    /// The value of `ETag`.
    pub(super) etag: String,
    /// The headers.
    pub(super) headers: Vec<(String, String)>,
    /// The body as received; its parsed form would take many times the memory.
    pub(super) body: Arc<Vec<u8>>,
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

    /// Keeps a response, if it has an `ETag`.
    pub(super) fn insert(
        &self,
        login: &LimiterKey,
        url: &Url,
        headers: &[(String, String)],
        body: &Arc<Vec<u8>>,
    ) {
        let etag = headers.iter().find(|(name, _)| name == "etag").map(|(_, value)| value.clone());
        let size = body.len() + headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
        let Some(etag) = etag.filter(|_| size <= MAX_RESPONSE) else { return };
        let cached = Arc::new(CachedResponse { etag, headers: headers.to_vec(), body: Arc::clone(body) });
        let (key, size) = ((login.clone(), url.clone()), size + url.as_str().len());
        self.0.lock().insert_sized(&login.namespace, key, size as u64, cached);
    }
}

#[cfg(test)]
mod tests {
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
        let cache = EtagCache::default();
        let insert = |path: &str, etag: Option<&str>, size: usize| {
            let headers: Vec<_> = etag.map(|etag| ("etag".to_owned(), etag.to_owned())).into_iter().collect();
            cache.insert(&login("a", "x"), &url(path), &headers, &Arc::new(vec![b'0'; size]));
        };
        insert("1", Some("W/\"1\""), 2);
        insert("2", None, 2);
        insert("3", Some("\"3\""), MAX_RESPONSE);
        assert_eq!(cache.get(&login("a", "x"), &url("1")).unwrap().etag, "W/\"1\"");
        for (login, path) in
            [(login("a", "y"), "1"), (login("b", "x"), "1"), (login("a", "x"), "2"), (login("a", "x"), "3")]
        {
            assert!(cache.get(&login, &url(path)).is_none(), "{login:?} {path}");
        }
    }
    /// Parsed responses took twelve times what was counted for them.
    #[test]
    fn all_that_is_kept_is_counted() {
        let login = LimiterKey {
            namespace: "a".to_owned(),
            origin: "https://h".to_owned(),
            route: Fingerprint::of(["route"]),
            login: Fingerprint::of(["x"]),
        };
        let cache = EtagCache::default();
        let mebibyte = 1024 * 1024;
        let headers = [("etag".to_owned(), "\"1\"".to_owned()), ("x-more".to_owned(), "x".repeat(mebibyte))];
        let is_kept = |at: u32| {
            let url = Url::parse(&format!("https://h/{at}")).unwrap();
            cache.get(&login, &url).is_some()
        };
        for at in 0..40 {
            let url = Url::parse(&format!("https://h/{at}")).unwrap();
            cache.insert(&login, &url, &headers, &Arc::new(vec![b'0'; mebibyte]));
        }
        assert_eq!((0..40).filter(|at| is_kept(*at)).count(), 15);
    }
}
