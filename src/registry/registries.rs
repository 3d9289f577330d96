//! All registries: what objects share that ask for the same.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::budget::{BudgetOptions, Budgets};
use super::client::Client;
use super::error::RegistryError;
use super::listing::{ListOptions, Listed, MOST_TAGS};
use super::login::{CloudEnvironment, CloudOptions, Clouds, Fingerprint, Login, LoginChoice};
use super::repository::{Access, Kept, Repository};
use super::rounds::{Rounds, Wish};
use super::server::Servers;
use super::way::Limits;
use crate::address::{Host, LocalAddresses};
use crate::http::ProxyChoice;
use crate::reference::{Digest, Tag};

/// From how many repositories on those are let go that nobody asks for.
const MANY: usize = 8192;

/// From how many ways on those are let go that nobody uses.
const MANY_WAYS: usize = 256;

/// What is asked of registries, and how much.
#[derive(Debug, Clone)]
pub struct RegistryOptions {
    /// What each server is asked for at most.
    pub budget: BudgetOptions,
    /// How long each part of a request may take.
    pub limits: Limits,
    /// Whether registries, and what they lead to, may be on this machine or its network link.
    pub local_addresses: LocalAddresses,
    /// How many tags of one repository are taken; more are an error.
    pub most_tags: usize,
    /// How clouds are asked for logins.
    pub clouds: CloudOptions,
    /// A number from 0 to 1 by chance, by which pauses differ.
    pub chance: fn() -> f64,
}

impl RegistryOptions {
    /// What suits somebody at a terminal, who is at clouds whom the environment says.
    pub fn of_this_process() -> Self {
        let environment = CloudEnvironment::of_this_process();
        Self { clouds: CloudOptions { environment, ..CloudOptions::default() }, ..Self::default() }
    }
}

impl Default for RegistryOptions {
    /// What suits those who run us on their own machine.
    fn default() -> Self {
        Self {
            budget: BudgetOptions::default(),
            limits: Limits::default(),
            local_addresses: LocalAddresses::Allowed,
            most_tags: MOST_TAGS,
            clouds: CloudOptions::default(),
            chance: by_hash,
        }
    }
}

/// A number from 0 to 1 by chance, as hashes are seeded with it.
fn by_hash() -> f64 {
    let random = RandomState::new().build_hasher().finish() >> 32;
    f64::from(u32::try_from(random).unwrap_or_default()) / f64::from(u32::MAX)
}

/// The registries, behind connections, budgets and tokens that objects share. Clones are one and the same.
#[derive(Debug, Clone)]
pub struct Registries(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    options: RegistryOptions,
    budgets: Arc<Budgets>,
    servers: Arc<Servers>,
    clouds: Arc<Clouds>,
    clients: Mutex<HashMap<Fingerprint, Arc<Client>>>,
    repositories: Mutex<HashMap<Fingerprint, Arc<Entry>>>,
}

/// A repository as one namespace sees it with one login.
#[derive(Debug)]
struct Entry {
    login: Arc<dyn Login>,
    client: Arc<Client>,
    kept: Arc<Kept>,
    listings: Arc<Rounds<Listed>>,
    /// Looks at tags, as far as somebody waits for one.
    looks: Mutex<HashMap<Tag, Arc<Rounds<Digest>>>>,
}

impl Registries {
    /// No registry is known yet.
    pub fn new(options: RegistryOptions) -> Self {
        let budgets = Arc::new(Budgets::new(options.budget));
        Self(Arc::new(Shared {
            clouds: Arc::new(Clouds::new(&options, Arc::clone(&budgets))),
            budgets,
            options,
            servers: Arc::default(),
            clients: Mutex::default(),
            repositories: Mutex::default(),
        }))
    }

    /// How many tags of one repository are taken.
    pub fn most_tags(&self) -> usize {
        self.0.options.most_tags
    }

    /// A repository. Tokens and logins are shared by those only who are in the same namespace, show the same login of the
    /// same objects and take the same way.
    ///
    /// # Errors
    ///
    /// When certificates or the proxy's address cannot be used.
    pub fn repository(&self, access: Access) -> Result<Repository, RegistryError> {
        Ok(self.find(access)?.1)
    }

    /// Lists the tags of a repository, once for all who ask for the same at the same time; they may have different
    /// times to wait. Nothing is listed where it is as all of them know it, and each gets the tags where they do not know
    /// the same.
    ///
    /// # Errors
    ///
    /// When the listing fails; it has failed for all then. When it takes longer than this one has time; the others go on.
    pub async fn list(&self, access: Access, known: Option<&str>) -> Result<Listed, RegistryError> {
        let wish = Wish { allowed: access.timeout, known: known.map(str::to_owned) };
        let (entry, repository) = self.find(access)?;
        let (most, what) = (self.most_tags(), repository.tags_in_words());
        let list = move |wish: Wish| async move {
            let options = ListOptions { most, known: wish.known.as_deref(), ..ListOptions::default() };
            repository.within(wish.allowed).list(options).await
        };
        entry.listings.join(wish, || what.clone(), list).await
    }

