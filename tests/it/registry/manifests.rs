//! Digests and ages of images.

use tagboat::reference::Tag;

use super::{anonymous, registries};
use crate::support::http_front::{Front, Reply};
use crate::support::registry::Registry;

const MADE: &str = "2026-01-02T03:04:05Z";

fn tag(text: &str) -> Tag {
    Tag::parse(text).unwrap()
}

#[tokio::test]
async fn the_digest_of_an_index_is_that_of_the_index() {
    let registry = Registry::start();
    let image = registry.push("app/web", "1.0.0", MADE);
    let index = registry.push_index("app/web", "multi", &image);
    let front = Front::before(registry.port(), |_| Reply::Forward);
    let repository = registries().repository(anonymous(&front.address(), "app/web"));
    assert_eq!(repository.digest(&tag("1.0.0")).await.unwrap().as_str(), image);
    assert_eq!(repository.digest(&tag("multi")).await.unwrap().as_str(), index);
    let methods: Vec<String> = front.requests().into_iter().map(|request| request.method).collect();
    assert_eq!(methods, ["GET", "HEAD", "HEAD"]);
    for (name, digest) in [("1.0.0", &image), ("multi", &index)] {
        let facts = repository.facts(&tag(name)).await.unwrap();
        assert_eq!(
            (facts.digest.as_str(), facts.created.unwrap().to_string().as_str()),
            (digest.as_str(), MADE)
        );
    }
}

#[tokio::test]
async fn a_tag_that_cannot_be_pulled_is_not_found() {
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", MADE);
    let repository = registries().repository(anonymous(&registry.address(), "app/web"));
    let error = repository.digest(&tag("2.0.0")).await.unwrap_err();
    assert!(error.is_not_found());
    let wanted = format!(
        "HEAD http://{}/v2/app/web/manifests/2.0.0: unexpected status code 404 Not Found (HEAD responses have no body, use GET for details)",
        registry.address()
    );
    assert_eq!(error.to_string(), wanted);
    assert!(repository.facts(&tag("2.0.0")).await.unwrap_err().is_not_found());
}

/// A missing server for tokens does not count as a missing tag.
/// A winner is held back only if its manifest is missing, and not if something else is missing.
#[tokio::test]
async fn a_missing_token_server_is_not_a_missing_tag() {
    let tokens = Front::alone(|_| Reply::status(404));
    let realm = tokens.url("/token");
    let registry = Front::alone(move |_| {
        Reply::status(401).with("WWW-Authenticate", &format!("Bearer realm=\"{realm}\""))
    });
    for server in [registry.address(), tokens.address()] {
        let repository = registries().repository(anonymous(&server, "app/web"));
        let error = repository.digest(&tag("1.0.0")).await.unwrap_err();
        assert!(error.to_string().contains("404 Not Found"), "{error}");
        assert!(!error.is_not_found(), "{error}");
    }
    assert_eq!(tokens.requests_for("/v2/").len(), 1);
}

#[tokio::test]
async fn a_digest_is_computed_if_the_registry_does_not_send_it() {
    let manifest = r#"{"schemaVersion": 2}"#;
    for head in [
        || Reply::status(405),
        || Reply::status(200),
        || Reply::status(200).with("Docker-Content-Digest", "sha512:00"),
        || Reply::status(200).with("Docker-Content-Digest", &format!("sha512:{}", "1".repeat(128))),
        || Reply::status(200).with("Docker-Content-Digest", &format!("sha256:{}", "A".repeat(64))),
        || Reply::status(200).with("Docker-Content-Digest", &format!("sha256:{}", "1".repeat(63))),
        || Reply::status(400),
        || Reply::status(406),
        || Reply::status(501),
    ] {
        let front = Front::alone(move |request| match (request.method.as_str(), request.path.as_str()) {
            (_, "/v2/") => Reply::status(200),
            ("HEAD", _) => head(),
            _ => {
                Reply::body(200, manifest).with("Content-Type", "application/vnd.oci.image.manifest.v1+json")
            }
        });
        let repository = registries().repository(anonymous(&front.address(), "app/web"));
        let found = repository.digest(&tag("1.0.0")).await.unwrap();
        assert_eq!(found.as_str(), sha256(manifest.as_bytes()));
    }
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

#[tokio::test]
async fn all_kinds_of_manifests_are_requested() {
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", MADE);
    let front = Front::before(registry.port(), |_| Reply::Forward);
    let repository = registries().repository(anonymous(&front.address(), "app/web"));
    repository.digest(&tag("1.0.0")).await.unwrap();
    let asked = front.requests_for("/v2/app/web/manifests/1.0.0");
    let wanted = "application/vnd.docker.distribution.manifest.v1+json,application/vnd.docker.distribution.manifest.v1+prettyjws,\
        application/vnd.docker.distribution.manifest.v2+json,application/vnd.oci.image.manifest.v1+json,\
        application/vnd.docker.distribution.manifest.list.v2+json,application/vnd.oci.image.index.v1+json";
    assert_eq!(asked[0].header("accept"), Some(wanted));
}

#[tokio::test]
async fn an_answer_with_another_digest_is_corrupt() {
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", MADE);
    let front = Front::before(registry.port(), |request| {
        if request.path.contains("/blobs/") {
            Reply::body(200, r#"{"created": "2020-01-01T00:00:00Z"}"#)
        } else {
            Reply::Forward
        }
    });
    let repository = registries().repository(anonymous(&front.address(), "app/web"));
    let error = repository.facts(&tag("1.0.0")).await.unwrap_err();
    assert!(error.to_string().contains("the content is damaged"), "{error}");
}

/// The answer of a registry, and the expected message.
type Case = (fn() -> Reply, &'static str);

/// A registry that does not support HEAD, and sends this in place of a manifest.
fn without_head(body: impl Fn() -> Reply + Send + Sync + 'static) -> Front {
    Front::alone(move |request| match (request.method.as_str(), request.path.as_str()) {
        (_, "/v2/") => Reply::status(200),
        ("HEAD", _) => Reply::status(405),
        _ => body(),
    })
}

#[tokio::test]
async fn an_answer_that_is_not_a_manifest_has_no_digest() {
    let cases: [Case; 5] = [
        (|| Reply::body(200, r#"{"errors":[{"code":"DENIED","message":"no"}]}"#), "it has no schemaVersion"),
        (|| Reply::body(200, "<html>Sign in</html>"), "it is not a manifest"),
        (|| Reply::body(200, ""), "it is not a manifest"),
        (
            || Reply::body(200, [0x1f, 0x8b, 8, 0]).with("Content-Encoding", "gzip"),
            "it is compressed (Content-Encoding), which was not requested",
        ),
        (|| Reply::body(200, vec![b' '; 4 * 1024 * 1024 + 1]), "the response is larger than 4194304 bytes"),
    ];
    for (body, words) in cases {
        let front = without_head(body);
        let repository = registries().repository(anonymous(&front.address(), "app/web"));
        let error = repository.digest(&tag("1.0.0")).await.unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert!(!error.is_not_found());
    }
}

/// Without `Accept-Encoding`, a server may choose any encoding.
#[tokio::test]
async fn requests_ask_for_the_identity_encoding() {
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", MADE);
    let front = Front::before(registry.port(), |_| Reply::Forward);
    let repository = registries().repository(anonymous(&front.address(), "app/web"));
    repository.facts(&tag("1.0.0")).await.unwrap();
    assert!(front.requests().iter().all(|request| request.header("accept-encoding") == Some("identity")));
}
