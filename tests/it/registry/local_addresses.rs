//! Tests of the protection from SSRF.
//! Objects cannot lead the controller to its own machine, or to servers on its network link.

use tagboat::net::LocalAddresses;
use tagboat::registry::{ProxyChoice, Registries, RegistryError, RegistryOptions};

use super::{tags_by, user};
use crate::support::http_front::{Front, Reply};

/// Registries with the guard of a controller.
fn guarded() -> Registries {
    Registries::new(RegistryOptions {
        local_addresses: LocalAddresses::Refused,
        ..RegistryOptions::default()
    })
}

fn open() -> Front {
    Front::alone(|_| Reply::body(200, r#"{"tags": ["1.0.0"]}"#))
}

#[tokio::test]
async fn a_registry_at_a_local_address_gets_no_request() {
    let front = open();
    let port = front.address().rsplit_once(':').unwrap().1.to_owned();
    for host in ["127.0.0.1", "localhost", "127.1", "0x7f000001", "2130706433", "[::1]", "[::ffff:7f00:1]"] {
        let access = user(&format!("{host}:{port}"), "app/web");
        assert_eq!(access.address.registry(), format!("{host}:{port}"));
        let error = tags_by(&guarded(), access).await.unwrap_err();
        assert!(matches!(error, RegistryError::Forbidden { .. }), "{host}: {error}");
        assert!(error.to_string().starts_with("the host '"), "{error}");
        assert!(error.to_string().ends_with("--allow-local-addresses"), "{error}");
    }
    assert!(front.requests().is_empty());
    assert_eq!(tags_by(&super::registries(), user(&front.address(), "app/web")).await.unwrap(), ["1.0.0"]);
}

/// A proxy at a local address gets no request either.
/// The proxy stands in for the registry, so that the first request needs no local address.
#[tokio::test]
async fn a_local_registry_behind_a_proxy_gets_no_request() {
    let proxy = open();
    let error = tags_by(&guarded(), by_proxy("127.0.0.1:5000", &proxy)).await.unwrap_err();
    let words = "the proxy cannot be used: the host '127.0.0.1' is the controller's own machine";
    assert!(error.to_string().starts_with(words), "{error}");
    assert!(proxy.requests().is_empty());
}

/// Access to a registry of any name, which a front serves as its proxy.
fn by_proxy(registry: &str, proxy: &Front) -> tagboat::registry::RepositoryAuth {
    let data = std::collections::BTreeMap::from([(
        "address".to_owned(),
        tagboat::secrets::Secret::new(proxy.url("")),
    )]);
    let secret = tagboat::secrets::SecretData { name: "apps/proxy", data: &data };
    let proxy = tagboat::net::Proxy::from_secret(secret).unwrap();
    let mut access = user(registry, "app/web");
    access.route.proxy = ProxyChoice::Given(proxy);
    access
}
