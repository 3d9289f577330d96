//! Downgrade protection across runs, by the state directory.

use serde_json::{Value, json};

use super::scene::{MADE, Scene};
use crate::support::clock::until_next_second;
use crate::support::remote_fleet::only_outcome;

/// A scene whose fleet runs 1.1.0, a tag that is then deleted from the registry.
fn without_the_latest() -> Scene {
    let scene = Scene::new();
    scene.registry.push("app/web", "1.1.0", MADE);
    assert_eq!(scene.outcome_name(&[]), "pushed");
    assert_eq!(scene.value("app"), "app/web:1.1.0");
    scene.registry.remove("app/web", "1.1.0");
    scene
}

fn scans(scene: &Scene) -> Value {
    let conditions = scene.state_of("ImagePolicy", "web")["status"]["conditions"].clone();
    let held = conditions.as_array().unwrap().iter().find(|condition| condition["type"] == "RegressionHeld");
    held.map_or(Value::Null, |held| held["message"].clone())
}

/// Scans are counted by the second, so the next run must start in another second.
fn another_second() {
    std::thread::sleep(until_next_second());
}

#[test]
fn a_deleted_tag_is_held_until_scans_and_time_have_passed() {
    let scene = without_the_latest();
    let ended = scene.run(&[]).with_status(0);
    assert!(
        ended.only_error().starts_with(
            "warning: ImagePolicy default/web: 1.0.0 is lower than 1.1.0 and waits: 1 of 3 complete scans in a row"
        ),
        "{ended:?}"
    );
    let outcome = crate::support::remote_fleet::only_outcome(&ended);
    assert_eq!((&outcome["outcome"], &outcome["errors"]), (&json!("skipped"), &json!([])));
    assert!(outcome["choices"][0]["held"].as_str().unwrap().starts_with("1.0.0 is lower than 1.1.0"));
    another_second();
    // A dry run does not count as a scan.
    scene.outcome(&["--dry-run"]);
    assert!(scans(&scene).as_str().unwrap().contains(" waits: 1 of 3 "));
    scene.outcome(&[]);
    assert!(scans(&scene).as_str().unwrap().contains(" waits: 2 of 3 "));
    another_second();
    scene.outcome(&[]);
    assert!(scans(&scene).as_str().unwrap().contains(" waits: 3 of 3 "), "the time has not passed");
    assert_eq!(scene.value("app"), "app/web:1.1.0");
    assert_eq!(scene.outcome_name(&["--regression-time", "1s"]), "pushed");
    assert_eq!(scene.value("app"), "app/web:1.0.0");
    assert_eq!(scans(&scene), Value::Null);
}

/// Without a state no scans are counted, so no end of the wait is announced.
#[test]
fn without_a_state_no_time_is_promised_for_a_lower_image() {
    let scene = Scene::new();
    let latest = json!({"name": scene.image("app/web"), "tag": "1.5.0"});
    scene.policy("web", json!({"status": {"latestRef": latest}}));
    let ended = scene.run_without_state(&[]).with_status(0);
    assert_eq!(
        ended.only_error(),
        "warning: ImagePolicy default/web: 1.0.0 is lower than 1.5.0 and waits: counting scans and time requires \
         --state; without it, --latest or a status.latestRef that is not higher accepts it"
    );
    assert_eq!(scene.value("app"), "app/web:1.5.0");
}

/// A held downgrade is not reported after a failed selection.
/// Its tag may be gone if nothing can be selected.
#[test]
fn a_held_downgrade_is_not_reported_after_a_failed_selection() {
    let scene = without_the_latest();
    scene.outcome(&[]);
    scene.policy("web", json!({"spec": {"policy": {"semver": {"range": ">=7.0.0"}}}}));
    let ended = scene.run(&[]).with_status(1);
    assert!(ended.only_error().starts_with("ImagePolicy default/web: "), "{ended:?}");
}

#[test]
fn a_tag_that_comes_back_ends_the_wait() {
    let scene = without_the_latest();
    scene.outcome(&[]);
    scene.registry.tag("app/web", "1.0.0", ["1.1.0".to_owned()]);
    assert_eq!(scene.outcome_name(&[]), "skipped");
    assert_eq!(scans(&scene), Value::Null);
}

