//! Registries that refuse connections, are silent, or answer with errors.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::fleet::{Fleet, RegistryFront, TAG, TICK, is_lookup};
use crate::controller::reflector::{Reflector, chosen, ready};
use crate::controller::scene::{Kind, condition};
use crate::support::eventually::eventually;
use crate::support::http_front::Reply;

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_04_a_registry_that_is_down_from_the_beginning_is_noticed_when_it_comes() {
    let mut fleet = Fleet::new().await;
    let digest = fleet.push("web", TAG);
    // An address that refuses connections.
    let address = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().to_string();
    let image = format!("{address}/web");
    fleet.write(&format!("web: {image}:{TAG} {}\n", fleet.marker("web")));
    fleet.scene.create(Kind::Repository, "web", &json!({"image": image, "interval": "12h"})).await;
    fleet.follow_as("web", "web", &json!({"tagboat.dev/poll-interval": "12h"})).await;
    fleet.automate().await;
    let (controller, reflector) = (fleet.scene.controller().start(), Reflector::of(&fleet.scene).start());
    let status = fleet.stale("web", "RegistryUnavailable").await;
    assert_eq!(status["latestRef"], Value::Null);
    assert!(fleet.file().contains(&format!("web: {image}:{TAG} #")), "{}", fleet.file());
    assert_eq!(fleet.commits().len(), 0);

    let begin = Instant::now();
    fleet.front = RegistryFront::at(&address, fleet.registry.port());
    let status = fleet.has("web", &digest).await;
    assert!(begin.elapsed() < HOUR, "that is long before the interval is over");
    assert_eq!(condition(&status, "Stale"), None);
    fleet.lands(&digest).await;
    assert_eq!(fleet.commits().len(), 1);
    reflector.end().await;
    controller.end().await;
}

