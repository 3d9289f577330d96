//! Registry failures: nothing changes, one error message, and no delay of other policies.

use std::fs;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::scene::{MADE, Scene, object};
use crate::support::http_front::{Front, Reply};
use crate::support::program::run;
use crate::support::registry::{PASSWORD, USER};
use crate::support::remote_fleet::only_outcome;

#[test]
fn a_registry_that_is_down_changes_nothing() {
    let scene = Scene::new();
    assert_eq!(scene.outcome_name(&[]), "pushed");
    let (address, tip) = (scene.registry.address(), scene.fleet.tip());
    let Scene { registry, fleet } = scene;
    drop(registry);
    let ended = run(&mut fleet.command()).with_status(1);
    let words = ended.only_error();
    assert!(
        words.starts_with(&format!(
            "ImageRepository default/web: scan failed: GET https://{address}/v2/: connection refused"
        )) && words.ends_with("; its policies keep the images that they have"),
        "{words}"
    );
    let outcome = only_outcome(&ended);
    assert_eq!((&outcome["outcome"], &outcome["errors"]), (&json!("skipped"), &json!([words])));
    assert_eq!(outcome["choices"][0]["latest"], format!("{address}/app/web:1.0.0"));
    assert_eq!(outcome["choices"][0]["error"], words);
    assert_eq!(fleet.tip(), tip);
    // The same for a registry that never existed.
    fs::remove_dir_all(fleet.state()).unwrap();
    let outcome = only_outcome(&run(&mut fleet.command()).with_status(1));
    assert_eq!(outcome["outcome"], "unchanged");
    assert_eq!(outcome["markers"][0]["outcome"], "policy-without-image");
    assert_eq!(fleet.tip(), tip);
}

#[test]
fn a_failed_registry_does_not_stop_other_policies() {
    let scene = Scene::new();
    scene.another("api");
    scene.registry.push("app/api", "1.2.0", MADE);
    scene.repository("web", json!({"spec": {"image": scene.image("nobody/home")}}));
    let ended = scene.run(&[]).with_status(1);
    assert!(ended.only_error().contains("ImageRepository default/web: scan failed: "), "{ended:?}");
    assert!(ended.only_error().contains("NAME_UNKNOWN"), "{ended:?}");
    let outcome = only_outcome(&ended);
    assert_eq!(outcome["outcome"], "pushed");
    assert_eq!(outcome["errors"].as_array().unwrap().len(), 1);
    assert_eq!(
        (scene.value("app").as_str(), scene.value("api").as_str()),
        ("app/web:0.9.0", "app/api:1.2.0")
    );
}

/// A silent registry costs its own policies no more than its timeout.
#[test]
fn a_silent_registry_costs_the_timeout_of_its_object() {
    let scene = Scene::new();
    let front = Front::alone(|_| Reply::Silence);
    scene.another("api");
    scene.registry.push("app/api", "1.2.0", MADE);
    let image = format!("{}/app/web", front.address());
    scene.repository("web", json!({"spec": {"image": image, "timeout": "1s"}}));
    let ended = scene.run(&[]).with_status(1);
    assert!(ended.only_error().starts_with("ImageRepository default/web: scan failed: "), "{ended:?}");
    assert_eq!(scene.value("api"), "app/api:1.2.0");
}

#[test]
fn the_warning_about_a_shared_repository_is_printed_once() {
    let scene = Scene::new();
    let nowhere = scene.image("nobody/home");
    scene.repository(
        "web",
        json!({"spec": {"image": nowhere, "accessFrom": {"namespaceSelectors": [{"matchLabels": {}}]}}}),
    );
    let mut policy = object("image.toolkit.fluxcd.io/v1", "ImagePolicy", "team", "web");
    policy["spec"] = json!({"imageRepositoryRef": {"name": "web", "namespace": "default"},
        "policy": {"semver": {"range": "*"}}});
    scene.write(&policy);
    scene.policy("second", json!({"spec": {"imageRepositoryRef": {"name": "web"}}}));
    scene.source("team");
    scene.automation("team", json!({}));
    let ended = scene.run(&[]).with_status(1);
    let words = ended.only_error();
    for (outcome, policies) in ended.json()["automations"].as_array().unwrap().iter().zip([2, 1]) {
        assert_eq!(outcome["errors"], json!([words]));
        assert_eq!(outcome["choices"].as_array().unwrap().len(), policies);
    }
}

