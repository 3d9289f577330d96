//! Image overrides on the command line, from which the next run goes on.

use serde_json::{Value, json};

use super::scene::{MADE, Scene};

/// A fleet that runs 1.2.0, a tag that is then deleted from the registry.
fn without_the_latest() -> Scene {
    let scene = Scene::new();
    for tag in ["1.1.5", "1.2.0"] {
        scene.registry.push("app/web", tag, MADE);
    }
    assert_eq!(scene.outcome_name(&[]), "pushed");
    scene.registry.remove("app/web", "1.2.0");
    let ended = scene.run(&[]).with_status(0);
    assert!(ended.only_error().contains("1.1.5 is lower than 1.2.0 and waits"), "{ended:?}");
    scene
}

fn status(scene: &Scene) -> Value {
    scene.state_of("ImagePolicy", "web")["status"].clone()
}

#[test]
fn a_lower_image_override_stays_in_later_runs() {
    let scene = without_the_latest();
    let given = format!("web={}", scene.image("app/web:1.1.5"));
    assert_eq!(scene.outcome_name(&["--latest", &given, "--dry-run"]), "dry-run");
    assert_eq!(status(&scene)["latestRef"]["tag"], "1.2.0", "a dry run stores nothing");
    assert_eq!(scene.outcome_name(&["--latest", &given]), "pushed");
    assert_eq!(scene.value("app"), "app/web:1.1.5");
    let kept = status(&scene);
    assert_eq!(
        (&kept["latestRef"]["tag"], &kept["observedPreviousRef"]["tag"]),
        (&json!("1.1.5"), &json!("1.2.0"))
    );
    assert_eq!(kept["conditions"].as_array().unwrap().len(), 1, "nothing waits any more: {kept}");
    let ended = scene.run(&[]).with_status(0);
    assert_eq!((ended.errors.as_str(), scene.value("app").as_str()), ("", "app/web:1.1.5"));
    // A lower tag is held again, and a higher tag that is listed wins.
    let lower = format!("web={}", scene.image("app/web:1.0.0"));
    assert_eq!(scene.outcome_name(&["--latest", &lower]), "pushed");
    assert_eq!(scene.outcome_name(&[]), "pushed");
    assert_eq!(scene.value("app"), "app/web:1.1.5");
}

/// An override gives an image to policies that do not select one.
/// A suspended policy keeps the override, and one without a repository has the image of its manifest again.
#[test]
fn an_image_override_works_for_policies_without_a_selection() {
    let scene = without_the_latest();
    let given = format!("web={}", scene.image("app/web:1.1.5"));
    scene.policy("web", json!({"spec": {"suspend": true}}));
    assert_eq!(scene.outcome_name(&["--latest", &given, "--no-scan"]), "pushed");
    assert_eq!(scene.outcome(&[])["policies"]["web"]["tag"], "1.1.5");
    assert_eq!(scene.value("app"), "app/web:1.1.5");

    let scene = Scene::new();
    std::fs::remove_file(scene.manifests().join("ImageRepository-default-web.yaml")).unwrap();
    scene.policy("web", json!({"status": {"latestRef": {"name": scene.image("app/web"), "tag": "1.0.0"}}}));
    let given = format!("web={}", scene.image("app/web:1.4.0"));
    assert_eq!(scene.outcome_name(&["--latest", &given]), "pushed");
    assert_eq!(scene.value("app"), "app/web:1.4.0");
    assert!(!scene.fleet.state().join("objects/ImagePolicy").exists());
    assert_eq!(scene.outcome(&[])["policies"]["web"]["tag"], "1.0.0");
}

/// An image that an override names stays when a minimum age is set.
/// Without the override, the new minimum age downgrades the fleet to a tag that is old enough.
#[test]
fn an_image_override_stays_after_a_minimum_age_is_set() {
    for is_named in [true, false] {
        let scene = Scene::new();
        scene.outcome(&[]);
        scene.registry.push("app/web", "1.1.0", MADE);
        assert_eq!(scene.outcome_name(&[]), "pushed");
        scene.policy("web", json!({"metadata": {"annotations": {"tagboat.dev/minimum-age": "3d"}}}));
        let given = format!("web={}", scene.image("app/web:1.1.0"));
        if is_named {
            scene.outcome(&["--latest", &given]);
        }
        scene.run(&[]).with_status(0);
        assert_eq!(scene.value("app"), if is_named { "app/web:1.1.0" } else { "app/web:1.0.0" });
    }
}

#[test]
fn the_wait_of_a_downgrade_needs_a_state() {
    let scene = Scene::new();
    let words = "no effect without --state: scans are not counted from run to run; ";
    for (arguments, names) in [
        (["--regression-scans=2"].as_slice(), "--regression-scans has"),
        (&["--regression-time=1s"], "--regression-time has"),
        (&["--regression-scans=1", "--regression-time=1s"], "--regression-scans and --regression-time have"),
    ] {
        let ended = scene.run_without_state(arguments).with_status(0);
        assert!(ended.only_error().starts_with(&format!("warning: {names} {words}")), "{ended:?}");
        assert_eq!(scene.run(arguments).with_status(0).errors, "");
    }
    // A lower override applies at once without a state, too.
    let latest = json!({"name": scene.image("app/web"), "tag": "1.5.0"});
    scene.policy("web", json!({"status": {"latestRef": latest}}));
    let ended = scene.run_without_state(&["--regression-scans=1", "--regression-time=0s"]).with_status(0);
    assert_eq!((ended.errors.as_str(), scene.value("app").as_str()), ("", "app/web:1.0.0"));
}

#[test]
fn the_warning_without_a_state_says_which_downgrades_are_held_and_which_apply_at_once() {
    let scene = Scene::new();
    let ended = scene.run_without_state(&["--regression-scans=2"]).with_status(0);
    let sentence = "a lower image than status.latestRef of the manifest is held until --latest or another \
                    status.latestRef permits it, and without status.latestRef a deleted tag downgrades at once\n";
    assert!(ended.errors.ends_with(sentence), "{ended:?}");
}
