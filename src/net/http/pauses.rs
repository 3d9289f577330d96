//! `Retry-After` of servers, per namespace and login.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use super::rate_limit::ServerRoute;
use crate::secrets::Fingerprint;
use crate::tenancy::FairCache;

/// The maximum number of pauses that are kept.
const MAX_PAUSES: usize = 4096;

/// The namespace and login that requests are made for.
///
/// Slots, memory and threads are granted per namespace. Pauses belong to a namespace and login: registries limit
/// accounts and paths, so the `Retry-After` of one tenant says nothing about another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Requester {
    /// The namespace; empty for the process itself.
    pub(crate) namespace: String,
    /// The fingerprint of the login; an anonymous request has that of its namespace.
    pub(crate) login: Fingerprint,
}

/// The pauses of all servers.
#[derive(Debug)]
pub(crate) struct Pauses(Mutex<FairCache<(ServerRoute, Requester), Instant>>);

impl Default for Pauses {
    fn default() -> Self {
        Self(Mutex::new(FairCache::new(MAX_PAUSES)))
    }
}

impl Pauses {
    /// Pauses requests of a requester to a server until a time.
    pub(crate) fn pause(&self, target: &ServerRoute, requester: &Requester, until: Instant) {
        let key = (target.clone(), requester.clone());
        let mut pauses = self.0.lock();
        let until = pauses.get(&key).map_or(until, |other| until.max(*other));
        let now = Instant::now();
        pauses.retain_if_full(|_, until| *until > now);
        pauses.insert(&requester.namespace, key, until);
    }

    /// Returns the rest of a server's pause for a requester, if there is one.
    pub(crate) fn remaining(&self, target: &ServerRoute, requester: &Requester) -> Option<Duration> {
        let key = (target.clone(), requester.clone());
        let mut pauses = self.0.lock();
        let remaining = pauses.get(&key)?.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            pauses.remove(&key);
            return None;
        }
        Some(remaining)
    }

    /// Waits for the end of a pause, which the server may extend meanwhile.
    pub(crate) async fn wait(&self, target: &ServerRoute, requester: &Requester) {
        while let Some(remaining) = self.remaining(target, requester) {
            sleep_until(Instant::now() + remaining).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requester(namespace: &str, login: &str) -> Requester {
        let login = Fingerprint::of([login.as_bytes()]);
        Requester { namespace: namespace.to_owned(), login }
    }

    fn target(server: &str) -> ServerRoute {
        ServerRoute { server: server.into(), route: Fingerprint::of([&b"route"[..]]) }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_concerns_its_requester_only() {
        let (pauses, server) = (Pauses::default(), target("r.example:443"));
        let told = requester("a", "robot");
        pauses.pause(&server, &told, Instant::now() + Duration::from_secs(60));
        pauses.pause(&server, &told, Instant::now() + Duration::from_secs(1));
        assert_eq!(pauses.remaining(&server, &told), Some(Duration::from_secs(60)));
        for other in [requester("a", "other"), requester("b", "robot")] {
            assert_eq!(pauses.remaining(&server, &other), None);
        }
        assert_eq!(pauses.remaining(&target("other:443"), &told), None);
        pauses.wait(&server, &told).await;
        assert_eq!((pauses.remaining(&server, &told), pauses.0.lock().len()), (None, 0));
    }

    #[tokio::test]
    async fn a_flood_of_pauses_displaces_none_of_another_namespace() {
        let pauses = Pauses::default();
        let (victim, attacker) = (requester("victim", "x"), requester("attacker", "x"));
        let until = Instant::now() + Duration::from_secs(600);
        pauses.pause(&target("r.example:443"), &victim, until);
        for number in 0..2 * MAX_PAUSES {
            pauses.pause(&target(&number.to_string()), &attacker, until);
        }
        assert_eq!(pauses.0.lock().len(), MAX_PAUSES);
        assert!(pauses.remaining(&target("r.example:443"), &victim).is_some());
    }
}
