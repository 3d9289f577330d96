//! Failures of each forge, for a call that reads and for one that opens.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use tagboat::forge::{
    AnyForge, ApiLogin, Forge, ForgeAddress, ForgeClientOptions, ForgeClients, ForgeCredential, ForgeError,
    ForgeRepository, Listing, PullRequestState,
};
use tagboat::net::ProxyChoice;
use tagboat::net::http::Route;
use tagboat::secrets::Secret;

use super::life::new;
use super::served::{AZURE_DEVOPS, BITBUCKET, BITBUCKET_DATA_CENTER, GITHUB, GITLAB, Served};
use crate::support::forges::hub::{Call, Hub, TOKEN, answer};
use crate::support::http_front::{Front, Reply};

/// Gitea itself is no test server: this one has no pull requests.
static GITEA: Served =
    Served { forge: "gitea", path: "acme/fleet", api: "/api/v1", respond: without_pull_requests, ..GITHUB };

pub(super) static ALL: [&Served; 6] =
    [&GITHUB, &GITLAB, &GITEA, &BITBUCKET, &BITBUCKET_DATA_CENTER, &AZURE_DEVOPS];

/// The class of an error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Class {
    Unauthenticated,
    Forbidden,
    RateLimited,
    Refused,
    Unavailable,
    Malformed,
}

pub(super) fn class(error: &ForgeError) -> Class {
    match error {
        ForgeError::Unauthenticated { .. } => Class::Unauthenticated,
        ForgeError::Forbidden { .. } => Class::Forbidden,
        ForgeError::RateLimited { .. } => Class::RateLimited,
        ForgeError::Refused { .. } => Class::Refused,
        ForgeError::Unavailable { .. } | ForgeError::Failed { .. } => Class::Unavailable,
        ForgeError::Malformed { .. } | ForgeError::TooLarge { .. } | ForgeError::TooMuchKept { .. } => {
            Class::Malformed
        }
    }
}

fn without_pull_requests(_: &Hub, call: &Call) -> Reply {
    match call.method.as_str() {
        "GET" => answer(200, &json!([])).with("X-Total-Count", "0"),
        _ => answer(404, &json!({"message": "not found"})),
    }
}

pub(super) fn said(status: u16, message: &str) -> Reply {
    answer(status, &json!({"message": message}))
}

/// A page of a proxy in between.
fn page(status: u16) -> Reply {
    Reply::body(status, "<html>").with("Content-Type", "text/html")
}

