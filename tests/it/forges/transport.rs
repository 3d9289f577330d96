//! The transport to each forge: logins in answers, limits, ETags, local addresses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use tagboat::forge::{Forge, ForgeClientOptions, ForgeClients, ForgeError, ForgeRateLimits, Listing};
use tagboat::net::LocalAddresses;

use super::faults::{ALL, Class, LONG, class, client, clients, said, serve};
use super::life::new;
use super::served::AZURE_DEVOPS;
use crate::support::forges::hub::{Call, Hub, TOKEN, answer};
use crate::support::http_front::{Front, Reply};

/// Azure DevOps gets a token as a password; only the token itself was redacted.
#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_a_server_quotes_is_not_shown() {
    join_all(ALL.iter().flat_map(|served| [200, 400, 401, 403, 500].map(|status| (*served, status))).map(
        async |(served, status)| {
            let front = Front::alone(move |request| {
                let sent = request.authorization().unwrap().to_owned();
                let error = json!([{"type": "FORBIDDEN", "message": sent}]);
                answer(status, &json!({"message": sent, "errors": error, "sent": sent}))
            });
            let error = client(served, &front, &clients(LONG)).open(&new("tagboat/web")).await.unwrap_err();
            let (sent, said) = (front.requests()[0].authorization().unwrap().to_owned(), error.to_string());
            let secret = sent.split_once(' ').unwrap().1;
            assert!(!said.contains(secret) && !said.contains(TOKEN), "{} {status}: {said}", served.forge);
        },
    ))
    .await;
}

/// A page for signing in was reported as a move of the forge.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_to_sign_in_is_a_refused_login() {
    let replies: [fn() -> Reply; 3] = [
        || Reply::body(203, "<html>").with("Content-Type", "text/html"),
        || Reply::status(302).with("Location", "/_signin?realm=x"),
        || Reply::status(302).with("Location", "https://other.example/_signin?realm=x"),
    ];
    for (reply, method) in replies.into_iter().flat_map(|reply| [(reply, "GET"), (reply, "POST")]) {
        let hub = Hub::new();
        let front = serve(&hub, &AZURE_DEVOPS, method, move |_, _| Some(reply()));
        let forge = client(&AZURE_DEVOPS, &front, &clients(LONG));
        let error = match method {
            "GET" => forge.open_pull_requests(&mut Listing::all()).await.unwrap_err(),
            _ => forge.open(&new("tagboat/web")).await.unwrap_err(),
        };
        assert_eq!(
            error.to_string(),
            format!(
                "{} refuses the credentials of Secret apps/forge: it answers with a page to sign in",
                front.address()
            )
        );
        let requests = front.requests();
        assert!(requests.iter().all(|request| request.header("x-tfs-fedauthredirect") == Some("Suppress")));
    }
}

/// A pause that Azure DevOps asks for with status 200 was ignored.
#[tokio::test(flavor = "multi_thread")]
async fn a_pause_is_obeyed_with_any_status() {
    join_all(ALL.iter().map(async |served| {
        let hub = Hub::new();
        let respond = served.respond;
        let front =
            serve(&hub, served, "GET", move |hub, call| Some(respond(hub, call).with("Retry-After", "77")));
        let clients = clients(LONG);
        let forge = client(served, &front, &clients);
        forge.open_pull_requests(&mut Listing::all()).await.unwrap();
        let error = forge.open(&new("tagboat/web")).await.unwrap_err();
        let ForgeError::RateLimited { retry_after, .. } = error else { panic!("{}: {error}", served.forge) };
        assert!((70..=77).contains(&retry_after.as_secs()), "{}: {retry_after:?}", served.forge);
        assert_eq!(front.requests().len(), 1, "{}", served.forge);
    }))
    .await;
}