#[test]
fn a_signal_during_a_scan_ends_the_run_at_once() {
    let scene = Scene::new();
    let front = Front::alone(|_| Reply::Silence);
    scene.repository("web", json!({"spec": {"image": format!("{}/app/web", front.address())}}));
    let mut command = scene.command();
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while front.requests().is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(60), "the run asks for nothing");
        std::thread::sleep(Duration::from_millis(10));
    }
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    let errors = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(
        errors,
        "default/fleet: tagboat was stopped while it scanned registries; nothing was chosen and nothing pushed\n"
    );
    let document: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(document["automations"][0]["outcome"], "failed");
    assert!(begin.elapsed() < Duration::from_secs(60), "a minute is the time that a scan may take");
    assert!(!scene.fleet.state().join("objects/ImagePolicy").exists());
}

#[test]
fn a_wrong_login_is_reported_and_a_right_one_is_admitted() {
    let scene = Scene::new();
    let guarded = scene.registry.guarded_by_password();
    let image = format!("{}/app/web", guarded.address());
    let spec = json!({"spec": {"image": image, "secretRef": {"name": "login"}}});
    scene.repository("web", spec);
    let missing = scene.run(&[]).with_status(1);
    assert_eq!(
        missing.only_error(),
        "ImageRepository default/web: failed to configure authentication options: secrets \"login\" not found; give it as a \
         Secret among the manifests or as --secret NAMESPACE/NAME=DIR, or log in as yourself with --registry-login user; no \
         recorded run has chosen an image for its policies, so their markers are left alone"
    );
    let config = |password: &str| {
        json!({"auths": {guarded.address(): {"username": USER, "password": password}}}).to_string()
    };
    let secret = |password: &str| {
        scene.write(&json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "default", "name": "login"},
            "stringData": {".dockerconfigjson": config(password)},
        }));
    };
    scene.write(&json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "default", "name": "login"},
        "stringData": {".dockerconfigjson": "{\"auths\": {\"other.example\": {\"username\": \"a\", \"password\": \"b\"}}}"},
    }));
    let elsewhere = scene.run(&[]).with_status(1);
    let words =
        format!("secret 'default/login' has no login for {image}, so the registry is accessed anonymously");
    assert!(elsewhere.errors.contains(&words), "{elsewhere:?}");
    secret("hunter3");
    let wrong = scene.run(&[]).with_status(1);
    assert!(wrong.only_error().contains("UNAUTHORIZED") && !wrong.errors.contains("hunter3"), "{wrong:?}");
    // The registry answers a missing login in the same way, and the condition has the same message.
    let condition = |scene: &Scene| {
        let status = scene.state_of("ImageRepository", "web")["status"].clone();
        let conditions = status["conditions"].as_array().unwrap().clone();
        let ready = conditions.iter().find(|condition| condition["type"] == "Ready").unwrap();
        ready["message"].as_str().unwrap().to_owned()
    };
    let refused = condition(&scene);
    let advice = "; a login was sent and refused: check the one in the Secret default/login, and whether it may read this \
                  repository; no recorded run has";
    let words = format!("ImageRepository default/web: {refused}{advice}");
    assert!(wrong.only_error().starts_with(&words), "{wrong:?}");
    scene.repository("web", json!({"spec": {"image": image}}));
    let nobody = scene.run(&[]).with_status(1);
    assert_eq!(condition(&scene), refused);
    let advice = "; no login was sent: if the registry requires one, name a Secret with one in spec.secretRef of the \
                  ImageRepository, or log in as yourself with --registry-login user; no recorded run has";
    let words = format!("ImageRepository default/web: {refused}{advice}");
    assert!(nobody.only_error().starts_with(&words), "{nobody:?}");
    scene.repository("web", json!({"spec": {"image": image, "secretRef": {"name": "login"}}}));
    assert_eq!(scene.commits().len(), 0);
    secret(PASSWORD);
    assert_eq!(scene.outcome_name(&[]), "pushed");
    assert_eq!(scene.value("app"), format!("{image}:1.0.0"));

    // A Secret directory has precedence, and the caller's own login is used in place of both.
    secret("hunter3");
    let directory = scene.fleet.root().join("login");
    fs::create_dir(&directory).unwrap();
    for name in [".dockerconfigjson", "config.json"] {
        fs::write(directory.join(name), config(PASSWORD)).unwrap();
    }
    scene.registry.push("app/web", "1.1.0", MADE);
    assert_eq!(scene.outcome_name(&["--secret", &format!("login={}", directory.display())]), "pushed");
    scene.registry.push("app/web", "1.2.0", MADE);
    let own = run(scene.command().args(["--registry-login", "user"]).env("DOCKER_CONFIG", &directory));
    assert_eq!(only_outcome(&own.with_status(0))["outcome"], "pushed");
    let nothing = scene.fleet.root().join("nothing");
    let none = run(scene.command().args(["--registry-login", "user"]).env("DOCKER_CONFIG", &nothing));
    assert!(none.with_status(1).only_error().contains("config.json"));
}

