//! All registries: what objects share that ask for the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OnceCell;

use super::budget::{BudgetOptions, Budgets};
use super::client::Client;
use super::error::RegistryError;
use super::listing::{ListOptions, Listed, MOST_TAGS};
use super::login::{CloudEnvironment, CloudOptions, Clouds, Fingerprint, Login, LoginChoice};
use super::repository::{Access, Repository};
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
        }
    }
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
    repository: Arc<Repository>,
    /// Held while a listing is under way.
    turn: tokio::sync::Mutex<()>,
    /// The listings that have not begun yet, by what they are to find out.
    waiting: Mutex<HashMap<Question, Arc<Shareable>>>,
    /// Who waits for a look at which tag.
    lines: Mutex<HashMap<Tag, Arc<Line>>>,
}

/// Those who wait for looks at one tag.
#[derive(Debug, Default)]
struct Line {
    /// Held while a look is under way.
    turn: tokio::sync::Mutex<()>,
    /// The look that has not begun yet.
    next: Mutex<Option<Arc<Look>>>,
}

/// A look at a tag that several wait for.
type Look = OnceCell<Result<Digest, RegistryError>>;

/// What one who lists knows already, and how many tags are taken.
type Question = (Option<String>, usize);

/// A listing that several wait for.
type Shareable = OnceCell<Result<Listed, RegistryError>>;

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

    /// A repository. Tokens and logins are kept with it, and only those get the same one who are in the same
    /// namespace, show the same login and take the same way.
    ///
    /// # Errors
    ///
    /// When certificates or the proxy's address cannot be used.
    pub fn repository(&self, access: Access) -> Result<Arc<Repository>, RegistryError> {
        Ok(Arc::clone(&self.entry(access)?.repository))
    }

    /// Lists the tags of a repository, once for all who ask for the same at the same time.
    ///
    /// Who asks while a listing is under way gets the next one, for a tag may have come since that one began.
    ///
    /// # Errors
    ///
    /// When the listing fails; it has failed for all then.
    pub async fn list(&self, access: Access, options: ListOptions<'_>) -> Result<Listed, RegistryError> {
        let entry = self.entry(access)?;
        let question: Question = (options.known.map(str::to_owned), options.most);
        let next = Arc::clone(lock(&entry.waiting).entry(question.clone()).or_default());
        let listed = next.get_or_init(|| async {
            let _turn = entry.turn.lock().await;
            lock(&entry.waiting).remove(&question);
            entry.repository.list(options).await
        });
        listed.await.clone()
    }

    /// The digest that a tag stands for, asked for once for all who want to know it at the same time, as with listings.
    ///
    /// # Errors
    ///
    /// When the registry does not say; all who waited for it get the same error.
    pub async fn digest(&self, access: Access, tag: &Tag) -> Result<Digest, RegistryError> {
        let entry = self.entry(access)?;
        let line = Arc::clone(lock(&entry.lines).entry(tag.clone()).or_default());
        let next = Arc::clone(lock(&line.next).get_or_insert_default());
        let looked = next.get_or_init(|| async {
            let _turn = line.turn.lock().await;
            lock(&line.next).take();
            entry.repository.digest(tag).await
        });
        let looked = looked.await.clone();
        // Who comes later begins a line of their own; besides ours there is one in the map.
        lock(&entry.lines).retain(|name, line| name != tag || Arc::strong_count(line) > 2);
        looked
    }

    fn entry(&self, mut access: Access) -> Result<Arc<Entry>, RegistryError> {
        // As in Go, the variables for proxies are not meant for this machine.
        if matches!(access.way.proxy, ProxyChoice::Environment)
            && is_of_this_machine(access.address.registry())
        {
            access.way.proxy = ProxyChoice::Direct;
        }
        // The time that is given is part of who asks: one who has more of it must not get less.
        let key =
            Fingerprint::of([access.fingerprint().as_bytes(), &access.timeout.as_nanos().to_be_bytes()]);
        let mut entries = lock(&self.0.repositories);
        if let Some(entry) = entries.get(&key) {
            return Ok(Arc::clone(entry));
        }
        let client = self.client(&access)?;
        if entries.len() >= MANY {
            entries
                .retain(|_, entry| Arc::strong_count(entry) > 1 || Arc::strong_count(&entry.repository) > 1);
        }
        let login = self.login(&access);
        let repository = Arc::new(Repository::new(access, login, client, Arc::clone(&self.0.servers)));
        let entry = Arc::new(Entry {
            repository,
            turn: Default::default(),
            waiting: Mutex::default(),
            lines: Mutex::default(),
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
