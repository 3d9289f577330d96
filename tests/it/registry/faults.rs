//! Registries that are slow, busy, broken or unreachable.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tagboat::net::Proxy;
use tagboat::net::http::HttpError;
use tagboat::registry::{
    ProxyChoice, RateLimitOptions, Registries, RegistryError, RegistryOptions, RepositoryAuth,
};
use tagboat::secrets::{Secret, SecretData};

use super::{anonymous, registries, tags, tags_by, with_short_timeouts};
use crate::support::http_front::{Front, Reply};
use crate::support::registry::Registry;

const LIST: &str = "/v2/app/web/tags/list";
const MADE: &str = "2026-01-02T03:04:05Z";

/// The real registry behind a front, with a fault for the first listings.
fn faulty(registry: &Registry, number: usize, fault: impl Fn() -> Reply + Send + Sync + 'static) -> Front {
    let count = AtomicUsize::new(0);
    Front::before(registry.port(), move |request| {
        if request.path == LIST && count.fetch_add(1, Ordering::SeqCst) < number {
            fault()
        } else {
            Reply::Forward
        }
    })
}

fn registry() -> Registry {
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", MADE);
    registry
}

#[tokio::test]
async fn a_transient_error_is_retried() {
    let registry = registry();
    for fault in [
        || Reply::status(503),
        || Reply::status(500),
        || Reply::Gone,
        || Reply::Truncated,
        || Reply::status(429).with("Retry-After", "1"),
    ] {
        let front = faulty(&registry, 1, fault);
        assert_eq!(tags(anonymous(&front.address(), "app/web")).await.unwrap(), ["1.0.0"]);
        assert_eq!(front.requests_for(LIST).len(), 2);
    }
}

#[tokio::test]
async fn a_lasting_error_is_tried_three_times_at_most() {
    let registry = registry();
    let front = faulty(&registry, 99, || Reply::body(502, "<html>bad</html>"));
    let error = tags(anonymous(&front.address(), "app/web")).await.unwrap_err();
    assert!(error.to_string().ends_with(": unexpected status code 502 Bad Gateway"), "{error}");
    assert_eq!(front.requests_for(LIST).len(), 3);
    let front = faulty(&registry, 99, || Reply::status(403));
    assert!(tags(anonymous(&front.address(), "app/web")).await.is_err());
    assert_eq!(front.requests_for(LIST).len(), 1);
}

#[tokio::test]
async fn a_retry_after_of_a_server_holds_for_all_requests() {
    let registry = registry();
    registry.push("app/api", "2.0.0", MADE);
    let front = faulty(&registry, 1, || Reply::status(429).with("Retry-After", "2"));
    let registries = registries();
    let begin = Instant::now();
    let first = {
        let (registries, access) = (registries.clone(), anonymous(&front.address(), "app/web"));
        tokio::spawn(async move { tags_by(&registries, access).await })
    };
    while front.requests_for(LIST).is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The answer is being sent; the second request must not start before it is read.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(tags_by(&registries, anonymous(&front.address(), "app/api")).await.unwrap(), ["2.0.0"]);
    assert!(begin.elapsed() >= Duration::from_secs(2), "{:?}", begin.elapsed());
    assert_eq!(first.await.unwrap().unwrap(), ["1.0.0"]);
}

#[tokio::test]
async fn a_retry_after_beyond_the_deadline_ends_the_call_at_once() {
    let registry = registry();
    let front = faulty(&registry, 99, || Reply::status(429).with("Retry-After", "120"));
    let registries = registries();
    let begin = Instant::now();
    let error = tags_by(&registries, anonymous(&front.address(), "app/web")).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(120)));
    assert!(error.to_string().contains("429 Too Many Requests"), "{error}");
    assert!(error.to_string().ends_with("; retry after 120s"), "{error}");
    let error = tags_by(&registries, anonymous(&front.address(), "app/web")).await.unwrap_err();
    assert!(matches!(error, RegistryError::Http(HttpError::Paused { .. })), "{error}");
    assert!(error.to_string().contains("are paused for another"), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(60));
    assert_eq!(front.requests_for(LIST).len(), 1);
}

