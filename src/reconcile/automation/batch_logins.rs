//! The logins of automations that are reconciled together, and the slots of large ones.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::conclusion::Conclusion;
use super::login::{LoggedIn, LoginOptions, log_in};
use super::source::{ObjectName, SourceConfiguration};
use crate::git::RemotePlan;
use crate::objects::Objects;
use crate::tenancy::{FairSemaphore, Permit, SlotLimits};

/// The maximum number of large logins at the same time.
///
/// It is the number of transactions that wait for servers.
const LARGE: SlotLimits = SlotLimits { total: 32, per_namespace: 16, overflow: None }.with_overflow(32);

/// Bounds the logins that are made from Secrets of [`INLINE_BYTES`](crate::tenancy::INLINE_BYTES) and more, which stay
/// in memory until their batch ends. Clones share the bound.
#[derive(Clone, Debug)]
pub struct LargeLogins(FairSemaphore);

impl LargeLogins {
    /// Takes a slot of a namespace; waits for a free one if `may_wait`.
    pub(super) async fn enter(&self, namespace: &str, may_wait: bool) -> Option<Permit> {
        if may_wait { Some(self.0.acquire(namespace, 1).await) } else { self.0.try_acquire(namespace, 1) }
    }
}

impl Default for LargeLogins {
    fn default() -> Self {
        Self(FairSemaphore::new(LARGE))
    }
}

/// Makes each login of a batch once, however many of its automations use it.
///
/// One that a server refused is made again.
///
/// Clones share the logins. Requests of a batch are submitted together, so a batch may not wait for a slot
/// while it holds one: all others could do the same. It only ever does if a GitRepository changes while the
/// batch begins.
#[derive(Clone, Debug, Default)]
pub struct BatchLogins(Arc<Mutex<HashMap<LoginKey, LoggedIn>>>);

/// The parts of a source that its login depends on.
#[derive(Debug, PartialEq, Eq, Hash)]
struct LoginKey {
    /// The namespace of the automation, in which a service account is.
    namespace: String,
    provider: String,
    service_account: Option<String>,
    repository: ObjectName,
    url: String,
    secret: Option<ObjectName>,
    proxy_secret: Option<ObjectName>,
}