#[test]
fn user_intent_applies_at_once() {
    let changes: [&dyn Fn(&Scene); 4] = [
        &|scene| {
            scene.policy(
                "web",
                json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "now"}}}),
            );
        },
        &|scene| scene.policy("web", json!({"spec": {"policy": {"semver": {"range": "1.x"}}}})),
        &|scene| {
            scene.policy("web", json!({"metadata": {"annotations": {"tagboat.dev/exclude": "[1.9.9]"}}}));
        },
        &|scene| scene.repository("web", json!({"spec": {"exclusionList": ["^9"]}})),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let scene = without_the_latest();
        change(&scene);
        assert_eq!(scene.outcome_name(&[]), "pushed", "{number}");
        assert_eq!(scene.value("app"), "app/web:1.0.0", "{number}");
    }
}

/// A corrupt state is not read as the user's intent.
/// A truncated state is reported, and a fragment of the user's intent in it is no intent.
#[test]
fn a_corrupt_state_is_not_an_intent() {
    let scene = without_the_latest();
    let place = |kind: &str| scene.fleet.state().join(format!("objects/{kind}/default/web.json"));
    for fragment in ["", "0123", "\0\0\0\0"] {
        std::fs::write(place("intent"), fragment).unwrap();
        assert_eq!(scene.outcome_name(&[]), "skipped", "{fragment:?}");
    }
    assert_eq!(scene.value("app"), "app/web:1.1.0");
    std::fs::write(place("ImageRepository"), "{").unwrap();
    let ended = scene.run(&[]).with_status(0);
    let words =
        format!("warning: the state in {} is damaged and is discarded\n", place("ImageRepository").display());
    assert!(ended.errors.contains(&words), "{ended:?}");
    assert_eq!(scene.value("app"), "app/web:1.1.0");
}

/// A corrupt state of an automation is written anew, and that is reported.
#[test]
fn the_corrupt_state_of_an_automation_is_reported() {
    let scene = Scene::new();
    assert_eq!(scene.outcome_name(&[]), "pushed");
    let place = scene.fleet.state().join("objects/ImageUpdateAutomation/default/fleet.json");
    std::fs::write(&place, "{").unwrap();
    let ended = scene.run(&[]).with_status(0);
    assert_eq!(
        ended.only_error(),
        format!("warning: the state in {} is damaged and is discarded", place.display())
    );
    assert_eq!(only_outcome(&scene.run(&[]).with_status(0))["outcome"], "skipped");
}

/// A revert was overwritten once its state was damaged.
#[test]
fn a_damaged_state_of_an_automation_that_holds_reverts_fails_the_run() {
    for annotations in [json!({"tagboat.dev/on-revert": "hold"}), json!({"tagboat.dev/quiet-period": "5m"})] {
        let scene = crate::run::scene::Scene::new().local();
        scene.automation_with(json!({"metadata": {"annotations": annotations}}));
        scene.run_with_state(["--output", "json"]).with_status(0);
        let place = scene.state().join("objects/ImageUpdateAutomation/default/fleet.json");
        std::fs::write(&place, "{").unwrap();
        scene.latest("6.0.0");
        let ended = scene.run_with_state(["--output", "json"]).with_status(1);
        assert!(
            ended.errors.contains("it is damaged, and has what tagboat.dev/on-revert holds"),
            "{ended:?}"
        );
        assert_eq!(scene.tag("main"), "5.0.3");
        std::fs::remove_file(&place).unwrap();
        scene.run_with_state(["--output", "json"]).with_status(0);
        assert_eq!(scene.tag("main"), "6.0.0");
    }
}

