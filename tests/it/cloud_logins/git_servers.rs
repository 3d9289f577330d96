//! Logins at git servers: Azure DevOps, AWS CodeCommit, and GitHub by an App.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use jiff::Timestamp;
use tagboat::cloud::{
    CloudIdentity, CloudOptions, Clouds, CredentialCacheOptions, GitIdentity, GitLogin, GitLoginRequest,
    GitSecret, GithubApp, LoginError,
};
use tagboat::net::ProxyChoice;
use tagboat::net::http::Route;
use tagboat::registry::RegistryOptions;
use tagboat::secrets::{Secret, SecretData};

use super::service_accounts::{AZURE, RecordingIssuer, account};
use super::{KEYS, after, clouds, options};
use crate::support::http_front::{Front, Reply};
use crate::support::recording::Recording;

const DEV_OPS: &str = "https://dev.azure.com/org/project/_git/fleet";
const CODE_COMMIT: &str = "https://git-codecommit.us-east-1.amazonaws.com/v1/repos/fleet";
const GITHUB: &str = "https://github.com/octo/fleet.git";

/// Logs in at the server of a repository, for a namespace.
async fn log_in(
    clouds: &Arc<Clouds>,
    identity: &GitIdentity,
    (url, namespace): (&str, &str),
    now: Timestamp,
) -> Result<GitLogin, LoginError> {
    let (url, route) = (url.parse().unwrap(), Route { proxy: ProxyChoice::Direct, ..Route::default() });
    clouds.git_login(GitLoginRequest { identity, url: &url, route: &route, namespace, now }).await
}

fn text(secret: &Secret) -> String {
    String::from_utf8(secret.expose().to_vec()).unwrap()
}

/// User and password, or a token without a user.
fn parts(login: &GitLogin) -> (String, String) {
    match &login.secret {
        GitSecret::Basic { user, password } => (text(user), text(password)),
        GitSecret::Bearer(token) => (String::new(), text(token)),
    }
}

/// An App of a user at an API, with an ID.
fn app(api: &str, id: &str) -> GitIdentity {
    installed(api, id, ("githubAppInstallationOwner", "octo"))
}

/// An App at an API, with an ID and an installation.
fn installed(api: &str, id: &str, installation: (&str, &str)) -> GitIdentity {
    let key = include_str!("../../../testdata/clouds/google-key.pem");
    let items = [("githubAppID", id), ("githubAppPrivateKey", key), installation, ("githubAppBaseURL", api)];
    let data: BTreeMap<String, Secret> =
        items.iter().map(|(key, value)| ((*key).to_owned(), Secret::new(*value))).collect();
    GitIdentity::Github(GithubApp::from_secret(SecretData { name: "apps/app", data: &data }).unwrap())
}

#[tokio::test]
async fn the_process_logs_in_at_azure_dev_ops_with_one_request_an_hour() {
    let directory = tempfile::tempdir().unwrap();
    let token = directory.path().join("token");
    std::fs::write(&token, "jwt of the pod\n").unwrap();
    let recording = Recording::replay(&["azure-git"]);
    let clouds = clouds(
        &recording,
        &[
            ("AZURE_TENANT_ID", "tenant-1"),
            ("AZURE_CLIENT_ID", "client-1"),
            ("AZURE_FEDERATED_TOKEN_FILE", token.to_str().unwrap()),
        ],
    );
    let identity = GitIdentity::Azure(CloudIdentity::Process);
    for second in [0, 60, 3200] {
        let login = log_in(&clouds, &identity, (DEV_OPS, "apps"), after(second)).await.unwrap();
        assert_eq!(parts(&login), (String::new(), "hunter3".to_owned()));
        assert!(!format!("{login:?}").contains("hunter3"));
    }
    recording.finish();
}

#[tokio::test]
async fn a_service_account_logs_in_at_azure_dev_ops() {
    let recording = Recording::replay(&["azure-git-account"]);
    let clouds = clouds(&recording, &[]);
    let identity = GitIdentity::Azure(account(&Arc::new(RecordingIssuer::default()), "apps/puller", &AZURE));
    let login = log_in(&clouds, &identity, (DEV_OPS, "apps"), after(0)).await.unwrap();
    assert_eq!(parts(&login).1, "hunter4");
    recording.finish();
}

