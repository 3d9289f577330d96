//! Passwords and tokens, at the real registry and at servers of the tests.

use tagboat::registry::{Credential, RegistryError};
use tagboat::secrets::Secret;

use super::{anonymous, registries, tags, tags_by, user};
use crate::support::http_front::{Front, Reply};
use crate::support::registry::{Registry, TokenServer};

const MADE: &str = "2026-01-02T03:04:05Z";

#[tokio::test]
async fn the_real_registry_accepts_a_password() {
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", MADE);
    let guarded = registry.guarded_by_password();
    assert_eq!(tags(user(&guarded.address(), "app/web")).await.unwrap(), ["1.0.0"]);
    let error = tags(anonymous(&guarded.address(), "app/web")).await.unwrap_err();
    assert!(error.to_string().contains("UNAUTHORIZED: authentication required"), "{error}");
    let mut wrong = user(&guarded.address(), "app/web");
    wrong.login = Credential::Basic { user: Secret::new("robot"), password: Secret::new("hunter3") }.into();
    let error = tags(wrong).await.unwrap_err();
    assert!(error.to_string().contains("UNAUTHORIZED") && !error.to_string().contains("hunter3"), "{error}");
}

#[tokio::test]
async fn the_real_registry_accepts_a_token_until_it_expires() {
    let (registry, tokens) = (Registry::start(), TokenServer::start());
    registry.push("app/web", "1.0.0", MADE);
    let guarded = registry.guarded_by(&tokens);
    let registries = registries();
    for _ in 0..3 {
        let found = tags_by(&registries, user(&guarded.address(), "app/web")).await.unwrap();
        assert_eq!(found, ["1.0.0"]);
    }
    let asked = tokens.requests();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].query, "scope=repository%3Aapp%2Fweb%3Apull&service=test-registry");
    let error = tags(anonymous(&guarded.address(), "app/web")).await.unwrap_err();
    assert!(error.to_string().contains("UNAUTHORIZED") || error.to_string().contains("DENIED"), "{error}");
}

#[tokio::test]
async fn a_refused_token_is_replaced_once() {
    let (registry, tokens) = (Registry::start(), TokenServer::start());
    registry.push("app/web", "1.0.0", MADE);
    let guarded = registry.guarded_by(&tokens);
    let registries = registries();
    tokens.expire(true);
    // After two expired tokens in a row it gives up.
    let error = tags_by(&registries, user(&guarded.address(), "app/web")).await.unwrap_err();
    assert!(error.to_string().contains("UNAUTHORIZED"), "{error}");
    assert_eq!(tokens.requests().len(), 2);
    tokens.expire(false);
    assert_eq!(tags_by(&registries, user(&guarded.address(), "app/web")).await.unwrap(), ["1.0.0"]);
    assert_eq!(tokens.requests().len(), 3);
}

#[tokio::test]
async fn a_token_is_not_used_after_its_expiry() {
    let (registry, tokens) = (Registry::start(), TokenServer::start());
    registry.push("app/web", "1.0.0", MADE);
    let guarded = registry.guarded_by(&tokens);
    tokens.state_seconds(1);
    let registries = registries();
    for _ in 0..2 {
        tags_by(&registries, user(&guarded.address(), "app/web")).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    }
    assert_eq!(tokens.requests().len(), 2);
}

#[tokio::test]
async fn a_wrong_password_is_refused_by_the_token_server() {
    let (registry, tokens) = (Registry::start(), TokenServer::start());
    let guarded = registry.guarded_by(&tokens);
    let mut wrong = user(&guarded.address(), "app/web");
    wrong.login = Credential::Basic { user: Secret::new("robot"), password: Secret::new("hunter3") }.into();
    let error = tags(wrong).await.unwrap_err();
    assert!(matches!(error, RegistryError::Handshake(_)));
    assert!(error.to_string().ends_with("service=test-registry: DENIED: wrong password"), "{error}");
}

