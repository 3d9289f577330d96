//! All registries: what objects share that ask for the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OnceCell;

use super::budget::{BudgetOptions, Budgets};
use super::client::{Client, Limits};
use super::error::RegistryError;
use super::listing::{ListOptions, Listed};
use super::login::Fingerprint;
use super::repository::{Access, Repository};
use super::server::Servers;

/// From how many repositories on those are let go that nobody asks for.
const MANY: usize = 8192;

/// From how many ways on those are let go that nobody uses.
const MANY_WAYS: usize = 256;

/// What is asked of registries, and how much.
#[derive(Debug, Clone, Copy, Default)]
pub struct RegistryOptions {
    /// What each server is asked for at most.
    pub budget: BudgetOptions,
    /// How long each part of a request may take.
    pub limits: Limits,
}

/// The registries, behind connections, budgets and tokens that objects share. Clones are one and the same.
#[derive(Debug, Clone)]
pub struct Registries(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limits: Limits,
    budgets: Arc<Budgets>,
    servers: Arc<Servers>,
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
}

/// What one who lists knows already, and how many tags are taken.
type Question = (Option<String>, usize);

/// A listing that several wait for.
type Shareable = OnceCell<Result<Listed, RegistryError>>;

impl Registries {
    /// No registry is known yet.
    pub fn new(options: RegistryOptions) -> Self {
        Self(Arc::new(Shared {
            limits: options.limits,
            budgets: Arc::new(Budgets::new(options.budget)),
            servers: Arc::default(),
            clients: Mutex::default(),
            repositories: Mutex::default(),
        }))
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

    fn entry(&self, access: Access) -> Result<Arc<Entry>, RegistryError> {
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
        let repository = Arc::new(Repository::new(access, client, Arc::clone(&self.0.servers)));
        let entry = Arc::new(Entry { repository, turn: Default::default(), waiting: Mutex::default() });
        entries.insert(key, Arc::clone(&entry));
        Ok(entry)
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
        let client = Arc::new(Client::new(&access.way, self.0.limits, Arc::clone(&self.0.budgets))?);
        clients.insert(key, Arc::clone(&client));
        Ok(client)
    }
}

/// What a panic left behind is whole here: each change is a single step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
