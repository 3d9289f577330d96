//! Tests of selections without a registry.
//! They come from the state, and with less precedence from the statuses of manifests.

use std::fs;

use serde_json::json;

use super::scene::{Scene, object};
use crate::support::remote_fleet::only_outcome;

/// An outage of the registry does not return the fleet to a manifest's status.
/// The status of a manifest may be older than the fleet, so it is not used during an outage.
#[test]
fn an_outage_does_not_take_the_fleet_back_to_the_status_of_a_manifest() {
    let scene = Scene::new();
    let status = json!({"status": {"latestRef": {"name": scene.image("app/web"), "tag": "0.5.0"}}});
    scene.policy("web", status);
    scene.repository("web", json!({"spec": {"image": scene.image("nobody/home")}}));
    let left_alone =
        "; no recorded run has chosen an image for its policies, so their markers are left alone";
    // A second run with a state knows no more than the first.
    for ended in [scene.run_without_state(&[]), scene.run(&[]), scene.run(&[])] {
        let ended = ended.with_status(1);
        assert!(ended.only_error().ends_with(left_alone), "{ended:?}");
        let outcome = only_outcome(&ended);
        assert_eq!(outcome["choices"][0].get("latest"), None, "{outcome}");
        assert_eq!(scene.value("app"), "app/web:0.9.0");
    }
    scene.repository("web", json!({}));
    assert_eq!(scene.outcome_name(&[]), "pushed");
    assert_eq!(scene.value("app"), "app/web:1.0.0");
}

#[test]
fn a_choice_that_fails_does_not_take_the_fleet_back_to_the_status_of_a_manifest() {
    let scene = Scene::new();
    let latest = json!({"name": scene.image("app/web"), "tag": "0.5.0"});
    let policy = json!({"semver": {"range": ">=7.0.0"}});
    scene.policy("web", json!({"spec": {"policy": policy}, "status": {"latestRef": latest}}));
    for ended in [scene.run_without_state(&[]), scene.run(&[]), scene.run(&[])] {
        let ended = ended.with_status(1);
        assert!(
            ended.only_error().ends_with("has chosen an image, so its markers are left alone"),
            "{ended:?}"
        );
        assert_eq!(scene.value("app"), "app/web:0.9.0");
    }
}

#[test]
fn without_a_scan_the_state_has_precedence_over_the_status_of_a_manifest() {
    let scene = Scene::new();
    assert_eq!(scene.outcome_name(&[]), "pushed");
    let older = json!({"status": {"latestRef": {"name": scene.image("app/web"), "tag": "0.5.0"}}});
    scene.policy("web", older.clone());
    assert_eq!(scene.outcome(&["--no-scan"])["policies"]["web"]["tag"], "1.0.0");
    scene.policy("web", json!({}));
    assert_eq!(scene.outcome(&["--no-scan"])["policies"]["web"]["tag"], "1.0.0");
    // It does not go back either if the repository is removed from the manifests.
    fs::remove_file(scene.manifests().join("ImageRepository-default-web.yaml")).unwrap();
    scene.policy("web", older.clone());
    assert_eq!(scene.outcome(&[])["policies"]["web"]["tag"], "1.0.0");
    assert_eq!(scene.value("app"), "app/web:1.0.0");
    // Without a state the manifest's status is used, and without a status there is no image.
    fs::remove_dir_all(scene.fleet.state()).unwrap();
    assert_eq!(scene.outcome_name(&["--no-scan", "--dry-run"]), "dry-run");
    scene.policy("web", json!({}));
    let ended = scene.run(&["--no-scan"]).with_status(0);
    assert_eq!(
        ended.only_error(),
        "warning: ImagePolicy default/web has no image: nothing is scanned, no recorded run chose one, and \
         its manifest has no status.latestRef"
    );
}

/// Two sets of manifests with the same names would be mistaken for each other.
#[test]
fn a_state_of_another_branch_is_reported() {
    let scene = Scene::new();
    assert_eq!(scene.outcome_name(&[]), "pushed");
    let tip = scene.fleet.repository.id("main").unwrap();
    scene.fleet.repository.move_branch("staging", &tip);
    let url = scene.fleet.host.url("fleet.git");
    let mut object = object("source.toolkit.fluxcd.io/v1", "GitRepository", "default", "fleet");
    object["spec"] = json!({"interval": "1m", "url": url, "ref": {"branch": "staging"}});
    scene.write(&object);
    for arguments in [["--dry-run"].as_slice(), &[]] {
        let ended = scene.run(arguments).with_status(0);
        assert_eq!(
            ended.only_error(),
            format!(
                "warning: default/fleet: with this state it was last run for {url} (branch main), and now for {url} (branch \
                 staging): if these are two sets of manifests, give each its own --state; if the repository or the \
                 branch has changed, ignore this"
            )
        );
    }
    assert_eq!(scene.run(&[]).with_status(0).errors, "");
}