/// The same if only digests cannot be looked up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_digest_that_cannot_be_looked_up_at_first_is_tried_again_soon() {
    let fleet = Fleet::new().await;
    let digest = fleet.push("web", TAG);
    fleet.front.answer(|request| if is_lookup(request) { Reply::Gone } else { Reply::Forward });
    fleet.follow("web", 12 * HOUR).await;
    let reflector = Reflector::of(&fleet.scene).start();
    let status = fleet.stale("web", "RegistryUnavailable").await;
    assert_eq!((status["latestRef"].clone(), ready(&status).0.as_str()), (Value::Null, "Failed"));
    fleet.front.heal();
    let status = fleet.has("web", &digest).await;
    assert_eq!(condition(&status, "Stale"), None);
    reflector.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreachable_registry_removes_no_pin_not_even_after_a_restart() {
    let fleet = Fleet::new().await;
    let digest = fleet.push("web", TAG);
    fleet.write_images(&["web"]);
    fleet.follow("web", HOUR).await;
    fleet.automate().await;
    let (controller, reflector) = (fleet.scene.controller().start(), Reflector::of(&fleet.scene).start());
    fleet.has("web", &digest).await;
    fleet.lands(&digest).await;
    fleet.scene.ready("all").await;
    let image = fleet.image("web");
    reflector.end().await;
    controller.end().await;

    let Fleet { scene, registry, front } = fleet;
    // Connections are refused from now on.
    drop((registry, front));
    let pinned = json!({"name": image, "tag": TAG, "digest": digest});
    let is_pinned = async || {
        let policy = scene.api(Kind::Policy).get("web").await.unwrap();
        let file = String::from_utf8(scene.repository.file("main", "web.yaml")).unwrap();
        policy.data["status"]["latestRef"] == pinned && file.contains(&digest)
    };
    for builder in [Reflector::of(&scene), Reflector::of(&scene).with_an_empty_store()] {
        let (controller, reflector) = (scene.controller().start(), builder.start());
        // A controller that starts polls at once, for the changes of the meantime.
        let stale = async || {
            let policy = scene.api(Kind::Policy).get("web").await.unwrap();
            condition(&policy.data["status"], "Stale")
                .is_some_and(|stale| stale["reason"] == "RegistryUnavailable")
        };
        eventually("the policy is stale", stale).await;
        scene.request("all", &format!("{:?}", Instant::now())).await;
        scene.ready("all").await;
        assert!(is_pinned().await);
        reflector.end().await;
        controller.end().await;
        assert!(is_pinned().await);
    }
    assert_eq!(scene.commits().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_that_hangs_or_throttles_delays_no_other() {
    let fleet = Fleet::new().await;
    let others = RegistryFront::before(fleet.registry.port());
    let digest = fleet.push("web", TAG);
    fleet.push("other", TAG);
    fleet.follow("web", TICK).await;
    let spec = json!({"image": format!("{}/other", others.address()), "interval": "1h"});
    fleet.scene.create(Kind::Repository, "other", &spec).await;
    fleet.follow_as("other", "other", &json!({"tagboat.dev/poll-interval": "500ms"})).await;
    let reflector = Reflector::of(&fleet.scene).start();
    fleet.has("web", &digest).await;
    others.more_lookups(1).await;

    // A registry that accepts connections and never answers.
    let lookups = fleet.front.lookups().len();
    fleet.front.answer(|request| if is_lookup(request) { Reply::Silence } else { Reply::Forward });
    eventually("a lookup begins", async || fleet.front.lookups().len() > lookups).await;
    let begin = Instant::now();
    others.more_lookups(4).await;
    let status = fleet.stale("web", "RegistryUnavailable").await;
    println!("the look was given up after {:?}", begin.elapsed());
    assert!(begin.elapsed() >= Duration::from_secs(4), "a registry has five seconds: {:?}", begin.elapsed());
    assert_eq!((&status["latestRef"]["digest"], ready(&status).0.as_str()), (&json!(digest), "Succeeded"));
    fleet.front.heal();
    let fresh = fleet.push("web", TAG);
    assert_eq!(condition(&fleet.has("web", &fresh).await, "Stale"), None);

    // A registry that throttles (`Retry-After`).
    fleet.front.answer(|request| {
        if is_lookup(request) { Reply::status(429).with("Retry-After", "60") } else { Reply::Forward }
    });
    fleet.stale("web", "RegistryUnavailable").await;
    let lookups = fleet.front.lookups().len();
    let rests = async || reflector.next_poll("web").is_some_and(|wait| wait > Duration::from_secs(30));
    eventually("the next lookup is a minute away", rests).await;
    others.more_lookups(4).await;
    assert_eq!(fleet.front.lookups().len(), lookups);
    reflector.end().await;
}

/// A slow registry does not count as silent because many tags are due.
///
/// After a restart all digests are due at once, and a slow registry gets the time that it needs for all of
/// them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_registry_is_not_called_silent_because_many_tags_are_due() {
    const MANY: usize = 60;
    let fleet = Fleet::new().await;
    let digest = fleet.push("web", TAG);
    let tags: Vec<String> = (0..MANY).map(|number| format!("t-{number:02}")).collect();
    fleet.registry.tag("web", TAG, tags.iter().cloned());
    fleet.scan("web").await;
    for tag in &tags {
        let spec = json!({
            "imageRepositoryRef": {"name": "web"},
            "filterTags": {"pattern": format!("^{tag}$")},
            "policy": {"alphabetical": {}},
            "digestReflectionPolicy": "Always",
            "interval": "1h",
        });
        fleet.create_policy(tag, &spec, &json!({})).await;
    }
    let policies = async || fleet.scene.api(Kind::Policy).list(&Default::default()).await.unwrap().items;
    let reflector = Reflector::of(&fleet.scene).start();
    let all_have = async || {
        let digests =
            policies().await.into_iter().map(|policy| policy.data["status"]["latestRef"]["digest"].clone());
        digests.filter(|found| *found == json!(digest)).count() == MANY
    };
    eventually("all digests are known", all_have).await;
    reflector.end().await;

    // All lookups together take many times the limit of one.
    let pause = Duration::from_secs(2);
    fleet.front.answer(move |request| if is_lookup(request) { Reply::Late(pause) } else { Reply::Forward });
    let reflector = Reflector::of(&fleet.scene).start();
    fleet.front.more_lookups(MANY).await;
    tokio::time::sleep(pause + Duration::from_secs(1)).await;
    let stale: Vec<Value> = policies()
        .await
        .into_iter()
        .filter_map(|policy| condition(&policy.data["status"], "Stale").cloned())
        .collect();
    assert!(stale.is_empty(), "{stale:?}");
    reflector.end().await;
}

/// A failure of the registry counts for all of its tags.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_registry_is_probed_with_one_tag_at_a_time() {
    const MANY: usize = 20;
    let fleet = Fleet::new().await;
    let others = RegistryFront::before(fleet.registry.port());
    let digest = fleet.push("web", TAG);
    fleet.push("other", TAG);
    let tags: Vec<String> = (0..MANY).map(|number| format!("t-{number:02}")).collect();
    fleet.registry.tag("web", TAG, tags.iter().cloned());
    fleet.scan("web").await;
    let often = json!({"tagboat.dev/poll-interval": "500ms"});
    for tag in &tags {
        let spec = json!({
            "imageRepositoryRef": {"name": "web"},
            "filterTags": {"pattern": format!("^{tag}$")},
            "policy": {"alphabetical": {}},
            "digestReflectionPolicy": "Always",
            "interval": "1h",
        });
        fleet.create_policy(tag, &spec, &often).await;
    }
    let spec = json!({"image": format!("{}/other", others.address()), "interval": "1h"});
    fleet.scene.create(Kind::Repository, "other", &spec).await;
    fleet.follow_as("other", "other", &often).await;
    let reflector = Reflector::of(&fleet.scene).start();
    for tag in &tags {
        let image = json!({"name": fleet.image("web"), "tag": tag, "digest": digest});
        chosen(&fleet.scene, tag, &image).await;
    }
    // A status for which the request is not retried at once.
    fleet.front.answer(|request| if is_lookup(request) { Reply::status(507) } else { Reply::Forward });
    let lookups = fleet.front.lookups().len();
    fleet.front.more_lookups(1).await;
    let (begin, before) = (Instant::now(), others.lookups().len());
    others.more_lookups(10).await;
    let (tried, went_on) = (fleet.front.lookups().len() - lookups, others.lookups().len() - before);
    println!("{tried} lookups at a failing registry, {went_on} at another one, in {:?}", begin.elapsed());
    assert!(tried <= MANY + 3 * went_on, "{tried} lookups for {MANY} tags, while another one had {went_on}");

    // A missing manifest concerns its tag only: the others are polled all the time.
    let missing = format!("/v2/web/manifests/{}", tags[0]);
    let path = missing.clone();
    fleet.front.answer(move |request| if request.path == path { Reply::status(404) } else { Reply::Forward });
    fleet.stale(&tags[0], "TagNotFound").await;
    fleet.front.more_lookups(5 * MANY).await;
    reflector.end().await;
}