#[tokio::test]
async fn every_wait_has_an_end() {
    let registry = registry();
    let begin = Instant::now();
    let front = faulty(&registry, 99, || Reply::Silence);
    let error = tags_by(&with_short_timeouts(), anonymous(&front.address(), "app/web")).await.unwrap_err();
    assert!(error.to_string().contains("the server did not start to respond within 500ms"), "{error}");
    // The bytes arrive slowly, and never all of them.
    let front = faulty(&registry, 99, || Reply::Drip);
    let mut access = anonymous(&front.address(), "app/web");
    access.timeout = Duration::from_secs(1);
    let error = tags_by(&with_short_timeouts(), access).await.unwrap_err();
    assert!(error.to_string().contains("no complete response within 1s"), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(60));
}

#[tokio::test]
async fn a_slow_answer_is_an_answer() {
    let registry = registry();
    let front = faulty(&registry, 1, || Reply::Late(Duration::from_millis(300)));
    assert_eq!(
        tags_by(&with_short_timeouts(), anonymous(&front.address(), "app/web")).await.unwrap(),
        ["1.0.0"]
    );
}

#[tokio::test]
async fn an_endless_answer_is_cut_off() {
    let front = Front::alone(|request| match request.path.as_str() {
        "/v2/" => Reply::status(200),
        _ => Reply::body(200, vec![b' '; 33 * 1024 * 1024]),
    });
    let error = tags(anonymous(&front.address(), "app/web")).await.unwrap_err();
    assert!(error.to_string().contains("the response is larger than 33554432 bytes"), "{error}");
}

#[tokio::test]
async fn a_closed_port_is_one_error() {
    let front = Front::alone(|_| Reply::status(200));
    let address = front.address();
    drop(front);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let error = tags(anonymous(&address, "app/web")).await.unwrap_err();
    let wanted = format!(
        "GET https://{address}/v2/: connection refused; GET http://{address}/v2/: connection refused"
    );
    assert_eq!(error.to_string(), wanted);
}

