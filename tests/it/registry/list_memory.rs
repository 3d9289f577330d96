//! Tests of the memory of large lists.
//! It is reserved until the lists are processed, it is shared, and it is never awaited with a slot held.

use std::sync::Arc;

use tagboat::registry::{Listed, Listing, RateLimitOptions, Registries, RegistryOptions, Timeouts};
use tagboat::tenancy::Capacity;

use super::anonymous;
use crate::support::http_front::{Front, Reply};
use std::time::Duration;

/// The memory that one namespace may reserve.
const OF_A_NAMESPACE: u64 = 160 << 20;

/// A registry whose list of `large` has more tags than are read without a reservation.
fn front() -> Front {
    let tags: Vec<String> = (0..6000).map(|number| format!("{number:0>100}")).collect();
    let large = serde_json::json!({ "tags": tags }).to_string();
    Front::alone(move |request| match request.path.as_str() {
        "/v2/" => Reply::status(200),
        "/v2/large/tags/list" => Reply::body(200, large.clone()),
        _ => Reply::body(200, r#"{"tags": ["1.0.0"]}"#),
    })
}

fn registries(capacity: &Capacity, concurrency: usize) -> Registries {
    let rate_limits = RateLimitOptions { concurrency, ..RateLimitOptions::default() };
    Registries::new(RegistryOptions { rate_limits, capacity: capacity.clone(), ..RegistryOptions::default() })
}

async fn list(registries: &Registries, front: &Front, repository: &str) -> Listing {
    match registries.list(anonymous(&front.address(), repository), None).await {
        Ok(Listed::Tags(listing)) => listing,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_large_list_is_shared_and_its_memory_reserved_until_all_have_processed_it() {
    let (front, capacity) = (front(), Capacity::default());
    let registries = registries(&capacity, 16);
    let (first, second) =
        tokio::join!(list(&registries, &front, "large"), list(&registries, &front, "large"));
    assert_eq!(front.requests_for("/v2/large/tags/list").len(), 1);
    let texts = [&first, &second].map(|listing| listing.tags.iter().next().map(str::as_ptr));
    assert_eq!(texts[0], texts[1], "the second one has a copy");
    assert!(first.is_reserved());
    let has_all = || capacity.memory.try_reserve("apps", OF_A_NAMESPACE).is_some();
    drop(first);
    assert!(!has_all(), "the list is there, and nothing is reserved for it");
    // Callers that share the list take turns, because the memory suffices for one at a time.
    let turn = second.turn().await;
    let third = second.clone();
    assert!(futures::FutureExt::now_or_never(third.turn()).is_none());
    drop((turn, second, third));
    assert!(has_all());
}

/// An answer that waits for memory holds no slot of its server.
/// Formerly, with one slot for a server, a large list that waited for memory blocked all other requests.
#[tokio::test]
async fn an_answer_that_waits_for_memory_holds_no_slot_of_its_server() {
    let (front, capacity) = (Arc::new(front()), Capacity::default());
    let registries = registries(&capacity, 1);
    let all = capacity.memory.reserve("apps", OF_A_NAMESPACE).await;
    let waiting = {
        let (registries, front) = (registries.clone(), Arc::clone(&front));
        tokio::spawn(async move { list(&registries, &front, "large").await })
    };
    while front.requests_for("/v2/large/tags/list").is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(list(&registries, &front, "small").await.tags.len(), 1);
    assert!(!waiting.is_finished());
    drop(all);
    assert_eq!(waiting.await.unwrap().tags.len(), 6000);
}

/// A list with a large first page is restarted with memory for any list.
/// It is not read further before that.
#[tokio::test]
async fn a_large_page_that_is_followed_by_others_is_read_within_memory_for_the_whole_list() {
    let page = |from: usize| {
        let tags: Vec<String> = (from..from + 5000).map(|number| format!("{number:0>100}")).collect();
        serde_json::json!({ "tags": tags }).to_string()
    };
    let pages = [page(0), page(5000), page(10_000)];
    let front = Front::alone(move |request| match (request.path.as_str(), request.query.as_str()) {
        ("/v2/", _) => Reply::status(200),
        (_, "page=2") => Reply::body(200, pages[2].clone()),
        (_, "page=1") => {
            Reply::body(200, pages[1].clone()).with("Link", "</v2/app/tags/list?page=2>; rel=next")
        }
        _ => Reply::body(200, pages[0].clone()).with("Link", "</v2/app/tags/list?page=1>; rel=next"),
    });
    let capacity = Capacity::default();
    let listing = list(&registries(&capacity, 16), &front, "app").await;
    assert_eq!((listing.tags.len(), listing.is_reserved()), (15_000, true));
    assert!(capacity.memory.try_reserve("apps", OF_A_NAMESPACE - (128 << 20)).is_some());
    assert!(capacity.memory.try_reserve("apps", OF_A_NAMESPACE - (127 << 20)).is_none());
    assert_eq!(front.requests_for("/v2/app/tags/list").len(), 4);
}

/// A registry that sends a large list slowly holds memory for a short time.
///
/// Formerly, two registries that sent their tags slowly held most of all memory for as long as the longest
/// timeout.
#[tokio::test]
async fn a_registry_that_sends_a_large_list_slowly_holds_memory_for_a_short_time() {
    let tags: Vec<String> = (0..6000).map(|number| format!("{number:0>100}")).collect();
    let first = serde_json::json!({ "tags": tags }).to_string().into_bytes();
    let page = first.clone();
    let front = Front::alone(move |request| match (request.path.as_str(), request.query.as_str()) {
        ("/v2/", _) => Reply::status(200),
        // Most of it arrives at once, and the rest slowly, byte by byte.
        ("/v2/slow/tags/list", _) => {
            Reply::Paced { body: first.clone(), piece: 500_000, pause: Duration::from_secs(600) }
        }
        (_, "next") => Reply::Drip,
        _ => Reply::body(200, page.clone()).with("Link", "</v2/paged/tags/list?next>; rel=next"),
    });
    let timeouts = Timeouts {
        between_bytes: Duration::from_secs(600),
        with_memory: Duration::from_secs(1),
        ..Timeouts::default()
    };
    let capacity = Capacity::default();
    let registries = Registries::new(RegistryOptions {
        timeouts,
        capacity: capacity.clone(),
        ..RegistryOptions::default()
    });
    for repository in ["slow", "paged"] {
        let mut access = anonymous(&front.address(), repository);
        access.timeout = Duration::from_secs(600);
        let ended = tokio::time::timeout(Duration::from_secs(120), registries.list(access, None)).await;
        let error = ended.expect("the timeout of the object is not waited for").unwrap_err().to_string();
        assert!(error.contains("the large response was not complete within 1s"), "{repository}: {error}");
        assert!(capacity.memory.try_reserve("apps", OF_A_NAMESPACE).is_some(), "{repository}");
    }
}
