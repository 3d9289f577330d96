//! Following a tag while its registry answers.

use std::time::{Duration, Instant};

use serde_json::json;

use super::fleet::{Fleet, TAG, TICK, is_lookup};
use crate::controller::reflector::{Reflector, requested};
use crate::controller::scene::Kind;
use crate::support::eventually::eventually;

/// The shortest time that so many polls take: jitter is a twentieth.
fn ticks(count: u32, tick: Duration) -> Duration {
    (tick * count).mul_f64(0.94)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_01_the_first_poll_pins_the_digest_in_one_commit() {
    let fleet = Fleet::new().await;
    let digest = fleet.push("web", TAG);
    fleet.write_images(&["web"]);
    fleet.follow("web", TICK).await;
    fleet.automate().await;
    let (controller, reflector) = (fleet.scene.controller().start(), Reflector::of(&fleet.scene).start());
    let status = fleet.has("web", &digest).await;
    assert_eq!(status["observedPreviousRef"], json!(null));
    fleet.lands(&format!("web: {}:{TAG}@{digest} #", fleet.image("web"))).await;
    fleet.scene.ready("all").await;
    assert_eq!(fleet.commits().len(), 1);
    reflector.end().await;
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_02_a_tag_that_does_not_move_costs_one_head_a_tick() {
    let fleet = Fleet::new().await;
    let digest = fleet.push("web", TAG);
    fleet.write_images(&["web"]);
    fleet.follow("web", TICK).await;
    fleet.automate().await;
    let (controller, reflector) = (fleet.scene.controller().start(), Reflector::of(&fleet.scene).start());
    fleet.has("web", &digest).await;
    fleet.lands(&digest).await;
    fleet.front.more_lookups(1).await;
    let (version, requests) =
        (fleet.policy("web").await.metadata.resource_version, fleet.front.requests().len());
    let passed = fleet.front.more_lookups(5).await;
    assert!(passed >= ticks(4, TICK), "five lookups within {passed:?}");
    let requests = fleet.front.requests().split_off(requests);
    assert!(requests.iter().all(is_lookup), "{requests:?}");
    assert_eq!(fleet.policy("web").await.metadata.resource_version, version);
    assert_eq!(fleet.commits().len(), 1);
    reflector.end().await;
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_03_a_tag_that_moves_is_in_git_a_moment_after_the_tick() {
    let fleet = Fleet::new().await;
    let first = fleet.push("web", TAG);
    fleet.write_images(&["web"]);
    fleet.follow("web", TICK).await;
    fleet.automate().await;
    let (controller, reflector) = (fleet.scene.controller().start(), Reflector::of(&fleet.scene).start());
    fleet.lands(&first).await;
    fleet.scene.ready("all").await;

    let lookups = fleet.front.lookups().len();
    let second = fleet.push("web", TAG);
    fleet.lands(&second).await;
    let landed = Instant::now();
    // The first lookup after the push may have been in flight before it, but the second was not.
    let tick = fleet.front.lookups()[lookups];
    println!("from the tick to the commit: {:?}", landed - tick);
    assert!(landed - tick < Duration::from_secs(10), "a second is promised, and the machine may be busy");
    let status = fleet.has("web", &second).await;
    assert_eq!(status["observedPreviousRef"]["digest"], json!(first));
    fleet.scene.ready("all").await;
    let commits = fleet.commits();
    assert_eq!(commits.len(), 2);
    let line = |digest: &str| format!("web: {}:{TAG}@{digest} {}", fleet.image("web"), fleet.marker("web"));
    assert_eq!(fleet.diff(&commits[0]), [format!("-{}", line(&first)), format!("+{}", line(&second))]);
    let image = fleet.image("web");
    let words = format!("{image}:{TAG}@{first} -> {image}:{TAG}@{second}");
    assert!(commits[0].message.contains(&words), "{}", commits[0].message);
    reflector.end().await;
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_08_ten_policies_on_one_tag_share_one_head_a_tick() {
    let fleet = Fleet::new().await;
    let digest = fleet.push("web", TAG);
    fleet.scan("web").await;
    let names: Vec<String> = (0..10).map(|number| format!("web-{number}")).collect();
    for name in &names {
        fleet.follow_as(name, "web", &json!({"tagboat.dev/poll-interval": "1s"})).await;
    }
    let reflector = Reflector::of(&fleet.scene).start();
    let all_have = async |digest: &str| {
        for name in &names {
            let image = json!({"name": fleet.image("web"), "tag": TAG, "digest": digest});
            crate::controller::reflector::chosen(&fleet.scene, name, &image).await;
        }
    };
    all_have(&digest).await;
    fleet.front.more_lookups(1).await;
    let passed = fleet.front.more_lookups(5).await;
    assert!(passed >= ticks(4, Duration::from_secs(1)), "five lookups within {passed:?}");
    // All policies get the digest that one lookup finds.
    let moved = fleet.push("web", TAG);
    all_have(&moved).await;
    reflector.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_15_a_burst_of_moves_between_two_ticks_is_one_commit() {
    const TICK: Duration = Duration::from_secs(2);
    let fleet = Fleet::new().await;
    let mut current = fleet.push("web", TAG);
    fleet.write_images(&["web"]);
    fleet.follow("web", TICK).await;
    fleet.automate().await;
    let (controller, reflector) = (fleet.scene.controller().start(), Reflector::of(&fleet.scene).start());
    fleet.lands(&current).await;
    // On a busy machine a poll may happen between the two; then the comparison is repeated.
    let (passed_over, last) = loop {
        fleet.front.more_lookups(1).await;
        let lookups = fleet.front.lookups().len();
        let burst = (fleet.push("web", TAG), fleet.push("web", TAG));
        if fleet.front.lookups().len() == lookups {
            break burst;
        }
        fleet.lands(&burst.1).await;
        current = burst.1;
    };
    let before = fleet.commits().len();
    fleet.lands(&last).await;
    fleet.scene.ready("all").await;
    let commits = fleet.commits();
    assert_eq!(commits.len(), before + 1);
    let diff = fleet.diff(&commits[0]).join("\n");
    assert!(diff.contains(&current) && diff.contains(&last) && !diff.contains(&passed_over), "{diff}");
    reflector.end().await;
    controller.end().await;
}

/// Beside the poller: a request for a policy does not wait for the next poll.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_looks_up_the_digest_at_once() {
    let fleet = Fleet::new().await;
    let first = fleet.push("web", TAG);
    fleet.follow("web", Duration::from_secs(3600)).await;
    let reflector = Reflector::of(&fleet.scene).start();
    fleet.has("web", &first).await;
    let second = fleet.push("web", TAG);
    fleet.scene.patch(Kind::Policy, "web", &requested("now")).await;
    fleet.has("web", &second).await;
    let far = async || reflector.next_poll("web").is_some_and(|wait| wait > Duration::from_secs(3000));
    eventually("the next lookup is an hour away", far).await;
    reflector.end().await;
}