impl BatchLogins {
    /// Returns the login for the remote of a source, on behalf of a namespace.
    ///
    /// # Errors
    ///
    /// If a secret is missing or malformed, or the address must not be used.
    pub async fn log_in(
        &self,
        objects: &impl Objects,
        namespace: &str,
        source: &SourceConfiguration,
        options: &LoginOptions,
    ) -> Result<LoggedIn, Conclusion> {
        let key = LoginKey {
            namespace: namespace.to_owned(),
            provider: source.provider.to_string(),
            service_account: source.service_account.clone(),
            repository: source.repository.clone(),
            url: source.url.clone(),
            secret: source.secret.clone(),
            proxy_secret: source.proxy_secret.clone(),
        };
        let mut logins = self.0.lock().await;
        let is_usable = |login: &&LoggedIn| login.entry.as_ref().is_none_or(|entry| !entry.is_refused());
        let login = match logins.get(&key).filter(is_usable) {
            Some(login) => login.clone(),
            None => {
                let login = log_in(objects, namespace, source, options, logins.is_empty()).await;
                let login = login.map_err(|error| Conclusion::stopped(error.stage(), &error))?;
                logins.insert(key, login.clone());
                login
            }
        };
        Ok(LoggedIn { remote: RemotePlan { timeout: source.timeout, ..login.remote }, ..login })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures::FutureExt;
    use futures::future::join_all;
    use serde_json::json;
    use tagboat_api::{GitRepository, ImagePolicy};

    use super::*;
    use crate::cloud::{CloudOptions, Clouds};
    use crate::forge::ForgeClients;
    use crate::git::{PrivateFiles, ProcessEnv, SshAlgorithms};
    use crate::net::LocalAddresses;
    use crate::objects::ObjectsError;
    use crate::reconcile::automation::provider_login::GitClouds;
    use crate::reconcile::automation::source::SourceReference;
    use crate::reconcile::cross_namespace::CrossNamespace;
    use crate::reconcile::repository::request::ObjectIdentity;
    use crate::registry::RegistryOptions;
    use crate::secrets::Secret;
    use crate::tenancy::{BlockingPool, Capacity, INLINE_BYTES};

    /// A cluster with Secrets of one content, which counts how often they are read.
    pub(in crate::reconcile::automation) struct Secrets {
        size: usize,
        reads: AtomicUsize,
    }

    impl Secrets {
        pub(in crate::reconcile::automation) fn of(size: usize) -> Self {
            Self { size, reads: AtomicUsize::new(0) }
        }

        pub(in crate::reconcile::automation) fn reads(&self) -> usize {
            self.reads.load(Ordering::SeqCst)
        }
    }

    impl Objects for Secrets {
        async fn policies(&self, _: &str) -> Result<Vec<Arc<ImagePolicy>>, ObjectsError> {
            Ok(Vec::new())
        }

        async fn git_repository(&self, _: &str, _: &str) -> Result<Option<GitRepository>, ObjectsError> {
            Ok(None)
        }

        async fn secret(&self, _: &str, _: &str) -> Result<BTreeMap<String, Secret>, ObjectsError> {
            self.reads.fetch_add(1, Ordering::SeqCst);
            let authority = format!("-----BEGIN CERTIFICATE-----\n{}", "x".repeat(self.size));
            Ok(BTreeMap::from([("ca.crt".to_owned(), Secret::new(authority))]))
        }

        async fn pull_secrets(&self, _: &str, _: &str) -> Result<Vec<String>, ObjectsError> {
            Ok(Vec::new())
        }
    }

    /// A GitRepository with a Secret of its own.
    pub(in crate::reconcile::automation) fn source(name: &str) -> SourceConfiguration {
        let automation = json!({
            "metadata": {"namespace": "n", "name": name},
            "spec": {
                "interval": "1m",
                "sourceRef": {"kind": "GitRepository", "name": name},
                "git": {
                    "commit": {"author": {"name": "bot", "email": "bot@example.com"}},
                    "push": {"branch": "main"},
                },
            },
        });
        let repository = json!({
            "metadata": {"namespace": "n", "name": name},
            "spec": {"url": "https://git.example/fleet", "interval": "1m", "secretRef": {"name": name}},
        });
        let automation = serde_json::from_value(automation).unwrap();
        let reference = SourceReference::of(&automation, CrossNamespace::Allowed).unwrap();
        let repository = serde_json::from_value(repository).unwrap();
        reference.configure(Some(&repository), ObjectIdentity::Off).unwrap()
    }

    fn options(slots: u64) -> LoginOptions {
        let limits = SlotLimits { total: slots, per_namespace: slots, overflow: None };
        LoginOptions {
            local_paths: None,
            local_addresses: LocalAddresses::Allowed,
            is_of_the_user: false,
            process_env: ProcessEnv::default(),
            ssh_algorithms: SshAlgorithms::default(),
            mirror_size: 1,
            files: PrivateFiles::default(),
            capacity: Capacity::default(),
            git: GitClouds {
                clouds: Arc::new(Clouds::new(RegistryOptions::default().http(), CloudOptions::default())),
                identity: ObjectIdentity::Off,
                accounts: None,
            },
            forges: ForgeClients::default(),
            large: Some(LargeLogins(FairSemaphore::new(limits))),
        }
    }

    async fn until(holds: impl Fn() -> bool) {
        let waiting = async {
            while !holds() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("it comes to this in time");
    }

    /// Automations that waited for a slot held their Secrets.
    ///
    /// A thousand of them held a thousand Secrets of a MiB each.
    #[tokio::test]
    async fn a_large_login_without_a_slot_holds_no_secret_and_is_read_again_with_one() {
        let (secrets, options) = (Arc::new(Secrets::of(INLINE_BYTES)), options(1));
        let first = BatchLogins::default();
        let plan = first.log_in(&*secrets, "n", &source("a"), &options).await.unwrap();
        assert_eq!(secrets.reads(), 2);
        let waiting = tokio::spawn({
            let (secrets, options) = (Arc::clone(&secrets), options.clone());
            async move { BatchLogins::default().log_in(&*secrets, "n", &source("b"), &options).await }
        });
        until(|| secrets.reads() == 3).await;
        // A request may outlive its batch in the queue of its mirror.
        drop(first);
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!waiting.is_finished() && secrets.reads() == 3);
        drop(plan);
        assert!(waiting.await.unwrap().is_ok());
        assert_eq!(secrets.reads(), 4);
    }

    #[tokio::test]
    async fn automations_of_a_batch_share_one_large_login() {
        let (secrets, options, source) = (Secrets::of(INLINE_BYTES), options(1), source("a"));
        let logins = BatchLogins::default();
        let plans = join_all((0..20).map(|_| logins.log_in(&secrets, "n", &source, &options))).await;
        assert!(plans.iter().all(Result::is_ok));
        assert_eq!(secrets.reads(), 2);
    }

    /// Two batches that held a slot and waited for another one would deadlock.
    #[tokio::test]
    async fn a_batch_with_a_login_waits_for_no_other_one() {
        let (secrets, options, logins) = (Secrets::of(INLINE_BYTES), options(1), BatchLogins::default());
        let _first = logins.log_in(&secrets, "n", &source("a"), &options).await.unwrap();
        let second = logins.log_in(&secrets, "n", &source("b"), &options).now_or_never();
        let Some(Err(Conclusion::Failure(failure))) = second else { panic!("{second:?}") };
        assert!(failure.message.contains("GitRepository n/b changed its URL"), "{}", failure.message);
    }

    /// A megabyte of certificates was searched and hashed on an async worker, for each automation.
    #[tokio::test]
    async fn only_small_secrets_are_read_without_the_pool() {
        let mut options = options(1);
        options.capacity.pool = BlockingPool::new(2);
        let thread = options.capacity.pool.enter("n").await;
        let small = Secrets::of(1);
        let login = BatchLogins::default().log_in(&small, "n", &source("a"), &options).now_or_never();
        assert!(login.is_some_and(|login| login.is_ok()) && small.reads() == 1);
        let (large, logins) = (Secrets::of(INLINE_BYTES), BatchLogins::default());
        let source = source("b");
        let mut login = Box::pin(logins.log_in(&large, "n", &source, &options));
        assert!((&mut login).now_or_never().is_none());
        drop(thread);
        assert!(login.await.is_ok());
    }
}