#[test]
fn a_service_account_logs_in_at_no_cloud_where_there_is_no_cluster() {
    let scene = Scene::new();
    let guarded = scene.registry.guarded_by_password();
    let image = format!("{}/app/web", guarded.address());
    scene.repository(
        "web",
        json!({"spec": {"image": image, "provider": "aws", "serviceAccountName": "puller"}}),
    );
    let ended = scene.run(&[]).with_status(1);
    let words = "ImageRepository default/web: failed to configure authentication options: spec.serviceAccountName with \
                 spec.provider needs a token that only a cluster issues, so only the controller supports it: log in \
                 as yourself with --registry-login user";
    assert!(ended.only_error().starts_with(words), "{ended:?}");
    let config = json!({"auths": {guarded.address(): {"username": USER, "password": PASSWORD}}}).to_string();
    fs::write(scene.fleet.root().join("config.json"), config).unwrap();
    let own =
        run(scene.command().args(["--registry-login", "user"]).env("DOCKER_CONFIG", scene.fleet.root()));
    assert_eq!(only_outcome(&own.with_status(0))["outcome"], "pushed");
}

#[test]
fn a_policy_without_a_matching_tag_reports_it() {
    let scene = Scene::new();
    assert_eq!(scene.outcome_name(&[]), "pushed");
    scene.policy("web", json!({"spec": {"policy": {"semver": {"range": ">=7.0.0"}}}}));
    let ended = scene.run(&[]).with_status(1);
    assert!(ended.only_error().starts_with("ImagePolicy default/web: "), "{ended:?}");
    assert_eq!(scene.value("app"), "app/web:1.0.0");
}

/// A front of the registry that refuses manifests while `is_down`, and an image behind it.
fn without_manifests(scene: &Scene, is_down: &Arc<AtomicBool>) -> (Front, String) {
    let is_down = is_down.clone();
    let front = Front::before(scene.registry.port(), move |request| {
        match is_down.load(Ordering::SeqCst) && request.path.contains("/manifests/") {
            true => Reply::status(403),
            false => Reply::Forward,
        }
    });
    let image = format!("{}/app/web", front.address());
    scene.repository("web", json!({"spec": {"image": image}}));
    (front, image)
}

#[test]
fn a_selection_that_fails_for_lack_of_ages_reports_the_reason() {
    let scene = Scene::new();
    let (_front, image) = without_manifests(&scene, &Arc::new(AtomicBool::new(true)));
    scene.policy("web", json!({"metadata": {"annotations": {"tagboat.dev/minimum-age": "3d"}}}));
    let ended = scene.run(&[]).with_status(1);
    let words = format!("1 tag is too new; the manifest of {image}:1.0.0 cannot be accessed: ");
    assert!(ended.only_error().contains(&words) && ended.errors.contains("403"), "{ended:?}");
}