    /// The digest that a tag stands for, asked for once for all who want to know it at the same time, as with listings.
    ///
    /// # Errors
    ///
    /// When the registry does not say, or not soon enough.
    pub async fn digest(&self, access: Access, tag: &Tag) -> Result<Digest, RegistryError> {
        let wish = Wish { allowed: access.timeout, known: None };
        let (entry, repository) = self.find(access)?;
        let looks = Arc::clone(lock(&entry.looks).entry(tag.clone()).or_default());
        let (name, what) = (tag.clone(), repository.digest_in_words(tag));
        let look = move |wish: Wish| async move { repository.within(wish.allowed).digest(&name).await };
        let looked = looks.join(wish, || what.clone(), look).await;
        drop(looks);
        // Who comes later begins anew; nobody waits for those that are in the map alone.
        lock(&entry.looks).retain(|_, looks| Arc::strong_count(looks) > 1);
        looked
    }

    /// What is shared by all who ask as this one does, and the repository for this one.
    fn find(&self, mut access: Access) -> Result<(Arc<Entry>, Repository), RegistryError> {
        // As in Go, the variables for proxies are not meant for this machine.
        if matches!(access.way.proxy, ProxyChoice::Environment)
            && is_of_this_machine(access.address.registry())
        {
            access.way.proxy = ProxyChoice::Direct;
        }
        let entry = self.entry(&access)?;
        let repository = Repository {
            way: access.way.fingerprint(),
            login: Arc::clone(&entry.login),
            client: Arc::clone(&entry.client),
            servers: Arc::clone(&self.0.servers),
            kept: Arc::clone(&entry.kept),
            access,
        };
        Ok((entry, repository))
    }

    fn entry(&self, access: &Access) -> Result<Arc<Entry>, RegistryError> {
        let key = access.fingerprint();
        let mut entries = lock(&self.0.repositories);
        if let Some(entry) = entries.get(&key) {
            return Ok(Arc::clone(entry));
        }
        let client = self.client(access)?;
        if entries.len() >= MANY {
            entries.retain(|_, entry| Arc::strong_count(entry) > 1 || Arc::strong_count(&entry.kept) > 1);
        }
        let entry = Arc::new(Entry {
            login: self.login(access),
            client,
            kept: Arc::default(),
            listings: Arc::default(),
            looks: Mutex::default(),
        });
        entries.insert(key, Arc::clone(&entry));
        Ok(entry)
    }

    fn login(&self, access: &Access) -> Arc<dyn Login> {
        match &access.login {
            LoginChoice::Given(credential) => Arc::new(credential.clone()),
            LoginChoice::Cloud(provider, identity) => {
                Arc::new(self.0.clouds.login(*provider, identity.clone(), access.way.proxy.clone()))
            }
        }
    }

    fn client(&self, access: &Access) -> Result<Arc<Client>, RegistryError> {
        let key = access.way.fingerprint();
        let mut clients = lock(&self.0.clients);
        if let Some(client) = clients.get(&key) {
            return Ok(Arc::clone(client));
        }
        if clients.len() >= MANY_WAYS {
            clients.retain(|_, client| Arc::strong_count(client) > 1);
        }
        let client = Arc::new(Client::new(&access.way, &self.0.options, Arc::clone(&self.0.budgets))?);
        clients.insert(key, Arc::clone(&client));
        Ok(client)
    }
}

/// Whether a host, perhaps with a port, is this machine.
fn is_of_this_machine(registry: &str) -> bool {
    let end =
        if registry.starts_with('[') { registry.find(']').map(|end| end + 1) } else { registry.find(':') };
    match Host::read(&registry[..end.unwrap_or(registry.len())]) {
        Host::Address(address) => address.is_loopback(),
        Host::Name(name) => name == "localhost",
    }
}

/// What a panic left behind is whole here: each change is a single step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_several_names() {
        for registry in
            ["127.0.0.1", "127.0.0.1:5000", "127.9.9.9", "localhost", "localhost:80", "[::1]", "[::1]:5000"]
        {
            assert!(is_of_this_machine(registry), "{registry}");
        }
        for registry in
            ["10.0.0.1:5000", "ghcr.io", "localhost.example.com", "[fd00::1]:5000", "registry.local"]
        {
            assert!(!is_of_this_machine(registry), "{registry}");
        }
    }
}
