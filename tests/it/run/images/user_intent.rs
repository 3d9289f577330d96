//! Tests of user intent during an outage of the registry.
//! An image that a policy now forbids is never written again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::scene::{MADE, Scene};
use crate::support::content::file;
use crate::support::http_front::{Front, Reply};
use crate::support::manifests::marker;
use crate::support::remote_fleet::only_outcome;

/// A fleet that runs 1.2.0, from a registry that can be shut down.
struct Outage {
    scene: Scene,
    is_shut: Arc<AtomicBool>,
    front: Front,
}

impl Outage {
    fn new() -> Self {
        let (scene, is_shut) = (Scene::new(), Arc::new(AtomicBool::new(false)));
        for tag in ["1.1.0", "1.2.0"] {
            scene.registry.push("app/web", tag, MADE);
        }
        let seen = is_shut.clone();
        let front = Front::before(scene.registry.port(), move |_| match seen.load(Ordering::SeqCst) {
            true => Reply::status(403),
            false => Reply::Forward,
        });
        let outage = Self { scene, is_shut, front };
        outage.repository(json!({}));
        assert_eq!(outage.scene.outcome_name(&[]), "pushed");
        assert_eq!(outage.value(), outage.image("1.2.0"));
        outage
    }

    fn image(&self, tag: &str) -> String {
        format!("{}/app/web:{tag}", self.front.address())
    }

    fn repository(&self, mut spec: Value) {
        spec["image"] = json!(format!("{}/app/web", self.front.address()));
        self.scene.repository("web", json!({"spec": spec}));
    }

    fn exclude(&self, tags: &str) {
        self.scene.policy("web", json!({"metadata": {"annotations": {"tagboat.dev/exclude": tags}}}));
    }

    /// Shuts the registry down, and commits another tag as a person.
    fn shut_and_roll_back_to(&self, tag: &str) {
        self.is_shut.store(true, Ordering::SeqCst);
        let line = format!("image: {} {}\n", self.image(tag), marker("default:web"));
        self.scene.fleet.repository.commit("main", "Back by hand", &[file("app.yaml", line)]);
    }

    fn open(&self) {
        self.is_shut.store(false, Ordering::SeqCst);
    }

    fn value(&self) -> String {
        self.scene.value("app")
    }

    fn state_of(&self, member: &str) -> Value {
        self.scene.state_of("ImagePolicy", "web")["status"][member]["tag"].clone()
    }
}

#[test]
fn an_image_forbidden_during_an_outage_is_not_pushed_again() {
    let changes: [&dyn Fn(&Outage); 2] = [&|outage| outage.exclude("1.2.0"), &|outage| {
        outage.scene.policy("web", json!({"spec": {"policy": {"semver": {"range": "<1.2.0"}}}}));
    }];
    for change in changes {
        let outage = Outage::new();
        change(&outage);
        outage.shut_and_roll_back_to("1.0.0");
        let ended = outage.scene.run(&["--dry-run"]).with_status(1);
        assert_eq!(only_outcome(&ended)["choices"][0]["latest"], outage.image("1.1.0"));
        assert_eq!(outage.state_of("latestRef"), "1.2.0", "a dry run stores nothing");
        let ended = outage.scene.run(&[]).with_status(1);
        let outcome = only_outcome(&ended);
        assert_eq!((outage.value(), &outcome["outcome"]), (outage.image("1.1.0"), &json!("pushed")));
        let choice = &outcome["choices"][0];
        assert_eq!(
            choice["stale"],
            "it chooses from the tags in the state, which may be out of date, because its repository could not be \
             scanned"
        );
        let error = choice["error"].as_str().unwrap();
        assert!(error.starts_with("ImageRepository default/web: scan failed: "), "{error}");
        assert!(
            error.ends_with(
                "; its policies were changed or requested since they last chose, so they choose from the tags in the \
                 state"
            ),
            "{error}"
        );
        assert_eq!(outcome["errors"], json!([error]));
        assert!(
            ended.errors.contains("warning: ImagePolicy default/web: it chooses from the tags in the state"),
            "{ended:?}"
        );
        assert_eq!(
            (outage.state_of("latestRef"), outage.state_of("observedPreviousRef")),
            (json!("1.1.0"), json!("1.2.0"))
        );
        // The intent is fulfilled: from now on the policy keeps its image.
        let ended = outage.scene.run(&[]).with_status(1);
        assert!(ended.only_error().ends_with("; its policies keep the images that they have"), "{ended:?}");
        outage.open();
        assert_eq!(outage.scene.outcome_name(&[]), "skipped");
        assert_eq!(outage.value(), outage.image("1.1.0"));
    }
}

