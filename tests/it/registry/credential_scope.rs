//! Credentials are sent only to the registry and the token server that they are for.

use std::collections::BTreeMap;
use std::fs;

use tagboat::reference::Tag;
use tagboat::registry::{Credential, RepositoryAuth, Tls};
use tagboat::secrets::Secret;

use super::{registries, tags, tags_by, user};
use crate::support::certificates::{Authority, Identity};
use crate::support::http_front::{Front, Reply};
use crate::support::registry::{Registry, TokenServer};

const MADE: &str = "2026-01-02T03:04:05Z";

/// The certificates of a test's own authority, as a Secret has them.
fn tls(authority: &Authority, identity: Option<&Identity>) -> Tls {
    let read = |path: &std::path::Path| Secret::new(fs::read(path).unwrap());
    let mut data = BTreeMap::from([("ca.crt".to_owned(), read(authority.certificate_file()))]);
    if let Some(identity) = identity {
        data.insert("tls.crt".to_owned(), read(identity.certificate_file()));
        data.insert("tls.key".to_owned(), read(identity.key_file()));
    }
    Tls::from_secret("apps/tls", &data).unwrap()
}

fn with_tls(mut access: RepositoryAuth, tls: Tls) -> RepositoryAuth {
    access.route.tls = tls;
    access
}

/// A registry that wants a password and redirects requests that have one.
fn sends_to(target: String) -> Front {
    Front::alone(move |request| match request.authorization() {
        None => Reply::status(401).with("WWW-Authenticate", "Basic realm=\"x\""),
        Some(_) if request.path == "/v2/" => Reply::status(200),
        Some(_) => Reply::redirect(&target),
    })
}