/// A registry that wants the token `good`, which `realm` issues.
fn wants_token(realm: String) -> Front {
    Front::alone(move |request| match request.authorization() {
        Some("Bearer good") => Reply::body(200, r#"{"tags": ["1.0.0"]}"#),
        _ => Reply::status(401).with("WWW-Authenticate", "Negotiate").with(
            "WWW-Authenticate",
            &format!("Bearer realm=\"{realm}\",service=\"s\",scope=\"more:x:pull\""),
        ),
    })
}

#[tokio::test]
async fn an_identity_token_is_exchanged_in_a_form() {
    let tokens = Front::alone(|request| match (request.method.as_str(), request.body_size) {
        ("POST", size) if size > 0 => Reply::body(200, r#"{"access_token": "good"}"#),
        _ => Reply::status(400),
    });
    let registry = wants_token(tokens.url("/oauth2/token"));
    let mut access = anonymous(&registry.address(), "app/web");
    access.login = Credential::IdentityToken(Secret::new("refresh me")).into();
    assert_eq!(tags(access).await.unwrap(), ["1.0.0"]);
    let asked = tokens.requests();
    assert_eq!((asked.len(), asked[0].authorization()), (1, None));
}

#[tokio::test]
async fn an_identity_token_becomes_a_password_if_the_server_refuses_forms() {
    let tokens = Front::alone(|request| match (request.method.as_str(), request.authorization()) {
        ("GET", Some(_)) => Reply::body(200, r#"{"token": "good"}"#),
        _ => Reply::status(404),
    });
    let registry = wants_token(tokens.url("/token"));
    let mut access = anonymous(&registry.address(), "app/web");
    access.login = Credential::IdentityToken(Secret::new("refresh me")).into();
    assert_eq!(tags(access).await.unwrap(), ["1.0.0"]);
}

#[tokio::test]
async fn a_registry_token_is_sent_unchanged() {
    let tokens = Front::alone(|_| Reply::status(500));
    let registry = wants_token(tokens.url("/token"));
    let mut access = anonymous(&registry.address(), "app/web");
    access.login = Credential::RegistryToken(Secret::new("good")).into();
    assert_eq!(tags(access).await.unwrap(), ["1.0.0"]);
    assert!(tokens.requests().is_empty());
}

#[tokio::test]
async fn an_answer_without_a_token_is_an_error_that_shows_none() {
    for body in ["", "{}", r#"{"token": ""}"#, r#"{"token": "hunter2"#, r#"["hunter2"]"#] {
        let tokens = Front::alone(move |_| Reply::body(200, body));
        let registry = wants_token(tokens.url("/token"));
        let error = tags(anonymous(&registry.address(), "app/web")).await.unwrap_err().to_string();
        assert!(error.contains("token") && !error.contains("hunter2"), "{error}");
    }
}

#[tokio::test]
async fn an_unsupported_authentication_scheme_is_named() {
    let registry = Front::alone(|_| Reply::status(401).with("WWW-Authenticate", "Negotiate"));
    let error = tags(user(&registry.address(), "app/web")).await.unwrap_err().to_string();
    assert!(
        error.ends_with("it requires authentication by Negotiate, and only Basic and Bearer are supported"),
        "{error}"
    );
}

#[tokio::test]
async fn a_token_is_preferred_if_a_registry_accepts_a_password_too() {
    let tokens = Front::alone(|_| Reply::body(200, r#"{"token": "good"}"#));
    let realm = tokens.url("/token");
    let registry = Front::alone(move |request| match request.authorization() {
        Some("Bearer good") => Reply::body(200, r#"{"tags": ["1.0.0"]}"#),
        _ => Reply::status(401)
            .with("WWW-Authenticate", &format!("Basic realm=\"x\", Bearer realm=\"{realm}\",service=\"s\"")),
    });
    assert_eq!(tags(user(&registry.address(), "app/web")).await.unwrap(), ["1.0.0"]);
    assert_eq!(tokens.requests().len(), 1);
}
