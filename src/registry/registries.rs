//! The entry point: shared state of all registries, and coalesced requests.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::choice::{Login, LoginChoice};
use super::coalesce::{CallOptions, Coalescer};
use super::error::RegistryError;
use super::listing::{ListOptions, Listed};
use super::options::RegistryOptions;
use super::repository::{Repository, RepositoryAuth};
use super::server::Servers;
use super::session::Session;
use crate::cloud::Clouds;
use crate::net::http::{Client, ClientState, HttpOptions};
use crate::net::{Host, ProxyChoice};
use crate::reference::{Digest, Tag};
use crate::secrets::Fingerprint;
use crate::tenancy::{BlockingPool, IdleCache, InUseMap};

/// The maximum number of entries in the cache of repositories.
const MAX_ENTRIES: usize = 8192;

/// The time after which an unused entry is evicted, with its tokens and passwords.
const MAX_IDLE: Duration = Duration::from_secs(60 * 60);

/// All registries, with the connections, rate limiters and tokens that objects share.
///
/// Clones share the same state.
#[derive(Debug, Clone)]
pub struct Registries(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    options: RegistryOptions,
    http: Arc<HttpOptions>,
    state: Arc<ClientState>,
    servers: Arc<Servers>,
    clouds: Arc<Clouds>,
    /// The repositories that were requested lately.
    entries: Mutex<IdleCache<Fingerprint, Arc<Entry>>>,
}

/// A repository as one namespace sees it with one login.
#[derive(Debug)]
struct Entry {
    login: Arc<Login>,
    session: Arc<Session>,
    listings: Arc<Coalescer<Listed>>,
    /// The lookups of digests in flight, by tag.
    lookups: Mutex<InUseMap<Tag, Coalescer<Digest>>>,
}

impl Registries {
    /// Makes the shared state; no registry is known yet.
    pub fn new(options: RegistryOptions) -> Self {
        let http = Arc::new(options.http());
        let state = Arc::new(ClientState::new(&http));
        Self(Arc::new(Shared {
            clouds: Arc::new(Clouds::sharing(options.http(), options.clouds.clone(), Arc::clone(&state))),
            state,
            options,
            http,
            servers: Arc::default(),
            entries: Mutex::new(IdleCache::new(MAX_ENTRIES, MAX_IDLE)),
        }))
    }

    /// Returns the logins at clouds, which logins at git servers share.
    pub fn clouds(&self) -> Arc<Clouds> {
        Arc::clone(&self.0.clouds)
    }

    /// Returns the maximum number of tags of one repository.
    pub fn max_tags(&self) -> usize {
        self.0.options.max_tags
    }

    /// Returns the thread pool for work whose cost a tenant controls.
    pub fn pool(&self) -> &BlockingPool {
        &self.0.options.capacity.pool
    }

    /// Returns a repository.
    ///
    /// Tokens and logins are shared only by requesters in the same namespace that use the same login of the same
    /// objects over the same route.
    pub fn repository(&self, access: RepositoryAuth) -> Repository {
        self.find(access).1
    }

    /// Lists the tags of a repository, in one request for all concurrent callers.
    ///
    /// The callers may have different timeouts. If all of them know the same state of the list and it is unchanged,
    /// nothing is listed; if they know different states, each gets all tags.
    ///
    /// # Errors
    ///
    /// If the listing fails, which fails it for every caller; if it takes longer than this caller's timeout,
    /// while the other callers go on waiting.
    pub async fn list(&self, access: RepositoryAuth, known: Option<&str>) -> Result<Listed, RegistryError> {
        let call = CallOptions { timeout: access.timeout, known: known.map(str::to_owned) };
        let (entry, repository) = self.find(access);
        let (max_tags, operation) = (self.max_tags(), repository.listing_label());
        let list = move |call: CallOptions, deadline| async move {
            let options = ListOptions { max_tags, known: call.known.as_deref(), ..ListOptions::default() };
            repository.within(deadline).list(options).await
        };
        entry.listings.join(call, || operation.clone(), list).await
    }

    /// Looks up the digest of a tag, in one request for all concurrent callers.
    ///
    /// # Errors
    ///
    /// If the registry does not give the digest, or not within the timeout.
    pub async fn digest(&self, access: RepositoryAuth, tag: &Tag) -> Result<Digest, RegistryError> {
        let call = CallOptions { timeout: access.timeout, known: None };
        let (entry, repository) = self.find(access);
        let lookups = entry.lookups.lock().get(tag.clone());
        let (name, operation) = (tag.clone(), repository.digest_label(tag));
        let lookup = move |_, deadline| async move { repository.within(deadline).digest(&name).await };
        let digest = lookups.join(call, || operation.clone(), lookup).await;
        drop(lookups);
        // A later caller starts a new lookup: an entry that only the map holds has no waiters.
        entry.lookups.lock().remove_unused();
        digest
    }

    /// Returns the state that equal requesters share, and the repository for this one.
    fn find(&self, mut access: RepositoryAuth) -> (Arc<Entry>, Repository) {
        // As in Go, proxies of the environment are not used for this machine.
        if matches!(access.route.proxy, ProxyChoice::Environment) && is_loopback(access.address.registry()) {
            access.route.proxy = ProxyChoice::Direct;
        }
        let entry = self.entry(&access);
        let Shared { http, state, .. } = &*self.0;
        // The client is not cached: certificates are dropped with the requester that brought them.
        let client =
            Client::new(access.route.clone(), Arc::clone(http), Arc::clone(state), access.requester());
        let repository = Repository {
            route: access.route.fingerprint(),
            login: Arc::clone(&entry.login),
            client,
            servers: Arc::clone(&self.0.servers),
            session: Arc::clone(&entry.session),
            deadline: None,
            auth: access,
        };
        (entry, repository)
    }

    fn entry(&self, access: &RepositoryAuth) -> Arc<Entry> {
        let key = access.fingerprint();
        let mut entries = self.0.entries.lock();
        if let Some(entry) = entries.get(&key) {
            return entry;
        }
        let entry = Arc::new(Entry {
            login: Arc::new(self.login(access)),
            session: Arc::default(),
            listings: Arc::default(),
            lookups: Mutex::default(),
        });
        entries.insert(access.tenant(), key, Arc::clone(&entry));
        entry
    }

    fn login(&self, access: &RepositoryAuth) -> Login {
        match &access.login {
            LoginChoice::Given(credential) => Login::Given(credential.clone()),
            LoginChoice::Cloud(provider, identity) => {
                let (namespace, proxy) = (access.tenant().to_owned(), access.route.proxy.clone());
                Login::Cloud(self.0.clouds.login(*provider, identity.clone(), proxy, namespace))
            }
        }
    }
}

/// Returns `true` if a host, perhaps with a port, is this machine.
fn is_loopback(registry: &str) -> bool {
    let end =
        if registry.starts_with('[') { registry.find(']').map(|end| end + 1) } else { registry.find(':') };
    match Host::read(&registry[..end.unwrap_or(registry.len())]) {
        Host::Address(address) => address.is_loopback(),
        Host::Name(name) => name == "localhost",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_hosts_are_recognized_by_all_their_names() {
        for registry in
            ["127.0.0.1", "127.0.0.1:5000", "127.9.9.9", "localhost", "localhost:80", "[::1]", "[::1]:5000"]
        {
            assert!(is_loopback(registry), "{registry}");
        }
        for registry in
            ["10.0.0.1:5000", "ghcr.io", "localhost.example.com", "[fd00::1]:5000", "registry.local"]
        {
            assert!(!is_loopback(registry), "{registry}");
        }
    }
}
