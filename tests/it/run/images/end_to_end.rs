//! End to end: an image is pushed, and its tag or digest is committed.

use serde_json::json;

use super::scene::{MADE, Scene, object};
use crate::support::content::file;
use crate::support::http_front::{Front, Reply};
use crate::support::manifests::marker;
use crate::support::program::run;

#[test]
fn a_pushed_tag_arrives_in_one_commit_and_a_second_run_does_nothing() {
    let scene = Scene::new();
    let outcome = scene.outcome(&[]);
    assert_eq!(outcome["outcome"], "pushed");
    let latest = format!("{}:1.0.0", scene.image("app/web"));
    let choice = json!([{"policy": "default/web", "repository": "default/web", "latest": latest}]);
    assert_eq!((&outcome["choices"], &outcome["errors"]), (&choice, &json!([])));
    assert_eq!(outcome["policies"]["web"]["tag"], "1.0.0");
    assert_eq!(scene.value("app"), "app/web:1.0.0");
    assert_eq!(scene.outcome_name(&[]), "skipped");
    assert_eq!(scene.commits().len(), 1);
    scene.registry.push("app/web", "1.1.0", MADE);
    assert_eq!(scene.outcome_name(&[]), "pushed", "an interval of 10 minutes keeps no run from scanning");
    assert_eq!(scene.value("app"), "app/web:1.1.0");
    assert_eq!(scene.outcome_name(&[]), "skipped");
    assert_eq!(scene.commits().len(), 2);
    scene.fleet.assert_sound();
}

#[test]
fn without_state_the_same_arrives() {
    let scene = Scene::new();
    let mut command = crate::support::program::tagboat();
    command.arg("run").arg(scene.manifests()).env("TMPDIR", scene.fleet.root().join("temporary"));
    let ended = run(&mut command).with_status(0);
    assert_eq!(ended.errors, "");
    assert!(ended.output.contains(&format!("- web: {}:1.0.0\n", scene.image("app/web"))), "{ended:?}");
    assert_eq!(scene.value("app"), "app/web:1.0.0");
    assert!(run(&mut command).with_status(0).output.ends_with("\nrepository up-to-date\n"));
    assert_eq!(scene.commits().len(), 1);
}

#[test]
fn a_floating_tag_is_followed_by_its_digest() {
    for (digests, is_followed) in [("Always", true), ("IfNotPresent", false)] {
        let scene = Scene::new();
        let first = scene.registry.push("app/web", "stable", MADE);
        let interval = if is_followed { json!("1h") } else { json!(null) };
        let spec = json!({"policy": {"semver": null, "alphabetical": {}}, "filterTags": {"pattern": "^stable$"},
            "digestReflectionPolicy": digests, "interval": interval});
        let mut changes = json!({});
        changes["spec"] = spec;
        scene.policy("web", changes);
        assert_eq!(scene.outcome_name(&[]), "pushed");
        assert_eq!(scene.value("app"), format!("app/web:stable@{first}"));
        assert_eq!(scene.outcome_name(&[]), "skipped");
        let second = scene.registry.push("app/web", "stable", "2021-01-02T03:04:05Z");
        assert_ne!(first, second);
        assert_eq!(scene.outcome_name(&[]), if is_followed { "pushed" } else { "skipped" });
        let shown = if is_followed { second } else { first };
        assert_eq!(scene.value("app"), format!("app/web:stable@{shown}"));
    }
}

/// Digests of a group are applied together or not at all.
#[test]
fn a_group_is_updated_once_all_members_can_be() {
    let scene = Scene::new();
    scene.another("api");
    let member = json!({
        "metadata": {"annotations": {"tagboat.dev/poll-group": "shop"}},
        "spec": {"digestReflectionPolicy": "Always", "interval": "1h",
            "policy": {"semver": null, "alphabetical": {}}, "filterTags": {"pattern": "^stable$"}},
    });
    let first = scene.registry.push("app/web", "stable", MADE);
    scene.policy("web", member.clone());
    scene.policy("api", member);
    // The registry does not have the image of the other member yet.
    let ended = scene.run(&[]).with_status(1);
    assert!(ended.errors.contains("ImageRepository default/api: scan failed: "), "{ended:?}");
    assert_eq!((scene.value("app"), scene.commits().len()), ("app/web:0.9.0".to_owned(), 0));
    let other = scene.registry.push("app/api", "stable", MADE);
    assert_eq!(scene.outcome_name(&[]), "pushed");
    assert_eq!(scene.value("app"), format!("app/web:stable@{first}"));
    assert_eq!(scene.value("api"), format!("app/api:stable@{other}"));
    assert_eq!(scene.commits().len(), 1);
}

