//! Fairness: one namespace delays another one's requests to a registry by two seconds at most.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tagboat::net::Proxy;
use tagboat::net::http::HttpError;
use tagboat::registry::{
    ProxyChoice, RateLimitOptions, Registries, RegistryError, RegistryOptions, RepositoryAuth,
};
use tagboat::secrets::{Secret, SecretData};
use tokio::task::JoinHandle;

use super::{anonymous, registries, tags_by, user};
use crate::support::http_front::{Front, Reply};

/// Long enough for any machine, and far less than the attackers hold their slots.
const TIMEOUT: Duration = Duration::from_secs(20);

fn of(namespace: &str, access: RepositoryAuth) -> RepositoryAuth {
    RepositoryAuth { namespace: namespace.to_owned(), timeout: Duration::from_secs(90), ..access }
}

fn list(registries: &Registries, access: RepositoryAuth) -> JoinHandle<Result<Vec<String>, RegistryError>> {
    let registries = registries.clone();
    tokio::spawn(async move { tags_by(&registries, access).await })
}

/// A registry whose paths below `/v2/evil/` are never answered.
fn hangs_for_evil() -> Front {
    Front::alone(|request| match request.path.as_str() {
        "/v2/" => Reply::status(200),
        path if path.starts_with("/v2/evil/") => Reply::Silence,
        _ => Reply::body(200, r#"{"tags": ["1.0.0"]}"#),
    })
}

async fn asked(front: &Front, number: usize, path: &str) {
    while front.requests().iter().filter(|request| request.path.contains(path)).count() < number {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn slots_held_for_own_proxies_do_not_count_for_the_direct_route() {
    let registry = hangs_for_evil();
    let registries = registries();
    let proxies: Vec<Front> = (0..16).map(|_| Front::alone(|_| Reply::Silence)).collect();
    let mut hanging = Vec::new();
    for proxy in &proxies {
        let data =
            BTreeMap::from([("address".to_owned(), Secret::new(format!("http://{}", proxy.address())))]);
        let mut access = of("evil", anonymous(&registry.address(), "app/web"));
        let proxy = Proxy::from_secret(SecretData { name: "evil/proxy", data: &data }).unwrap();
        access.route.proxy = ProxyChoice::Given(proxy);
        hanging.push(list(&registries, access));
    }
    for proxy in &proxies {
        asked(proxy, 1, "").await;
    }
    let begin = Instant::now();
    let victim = tags_by(&registries, of("victim", anonymous(&registry.address(), "app/web"))).await;
    assert_eq!(victim.unwrap(), ["1.0.0"]);
    assert!(begin.elapsed() < TIMEOUT, "{:?}", begin.elapsed());
    assert!(hanging.iter().all(|one| !one.is_finished()));
    hanging.iter().for_each(JoinHandle::abort);
}

#[tokio::test]
async fn a_namespace_without_a_slot_gets_one_though_all_are_held() {
    let registry = hangs_for_evil();
    for concurrency in [1, 16] {
        let rate_limits = RateLimitOptions { concurrency, ..RateLimitOptions::default() };
        let registries = Registries::new(RegistryOptions { rate_limits, ..RegistryOptions::default() });
        let before = registry.requests().len();
        let hanging: Vec<_> = (0..3 * concurrency)
            .map(|number| {
                let access = anonymous(&registry.address(), &format!("evil/app{number}"));
                list(&registries, of("evil", access))
            })
            .collect();
        while registry.requests()[before..].iter().filter(|one| one.path.contains("/evil/")).count()
            < concurrency
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let begin = Instant::now();
        let victim = tags_by(&registries, of("victim", anonymous(&registry.address(), "app/web"))).await;
        assert_eq!(victim.unwrap(), ["1.0.0"]);
        assert!(begin.elapsed() < TIMEOUT, "{:?}", begin.elapsed());
        let evil = registry.requests()[before..].iter().filter(|one| one.path.contains("/evil/")).count();
        assert_eq!(evil, concurrency, "one that holds slots gets none beyond the limit");
        hanging.iter().for_each(JoinHandle::abort);
    }
}

/// Registries throttle accounts and paths, and a tenant may have a path of its own.
#[tokio::test]
async fn a_retry_after_applies_to_its_namespace_and_login_only() {
    let is_over = Arc::new(AtomicBool::new(false));
    let evil_is_over = Arc::clone(&is_over);
    let registry = Front::alone(move |request| match (request.path.as_str(), request.authorization()) {
        ("/v2/", _) => Reply::status(401).with("WWW-Authenticate", "Basic realm=\"x\""),
        (path, _) if path.starts_with("/v2/evil/") && !evil_is_over.load(Ordering::SeqCst) => {
            Reply::status(429).with("Retry-After", "3600")
        }
        _ => Reply::body(200, r#"{"tags": ["1.0.0"]}"#),
    });
    let registries = registries();
    let server = registry.address();
    for attacker in [anonymous(&server, "evil/app"), user(&server, "evil/app")] {
        let error = tags_by(&registries, of("evil", attacker)).await.unwrap_err();
        assert_eq!(error.retry_after(), Some(Duration::from_secs(3600)), "{error}");
    }
    for victim in [anonymous(&server, "app/web"), user(&server, "app/web")] {
        assert_eq!(tags_by(&registries, of("victim", victim)).await.unwrap(), ["1.0.0"]);
    }
    // The login that got the `Retry-After` respects it.
    is_over.store(true, Ordering::SeqCst);
    let error = tags_by(&registries, of("evil", user(&server, "evil/other"))).await.unwrap_err();
    assert!(matches!(error, RegistryError::Http(HttpError::Paused { .. })), "{error}");
}

/// The `Retry-After` of a redirect's target does not concern the server that redirects.
#[tokio::test]
async fn a_retry_after_of_a_redirect_target_does_not_pause_the_redirecting_server() {
    let other = Front::alone(|_| Reply::status(429).with("Retry-After", "3600"));
    let target = other.url("/list");
    let registry = Front::alone(move |request| match request.path.as_str() {
        "/v2/" => Reply::status(200),
        "/v2/app/moved/tags/list" => Reply::redirect(&target),
        _ => Reply::body(200, r#"{"tags": ["1.0.0"]}"#),
    });
    let registries = registries();
    assert!(tags_by(&registries, anonymous(&registry.address(), "app/moved")).await.is_err());
    assert_eq!(tags_by(&registries, anonymous(&registry.address(), "app/web")).await.unwrap(), ["1.0.0"]);
    assert!(tags_by(&registries, anonymous(&registry.address(), "app/moved")).await.is_err());
    assert_eq!(other.requests().len(), 1, "the target is left alone");
}