/// The limit of Azure DevOps was noted under a name that nothing asked for.
#[tokio::test(flavor = "multi_thread")]
async fn little_left_of_a_limit_stops_calls_that_read() {
    join_all(ALL.iter().map(async |served| {
        let hub = Hub::new();
        hub.branch("tagboat/web");
        let respond = served.respond;
        let front = serve(&hub, served, "GET", move |hub, call| {
            let limited =
                respond(hub, call).with("X-RateLimit-Limit", "200").with("X-RateLimit-Remaining", "19");
            Some(limited.with("X-RateLimit-Reset", "600").with("X-RateLimit-Resource", "core"))
        });
        let clients = clients(LONG);
        let forge = client(served, &front, &clients);
        forge.open_pull_requests(&mut Listing::all()).await.unwrap();
        let error = forge.open_pull_requests(&mut Listing::all()).await.unwrap_err();
        assert_eq!(class(&error), Class::RateLimited, "{}: {error}", served.forge);
        if served.forge != "gitea" {
            assert!(forge.open(&new("tagboat/web")).await.unwrap().is_new, "{}: it goes on", served.forge);
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_with_an_etag_is_asked_for_again_on_a_condition() {
    join_all(ALL.iter().filter(|served| served.forge != "gitea").map(async |served| {
        let hub = Hub::new();
        for head in ["tagboat/web", "tagboat/api"] {
            hub.branch(head);
        }
        hub.open("tagboat/web", "main", "Update web", "text").unwrap();
        let (respond, serving) = (served.respond, Arc::clone(&hub));
        let front = Front::alone(move |request| match respond(&serving, &Call::of(request)) {
            Reply::Answer { status: 200, headers, body } if request.method == "GET" => {
                let document: Value = serde_json::from_slice(&body).unwrap();
                let etag =
                    format!("\"{}\"", tagboat::net::percent::encode(document.to_string().as_bytes()).len());
                if request.header("if-none-match") == Some(&etag) {
                    return Reply::status(304).with("ETag", &etag);
                }
                Reply::Answer { status: 200, headers, body }.with("ETag", &etag)
            }
            reply => reply,
        });
        let clients = clients(LONG);
        let forge = client(served, &front, &clients);
        let first = forge.open_pull_requests(&mut Listing::all()).await.unwrap();
        let sent = front.requests().len();
        let second = forge.open_pull_requests(&mut Listing::all()).await.unwrap();
        assert!(first == second && first.len() == 1, "{}", served.forge);
        let again = &front.requests()[sent..];
        assert!(again.iter().all(|request| request.header("if-none-match").is_some()), "{}", served.forge);
        // A change is seen, and a new client has nothing of it.
        hub.open("tagboat/api", "main", "Update api", "text").unwrap();
        assert_eq!(forge.open_pull_requests(&mut Listing::all()).await.unwrap().len(), 2, "{}", served.forge);
        let (other, sent) = (super::faults::clients(LONG), front.requests().len());
        client(served, &front, &other).open_pull_requests(&mut Listing::all()).await.unwrap();
        assert_eq!(front.requests()[sent].header("if-none-match"), None, "{}", served.forge);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_is_not_called_at_a_local_address_that_is_refused_for_git() {
    join_all(ALL.iter().map(async |served| {
        let front = Front::alone(|_| said(200, "mine"));
        let clients = ForgeClients::new(ForgeClientOptions {
            local_addresses: LocalAddresses::Refused,
            timeout: LONG,
            ..ForgeClientOptions::default()
        });
        let forge = client(served, &front, &clients);
        let error = forge.open_pull_requests(&mut Listing::all()).await.unwrap_err();
        assert!(
            error.to_string().starts_with(&format!("{} cannot be reached: ", front.address()))
                && error.to_string().contains("local"),
            "{}: {error}",
            served.forge
        );
        assert!(front.requests().is_empty(), "{}", served.forge);
    }))
    .await;
}

/// A run took the timeout six times, with all repetitions.
#[tokio::test(flavor = "multi_thread")]
async fn a_single_run_gives_a_silent_server_up_after_the_first_timeout() {
    for gives_up in [true, false] {
        let front = Front::alone(|_| Reply::Silence);
        let with = |timeout: Duration| {
            ForgeClients::new(ForgeClientOptions { timeout, gives_up, ..ForgeClientOptions::default() })
        };
        let clients = with(Duration::from_secs(1));
        for _ in 0..2 {
            // Each round has a client of its own.
            let forge = client(ALL[0], &front, &clients);
            let error = forge.open_pull_requests(&mut Listing::all()).await.unwrap_err();
            assert_eq!(error.to_string(), format!("{} gives no answer within 1 s", front.address()));
        }
        // On a busy machine, a call may end before the server has read the request.
        let sent = front.requests().len();
        assert!(if gives_up { sent <= 1 } else { sent > 1 }, "{gives_up}: {sent}");
        // A server that answers with a failure is asked again.
        let failing = Front::alone(|_| said(503, "busy"));
        let forge = client(ALL[0], &failing, &with(LONG));
        let error = forge.open_pull_requests(&mut Listing::all()).await.unwrap_err();
        assert_eq!(error.to_string(), format!("{} answers 503: busy", failing.address()));
        assert_eq!(failing.requests().len(), 3, "{gives_up}");
    }
}

/// The flags `--forge-concurrency` and `--forge-writes-per-minute`.
#[tokio::test(flavor = "multi_thread")]
async fn the_limits_of_a_token_are_those_that_are_given() {
    for concurrency in [1, 3] {
        let (in_flight, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let seen = Arc::clone(&most);
        let front = Front::alone(move |_| {
            let now = in_flight.fetch_add(1, Ordering::SeqCst) + 1;
            seen.fetch_max(now, Ordering::SeqCst);
            // The first calls wait for each other.
            while seen.load(Ordering::SeqCst) < concurrency {
                std::thread::yield_now();
            }
            in_flight.fetch_sub(1, Ordering::SeqCst);
            answer(200, &json!([]))
        });
        let rate_limits = ForgeRateLimits { concurrency, writes_per_minute: None };
        let clients = ForgeClients::new(ForgeClientOptions {
            rate_limits,
            timeout: LONG,
            ..ForgeClientOptions::default()
        });
        let forge = client(ALL[0], &front, &clients);
        let all = (0..12).map(async |_| forge.open_pull_requests(&mut Listing::all()).await.unwrap());
        join_all(all).await;
        assert_eq!((most.load(Ordering::SeqCst), front.requests().len()), (concurrency, 12));
    }
    let hub = Hub::new();
    for head in ["tagboat/a", "tagboat/b"] {
        hub.branch(head);
    }
    for (writes_per_minute, is_limited) in [(None, false), (Some(1), true)] {
        let front = hub.serve(AZURE_DEVOPS.respond);
        let rate_limits = ForgeRateLimits { concurrency: 4, writes_per_minute };
        let clients = ForgeClients::new(ForgeClientOptions {
            rate_limits,
            timeout: LONG,
            ..ForgeClientOptions::default()
        });
        let forge = client(&AZURE_DEVOPS, &front, &clients);
        forge.open(&new("tagboat/a")).await.unwrap();
        let second = forge.open(&new("tagboat/b")).await;
        let found = matches!(second, Err(ForgeError::RateLimited { .. }));
        assert_eq!(found, is_limited, "{writes_per_minute:?}: {second:?}");
        for number in hub.pulls().iter().map(|pull| pull.number).collect::<Vec<_>>() {
            hub.change(number, |pull| pull.state = crate::support::forges::hub::PullState::Closed);
        }
    }
}