/// The name of a fault, the server's answer, and the class of the error.
type Fault = (&'static str, fn() -> Reply, Class);

/// Each fault, and the class of the error that it leads to.
fn faults() -> Vec<Fault> {
    vec![
        ("401", || said(401, "Bad credentials"), Class::Unauthenticated),
        ("403", || said(403, "Resource not accessible"), Class::Forbidden),
        (
            "403 of a primary limit",
            || said(403, "no").with("X-RateLimit-Remaining", "0").with("X-RateLimit-Reset", "60"),
            Class::RateLimited,
        ),
        (
            "403 of a secondary limit",
            || said(403, "You have exceeded a secondary rate limit"),
            Class::RateLimited,
        ),
        ("404", || said(404, "Not Found"), Class::Forbidden),
        ("409", || said(409, "Conflict"), Class::Refused),
        ("422", || said(422, "Validation Failed"), Class::Refused),
        ("429", || said(429, "Too many requests").with("Retry-After", "7"), Class::RateLimited),
        ("500", || said(500, "broken"), Class::Unavailable),
        ("503 with a page", || Reply::body(503, "<html>"), Class::Unavailable),
        ("401 with a page", || page(401), Class::Unauthenticated),
        ("403 with a page", || page(403), Class::Forbidden),
        ("404 with a page", || page(404), Class::Forbidden),
        ("409 with text", || Reply::body(409, "no"), Class::Refused),
        ("429 with a page", || page(429), Class::RateLimited),
        ("503 that asks for a pause", || page(503).with("Retry-After", "7"), Class::RateLimited),
        (
            "a refusal of very many values",
            || Reply::body(401, json!(vec![0; 5_000]).to_string()),
            Class::Unauthenticated,
        ),
        ("HTML", || Reply::body(200, "<html>").with("Content-Type", "text/html"), Class::Malformed),
        ("a truncated response", || Reply::body(200, "[{\"number\": 1"), Class::Malformed),
        ("a broken connection", || Reply::Gone, Class::Unavailable),
        ("a server that hangs", || Reply::Silence, Class::Unavailable),
        ("an endless response", || Reply::Drip, Class::Unavailable),
        ("a redirect to nowhere", || Reply::status(301), Class::Malformed),
    ]
}

/// The state of clients with a timeout.
pub(super) fn clients(timeout: Duration) -> ForgeClients {
    ForgeClients::new(ForgeClientOptions { timeout, ..ForgeClientOptions::default() })
}

/// A client with a state of its own.
fn forge(served: &Served, front: &Front, timeout: Duration) -> AnyForge {
    client(served, front, &clients(timeout))
}

/// A client of a served forge.
pub(super) fn client(served: &Served, front: &Front, clients: &ForgeClients) -> AnyForge {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let [owner, project, name] = served.place;
    let address = ForgeAddress {
        kind: served.forge.parse().unwrap(),
        api: front.url(served.api),
        is_api_given: false,
        repository: ForgeRepository {
            owner: owner.to_owned(),
            project: (!project.is_empty()).then(|| project.to_owned()),
            name: name.to_owned(),
        },
    };
    let login = ApiLogin {
        namespace: "apps".to_owned(),
        owner: "Secret apps/forge".to_owned(),
        credential: if served.forge == "gitea" {
            ForgeCredential::Bearer(Secret::new(TOKEN))
        } else {
            ForgeCredential::Token(Secret::new(TOKEN))
        },
        identity: None,
        route: Route { proxy: ProxyChoice::Direct, ..Route::default() },
    };
    AnyForge::new(clients, &address, &login).unwrap()
}

/// Serves the API, with another answer to one method for pull requests.
pub(super) fn serve(
    hub: &Arc<Hub>,
    served: &'static Served,
    method: &'static str,
    fault: impl Fn(&Hub, &Call) -> Option<Reply> + Send + Sync + 'static,
) -> Front {
    hub.serve(move |hub, call| {
        let is_meant = call.method == method && is_of_list(call);
        is_meant.then(|| fault(hub, call)).flatten().unwrap_or_else(|| (served.respond)(hub, call))
    })
}

/// Returns true for a call of the list of pull requests.
fn is_of_list(call: &Call) -> bool {
    let names = ["pulls", "merge_requests", "pullrequests", "pull-requests"];
    call.path.last().is_some_and(|last| names.contains(&last.as_str()))
}

/// A timeout that no call reaches, also on a busy machine.
pub(super) const LONG: Duration = Duration::from_secs(300);

/// The timeout of a call: short only where the server never ends its answer.
fn timeout(reply: &Reply) -> Duration {
    if matches!(reply, Reply::Silence | Reply::Drip) { Duration::from_secs(1) } else { LONG }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_failure_of_a_listing_is_told_apart() {
    let rows = ALL.iter().flat_map(|served| faults().into_iter().map(move |row| (*served, row)));
    join_all(rows.map(async |(served, (name, reply, expected))| {
        let hub = Hub::new();
        let front = serve(&hub, served, "GET", move |_, _| Some(reply()));
        let error = forge(served, &front, timeout(&reply()))
            .open_pull_requests(&mut Listing::all())
            .await
            .unwrap_err();
        assert_eq!(class(&error), expected, "{} {name}: {error}", served.forge);
        assert!(!error.to_string().contains(TOKEN), "{error}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_of_a_pause_is_a_metric() {
    for served in ALL {
        let hub = Hub::new();
        let front = serve(&hub, served, "GET", |_, _| Some(said(429, "slower").with("Retry-After", "77")));
        let options = ForgeClientOptions::default();
        let metrics = options.metrics.clone();
        let error = client(served, &front, &ForgeClients::new(options))
            .open_pull_requests(&mut Listing::all())
            .await
            .unwrap_err();
        assert_eq!(class(&error), Class::RateLimited, "{error}");
        let text = metrics.to_text();
        let name = format!("tagboat_forge_rest_seconds_total{{forge=\"{}\"}} ", served.forge);
        let seconds = text.lines().find_map(|line| line.strip_prefix(&name)?.parse::<f64>().ok());
        assert!(seconds.is_some_and(|seconds| seconds >= 77.0), "{name} {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_failure_to_open_is_told_apart_and_a_later_call_opens_one() {
    let rows = ALL.iter().flat_map(|served| faults().into_iter().map(move |row| (*served, row)));
    join_all(rows.map(async |(served, (name, reply, expected))| {
        let hub = Hub::new();
        hub.branch("tagboat/web");
        let front = serve(&hub, served, "POST", move |_, _| Some(reply()));
        let error = forge(served, &front, timeout(&reply())).open(&new("tagboat/web")).await.unwrap_err();
        assert_eq!(class(&error), expected, "{} {name}: {error}", served.forge);
        if served.forge != "gitea" {
            let healed = hub.serve(served.respond);
            let opened = forge(served, &healed, LONG).open(&new("tagboat/web")).await.unwrap();
            assert!(opened.is_new && hub.pulls().len() == 1, "{} {name}", served.forge);
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_lost_opens_no_second_pull_request() {
    join_all(ALL.iter().filter(|served| served.forge != "gitea").map(async |served| {
        let hub = Hub::new();
        hub.branch("tagboat/web");
        let respond = served.respond;
        let front = serve(&hub, served, "POST", move |hub, call| {
            respond(hub, call);
            Some(Reply::Gone)
        });
        let error = forge(served, &front, LONG).open(&new("tagboat/web")).await.unwrap_err();
        assert_eq!(class(&error), Class::Unavailable, "{}: {error}", served.forge);
        let healed = hub.serve(respond);
        let found = forge(served, &healed, LONG).open(&new("tagboat/web")).await.unwrap();
        assert_eq!((found.is_new, hub.pulls().len()), (false, 1), "{}", served.forge);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_that_another_opens_just_before_is_found_and_kept() {
    join_all(ALL.iter().filter(|served| served.forge != "gitea").map(async |served| {
        let hub = Hub::new();
        hub.branch("tagboat/web");
        let front = serve(&hub, served, "POST", |hub, _| {
            let _ = hub.open("tagboat/web", "main", "Mine", "By a person.");
            None
        });
        let forge = forge(served, &front, LONG);
        // Bitbucket refuses without saying why; the next round finds it.
        if let Ok(opened) = forge.open(&new("tagboat/web")).await {
            assert!(!opened.is_new, "{}", served.forge);
        }
        let (head, base) = ("tagboat/web".parse().unwrap(), "main".parse().unwrap());
        let found = forge.find(&head, &base).await.unwrap();
        let found: Vec<_> = found.iter().map(|one| (one.title.as_str(), one.state)).collect();
        assert_eq!(found, [("Mine", PullRequestState::Open)], "{}", served.forge);
        assert_eq!(hub.pulls()[0].body, "By a person.", "{}", served.forge);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_are_followed_within_the_server_only() {
    join_all(ALL.iter().map(async |served| {
        let hub = Hub::new();
        let stranger = Front::alone(|_| said(200, "mine"));
        let elsewhere = stranger.url("/x");
        let outside =
            serve(&hub, served, "GET", move |_, _| Some(Reply::status(301).with("Location", &elsewhere)));
        let listed = forge(served, &outside, LONG).open_pull_requests(&mut Listing::all()).await;
        let error = listed.unwrap_err();
        assert_eq!(class(&error), Class::Malformed, "{}: {error}", served.forge);
        assert!(stranger.requests().is_empty(), "{}: the credentials stay", served.forge);

        // A repository that was renamed.
        let respond = served.respond;
        let inside = hub.serve(move |hub, call| match call.path.first().map(String::as_str) {
            Some("renamed") => respond(hub, &Call { path: call.path[1..].to_vec(), ..call.clone() }),
            _ if is_of_list(call) => {
                let path = call.path.iter().map(|part| tagboat::net::percent::encode(part.as_bytes()));
                let query =
                    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&call.query).finish();
                let target = format!("/renamed/{}?{query}", path.collect::<Vec<_>>().join("/"));
                Reply::status(301).with("Location", &target)
            }
            _ => respond(hub, call),
        });
        let listed = forge(served, &inside, LONG).open_pull_requests(&mut Listing::all()).await;
        assert_eq!(listed, Ok(Vec::new()), "{}", served.forge);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_response_is_read_whole() {
    join_all(ALL.iter().filter(|served| served.forge != "gitea").map(async |served| {
        let hub = Hub::new();
        hub.branch("tagboat/web");
        hub.open("tagboat/web", "main", "Update", "text").unwrap();
        let respond = served.respond;
        let front = serve(&hub, served, "GET", move |hub, call| match respond(hub, call) {
            Reply::Answer { body, .. } => {
                Some(Reply::Paced { body, piece: 100, pause: Duration::from_millis(5) })
            }
            other => Some(other),
        });
        let listed = forge(served, &front, LONG).open_pull_requests(&mut Listing::all()).await.unwrap();
        assert_eq!(listed.len(), 1, "{}", served.forge);
    }))
    .await;
}

/// A response of 8 MiB took 367 MiB once it was parsed.
#[tokio::test(flavor = "multi_thread")]
async fn a_response_of_too_many_values_is_not_parsed() {
    join_all(ALL.iter().filter(|served| served.forge != "gitea").map(async |served| {
        let hub = Hub::new();
        let heads = ["tagboat/a", "tagboat/b"];
        for head in heads {
            hub.branch(head);
            hub.open(head, "main", "Update", "text").unwrap();
        }
        let respond = served.respond;
        let front = serve(&hub, served, "GET", move |hub, call| {
            let Reply::Answer { status, headers, body } = respond(hub, call) else { panic!("an answer") };
            let mut body: Value = serde_json::from_slice(&body).unwrap();
            let place = ["", "/values", "/value"]
                .into_iter()
                .find(|place| body.pointer(place).is_some_and(Value::is_array));
            for entry in body.pointer_mut(place.unwrap()).unwrap().as_array_mut().unwrap() {
                entry["padding"] = json!(vec![0; 60_000]);
            }
            Some(Reply::Answer { status, headers, body: body.to_string().into() })
        });
        let listed = forge(served, &front, LONG).open_pull_requests(&mut Listing::all()).await.unwrap();
        assert_eq!(listed.len(), heads.len(), "{}: in parts", served.forge);

        hub.branch("tagboat/d");
        let zeros = format!("[{}0]", "0,".repeat(400_000));
        let front = serve(&hub, served, "POST", move |_, _| Some(Reply::body(201, zeros.clone())));
        let error = forge(served, &front, LONG).open(&new("tagboat/d")).await.unwrap_err();
        assert!(error.to_string().ends_with("with more than 100000 values"), "{}: {error}", served.forge);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_repeat_for_ever_are_an_error() {
    join_all(ALL.iter().filter(|served| served.forge != "gitea").map(async |served| {
        let hub = Hub::new();
        hub.branch("tagboat/web");
        for _ in 0..101 {
            let number = hub.open_from_fork("tagboat/web").number;
            hub.change(number, |pull| pull.is_from_fork = false);
        }
        let respond = served.respond;
        let front = serve(&hub, served, "GET", move |hub, call| {
            let mut call = call.clone();
            call.query.retain(|(name, _)| !["page", "start", "$skip"].contains(&name.as_str()));
            Some(respond(hub, &call))
        });
        let listed = forge(served, &front, LONG).open_pull_requests(&mut Listing::all()).await;
        let error = listed.unwrap_err();
        assert!(error.to_string().contains("a page that repeats earlier ones"), "{}: {error}", served.forge);
    }))
    .await;
}