/// A policy with a corrupt state could be downgraded unnoticed by any selection.
#[test]
fn a_policy_with_a_corrupt_state_is_not_reconciled_until_a_person_repairs_it() {
    let scene = without_the_latest();
    let place = scene.fleet.state().join("objects/ImagePolicy/default/web.json");
    let whole = std::fs::read(&place).unwrap();
    let words = format!(
        "ImagePolicy default/web: the state in {} is damaged, so the lowest image that may be written is unknown, and its \
         markers are left alone; restore the file, or remove it to choose as a first run does",
        place.display()
    );
    // The status in a manifest may be older than the lost state.
    let latest = json!({"name": scene.image("app/web"), "tag": "0.9.0"});
    for status in [json!({}), json!({"status": {"latestRef": latest}})] {
        scene.policy("web", status);
        for fragment in ["", "{\"status\": {\"latest", "\0\0\0\0", "[]"] {
            std::fs::write(&place, fragment).unwrap();
            for arguments in [["--regression-scans=1"].as_slice(), &["--dry-run"], &["--no-scan"]] {
                let ended = scene.run(arguments).with_status(1);
                assert_eq!(ended.only_error(), words, "{fragment:?} {arguments:?}");
                let outcome = only_outcome(&ended);
                assert_eq!(outcome["choices"][0]["error"], words);
                assert_eq!((&outcome["policies"], &outcome["changes"]), (&json!({}), &json!({})));
            }
            assert_eq!(std::fs::read(&place).unwrap(), fragment.as_bytes());
        }
    }
    assert_eq!(scene.value("app"), "app/web:1.1.0");
    // An image override, the file as it was, and no file.
    let given = format!("web={}", scene.image("app/web:1.1.0"));
    assert_eq!(scene.outcome(&["--latest", &given])["policies"]["web"]["tag"], "1.1.0");
    std::fs::write(&place, whole).unwrap();
    scene.policy("web", json!({}));
    assert_eq!(scene.outcome(&[])["policies"]["web"]["tag"], "1.1.0");
    assert_eq!(scene.value("app"), "app/web:1.1.0");
    std::fs::remove_file(&place).unwrap();
    assert_eq!(scene.outcome_name(&[]), "pushed");
    assert_eq!(scene.value("app"), "app/web:1.0.0");
}

/// Suspending a policy or changing its interval is no intent to downgrade.
#[test]
fn an_edit_without_effect_on_the_selection_is_not_an_intent() {
    let scene = without_the_latest();
    let edits = [
        json!({"spec": {"suspend": true}}),
        json!({"spec": {"suspend": false}}),
        json!({"spec": {"interval": "7m"}}),
        json!({"metadata": {"annotations": {"tagboat.dev/poll-interval": "6h", "tagboat.dev/poll-group": "g"}}}),
    ];
    for edit in edits {
        scene.policy("web", edit.clone());
        assert_eq!(scene.outcome_name(&[]), "skipped", "{edit}");
    }
    let edits = [
        json!({"spec": {"suspend": true}}),
        json!({"spec": {"interval": "7m", "timeout": "9s"}}),
        json!({"spec": {"accessFrom": {"namespaceSelectors": [{"matchLabels": {}}]}}}),
    ];
    for edit in edits {
        scene.repository("web", edit.clone());
        assert_eq!(scene.outcome_name(&[]), "skipped", "{edit}");
    }
    assert_eq!(scene.value("app"), "app/web:1.1.0");
}

#[test]
fn a_change_of_metadata_is_not_an_intent() {
    let scene = without_the_latest();
    scene.policy("web", json!({"metadata": {"annotations": {"example.com/note": "x"}}}));
    scene.repository("web", json!({"metadata": {"annotations": {"example.com/note": "x"}}}));
    assert_eq!(scene.outcome_name(&[]), "skipped");
}

/// The image in a manifest's status is not downgraded.
/// It is the one that the fleet has run so far.
#[test]
fn an_image_of_the_manifest_is_not_downgraded() {
    let scene = Scene::new();
    let latest = json!({"name": scene.image("app/web"), "tag": "1.5.0"});
    scene.policy("web", json!({"status": {"latestRef": latest}}));
    let ended = scene.run(&[]).with_status(0);
    assert!(ended.only_error().contains("1.0.0 is lower than 1.5.0 and waits"), "{ended:?}");
    assert_eq!(scene.value("app"), "app/web:1.5.0");
    scene.registry.push("app/web", "1.6.0", MADE);
    assert_eq!(scene.outcome_name(&[]), "pushed");
    assert_eq!(scene.value("app"), "app/web:1.6.0");
}