#[test]
fn each_namespace_has_its_own_objects() {
    let scene = Scene::new();
    scene.registry.push("app/web", "2.0.0", MADE);
    scene.policy("web", json!({"spec": {"policy": {"semver": {"range": "1.x"}}}}));
    // The other namespace uses the repository of the first, whose access rules allow it.
    scene.repository(
        "web",
        json!({"spec": {"accessFrom": {"namespaceSelectors": [
            {"matchLabels": {"kubernetes.io/metadata.name": "team"}}]}}}),
    );
    let mut policy = object("image.toolkit.fluxcd.io/v1", "ImagePolicy", "team", "web");
    policy["spec"] = json!({"imageRepositoryRef": {"name": "web", "namespace": "default"},
        "policy": {"semver": {"range": "2.x"}}});
    scene.write(&policy);
    scene.source("team");
    scene.automation("team", json!({}));
    let image = scene.image("app/web");
    let line = format!("image: {image}:0.9.0 {}\n", marker("team:web"));
    scene.fleet.repository.commit("main", "More", &[file("team.yaml", line)]);
    let outcomes = scene.run(&[]).with_status(0).json()["automations"].clone();
    for (index, namespace, tag) in [(0, "default", "1.0.0"), (1, "team", "2.0.0")] {
        let outcome = &outcomes[index];
        assert_eq!(
            (&outcome["automation"]["namespace"], &outcome["outcome"]),
            (&json!(namespace), &json!("pushed"))
        );
        let choice = &outcome["choices"][0];
        assert_eq!(choice["policy"], format!("{namespace}/web"));
        assert_eq!(
            (&choice["repository"], &choice["latest"]),
            (&json!("default/web"), &json!(format!("{image}:{tag}")))
        );
    }
    assert_eq!(
        (scene.value("app").as_str(), scene.value("team").as_str()),
        ("app/web:1.0.0", "app/web:2.0.0")
    );
    // A third namespace is not allowed.
    scene.repository("web", json!({"spec": {"accessFrom": null}}));
    let ended = scene.run(&[]).with_status(1);
    assert_eq!(
        ended.only_error(),
        "ImagePolicy team/web: failed to get the referred ImageRepository: access denied: 'default/web' can't be \
         accessed due to missing ACL labels on 'accessFrom'"
    );
    assert_eq!(scene.value("team"), "app/web:2.0.0");
}

/// A repository is listed once a run, with a conditional request.
/// Many policies of one repository cost one listing, and an unchanged list is not sent again.
#[test]
fn a_repository_is_listed_once_a_run_and_by_condition() {
    let scene = Scene::new();
    let front = Front::before(scene.registry.port(), |request| {
        let is_known = request
            .headers
            .iter()
            .any(|(name, value)| name.eq_ignore_ascii_case("if-none-match") && value == "\"one\"");
        match request.path.as_str() {
            "/v2/app/web/tags/list" if is_known => Reply::status(304),
            "/v2/app/web/tags/list" => {
                Reply::body(200, r#"{"name": "app/web", "tags": ["1.0.0"]}"#).with("ETag", "\"one\"")
            }
            _ => Reply::Forward,
        }
    });
    scene.repository("web", json!({"spec": {"image": format!("{}/app/web", front.address())}}));
    for name in ["one", "two"] {
        scene.policy(name, json!({"spec": {"imageRepositoryRef": {"name": "web"}}}));
    }
    scene.outcome(&[]);
    assert_eq!(front.requests_for("/v2/app/web/tags/list").len(), 1);
    assert_eq!(scene.outcome_name(&[]), "skipped");
    assert_eq!(front.requests_for("/v2/app/web/tags/list").len(), 2);
    assert_eq!(scene.state_of("ImageRepository", "web")["status"]["lastScanResult"]["tagCount"], 1);
}
