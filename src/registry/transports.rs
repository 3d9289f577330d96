//! Cache of transports.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::error::RegistryError;
use super::login::Fingerprint;
use super::transport::Transport;
use crate::tenancy::FairCache;

/// The maximum number of cached transports. Each takes about 0.15 MiB.
const MAX_TRANSPORTS: usize = 256;

/// The time after which an unused transport is evicted. Its idle connections are closed sooner.
const IDLE: Duration = Duration::from_secs(5 * 60);

/// The interval between two sweeps of unused transports.
const SWEEP: Duration = Duration::from_secs(30);

/// The transports of all routes.
///
/// An evicted transport lives as long as the requests that use it, whose number is bounded.
#[derive(Debug)]
pub(super) struct Transports(Mutex<Table>);

#[derive(Debug)]
struct Table {
    kept: FairCache<Fingerprint, Kept>,
    swept_at: Instant,
}

#[derive(Debug)]
struct Kept {
    transport: Arc<Transport>,
    used_at: Instant,
}

impl Default for Transports {
    fn default() -> Self {
        let table = Table { kept: FairCache::new(MAX_TRANSPORTS), swept_at: Instant::now() };
        Self(Mutex::new(table))
    }
}

impl Transports {
    /// Returns the cached transport of a key.
    pub(super) fn get(&self, key: &Fingerprint) -> Option<Arc<Transport>> {
        let now = Instant::now();
        let mut table = self.0.lock();
        table.sweep(now);
        let kept = table.kept.get(key)?;
        kept.used_at = now;
        Some(Arc::clone(&kept.transport))
    }

    /// Makes a transport for a namespace, and caches it.
    ///
    /// # Errors
    ///
    /// When certificates or the proxy's address cannot be used.
    pub(super) fn insert(
        &self,
        namespace: &str,
        key: Fingerprint,
        make: impl FnOnce() -> Result<Transport, RegistryError>,
    ) -> Result<Arc<Transport>, RegistryError> {
        let transport = Arc::new(make()?);
        let now = Instant::now();
        let mut table = self.0.lock();
        table.sweep(now);
        table.kept.insert(namespace, key, Kept { transport: Arc::clone(&transport), used_at: now });
        Ok(transport)
    }
}

impl Table {
    fn sweep(&mut self, now: Instant) {
        if now.duration_since(self.swept_at) >= SWEEP {
            self.swept_at = now;
            self.kept.retain(|_, kept| now.duration_since(kept.used_at) < IDLE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::ProxyChoice;
    use crate::registry::options::RegistryOptions;
    use crate::registry::route::Route;

    fn transport() -> Result<Transport, RegistryError> {
        let way = Route { proxy: ProxyChoice::Direct, ..Route::default() };
        Transport::new(&way, &RegistryOptions::default())
    }

    #[tokio::test(start_paused = true)]
    async fn an_unused_transport_goes() {
        let transports = Transports::default();
        let key = |name: &str| Fingerprint::of([name.as_bytes()]);
        let transport = transports.insert("a", key("used"), transport).unwrap();
        transports.insert("a", key("unused"), self::transport).unwrap();
        for _ in 0..10 {
            tokio::time::advance(Duration::from_secs(60)).await;
            assert!(Arc::ptr_eq(&transports.get(&key("used")).unwrap(), &transport));
        }
        assert!(transports.get(&key("unused")).is_none());
        assert_eq!(transports.0.lock().kept.len(), 1);
    }
}
