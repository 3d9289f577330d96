//! Sources of images and their precedence: registries, statuses, the command line.

use std::fs;

use serde_json::json;

use super::scene::{MADE, Scene};
use crate::support::http_front::{Front, Reply};

#[test]
fn without_its_repository_a_policy_goes_by_its_status() {
    let scene = Scene::new();
    let repository = scene.manifests().join("ImageRepository-default-web.yaml");
    fs::remove_file(&repository).unwrap();
    let ended = scene.run(&[]).with_status(0);
    assert_eq!(
        ended.only_error(),
        "warning: ImagePolicy default/web has no image: the ImageRepository default/web, from whose tags it chooses, is \
         not among the manifests, and neither is a status.latestRef"
    );
    let latest = json!({"name": scene.image("app/web"), "tag": "0.9.5"});
    scene.policy("web", json!({"status": {"latestRef": latest}}));
    let outcome = scene.outcome(&[]);
    assert_eq!((&outcome["outcome"], outcome.get("choices")), (&json!("pushed"), None));
    assert_eq!(scene.value("app"), "app/web:0.9.5");
}

#[test]
fn an_image_override_has_precedence_and_needs_no_scan() {
    let scene = Scene::new();
    let front = Front::alone(|_| Reply::status(500));
    let image = format!("{}/app/web", front.address());
    scene.repository("web", json!({"spec": {"image": image}}));
    let latest = format!("web={image}:7.0.0");
    assert_eq!(scene.outcome(&["--latest", &latest])["outcome"], "pushed");
    assert_eq!(scene.value("app"), format!("{image}:7.0.0"));
    // The state has it, and the state has precedence over the status of a manifest.
    let status = json!({"latestRef": {"name": image, "tag": "8.0.0"}});
    scene.policy("web", json!({"status": status}));
    assert_eq!(scene.outcome(&["--no-scan"])["policies"]["web"]["tag"], "7.0.0");
    // Without scans the state has no selection, so the status of the manifest is used again.
    fs::remove_dir_all(scene.fleet.state()).unwrap();
    assert_eq!(scene.outcome(&["--no-scan", "--latest", &latest])["policies"]["web"]["tag"], "7.0.0");
    let outcome = scene.outcome(&["--no-scan"]);
    assert_eq!((&outcome["outcome"], outcome.get("choices")), (&json!("pushed"), None));
    assert_eq!(scene.value("app"), format!("{image}:8.0.0"));
    assert!(front.requests().is_empty());
}

#[test]
fn suspended_objects_are_skipped() {
    let scene = Scene::new();
    assert_eq!(scene.outcome_name(&[]), "pushed");
    scene.registry.push("app/web", "1.1.0", MADE);
    // A suspended repository is not scanned, and its policies select from the stored tags.
    scene.repository("web", json!({"spec": {"suspend": true}}));
    assert_eq!(scene.outcome_name(&[]), "skipped");
    fs::remove_dir_all(scene.fleet.state()).unwrap();
    let ended = scene.run(&[]).with_status(1);
    assert_eq!(
        ended.only_error(),
        "ImageRepository default/web is suspended, and no recorded run has scanned it; no recorded run has chosen an \
         image for its policies, so their markers are left alone"
    );
    // A suspended policy keeps the image of its manifest, or else that of the state.
    scene.repository("web", json!({}));
    let status = json!({"latestRef": {"name": scene.image("app/web"), "tag": "1.0.0"}});
    scene.policy("web", json!({"spec": {"suspend": true}, "status": status}));
    let outcome = scene.outcome(&[]);
    assert_eq!((&outcome["outcome"], outcome.get("choices")), (&json!("unchanged"), None));
    scene.policy("web", json!({}));
    assert_eq!(scene.outcome_name(&[]), "pushed");
    scene.registry.push("app/web", "1.2.0", MADE);
    scene.policy("web", json!({"spec": {"suspend": true}}));
    assert_eq!(scene.outcome(&[])["policies"]["web"]["tag"], "1.1.0");
    scene.policy("web", json!({}));
    scene.automation("default", json!({"suspend": true}));
    assert_eq!(scene.outcome_name(&[]), "skipped");
    assert_eq!(scene.value("app"), "app/web:1.1.0");
}

#[test]
fn a_policy_without_an_automation_is_not_scanned() {
    let scene = Scene::new();
    let front = Front::alone(|_| Reply::status(500));
    scene.repository("other", json!({"spec": {"image": format!("{}/app/other", front.address())}}));
    scene.policy("other", json!({"metadata": {"labels": {"team": "x"}}}));
    scene.automation(
        "default",
        json!({"policySelector": {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}}),
    );
    let outcome = scene.outcome(&[]);
    assert_eq!((&outcome["outcome"], outcome["choices"].as_array().unwrap().len()), (&json!("pushed"), 1));
    assert!(front.requests().is_empty());
}

#[test]
fn a_dry_run_scans_and_keeps_nothing() {
    let scene = Scene::new();
    let outcome = scene.outcome(&["--dry-run"]);
    assert_eq!(outcome["outcome"], "dry-run");
    assert!(outcome["diff"].as_str().unwrap().contains("app/web:1.0.0"), "{outcome}");
    let state = scene.fleet.state();
    assert!(!state.join("objects").exists() && !state.join("tags").exists());
    assert_eq!(scene.commits().len(), 0);
}

/// A tag waits until it is old enough.
/// Its age is counted from the run that first saw it, which the state records.
#[test]
fn a_tag_waits_until_it_is_old_enough() {
    let scene = Scene::new();
    let annotations =
        |age: &str| json!({"tagboat.dev/minimum-age": age, "tagboat.dev/unknown-age": "accept"});
    let policy = |age: &str| scene.policy("web", json!({"metadata": {"annotations": annotations(age)}}));
    policy("1h");
    assert_eq!(scene.outcome_name(&[]), "pushed");
    scene.registry.push("app/web", "1.1.0", MADE);
    assert_eq!(scene.outcome_name(&[]), "skipped");
    assert_eq!(scene.value("app"), "app/web:1.0.0");
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    policy("1s");
    assert_eq!(scene.outcome_name(&[]), "pushed");
    assert_eq!(scene.value("app"), "app/web:1.1.0");
    // An excluded tag is as good as absent, by the user's intent.
    let mut exclude = annotations("1s");
    exclude["tagboat.dev/exclude"] = json!("[1.1.0]");
    scene.policy("web", json!({"metadata": {"annotations": exclude}}));
    assert_eq!(scene.outcome_name(&[]), "pushed");
    assert_eq!(scene.value("app"), "app/web:1.0.0");
}

/// Exclusion lists of repositories and filters of policies apply as in a cluster.
#[test]
fn exclusions_and_filters_count() {
    let scene = Scene::new();
    for tag in ["1.1.0", "1.2.0", "2.0.0"] {
        scene.registry.push("app/web", tag, MADE);
    }
    scene.repository("web", json!({"spec": {"exclusionList": ["^2\\."]}}));
    scene.policy("web", json!({"spec": {"filterTags": {"pattern": "^1\\.[01]\\."}}}));
    assert_eq!(scene.outcome_name(&[]), "pushed");
    assert_eq!(scene.value("app"), "app/web:1.1.0");
}
