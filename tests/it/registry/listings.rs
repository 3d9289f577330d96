//! Listings of tags: pages of the real registry, and pages as other registries send them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tagboat::registry::{ListOptions, Listed, Registries, RegistryOptions};

use super::{anonymous, registries, tags, tags_by};
use crate::support::http_front::{Front, Reply};
use crate::support::registry::Registry;

const LIST: &str = "/v2/app/web/tags/list";

/// A registry of the test, with one repository.
fn registry(list: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Front {
    Front::alone(move |request| match request.path.as_str() {
        "/v2/" => Reply::status(200),
        LIST => list(&request.query),
        _ => Reply::status(404),
    })
}

fn page(tags: impl IntoIterator<Item = String>) -> Reply {
    let tags: Vec<String> = tags.into_iter().collect();
    Reply::body(200, serde_json::json!({"name": "app/web", "tags": tags}).to_string())
}

fn number(query: &str, name: &str) -> Option<usize> {
    let found = url::form_urlencoded::parse(query.as_bytes()).find(|(found, _)| found == name)?.1;
    found.trim_start_matches('t').parse().ok()
}

fn named(numbers: std::ops::Range<usize>) -> impl Iterator<Item = String> {
    numbers.map(|number| format!("t{number:05}"))
}

#[tokio::test]
async fn the_real_registry_gives_all_its_pages() {
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", "2026-01-02T03:04:05Z");
    registry.tag("app/web", "1.0.0", (0..2500).map(|number| format!("0.{number}.0")));
    let front = Front::before(registry.port(), |_| Reply::Forward);
    let counts = Mutex::new(Vec::new());
    let progress = |count| counts.lock().unwrap().push(count);
    let options = ListOptions { progress: &progress, ..ListOptions::default() };
    let repository = registries().repository(anonymous(&front.address(), "app/web"));
    let listed = repository.list(options).await.unwrap();
    let Listed::Tags(listing) = listed else { panic!("nothing was known before") };
    assert_eq!(listing.tags.len(), 2501);
    assert_eq!(listing.tags.iter().next(), Some("1.0.0"));
    assert_eq!(*counts.lock().unwrap(), [1000, 2000, 2501]);
    assert_eq!(front.requests_for(LIST).len(), 3);
    assert_eq!(front.requests_for(LIST)[0].query, "n=1000");
}

#[tokio::test]
async fn an_unknown_repository_is_reported() {
    let registry = Registry::start();
    let error = tags(anonymous(&registry.address(), "nobody/home")).await.unwrap_err();
    assert!(error.is_not_found());
    let wanted = format!(
        "GET http://{}/v2/nobody/home/tags/list?n=1000: NAME_UNKNOWN: repository name not known to registry",
        registry.address()
    );
    assert_eq!(error.to_string(), wanted);
    let front = registry_without_error_document();
    let error = tags(anonymous(&front.address(), "app/web")).await.unwrap_err();
    assert!(error.to_string().ends_with(": unexpected status code 404 Not Found"), "{error}");
}

fn registry_without_error_document() -> Front {
    registry(|_| Reply::body(404, "404 page not found\n"))
}

#[tokio::test]
async fn absolute_links_that_name_another_server_are_read_as_ours() {
    let front = registry(|query| match number(query, "last") {
        None => page(named(0..3))
            .with("Link", "<https://internal.example/v2/app/web/tags/list?n=3&last=t00002>; rel=\"next\""),
        Some(2) => page(named(3..4)),
        other => panic!("{other:?}"),
    });
    assert_eq!(tags(anonymous(&front.address(), "app/web")).await.unwrap().len(), 4);
}

#[tokio::test]
async fn a_link_to_another_server_is_an_error() {
    let front = registry(|_| {
        page(named(0..3))
            .with("Link", "<https://u:hunter2@evil.example/hunter2>; rel=\"next\"; title=hunter2")
    });
    let error = tags(anonymous(&front.address(), "app/web")).await.unwrap_err();
    let wanted = ": the next page of tags is on another server, \"https://evil.example\"";
    assert!(error.to_string().ends_with(wanted), "{error}");
}

#[tokio::test]
async fn cyclic_links_are_an_error() {
    let front = registry(|query| {
        let next = if number(query, "last") == Some(1) { 2 } else { 1 };
        page(named(0..3)).with("Link", &format!("<{LIST}?last=t{next}>; rel=\"next\""))
    });
    let error = tags(anonymous(&front.address(), "app/web")).await.unwrap_err();
    assert!(error.to_string().contains("the pages of the tag list form a loop"), "{error}");
    assert!(front.requests_for(LIST).len() <= 4);
}

#[tokio::test]
async fn links_that_lead_on_and_on_to_nothing_new_are_an_error() {
    let count = AtomicUsize::new(0);
    let front = registry(move |_| {
        let next = count.fetch_add(1, Ordering::SeqCst);
        page(named(0..3)).with("Link", &format!("<{LIST}?page={next}>; rel=\"next\""))
    });
    let error = tags(anonymous(&front.address(), "app/web")).await.unwrap_err();
    assert!(error.to_string().contains("the pages of the tag list form a loop"), "{error}");
    assert!(front.requests_for(LIST).len() < 20);
}

#[tokio::test]
async fn empty_pages_between_full_ones_are_not_a_cycle() {
    let front = registry(|query| match number(query, "page").unwrap_or_default() {
        4 => page(named(3..6)),
        0 => page(named(0..3)).with("Link", &format!("<{LIST}?page=1>")),
        other => page([]).with("Link", &format!("<{LIST}?page={}>", other + 1)),
    });
    assert_eq!(tags(anonymous(&front.address(), "app/web")).await.unwrap().len(), 6);
}

#[tokio::test]
async fn a_full_page_without_a_link_is_followed_by_the_next() {
    let front = registry(|query| {
        let begin = number(query, "last").map_or(0, |last| last + 1);
        page(named(begin..2100.min(begin + 1000)))
    });
    assert_eq!(tags(anonymous(&front.address(), "app/web")).await.unwrap().len(), 2100);
    let queries: Vec<String> = front.requests_for(LIST).into_iter().map(|request| request.query).collect();
    assert_eq!(queries, ["n=1000", "n=1000&last=t00999", "n=1000&last=t01999"]);
}

#[tokio::test]
async fn a_registry_without_support_for_last_gets_one_more_request() {
    for (size, requests) in [(1000, 2), (1001, 1), (999, 1), (0, 1)] {
        let front = registry(move |_| page(named(0..size)));
        assert_eq!(tags(anonymous(&front.address(), "app/web")).await.unwrap().len(), size);
        assert_eq!(front.requests_for(LIST).len(), requests, "{size}");
    }
    let front =
        registry(|query| if query.contains("last") { Reply::status(400) } else { page(named(0..1000)) });
    assert_eq!(tags(anonymous(&front.address(), "app/web")).await.unwrap().len(), 1000);
}

#[tokio::test]
async fn smaller_pages_are_requested_after_a_refusal_of_large_ones_and_the_size_is_kept() {
    let quay = r#"{"errors":[{"code":"TOO_MANY_TAGS_REQUESTED","message":"Too many tags requested"}]}"#;
    let front = registry(move |query| {
        if number(query, "n").is_none_or(|n| n > 100) {
            return Reply::body(403, quay);
        }
        let begin = number(query, "last").map_or(0, |last| last + 1);
        let end = 250.min(begin + 100);
        let answer = page(named(begin..end));
        let more = format!("<{LIST}?n=100&last=t{}>; rel=\"next\"", end - 1);
        if end < 250 { answer.with("Link", &more) } else { answer }
    });
    let registries = registries();
    for requests in [4, 7] {
        assert_eq!(tags_by(&registries, anonymous(&front.address(), "app/web")).await.unwrap().len(), 250);
        assert_eq!(front.requests_for(LIST).len(), requests);
    }
    assert_eq!(front.requests_for("/v2/").len(), 1);
    let front = registry(|query| if query.is_empty() { page(named(0..7)) } else { Reply::status(400) });
    assert_eq!(tags(anonymous(&front.address(), "app/web")).await.unwrap().len(), 7);
    let front = registry(|_| Reply::status(400));
    let error = tags(anonymous(&front.address(), "app/web")).await.unwrap_err();
    assert!(error.to_string().contains("n=1000: unexpected status code 400 Bad Request"), "{error}");
}

#[tokio::test]
async fn too_many_tags_are_an_error_and_not_a_part_of_them() {
    let front = registry(|_| page(named(0..11)));
    let taking = |max_tags| Registries::new(RegistryOptions { max_tags, ..RegistryOptions::default() });
    let access = anonymous(&front.address(), "app/web");
    let error = taking(10).list(access.clone(), None).await.unwrap_err();
    assert!(error.to_string().contains("app/web has more than 10 tags"), "{error}");
    assert!(taking(11).list(access, None).await.is_ok());
}

#[tokio::test]
async fn an_unchanged_list_is_not_sent_again() {
    let front = Front::alone(|request| match (request.path.as_str(), request.header("if-none-match")) {
        ("/v2/", _) => Reply::status(200),
        (_, Some("\"one\"")) => Reply::status(304).with("ETag", "\"one\""),
        _ => page(named(0..3)).with("ETag", "\"one\""),
    });
    let registries = registries();
    let access = anonymous(&front.address(), "app/web");
    let listed = registries.list(access.clone(), None).await.unwrap();
    let Listed::Tags(listing) = listed else { panic!("nothing was known before") };
    assert_eq!(listing.etag.as_deref(), Some("\"one\""));
    let listed = registries.list(access, listing.etag.as_deref()).await.unwrap();
    assert!(matches!(listed, Listed::Unchanged), "{listed:?}");
}

#[tokio::test]
async fn a_list_of_several_pages_is_never_unchanged() {
    let front = registry(|query| match number(query, "last") {
        None => page(named(0..3)).with("ETag", "\"first page\"").with("Link", "<?last=t00002>"),
        _ => page(named(3..4)).with("ETag", "\"second page\""),
    });
    let listed = registries().list(anonymous(&front.address(), "app/web"), None).await;
    let Listed::Tags(listing) = listed.unwrap() else { panic!("nothing was known before") };
    assert_eq!((listing.tags.len(), listing.etag), (4, None));
}

#[tokio::test]
async fn an_answer_that_is_not_a_list_is_an_error() {
    for body in ["", "<html>", r#"{"tags": [1]}"#, "[]", r#"{"tags": "x"}"#] {
        let front = registry(move |_| Reply::body(200, body));
        let error = tags(anonymous(&front.address(), "app/web")).await.unwrap_err();
        assert!(error.to_string().contains("it is not a list of tags"), "{body}: {error}");
    }
    for body in [r#"{"name": "app/web", "tags": null}"#, "{}"] {
        let front = registry(move |_| Reply::body(200, body));
        assert!(tags(anonymous(&front.address(), "app/web")).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn one_listing_serves_all_concurrent_callers() {
    let is_open = Arc::new(AtomicBool::new(false));
    let may_answer = is_open.clone();
    let front = Front::alone(move |request| {
        if request.path == "/v2/" {
            return Reply::status(200);
        }
        while !may_answer.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
        page(named(0..3))
    });
    let registries = registries();
    let ask = || {
        let (registries, access) = (registries.clone(), anonymous(&front.address(), "app/web"));
        tokio::spawn(async move { tags_by(&registries, access).await.unwrap().len() })
    };
    let mut asked = vec![ask()];
    while front.requests_for(LIST).is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Callers that come while the first listing is in flight share the second.
    asked.extend((1..50).map(|_| ask()));
    tokio::time::sleep(Duration::from_millis(100)).await;
    is_open.store(true, Ordering::SeqCst);
    for one in asked {
        assert_eq!(one.await.unwrap(), 3);
    }
    assert_eq!(front.requests_for(LIST).len(), 2);
    // Another namespace has a listing of its own.
    let before = front.requests_for(LIST).len();
    let mut other = anonymous(&front.address(), "app/web");
    other.namespace = "other".to_owned();
    tags_by(&registries, other).await.unwrap();
    assert_eq!(front.requests_for(LIST).len(), before + 1);
}

#[tokio::test]
async fn links_to_something_else_are_not_taken_for_the_next_page() {
    let help = "<https://docs.example/tags>; rel=\"help\"";
    let front = registry(move |query| match number(query, "last") {
        None => page(named(0..3)).with("Link", help).with("Link", "<?last=t00002&n=3>; rel=\"next\""),
        Some(2) => page(named(3..6))
            .with("Link", &format!("{help}, <?n=3>; rel=first, <?last=t00005&n=3>; rel=\"last next\"")),
        _ => page(named(6..7)).with("Link", "<?n=3>; rel=\"first\", <?last=t00002&n=3>; rel=\"prev\""),
    });
    assert_eq!(tags(anonymous(&front.address(), "app/web")).await.unwrap().len(), 7);
    assert_eq!(front.requests_for(LIST).len(), 3);
}

#[tokio::test]
async fn a_wrong_media_type_is_accepted_and_a_compressed_list_is_an_error() {
    let front = registry(|_| page(named(0..3)).with("Content-Type", "text/plain"));
    assert_eq!(tags(anonymous(&front.address(), "app/web")).await.unwrap().len(), 3);
    let front = registry(|_| Reply::body(200, [0x1f, 0x8b, 8, 0]).with("Content-Encoding", "gzip"));
    let error = tags(anonymous(&front.address(), "app/web")).await.unwrap_err();
    assert!(
        error.to_string().contains("it is compressed (Content-Encoding), which was not requested"),
        "{error}"
    );
}

/// A link to the next page does not redirect a request to another server.
/// The link may have another scheme, host or port; the request goes to the server of the first page.
#[tokio::test]
async fn no_link_leads_to_another_server() {
    let other = Front::alone(|_| page(named(7..9)));
    for scheme in ["http", "https"] {
        let link = format!("<{scheme}://{}{LIST}?last=t00002>; rel=\"next\"", other.address());
        let front = registry(move |query| match number(query, "last") {
            None => page(named(0..3)).with("Link", &link),
            _ => page(named(3..4)),
        });
        assert_eq!(tags(anonymous(&front.address(), "app/web")).await.unwrap().len(), 4);
    }
    assert!(other.requests().is_empty());
}