#[test]
fn without_tags_to_choose_from_the_markers_of_a_policy_that_was_changed_are_left_alone() {
    let outage = Outage::new();
    std::fs::remove_dir_all(outage.scene.fleet.state().join("tags")).unwrap();
    outage.exclude("1.2.0");
    outage.shut_and_roll_back_to("1.0.0");
    for _ in 0..2 {
        let ended = outage.scene.run(&[]).with_status(1);
        assert!(
            ended.only_error().ends_with(
                "; its policies were changed or requested since they last chose, but the state has no tags to choose from, \
                 so their markers are left alone"
            ),
            "{ended:?}"
        );
        assert_eq!(only_outcome(&ended)["choices"][0].get("latest"), None);
        assert_eq!(outage.value(), outage.image("1.0.0"));
    }
    // It is not used without a scan either.
    let ended = outage.scene.run(&["--no-scan"]).with_status(0);
    assert_eq!(
        ended.only_error(),
        format!(
            "warning: ImagePolicy default/web: its current image {} is no longer allowed, and no other could be chosen, so \
             its markers are left alone",
            outage.image("1.2.0")
        )
    );
    assert_eq!(outage.value(), outage.image("1.0.0"));
    // The user's intent still applies when the registry is back.
    outage.open();
    assert_eq!(outage.scene.outcome_name(&[]), "pushed");
    assert_eq!(outage.value(), outage.image("1.1.0"));
}

/// Without a replacement of a forbidden image, its markers are left alone.
///
/// This holds with and without the registry: no tags are left to select from, or the selected one cannot be
/// pulled.
#[test]
fn without_a_replacement_of_a_forbidden_image_the_markers_are_left_alone() {
    let changes: [&dyn Fn(&Outage); 3] = [
        &|outage| outage.exclude("[1.0.0, 1.1.0, 1.2.0]"),
        &|outage| outage.exclude("[1.0.0, 1.1.0, 1.2.0"),
        &|outage| outage.repository(json!({"exclusionList": ["^1\\.2\\.0$"]})),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let outage = Outage::new();
        change(&outage);
        outage.shut_and_roll_back_to("1.0.0");
        let ended = outage.scene.run(&[]).with_status(1);
        let words = format!(
            "its current image {} is no longer allowed, and no other could be chosen, so its markers are left alone",
            outage.image("1.2.0")
        );
        assert!(ended.only_error().contains(&words), "{number} {ended:?}");
        assert_eq!(only_outcome(&ended)["errors"].as_array().unwrap().len(), 1);
        assert_eq!(outage.value(), outage.image("1.0.0"), "{number}");
        outage.open();
        let ended = outage.scene.run(&[]);
        match number {
            2 => assert_eq!(outage.value(), outage.image("1.1.0")),
            _ => assert_eq!(outage.value(), outage.image("1.0.0"), "{number} {ended:?}"),
        }
    }
}

#[test]
fn unchanged_policies_keep_their_images_beside_a_changed_one() {
    let outage = Outage::new();
    outage.scene.policy("other", json!({"spec": {"imageRepositoryRef": {"name": "web"}}}));
    outage.scene.run(&[]).with_status(0);
    outage.exclude("1.2.0");
    outage.shut_and_roll_back_to("1.0.0");
    let outcome = only_outcome(&outage.scene.run(&[]).with_status(1));
    let latest = |index: usize| outcome["choices"][index]["latest"].clone();
    assert_eq!((latest(0), latest(1)), (json!(outage.image("1.2.0")), json!(outage.image("1.1.0"))));
    let error = outcome["errors"][0].as_str().unwrap();
    assert!(
        error.contains("its policies keep the images that they have: default/other; its policies"),
        "{error}"
    );
    assert_eq!(outcome["errors"].as_array().unwrap().len(), 1);
}

/// A forbidden image does not stand in for a winner that is not there.
/// The winner cannot be verified, so the earlier image would stay, which the user has forbidden.
#[test]
fn a_forbidden_image_is_no_fallback_for_a_missing_winner() {
    let scene = Scene::new();
    scene.registry.push("app/web", "1.2.0", MADE);
    let front =
        Front::before(scene.registry.port(), |request| match request.path.ends_with("/manifests/1.0.0") {
            true => Reply::status(404),
            false => Reply::Forward,
        });
    let image = format!("{}/app/web", front.address());
    scene.repository("web", json!({"spec": {"image": image}}));
    assert_eq!(scene.outcome_name(&[]), "pushed");
    scene.policy("web", json!({"metadata": {"annotations": {"tagboat.dev/exclude": "1.2.0"}}}));
    let line = format!("image: {image}:0.9.0 {}\n", marker("default:web"));
    scene.fleet.repository.commit("main", "Back by hand", &[file("app.yaml", line)]);
    for _ in 0..2 {
        let ended = scene.run(&[]).with_status(1);
        let words = format!("its current image {image}:1.2.0 is no longer allowed");
        assert!(ended.only_error().contains(&words) && ended.errors.contains("does not exist"), "{ended:?}");
        assert_eq!(scene.value("app"), format!("{image}:0.9.0"));
    }
}