/// The first run and later ones end in the same way.
#[test]
fn a_digest_that_cannot_be_looked_up_fails_each_run() {
    let scene = Scene::new();
    let is_down = Arc::new(AtomicBool::new(false));
    let (_front, image) = without_manifests(&scene, &is_down);
    scene.policy("web", json!({"spec": {"digestReflectionPolicy": "Always", "interval": "10m"}}));
    assert_eq!(scene.outcome_name(&[]), "pushed");
    let value = scene.value("app");
    assert!(value.starts_with(&format!("{image}:1.0.0@sha256:")), "{value}");
    is_down.store(true, Ordering::SeqCst);
    let ended = scene.run(&[]).with_status(1);
    assert!(ended.only_error().starts_with("warning: ImagePolicy default/web: "), "{ended:?}");
    assert!(only_outcome(&ended)["choices"][0]["stale"].as_str().unwrap().contains("403"));
    let ended = scene.run_without_state(&[]).with_status(1);
    assert!(ended.only_error().contains("failed fetching digest of "), "{ended:?}");
    assert_eq!(scene.value("app"), value);
}

#[test]
fn a_wrong_setting_is_one_warning() {
    let scene = Scene::new();
    let wrong = json!({"metadata": {"annotations": {"tagboat.dev/poll-interval": "soon"}}});
    scene.policy("web", wrong.clone());
    let ended = scene.run(&[]).with_status(1);
    assert!(
        ended.only_error().starts_with("ImagePolicy default/web: annotation tagboat.dev/poll-interval"),
        "{ended:?}"
    );
    assert_eq!(scene.value("app"), "app/web:0.9.0");
    // An object that is not reconciled has a warning only.
    let suspended =
        json!({"metadata": {"annotations": {"tagboat.dev/nope": "x"}}, "spec": {"suspend": true}});
    scene.policy("web", json!({}));
    scene.policy("idle", suspended);
    let ended = scene.run(&["--dry-run"]).with_status(0);
    assert!(
        ended.errors.starts_with("warning: ImagePolicy default/idle: annotation tagboat.dev/nope"),
        "{ended:?}"
    );
    scene.repository("web", json!({"metadata": {"annotations": {"tagboat.dev/window": "9-17"}}}));
    scene.policy("idle", json!({"spec": {"suspend": true}}));
    let ended = scene.run(&[]).with_status(1);
    let named: Vec<&str> = ended.errors.lines().filter(|line| line.contains("tagboat.dev/window")).collect();
    assert_eq!(named.len(), 1, "{ended:?}");
    assert!(named[0].starts_with("ImageRepository default/web: annotation tagboat.dev/window"), "{ended:?}");
}

/// A misspelled value is an error and no default.
/// If it fell back to the default, it would remove the pinned digest from the fleet.
#[test]
fn a_misspelled_value_is_an_error_and_not_the_default() {
    let scene = Scene::new();
    scene.policy("web", json!({"spec": {"digestReflectionPolicy": "always", "interval": "10m"}}));
    let ended = scene.run(&[]).with_status(1);
    let words = "ImagePolicy default/web is not valid at spec.digestReflectionPolicy: `always` is not allowed; allowed \
                 are Always, IfNotPresent, Never; did you mean Always?";
    assert!(ended.only_error().ends_with(words), "{ended:?}");
    scene.policy("web", json!({}));
    scene.repository("web", json!({"spec": {"provider": "amazon"}}));
    let ended = scene.run(&[]).with_status(1);
    let words = "ImageRepository default/web is not valid at spec.provider: `amazon` is not allowed; allowed are \
                 generic, aws, azure, gcp";
    assert!(ended.only_error().contains(words), "{ended:?}");
    assert_eq!(scene.value("app"), "app/web:0.9.0");
}

#[test]
fn a_secret_without_logins_is_warned_of_once() {
    let scene = Scene::new();
    scene.repository("web", json!({"spec": {"secretRef": {"name": "login"}}}));
    scene.write(&json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "default", "name": "login"},
        "stringData": {"a": "b"},
    }));
    let ended = scene.run(&[]).with_status(0);
    assert!(
        ended.only_error().starts_with("warning: secret 'default/login' has no logins for registries"),
        "{ended:?}"
    );
}