#[tokio::test]
async fn a_token_of_azure_goes_to_no_other_server() {
    let recording = Recording::replay(&[]);
    let clouds = clouds(&recording, &KEYS);
    for (identity, url, message) in [
        (
            GitIdentity::Azure(CloudIdentity::Process),
            "https://u:hunter2@git.example/fleet",
            "the provider azure cannot log in at 'https://git.example/fleet': the URL must begin with \
             https://dev.azure.com/ or https://ORGANIZATION.visualstudio.com/",
        ),
        (
            GitIdentity::Aws(CloudIdentity::Process),
            "http://git-codecommit.us-east-1.amazonaws.com/v1/repos/fleet",
            "the provider aws cannot log in at 'http://git-codecommit.us-east-1.amazonaws.com/v1/repos/fleet': the URL must be \
             https://git-codecommit.REGION.amazonaws.com/v1/repos/NAME, perhaps with -fips, or .cn at the end of the host",
        ),
    ] {
        let error = log_in(&clouds, &identity, (url, "apps"), after(0)).await.unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    recording.finish();
}

#[tokio::test]
async fn keys_of_the_environment_sign_for_code_commit() {
    let recording = Recording::replay(&[]);
    let clouds = clouds(&recording, &KEYS);
    let identity = GitIdentity::Aws(CloudIdentity::Process);
    let login = log_in(&clouds, &identity, (CODE_COMMIT, "apps"), after(0)).await.unwrap();
    let password = "20260102T030405Z2a16863c47a4a34e46ec9af09d3da90145e1695a6b401d691737ab4b7e886d20";
    assert_eq!(parts(&login), ("AKIDEXAMPLE".to_owned(), password.to_owned()));
    recording.finish();
}

#[tokio::test]
async fn a_role_signs_with_its_session_and_each_login_with_its_own_time() {
    let directory = tempfile::tempdir().unwrap();
    let token = directory.path().join("token");
    std::fs::write(&token, "jwt of the pod").unwrap();
    let recording = Recording::replay(&["aws-role"]);
    let clouds = clouds(
        &recording,
        &[
            ("AWS_ROLE_ARN", "arn:aws:iam::012345678901:role/tagboat"),
            ("AWS_WEB_IDENTITY_TOKEN_FILE", token.to_str().unwrap()),
        ],
    );
    let identity = GitIdentity::Aws(CloudIdentity::Process);
    for (second, time) in [(0, "20260102T030405Z"), (1800, "20260102T033405Z")] {
        let login = log_in(&clouds, &identity, (CODE_COMMIT, "apps"), after(second)).await.unwrap();
        let (user, password) = parts(&login);
        assert_eq!(user, "ASIAEXAMPLE%session hunter4");
        assert!(password.starts_with(time) && password.len() == time.len() + 64, "{password}");
    }
    recording.finish();
}

#[tokio::test]
async fn an_app_gets_a_token_for_one_repository_and_a_new_one_after_a_refusal() {
    let recording = Recording::replay(&["github-app", "github-app-again"]);
    let clouds = clouds(&recording, &[]);
    let identity = app(&recording.front.url("/api/v3"), "12345");
    let first = log_in(&clouds, &identity, (GITHUB, "apps"), after(0)).await.unwrap();
    assert_eq!(parts(&first), ("x-access-token".to_owned(), "ghs_hunter3".to_owned()));
    assert_eq!(
        parts(&log_in(&clouds, &identity, (GITHUB, "apps"), after(3200)).await.unwrap()).1,
        "ghs_hunter3"
    );
    assert_eq!(recording.replayed(), 3);
    for _ in 0..2 {
        // The second refusal is of the replacement, which stays.
        first.entry.refuse();
        let login = log_in(&clouds, &identity, (GITHUB, "apps"), after(3250)).await.unwrap();
        assert_eq!(parts(&login).1, "ghs_hunter4");
    }
    let (header, claims) = {
        let requests = recording.finish();
        let jwt = requests[0].authorization().unwrap().strip_prefix("Bearer ").unwrap().to_owned();
        let part = |number: usize| -> serde_json::Value {
            use base64::Engine as _;
            let text =
                base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(jwt.split('.').nth(number).unwrap());
            serde_json::from_slice(&text.unwrap()).unwrap()
        };
        (part(0), part(1))
    };
    assert_eq!(header, serde_json::json!({"alg": "RS256", "typ": "JWT"}));
    let issued = after(0).as_second() - 30;
    assert_eq!(claims, serde_json::json!({"iss": "12345", "iat": issued, "exp": issued + 300}));
}

#[tokio::test]
async fn a_repository_that_github_does_not_know_by_its_name_gets_an_unrestricted_token_once() {
    let recording = Recording::replay(&["github-app-renamed"]);
    let clouds = clouds(&recording, &[]);
    let installation = ("githubAppInstallationID", "678");
    let identity = installed(&recording.front.url("/api/v3"), "12345", installation);
    for second in [0, 60] {
        let login = log_in(&clouds, &identity, (GITHUB, "apps"), after(second)).await.unwrap();
        assert_eq!(parts(&login), ("x-access-token".to_owned(), "ghs_hunter3".to_owned()));
    }
    recording.finish();
}

/// GitHub's API for any App; the token names App and repository.
fn github(requests: &Arc<AtomicUsize>) -> Front {
    let requests = Arc::clone(requests);
    Front::alone(move |request| {
        if request.method == "GET" {
            let id = if request.path.starts_with("/orgs/") { 1 } else { 2 };
            return Reply::body(200, format!(r#"{{"id":{id}}}"#));
        }
        let number = requests.fetch_add(1, Ordering::SeqCst);
        let token = format!("ghs_{number}");
        Reply::body(201, format!(r#"{{"token":"{token}","expires_at":"2026-01-02T04:04:05Z"}}"#))
    })
}

/// Clouds whose cache has so many entries.
fn small_cache(entries: usize) -> Arc<Clouds> {
    let recording = Recording::replay(&[]);
    let RegistryOptions { clouds, .. } = options(&recording, &[]);
    let cache = CredentialCacheOptions { max_entries: entries, ..clouds.credential_cache };
    let clouds = CloudOptions { credential_cache: cache, ..clouds };
    Arc::new(Clouds::new(RegistryOptions::default().http(), clouds))
}

#[tokio::test]
async fn one_request_serves_all_that_wait_and_the_cache_keeps_each_repository() {
    let requests = Arc::<AtomicUsize>::default();
    let (front, clouds) = (github(&requests), small_cache(1));
    let identity = app(&front.url("/"), "1");
    for _ in 0..3 {
        for repository in 0..30 {
            let url = format!("https://github.com/octo/fleet-{repository}");
            let logins = (0..8).map(|_| log_in(&clouds, &identity, (&url, "apps"), after(0)));
            let tokens: Vec<String> =
                join_all(logins).await.into_iter().map(|login| parts(&login.unwrap()).1).collect();
            assert!(tokens.iter().all(|token| *token == format!("ghs_{repository}")), "{tokens:?}");
        }
    }
    assert_eq!(requests.load(Ordering::SeqCst), 30);
    let lookups = front.requests().iter().filter(|request| request.method == "GET").count();
    assert_eq!(lookups, 1);
}

/// Each repository of an owner looked up the installation.
/// Any failed token request dropped it.
#[tokio::test(flavor = "multi_thread")]
async fn the_installation_of_an_owner_is_looked_up_once_until_it_is_gone() {
    let answers = Arc::new(AtomicUsize::new(201));
    let answer = Arc::clone(&answers);
    let front = Front::alone(move |request| match (request.method.as_str(), answer.load(Ordering::SeqCst)) {
        ("GET", _) => Reply::body(200, r#"{"id":678}"#),
        (_, 201) => Reply::body(201, r#"{"token":"ghs_1","expires_at":"2026-01-02T04:04:05Z"}"#),
        (_, status) => Reply::body(u16::try_from(status).unwrap(), r#"{"message":"no"}"#),
    });
    let (clouds, identity) = (small_cache(100), app(&front.url("/"), "1"));
    let lookups = || front.requests().iter().filter(|request| request.method == "GET").count();
    let all = async |from: usize, time| {
        let urls: Vec<_> =
            (from..from + 20).map(|at| format!("https://github.com/octo/fleet-{at}")).collect();
        join_all(urls.iter().map(|url| log_in(&clouds, &identity, (url, "apps"), time))).await
    };
    assert!(all(0, after(0)).await.iter().all(Result::is_ok));
    assert_eq!(lookups(), 1);
    for status in [403, 500, 422] {
        answers.store(status, Ordering::SeqCst);
        assert!(all(100 * status, after(0)).await.iter().all(Result::is_err));
    }
    assert_eq!(lookups(), 1);
    answers.store(404, Ordering::SeqCst);
    assert!(all(100, after(0)).await.iter().all(Result::is_err));
    answers.store(201, Ordering::SeqCst);
    let before = lookups();
    assert!(all(200, after(60)).await.iter().all(Result::is_ok));
    assert_eq!(lookups(), before + 1);
}

/// The `Retry-After` of a refused App was ignored.
#[tokio::test]
async fn an_app_that_is_limited_waits_as_it_is_told() {
    let front = Front::alone(|_| {
        Reply::body(403, r#"{"message":"You have exceeded a secondary rate limit"}"#)
            .with("Retry-After", "77")
    });
    let (clouds, identity) = (small_cache(100), app(&front.url("/"), "7"));
    let error = log_in(&clouds, &identity, (GITHUB, "apps"), after(0)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot log in as the GitHub App 7: the installation of the App is refused with status 403: You have exceeded a \
         secondary rate limit: the API limits the requests of this App, and the next run tries again"
    );
    let error =
        log_in(&clouds, &identity, ("https://github.com/octo/other", "apps"), after(60)).await.unwrap_err();
    assert!((70..=77).contains(&error.retry_after().unwrap().as_secs()), "{error:?}");
    assert_eq!(front.requests().len(), 1);
}

/// A signature that was too old for CodeCommit was sent again and again.
#[tokio::test]
async fn a_login_that_signs_is_made_again_with_its_own_time() {
    let recording = Recording::replay(&[]);
    let clouds = clouds(&recording, &KEYS);
    let identity = GitIdentity::Aws(CloudIdentity::Process);
    let first = log_in(&clouds, &identity, (CODE_COMMIT, "apps"), after(0)).await.unwrap();
    assert!(first.entry.is_signature() && !first.entry.is_refused());
    first.entry.refuse();
    assert!(first.entry.is_refused());
    let second = log_in(&clouds, &identity, (CODE_COMMIT, "apps"), after(1800)).await.unwrap();
    assert!(parts(&second).1.starts_with("20260102T033405Z") && !second.entry.is_refused());
    recording.finish();
}

#[tokio::test]
async fn tenants_and_keys_share_no_token() {
    let requests = Arc::<AtomicUsize>::default();
    let (front, clouds) = (github(&requests), small_cache(100));
    let mut tokens = std::collections::BTreeSet::new();
    for _ in 0..2 {
        for (id, namespace, url) in [
            ("1", "a", GITHUB),
            ("1", "b", GITHUB),
            ("2", "a", GITHUB),
            ("1", "a", "https://github.com/octo/other"),
        ] {
            let login = log_in(&clouds, &app(&front.url("/"), id), (url, namespace), after(0)).await.unwrap();
            tokens.insert(parts(&login).1);
        }
    }
    assert_eq!((tokens.len(), requests.load(Ordering::SeqCst)), (4, 4));
}

#[tokio::test]
async fn each_refusal_of_github_is_one_sentence_with_a_remedy() {
    let known = r#"{"id":678}"#;
    for (lookup, token, sentence) in [
        (
            (404, "{}"),
            (404, "{}"),
            "it is not installed for 'octo': install it there, or correct githubAppInstallationOwner",
        ),
        (
            (401, r#"{"message":"A JSON web token could not be decoded"}"#),
            (404, "{}"),
            "the installation of the App is refused with status 401: A JSON web token could not be decoded: give the \
             githubAppID and a githubAppPrivateKey of the same App",
        ),
        (
            (401, r#"{"message":"'Expiration time' claim ('exp') is too far in the future"}"#),
            (404, "{}"),
            "the installation of the App is refused with status 401: 'Expiration time' claim ('exp') is too far in the future: \
             correct the clock of this machine",
        ),
        ((200, known), (404, "{}"), "its installation 678 for 'octo' is gone: install it there again"),
        // The installation was said to be missing.
        (
            (404, r#"{"message":"Integration not found"}"#),
            (404, "{}"),
            "the API knows no App with this ID: correct githubAppID, or githubAppBaseURL",
        ),
        (
            (200, known),
            (404, r#"{"message":"Integration not found"}"#),
            "the API knows no App with this ID: correct githubAppID, or githubAppBaseURL",
        ),
        // The installation was said to be suspended.
        (
            (200, known),
            (403, r#"{"message":"API rate limit exceeded for installation ID 678."}"#),
            "a token of the App's installation is refused with status 403: API rate limit exceeded for installation ID 678.: \
             the API limits the requests of this App, and the next run tries again",
        ),
        (
            (200, known),
            (403, r#"{"message":"This installation has been suspended"}"#),
            "a token of the App's installation is refused with status 403: This installation has been suspended: the \
             installation is suspended, or lacks a permission; the App needs write access to contents",
        ),
    ] {
        let front = Front::alone(move |request| {
            let (status, body) = if request.method == "GET" { lookup } else { token };
            Reply::body(status, body)
        });
        let error = log_in(&small_cache(100), &app(&front.url("/"), "7"), (GITHUB, "apps"), after(0)).await;
        let message = error.unwrap_err().to_string();
        assert_eq!(message, format!("cannot log in as the GitHub App 7: {sentence}"));
    }
    for body in ["<html>", r#"{"id":"678"}"#, "[]"] {
        let front = Front::alone(move |_| Reply::body(200, body));
        let error = log_in(&small_cache(100), &app(&front.url("/"), "7"), (GITHUB, "apps"), after(0)).await;
        let message = error.unwrap_err().to_string();
        let expected =
            "cannot log in at GitHub: the response for the installation of the App is not the expected JSON";
        assert_eq!(message, expected);
    }
}
