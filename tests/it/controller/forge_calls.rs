//! Logins and limits of a forge's API in a controller, before the real Gitea.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::delivery::{Delivery, delivery};
use super::scene::{Kind, condition};
use crate::support::git_host::request::Request;
use crate::support::gitea::{GiteaRepository, OTHER};
use crate::support::http_front::{Front, Reply};

const KEY: &str = include_str!("../../../testdata/clouds/google-key.pem");

fn is_of_api(request: &Request) -> bool {
    request.path.starts_with("/api/v1/")
}

/// Git accepts both tokens, and the API the second one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_the_api_refuses_is_requested_again_once() {
    let own = Delivery::new("renewed").await;
    own.forge.call("PUT", &format!("collaborators/{OTHER}"), json!({"permission": "write"})).await;
    let (first, second) = (GiteaRepository::other_token(), GiteaRepository::token());
    let issued = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&issued);
    let tokens = [first.to_owned(), second.to_owned()];
    let github = Front::alone(move |request| {
        if request.method == "GET" {
            return Reply::body(200, r#"{"id":678}"#);
        }
        let token = &tokens[count.fetch_add(1, Ordering::SeqCst).min(1)];
        let expires_at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(3600);
        Reply::body(201, format!(r#"{{"token":"{token}","expires_at":"{expires_at}"}}"#))
    });
    let front = Front::before(own.forge.port(), move |request| {
        let is_refused = is_of_api(request) && request.authorization() == Some(&format!("token {first}"));
        if is_refused { Reply::body(401, r#"{"message":"Bad credentials"}"#) } else { Reply::Forward }
    });
    own.reach_by(&front.address()).await;
    let api = github.url("/");
    let app = [
        ("githubAppID", "12345"),
        ("githubAppPrivateKey", KEY),
        ("githubAppInstallationID", "678"),
        ("githubAppBaseURL", api.as_str()),
    ];
    own.scene.create_secret(own.scene.cluster.namespace(), "app", &app).await;
    let source = json!({"spec": {"provider": "github", "secretRef": {"name": "app"}}});
    own.scene.patch(Kind::Source, "fleet", &source).await;
    own.scene.choose("app", "2.0.0").await;
    let controller = own.scene.controller().start();
    let status = own.until("True Current 1 open: #1").await;
    assert_eq!(condition(&status, "Ready").unwrap()["status"], "True", "{status:#}");
    assert_eq!(issued.load(Ordering::SeqCst), 2);
    let refused = front
        .requests()
        .into_iter()
        .filter(|request| is_of_api(request) && request.authorization() == Some(&format!("token {first}")));
    assert!((1..=4).contains(&refused.count()), "it is not sent again after that");
    for secret in [first, second] {
        assert!(!status.to_string().contains(secret));
    }
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_of_the_api_pauses_its_calls_alone_and_they_go_on_after_it() {
    let own = Delivery::new("limited").await;
    let limited = AtomicUsize::new(0);
    let front = Front::before(own.forge.port(), move |request| {
        if is_of_api(request) && limited.fetch_add(1, Ordering::SeqCst) == 0 {
            return Reply::body(429, r#"{"message":"Too many requests"}"#).with("Retry-After", "8");
        }
        Reply::Forward
    });
    own.reach_by(&front.address()).await;
    own.scene.choose("app", "2.0.0").await;
    let builder = own.scene.controller();
    let metrics = builder.metrics.clone();
    let controller = builder.start();
    let limited = format!("False RateLimited {} limits requests: the next one is sent in ", front.address());
    let status = own.until(&limited).await;
    assert_eq!(condition(&status, "Ready").unwrap()["status"], "True", "{status:#}");
    assert!(delivery(&status).unwrap().contains("; the next retry is at 20"), "{status:#}");
    own.until("True Current 1 open: #1").await;
    assert_eq!(own.events().await, ["PullRequestOpened #1"]);
    let text = metrics.to_text();
    let line = text.lines().find(|line| line.starts_with("tagboat_forge_rest_seconds_total{")).unwrap();
    let seconds: f64 = line.rsplit(' ').next().unwrap().parse().unwrap();
    assert!((8.0..9.0).contains(&seconds), "{line}: the pause counts once");
    controller.end().await;
}