#[tokio::test]
async fn no_more_requests_are_under_way_at_one_server_than_its_budget_allows() {
    static NOW: AtomicUsize = AtomicUsize::new(0);
    static MOST: AtomicUsize = AtomicUsize::new(0);
    let front = Front::alone(|request| {
        if request.path == "/v2/" {
            return Reply::status(200);
        }
        MOST.fetch_max(NOW.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(50));
        NOW.fetch_sub(1, Ordering::SeqCst);
        Reply::body(200, r#"{"tags": ["1"]}"#)
    });
    let registries = with_short_timeouts();
    let mut asked = Vec::new();
    for number in 0..8 {
        let (registries, access) =
            (registries.clone(), anonymous(&front.address(), &format!("app/web{number}")));
        asked.push(tokio::spawn(async move { registries.list(access, None).await }));
    }
    for one in asked {
        one.await.unwrap().unwrap();
    }
    assert_eq!(MOST.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_proxy_of_a_secret_is_used() {
    use std::collections::BTreeMap;

    use tagboat::net::Proxy;
    use tagboat::secrets::{Secret, SecretData};

    let registry = registry();
    // A proxy gets the whole URL in place of the path.
    let proxy = Front::before(registry.port(), |request| {
        if request.path.starts_with("http://registry.example.localhost/") {
            Reply::Forward
        } else {
            Reply::status(500)
        }
    });
    let access = |address: &str| {
        let data = BTreeMap::from([("address".to_owned(), Secret::new(format!("http://{address}")))]);
        let proxy = Proxy::from_secret(SecretData { name: "apps/proxy", data: &data }).unwrap();
        let mut access = anonymous("registry.example.localhost", "app/web");
        access.route.proxy = ProxyChoice::Given(proxy);
        access
    };
    assert_eq!(tags(access(&proxy.address())).await.unwrap(), ["1.0.0"]);
    let address = proxy.address();
    drop(proxy);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let error = tags(access(&address)).await.unwrap_err();
    assert!(error.to_string().contains("connection refused"), "{error}");
}

#[tokio::test]
async fn a_list_of_tags_with_errors_is_an_error() {
    let body = r#"{"errors":[{"code":"UNKNOWN","message":"the database is away"}]}"#;
    let registry = Front::alone(move |_| Reply::body(200, body));
    let error = tags(anonymous(&registry.address(), "app/web")).await.unwrap_err().to_string();
    assert!(error.ends_with("UNKNOWN: the database is away"), "{error}");
}

#[tokio::test]
async fn a_registry_without_tls_is_reported_with_advice() {
    use std::io::{Read, Write};
    // Plain HTTP is used for this one address of the machine only.
    let listener = std::net::TcpListener::bind("127.0.0.2:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 512]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let error = tags(anonymous(&address, "app/web")).await.unwrap_err().to_string();
    assert!(
        error.contains("only spec.insecure of an ImageRepository (--insecure of scan) allows it"),
        "{error}"
    );
}

#[tokio::test]
async fn a_dead_proxy_is_named_and_its_login_is_not() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let dead = listener.local_addr().unwrap().to_string();
    drop(listener);
    let data = BTreeMap::from([
        ("address".to_owned(), Secret::new(format!("http://{dead}"))),
        ("username".to_owned(), Secret::new("robot")),
        ("password".to_owned(), Secret::new("hunter2")),
    ]);
    let proxy = Proxy::from_secret(SecretData { name: "apps/proxy", data: &data }).unwrap();
    let mut access = anonymous("registry.example", "app/web");
    access.route.proxy = ProxyChoice::Given(proxy);
    let error = tags(access).await.unwrap_err().to_string();
    assert!(error.contains(&format!("by the proxy {dead}: ")) && !error.contains("hunter2"), "{error}");
}

/// The same access through an object's own proxy.
fn by(proxy: &Front, mut access: RepositoryAuth) -> RepositoryAuth {
    let data = BTreeMap::from([("address".to_owned(), Secret::new(format!("http://{}", proxy.address())))]);
    access.route.proxy =
        ProxyChoice::Given(Proxy::from_secret(SecretData { name: "apps/proxy", data: &data }).unwrap());
    access
}

/// An object's own proxy may answer anything in the registry's name.
#[tokio::test]
async fn a_retry_after_from_an_own_proxy_applies_to_its_object_only() {
    let registry = registry();
    let proxy = Front::alone(|_| Reply::status(429).with("Retry-After", "120"));
    let registries = registries();
    let access = anonymous(&registry.address(), "app/web");
    let by_proxy = by(&proxy, access.clone());
    let error = tags_by(&registries, by_proxy.clone()).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(120)), "{error}");
    assert_eq!(tags_by(&registries, access).await.unwrap(), ["1.0.0"]);
    let asked = proxy.requests().len();
    assert!(tags_by(&registries, by_proxy).await.is_err());
    assert_eq!(proxy.requests().len(), asked, "the same way is left alone");
}

#[tokio::test]
async fn waiting_for_a_retry_after_from_an_own_proxy_takes_no_slot() {
    let registry = registry();
    let proxy = Front::alone(|request| match request.path.as_str() {
        path if path.ends_with("/tags/list") => Reply::status(429).with("Retry-After", "30"),
        path if path.ends_with("/v2/") => Reply::status(200),
        _ => Reply::status(404),
    });
    let registries = Registries::new(RegistryOptions {
        rate_limits: RateLimitOptions { concurrency: 1, ..RateLimitOptions::default() },
        ..RegistryOptions::default()
    });
    let access = anonymous(&registry.address(), "app/web");
    let waiting = ["app/web", "app/other"].map(|repository| {
        let access = by(&proxy, anonymous(&registry.address(), repository));
        let access = RepositoryAuth { timeout: Duration::from_secs(120), ..access };
        let registries = registries.clone();
        tokio::spawn(async move { tags_by(&registries, access).await })
    });
    let is_refused = || proxy.requests().iter().any(|request| request.path.ends_with("/tags/list"));
    while !is_refused() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Both have come as far as they can without an answer.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(tags_by(&registries, access).await.unwrap(), ["1.0.0"]);
    assert!(waiting.iter().all(|one| !one.is_finished()));
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}
