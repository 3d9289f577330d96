//! Tests of request coalescing.
//! Callers of one listing share requests, each with its own deadline and its own last known list.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tagboat::reference::{Digest, Tag};
use tagboat::registry::{Listed, Registries, RegistryError, RepositoryAuth};
use tokio::task::{JoinHandle, yield_now};

use super::{anonymous, registries};
use crate::support::git_host::request::Request;
use crate::support::http_front::{Front, Reply};

const LIST: &str = "/v2/app/web/tags/list";
const MANIFEST: &str = "/v2/app/web/manifests/1.0.0";

/// A registry that holds back its answers until the test lets some through.
/// Answers to `GET /v2/` are not held back. The test lets a number of answers through.
struct HeldRegistry {
    front: Front,
    open: Arc<AtomicUsize>,
}

impl HeldRegistry {
    fn new(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let open = Arc::new(AtomicUsize::new(0));
        let (count, shared) = (AtomicUsize::new(0), open.clone());
        let front = Front::alone(move |request| {
            if request.path == "/v2/" {
                return Reply::status(200);
            }
            let number = count.fetch_add(1, Ordering::SeqCst);
            let begin = Instant::now();
            while number >= shared.load(Ordering::SeqCst) && begin.elapsed() < Duration::from_secs(120) {
                std::thread::sleep(Duration::from_millis(5));
            }
            answer(request)
        });
        Self { front, open }
    }

    fn access(&self, seconds: u64) -> RepositoryAuth {
        RepositoryAuth {
            timeout: Duration::from_secs(seconds),
            ..anonymous(&self.front.address(), "app/web")
        }
    }

    /// Lets some answers through, when all callers have asked.
    async fn let_through(&self, number: usize) {
        settle().await;
        self.open.fetch_add(number, Ordering::SeqCst);
    }

