//! Logins by the providers github, azure and aws.

use serde_json::{Value, json};

use super::scene::Scene;
use crate::support::certificates::Authority;
use crate::support::git_host::{Access, Operation, Settings};
use crate::support::http_front::{Front, Reply};
use crate::support::program::Run;

const KEY: &str = include_str!("../../../testdata/clouds/google-key.pem");
/// No further arguments.
const NONE: [&str; 0] = [];
const TOKEN: &str = "ghs_hunter2hunter2";

/// GitHub's API for the user `octo`.
fn answer(request: &crate::support::git_host::request::Request) -> Reply {
    let body = |status: u16, body: &str| Reply::body(status, body).with("Content-Type", "application/json");
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/orgs/octo/installation") => body(404, r#"{"message":"Not Found"}"#),
        ("GET", "/users/octo/installation") => body(200, r#"{"id":678}"#),
        ("POST", "/app/installations/678/access_tokens") => {
            let expires_at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(3600);
            body(201, &format!(r#"{{"token":"{TOKEN}","expires_at":"{expires_at}"}}"#))
        }
        _ => body(500, "{}"),
    }
}

fn app(front: &Front) -> Value {
    json!({"stringData": {
        "githubAppID": "12345",
        "githubAppPrivateKey": KEY,
        "githubAppInstallationOwner": "octo",
        "githubAppBaseURL": front.url("/"),
    }})
}

#[track_caller]
fn assert_silent(run: &Run) {
    let line = KEY.lines().nth(1).unwrap();
    for secret in [TOKEN, line, "eyJ"] {
        assert!(!run.output.contains(secret) && !run.errors.contains(secret), "{run:?}");
    }
}

#[test]
fn a_github_app_pushes_with_a_token_for_its_repository() {
    let (scene, front) = (Scene::new(), Front::alone(answer));
    let host = scene.serve(Settings { access: Access::basic("x-access-token", TOKEN), tls: None });
    scene.secret("app", app(&front));
    scene.source(json!({"url": host.url("fleet.git"), "provider": "github", "secretRef": {"name": "app"}}));
    let run = scene.run(NONE).with_status(0);
    assert_eq!(scene.tag("main"), "5.0.3", "{run:?}");
    assert_silent(&run);
    let requests = front.requests();
    let paths: Vec<&str> = requests.iter().map(|request| request.path.as_str()).collect();
    assert_eq!(
        paths,
        ["/orgs/octo/installation", "/users/octo/installation", "/app/installations/678/access_tokens"]
    );
    assert_eq!(requests[2].body, br#"{"repositories":["fleet"]}"#);
    assert_eq!(host.requests_for(Operation::Push).len(), 1);
}

#[test]
fn a_refused_token_is_replaced_once_within_the_run() {
    for (stale, status) in [(1, 0), (2, 1)] {
        let scene = Scene::new();
        let tokens = std::sync::atomic::AtomicUsize::new(0);
        let front = Front::alone(move |request| {
            let reply = answer(request);
            if request.method == "GET" || tokens.fetch_add(1, std::sync::atomic::Ordering::SeqCst) >= stale {
                return reply;
            }
            let expires_at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(3600);
            Reply::body(201, format!(r#"{{"token":"ghs_stale-hunter2","expires_at":"{expires_at}"}}"#))
        });
        let host = scene.serve(Settings { access: Access::basic("x-access-token", TOKEN), tls: None });
        scene.secret("app", app(&front));
        scene.source(
            json!({"url": host.url("fleet.git"), "provider": "github", "secretRef": {"name": "app"}}),
        );
        let run = scene.run(NONE).with_status(status);
        assert_eq!(scene.tag("main"), if status == 0 { "5.0.3" } else { "4.0.6" }, "{run:?}");
        let asked = front.requests().iter().filter(|request| request.method == "POST").count();
        assert_eq!(asked, 2, "{run:?}");
        assert!(!run.errors.contains("hunter2"), "{run:?}");
    }
}

#[test]
fn the_certificates_of_the_secret_are_for_the_api_and_for_git() {
    let (scene, authority) = (Scene::new(), Authority::new());
    let front = Front::secured(None, authority.server(false), answer);
    let tls = Some(authority.server(false));
    let host = scene.serve(Settings { access: Access::basic("x-access-token", TOKEN), tls });
    scene.source(json!({"url": host.url("fleet.git"), "provider": "github", "secretRef": {"name": "app"}}));
    scene.secret("app", app(&front));
    let run = scene.run(NONE).with_status(1);
    assert!(
        run.errors.contains("cannot log in at GitHub: cannot get the installation of the App"),
        "{run:?}"
    );
    let mut secret = app(&front);
    secret["stringData"]["ca.crt"] = std::fs::read_to_string(authority.certificate_file()).unwrap().into();
    scene.secret("app", secret);
    let run = scene.run(NONE).with_status(0);
    assert_eq!(scene.tag("main"), "5.0.3", "{run:?}");
    assert_silent(&run);
}

#[test]
fn each_row_has_its_sentence() {
    let (scene, front) = (Scene::new(), Front::alone(answer));
    let host = scene.serve(Settings::default());
    scene.secret("app", app(&front));
    scene.secret("empty", json!({"stringData": {"username": "u", "password": "hunter2"}}));
    let mut wrong = app(&front);
    wrong["stringData"]["githubAppInstallationID"] = "1".into();
    scene.secret("wrong", wrong);
    let certificate = std::fs::read_to_string(Authority::new().certificate_file()).unwrap();
    scene.secret("ca", json!({"stringData": {"ca.crt": certificate}}));
    scene.secret("proxy", json!({"stringData": {"address": "http://127.0.0.1:9"}}));
    for (spec, sentence) in [
        (
            json!({"provider": "github"}),
            "secretRef with github app data must be specified when provider is set to github: invalid source configuration",
        ),
        (
            json!({"provider": "github", "secretRef": {"name": "empty"}}),
            "secretRef with github app data must be specified when provider is set to github: invalid source configuration",
        ),
        (
            json!({"secretRef": {"name": "app"}}),
            "secretRef 'default/app' has github app data but provider is not set to github: invalid source configuration",
        ),
        (
            json!({"provider": "github", "secretRef": {"name": "wrong"}}),
            "failed configuring source manager: secret 'default/wrong' needs exactly one of 'githubAppInstallationOwner' and \
             'githubAppInstallationID': remove one",
        ),
        (
            json!({"provider": "github", "secretRef": {"name": "app"}, "url": "ssh://git@github.com/octo/fleet.git"}),
            "failed configuring source manager: the provider github logs in over https, and the URL \
             'ssh://git@github.com/octo/fleet.git' is one of ssh: write the https URL of the repository, or use the provider \
             generic",
        ),
        (
            json!({"provider": "azure", "url": "https://git.example/fleet"}),
            "failed configuring source manager: the provider azure cannot log in at 'https://git.example/fleet': the URL must \
             begin with https://dev.azure.com/ or https://ORGANIZATION.visualstudio.com/",
        ),
        (
            json!({"provider": "aws", "url": "https://git.example/fleet"}),
            "failed configuring source manager: the provider aws cannot log in at 'https://git.example/fleet': the URL must be \
             https://git-codecommit.REGION.amazonaws.com/v1/repos/NAME, perhaps with -fips, or .cn at the end of the host",
        ),
        (
            json!({"provider": "azure", "url": "https://dev.azure.com/o/p/_git/r", "secretRef": {"name": "ca"}, "proxySecretRef": {"name": "proxy"}}),
            "failed configuring source manager: spec.proxySecretRef and a 'ca.crt' of spec.secretRef would let the proxy read the \
             controller's cloud credentials: use only one of the two with spec.provider of GitRepository default/fleet, or a \
             service account",
        ),
        (
            json!({"provider": "azure", "serviceAccountName": "robot", "url": "https://dev.azure.com/o/p/_git/r"}),
            "failed configuring source manager: GitRepository default/fleet logs in as the service account 'default/robot' with \
             a token that only a cluster issues, so only the controller supports it: log in as yourself with --git-login user",
        ),
    ] {
        let mut spec = spec;
        if spec["url"].is_null() {
            spec["url"] = host.url("fleet.git").into();
        }
        scene.source(spec);
        let run = scene.run(NONE).with_status(1);
        assert_eq!(run.errors, format!("default/fleet: {sentence}\n"));
        assert_silent(&run);
    }
    assert!(host.requests().is_empty());
}