#[tokio::test]
async fn a_redirect_to_another_server_does_not_take_credentials_along() {
    let other = Front::alone(|_| Reply::body(200, r#"{"tags": ["1.0.0"]}"#));
    let registry = sends_to(other.url("/elsewhere"));
    assert_eq!(tags(user(&registry.address(), "app/web")).await.unwrap(), ["1.0.0"]);
    let reached = other.requests();
    assert_eq!(reached.len(), 1);
    assert_eq!((reached[0].path.as_str(), reached[0].authorization()), ("/elsewhere", None));
}

#[tokio::test]
async fn a_redirect_back_to_the_registry_does_not_take_credentials_along() {
    let registry = std::sync::Arc::new(std::sync::OnceLock::<String>::new());
    let back = std::sync::Arc::clone(&registry);
    let other = Front::alone(move |_| Reply::redirect(back.get().unwrap()));
    let to_other = other.url("/elsewhere");
    let front = Front::alone(move |request| match (request.path.as_str(), request.authorization()) {
        ("/back", None) => Reply::body(200, r#"{"tags": ["1.0.0"]}"#),
        ("/back", Some(_)) => Reply::status(500),
        (_, None) => Reply::status(401).with("WWW-Authenticate", "Basic realm=\"x\""),
        _ => Reply::redirect(&to_other),
    });
    registry.set(front.url("/back")).unwrap();
    assert_eq!(tags(user(&front.address(), "app/web")).await.unwrap(), ["1.0.0"]);
}

/// The target of a redirect demands a token of its own token server.
#[tokio::test]
async fn another_server_does_not_choose_the_token_server() {
    for path in ["/v2/", "/v2/app/web/tags/list"] {
        let thief = Front::alone(|_| Reply::body(200, r#"{"token": "good"}"#));
        let realm = thief.url("/token");
        let other = Front::alone(move |_| {
            Reply::status(401).with("WWW-Authenticate", &format!("Bearer realm=\"{realm}\""))
        });
        let target = other.url("/elsewhere");
        let registry = Front::alone(move |request| match request.authorization() {
            _ if request.path == path => Reply::redirect(&target),
            None => Reply::status(401).with("WWW-Authenticate", "Basic realm=\"x\""),
            Some(_) => Reply::body(200, r#"{"tags": ["1.0.0"]}"#),
        });
        let listed = tags(user(&registry.address(), "app/web")).await;
        // A redirected `GET /v2/` tells nothing about the registry, whose own challenge is used then.
        let expected = (path == "/v2/").then(|| vec!["1.0.0".to_owned()]);
        assert_eq!(listed.ok(), expected, "{path}");
        assert!(!other.requests().is_empty(), "{path}");
        assert!(other.requests().iter().all(|request| request.authorization().is_none()), "{path}");
        assert!(thief.requests().is_empty(), "{path}");
    }
}

/// Each path of one host may be served by another tenant.
#[tokio::test]
async fn a_challenge_of_one_tenants_path_gets_no_login_of_another() {
    for greeting in ["Basic realm=\"x\"", "Bearer realm=\"GOOD\",service=\"x\"", ""] {
        let good = Front::alone(|_| Reply::body(200, r#"{"token": "good"}"#));
        let evil = Front::alone(|_| Reply::body(200, r#"{"token": "evil"}"#));
        let greeting = greeting.replace("GOOD", &good.url("/token"));
        let realm = format!("Bearer realm=\"{}\",service=\"x\"", evil.url("/token"));
        let wanted = if greeting.is_empty() { "Basic realm=\"x\"".to_owned() } else { greeting.clone() };
        let registry = Front::alone(move |request| {
            let challenge = |text: &str| Reply::status(401).with("WWW-Authenticate", text);
            match (request.path.as_str(), request.authorization()) {
                ("/v2/", _) if greeting.is_empty() => Reply::status(200),
                ("/v2/", _) => challenge(&greeting),
                ("/v2/evil/app/tags/list", value) if value != Some("Bearer evil") => challenge(&realm),
                (_, None) => challenge(&wanted),
                // The realm of this path only; a smaller page size would be seen in the next request, too.
                ("/v2/evil/app/tags/list", _) if request.query.contains("n=1000") => Reply::status(400),
                _ => Reply::body(200, r#"{"tags": ["1.0.0"]}"#),
            }
        });
        let registries = registries();
        let attacker =
            RepositoryAuth { namespace: "evil".to_owned(), ..user(&registry.address(), "evil/app") };
        let password = Credential::Basic { user: Secret::new("bob"), password: Secret::new("of-the-victim") };
        let victim = |repository: &str| RepositoryAuth {
            namespace: "victim".to_owned(),
            login: password.clone().into(),
            ..user(&registry.address(), repository)
        };
        assert_eq!(tags_by(&registries, attacker.clone()).await.unwrap(), ["1.0.0"]);
        for repository in ["victim/app", "victim/other"] {
            assert_eq!(tags_by(&registries, victim(repository)).await.unwrap(), ["1.0.0"]);
        }
        // The attacker's path is listed again, now that the victim has a token.
        assert_eq!(tags_by(&registries, attacker).await.unwrap(), ["1.0.0"]);
        assert!(!evil.requests().is_empty(), "the attacker's own login goes where its path says");
        assert!(evil.requests().iter().all(|request| request.query.contains("evil%2Fapp")));
        let of_victim =
            registry.requests().into_iter().filter(|request| request.path.starts_with("/v2/victim/"));
        for request in of_victim {
            assert_eq!(request.query, "n=1000", "the page size that another path takes is its own");
            assert_ne!(request.authorization(), Some("Bearer evil"));
        }
    }
}

#[tokio::test]
async fn blobs_are_fetched_from_another_server_without_credentials() {
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", MADE);
    let store = Front::before(registry.port(), |request| {
        if request.authorization().is_some() { Reply::status(400) } else { Reply::Forward }
    });
    let base = store.url("");
    let guarded = registry.guarded_by_password();
    let front = Front::before(guarded.port(), move |request| {
        if request.path.contains("/blobs/") {
            Reply::redirect(&format!("{base}{}", request.path))
        } else {
            Reply::Forward
        }
    });
    let repository = registries().repository(user(&front.address(), "app/web"));
    let facts = repository.facts(&Tag::parse("1.0.0").unwrap()).await.unwrap();
    assert_eq!(facts.created.unwrap().to_string(), MADE);
    assert_eq!(store.requests().len(), 1);
}

#[tokio::test]
async fn a_token_server_without_encryption_gets_nothing_from_an_encrypted_registry() {
    let authority = Authority::new();
    let tokens = Front::alone(|_| Reply::body(200, r#"{"token": "good"}"#));
    let realm = tokens.url("/token");
    let registry = Front::secured(None, authority.server(false), move |_| {
        Reply::status(401).with("WWW-Authenticate", &format!("Bearer realm=\"{realm}\""))
    });
    let access = with_tls(user(&registry.address(), "app/web"), tls(&authority, None));
    let error = tags(access).await.unwrap_err();
    assert!(error.to_string().contains("it is not encrypted, and the registry is"), "{error}");
    assert!(tokens.requests().is_empty());
}

#[tokio::test]
async fn a_redirect_of_a_token_server_does_not_take_credentials_along() {
    let other = Front::alone(|_| Reply::body(200, r#"{"token": "good"}"#));
    let target = other.url("/token");
    let tokens = Front::alone(move |_| Reply::redirect(&target));
    let realm = tokens.url("/token");
    let registry = Front::alone(move |request| match request.authorization() {
        Some("Bearer good") => Reply::body(200, r#"{"tags": ["1.0.0"]}"#),
        _ => Reply::status(401).with("WWW-Authenticate", &format!("Bearer realm=\"{realm}\"")),
    });
    assert_eq!(tags(user(&registry.address(), "app/web")).await.unwrap(), ["1.0.0"]);
    assert!(tokens.requests()[0].authorization().is_some());
    assert_eq!(other.requests()[0].authorization(), None);
}

#[tokio::test]
async fn credentials_are_not_sent_before_a_challenge() {
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", MADE);
    let front = Front::before(registry.port(), |_| Reply::Forward);
    assert_eq!(tags(user(&front.address(), "app/web")).await.unwrap(), ["1.0.0"]);
    assert!(front.requests().iter().all(|request| request.authorization().is_none()));
}

#[tokio::test]
async fn tokens_are_not_shared_between_namespaces() {
    let (registry, tokens) = (Registry::start(), TokenServer::start());
    registry.push("app/web", "1.0.0", MADE);
    let guarded = registry.guarded_by(&tokens);
    let registries = registries();
    tags_by(&registries, user(&guarded.address(), "app/web")).await.unwrap();
    // Another namespace without credentials does not get access with the first one's token.
    let mut other = super::anonymous(&guarded.address(), "app/web");
    other.namespace = "other".to_owned();
    assert!(tags_by(&registries, other).await.is_err());
    // With the same credentials it gets a token of its own.
    let before = tokens.requests().len();
    let mut other = user(&guarded.address(), "app/web");
    other.namespace = "other".to_owned();
    tags_by(&registries, other).await.unwrap();
    assert_eq!(tokens.requests().len(), before + 1);
}

#[tokio::test]
async fn a_registry_is_trusted_by_its_own_authority_only() {
    let authority = Authority::new();
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", MADE);
    let front = Front::secured(Some(registry.port()), authority.server(false), |_| Reply::Forward);
    let access = with_tls(user(&front.address(), "app/web"), tls(&authority, None));
    assert_eq!(tags(access).await.unwrap(), ["1.0.0"]);
    let stranger = with_tls(user(&front.address(), "app/web"), tls(&Authority::new(), None));
    let error = tags(stranger).await.unwrap_err();
    assert!(error.to_string().contains("invalid peer certificate"), "{error}");
}

#[tokio::test]
async fn a_self_signed_certificate_of_an_authority_is_trusted_as_it_is() {
    let authority = Authority::of_loopback();
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", MADE);
    let front = Front::secured(Some(registry.port()), authority.server_of_its_own(), |_| Reply::Forward);
    let access = with_tls(user(&front.address(), "app/web"), tls(&authority, None));
    assert_eq!(tags(access).await.unwrap(), ["1.0.0"]);
    let stranger = with_tls(user(&front.address(), "app/web"), tls(&Authority::new(), None));
    let error = tags(stranger).await.unwrap_err().to_string();
    assert!(error.contains("presents a CA certificate") && !error.contains("Other"), "{error}");
}

#[tokio::test]
async fn a_client_certificate_is_shown() {
    let authority = Authority::new();
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", MADE);
    let front = Front::secured(Some(registry.port()), authority.server(true), |_| Reply::Forward);
    let client = authority.issue("client");
    let access = with_tls(user(&front.address(), "app/web"), tls(&authority, Some(&client)));
    assert_eq!(tags(access).await.unwrap(), ["1.0.0"]);
    let without = with_tls(user(&front.address(), "app/web"), tls(&authority, None));
    assert!(tags(without).await.is_err());
}

#[tokio::test]
async fn a_client_certificate_is_not_sent_to_a_redirect_target() {
    let authority = Authority::new();
    let page = |_: &_| Reply::body(200, r#"{"tags": ["1.0.0"]}"#);
    let client = authority.issue("client");
    // A server that demands a client certificate refuses connections without one.
    for (wants_one, expected) in [(false, true), (true, false)] {
        let other = Front::secured(None, authority.server(wants_one), page);
        let target = other.url("/elsewhere");
        let registry = Front::secured(None, authority.server(true), move |request| {
            if request.path == "/v2/" { Reply::status(200) } else { Reply::redirect(&target) }
        });
        let access = with_tls(user(&registry.address(), "app/web"), tls(&authority, Some(&client)));
        let found = tags(access).await;
        assert_eq!(found.is_ok(), expected, "{found:?}");
        assert_eq!(other.requests().len(), usize::from(expected));
        assert!(registry.requests().len() >= 2, "the registry itself is shown it");
    }
}

/// An error response that contains the credentials of the request, encoded and decoded.
fn echo(authorization: &str) -> Reply {
    use base64::Engine as _;
    let value = authorization.split_once(' ').map_or("", |(_, value)| value);
    let decoded = base64::engine::general_purpose::STANDARD.decode(value).unwrap_or_default();
    let decoded = String::from_utf8_lossy(&decoded);
    // After truncation, half of a secret must not be shown either.
    let long = format!("{}{decoded}", "x".repeat(280));
    let message = format!("{decoded}|{long}");
    let errors =
        serde_json::json!({"errors": [{"code": authorization, "message": message, "detail": authorization}]});
    Reply::body(403, errors.to_string())
}

#[tokio::test]
async fn a_server_that_repeats_credentials_is_not_quoted_with_them() {
    let registry = Front::alone(|request| match request.authorization() {
        None => Reply::status(401).with("WWW-Authenticate", "Basic realm=\"x\""),
        Some(value) => echo(value),
    });
    let tokens = Front::alone(|request| echo(request.authorization().unwrap_or_default()));
    let realm = tokens.url("/token");
    let guarded = Front::alone(move |_| {
        Reply::status(401).with("WWW-Authenticate", &format!("Bearer realm=\"{realm}\""))
    });
    let giver = Front::alone(|_| Reply::body(200, r#"{"token": "t0ken-of-robot"}"#));
    let realm = giver.url("/token");
    let open = Front::alone(move |request| match request.authorization() {
        Some(value) if value.starts_with("Bearer") => {
            Reply::body(200, format!(r#"{{"errors": [{{"code": "X", "message": "{value}"}}]}}"#))
        }
        _ => Reply::status(401).with("WWW-Authenticate", &format!("Bearer realm=\"{realm}\"")),
    });
    let basic = "cm9ib3Q6aHVudGVyMg";
    for front in [&registry, &guarded, &open] {
        let error = tags(user(&front.address(), "app/web")).await.unwrap_err();
        let words = format!("{error} {error:?}");
        assert!(words.contains("••••"), "{words}");
        for secret in ["hunter", basic, "t0ken"] {
            assert!(!words.contains(secret), "{secret}: {words}");
        }
    }
}

/// Text of a server outside an error document is not quoted.
/// An object can name any server of the cluster's network, whose answers must not be in its status.
#[tokio::test]
async fn text_of_a_server_outside_an_error_document_is_not_quoted() {
    let internal = Front::alone(|request| match request.path.as_str() {
        "/json" => Reply::body(500, r#"{"error": "hunter2", "errors": [{"detail": "hunter2"}]}"#),
        "/list" => Reply::body(200, r#"{"tags": "hunter2"}"#),
        "/number" => Reply::body(200, r#"{"tags": ["a", {"password": "hunter2"}]}"#),
        "/token" => Reply::body(401, r#"{"details": "hunter2"}"#),
        "/away" => Reply::status(302).with("Location", "ftp://files.example/hunter2?x=hunter2"),
        "/page" => {
            Reply::body(200, r#"{"tags": ["a"]}"#).with("Link", "<ftp://hunter2>; rel=\"hunter2 next\"")
        }
        _ => Reply::body(503, "<html>hunter2</html>"),
    });
    for (path, expected) in [
        ("/json", "unexpected status code 500 Internal Server Error"),
        ("/list", "it is not a list of tags (a member has an unexpected type, at line 1 column"),
        ("/number", "it is not a list of tags (a member has an unexpected type, at line 1 column"),
        ("/token", "unexpected status code 401 Unauthorized"),
        ("/away", "cannot follow the redirect to \"ftp://files.example\": it is not an HTTP address"),
        ("/html", "unexpected status code 503 Service Unavailable"),
    ] {
        let target = internal.url(path);
        let realm = format!("Bearer realm=\"{}\"", internal.url("/token"));
        let registry = Front::alone(move |request| match request.path.as_str() {
            "/v2/" => Reply::status(200),
            _ if target.ends_with("/token") => Reply::status(401).with("WWW-Authenticate", &realm),
            _ => Reply::redirect(&target),
        });
        let error = tags(super::anonymous(&registry.address(), "app/web")).await.unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("hunter2"), "{path}: {error}");
    }
}