    /// Waits until this many requests have arrived.
    async fn asked(&self, path: &str, number: usize) {
        while self.front.requests_for(path).len() < number {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Starts a listing.
fn list(
    registries: &Registries,
    access: RepositoryAuth,
    known: Option<&str>,
) -> JoinHandle<Result<Listed, RegistryError>> {
    let (registries, known) = (registries.clone(), known.map(str::to_owned));
    tokio::spawn(async move { registries.list(access, known.as_deref()).await })
}

fn digest(registries: &Registries, access: RepositoryAuth) -> JoinHandle<Result<Digest, RegistryError>> {
    let registries = registries.clone();
    tokio::spawn(async move { registries.digest(access, &Tag::parse("1.0.0").unwrap()).await })
}

/// Yields to the other tasks.
/// The tests have one thread, so all callers have asked after a few turns.
async fn settle() {
    for _ in 0..20 {
        yield_now().await;
    }
}

fn count(listed: &Result<Listed, RegistryError>) -> usize {
    match listed {
        Ok(Listed::Tags(listing)) => listing.tags.len(),
        other => panic!("{other:?}"),
    }
}

fn page() -> Reply {
    Reply::body(200, r#"{"tags": ["1.0.0", "1.1.0"]}"#)
}

#[tokio::test]
async fn objects_with_different_timeouts_share_a_listing_and_each_waits_for_its_own_time() {
    let registry = HeldRegistry::new(|_| page());
    let registries = registries();
    let in_flight = list(&registries, registry.access(60), None);
    registry.asked(LIST, 1).await;
    let hasty = list(&registries, registry.access(1), None);
    let patient = list(&registries, registry.access(90), None);
    let other = list(&registries, registry.access(30), None);
    registry.let_through(1).await;
    assert_eq!(count(&in_flight.await.unwrap()), 2);
    let error = hasty.await.unwrap().unwrap_err();
    let canonical = registry.access(1).address.canonical();
    let wanted = format!("the tags of {canonical}: no complete response within 1s");
    assert!(error.to_string().starts_with(&wanted), "{error}");
    assert!(!patient.is_finished() && !other.is_finished(), "the others wait for as long as they want");
    registry.let_through(1).await;
    for one in [patient, other] {
        assert_eq!(count(&one.await.unwrap()), 2);
    }
    assert_eq!(registry.front.requests_for(LIST).len(), 2);
}

/// A listing goes on without the caller that started it.
/// That caller is only the first of those that wait for the listing.
#[tokio::test]
async fn a_listing_goes_on_without_the_caller_that_started_it() {
    let registry = HeldRegistry::new(|_| page());
    let registries = registries();
    let first = list(&registries, registry.access(1), None);
    let second = list(&registries, registry.access(60), None);
    registry.asked(LIST, 1).await;
    assert!(first.await.unwrap().is_err());
    registry.let_through(1).await;
    assert_eq!(count(&second.await.unwrap()), 2);
    assert_eq!(registry.front.requests_for(LIST).len(), 1, "it was not begun anew");
}

#[tokio::test]
async fn unchanged_is_answered_only_for_the_same_known_list() {
    let registry = HeldRegistry::new(|request| match request.header("if-none-match") {
        Some("\"new\"") => Reply::status(304).with("ETag", "\"new\""),
        _ => page().with("ETag", "\"new\""),
    });
    let registries = registries();
    registry.let_through(1).await;
    let first = list(&registries, registry.access(60), None);
    assert_eq!(count(&first.await.unwrap()), 2);

    let mut waiting = vec![list(&registries, registry.access(60), Some("\"new\""))];
    registry.asked(LIST, 2).await;
    for (known, seconds) in [(Some("\"new\""), 60), (Some("\"old\""), 30), (None, 60)] {
        waiting.push(list(&registries, registry.access(seconds), known));
    }
    registry.let_through(2).await;
    let mut ended = Vec::new();
    for one in waiting {
        ended.push(one.await.unwrap());
    }
    assert!(matches!(ended[0], Ok(Listed::Unchanged)), "{:?}", ended[0]);
    // Their last known lists differ, so all of them get the tags.
    assert!(ended[1..].iter().all(|listed| count(listed) == 2));

    // Callers with the same last known list share one conditional request.
    let in_flight = list(&registries, registry.access(60), None);
    registry.asked(LIST, 4).await;
    let mut waiting = Vec::new();
    for seconds in [20, 30, 40] {
        waiting.push(list(&registries, registry.access(seconds), Some("\"new\"")));
    }
    registry.let_through(2).await;
    assert_eq!(count(&in_flight.await.unwrap()), 2);
    for one in waiting {
        let ended = one.await.unwrap();
        assert!(matches!(ended, Ok(Listed::Unchanged)), "{ended:?}");
    }
    let conditions: Vec<_> = registry
        .front
        .requests_for(LIST)
        .iter()
        .map(|request| request.header("if-none-match").map(str::to_owned))
        .collect();
    let new = Some("\"new\"".to_owned());
    assert_eq!(conditions, [None, new.clone(), None, None, new]);
}

#[tokio::test]
async fn nothing_is_shared_between_namespaces_or_secrets() {
    let registry = HeldRegistry::new(|_| page());
    let registries = registries();
    let own = registry.access(60);
    let strangers = [
        RepositoryAuth { namespace: "other".to_owned(), ..own.clone() },
        RepositoryAuth { secrets: vec!["login/a".to_owned()], ..own.clone() },
        RepositoryAuth { secrets: vec!["login/b".to_owned()], ..own.clone() },
        RepositoryAuth { login: super::user(&registry.front.address(), "app/web").login, ..own.clone() },
    ];
    let mut waiting = vec![list(&registries, own, None)];
    for access in strangers {
        waiting.push(list(&registries, access, None));
    }
    // All are in flight at the same time, each with a request of its own.
    registry.asked(LIST, 5).await;
    registry.let_through(5).await;
    for one in waiting {
        assert_eq!(count(&one.await.unwrap()), 2);
    }
    assert_eq!(registry.front.requests_for(LIST).len(), 5);
}

#[tokio::test]
async fn lookups_of_a_tag_are_coalesced() {
    let digest_of_all = format!("sha256:{}", "1".repeat(64));
    let shown = digest_of_all.clone();
    let registry = HeldRegistry::new(move |_| Reply::status(200).with("Docker-Content-Digest", &shown));
    let registries = registries();
    let mut waiting = Vec::new();
    for seconds in [1, 60, 90] {
        waiting.push(digest(&registries, registry.access(seconds)));
    }
    registry.asked(MANIFEST, 1).await;
    let error = waiting.remove(0).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("/app/web:1.0.0: no complete response within 1s"), "{error}");
    registry.let_through(1).await;
    for one in waiting {
        assert_eq!(one.await.unwrap().unwrap().as_str(), digest_of_all);
    }
    assert_eq!(registry.front.requests_for(MANIFEST).len(), 1);
}
