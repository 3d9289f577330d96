//! Errors of the cluster and of the arguments.

use serde_json::json;

use super::scene::{Scene, command, installed, kubeconfig};
use crate::support::api_server::ADMIN_TOKEN;
use crate::support::http_front::{Front, Reply};
use crate::support::program::{run, tagboat_without_cluster};

#[test]
fn a_cluster_that_cannot_be_read_is_one_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let without_kind = Front::alone(|_| Reply::body(404, "404 page not found\n"));
    for (server, words) in [
        (
            without_kind.url(""),
            "has no kind DeploymentStatus of tagboat.dev/v1alpha1: its CustomResourceDefinition is not installed",
        ),
        (
            "http://127.0.0.1:1".to_owned(),
            "error: cannot read DeploymentStatuses at http://127.0.0.1:1: the request to the API server failed: ",
        ),
    ] {
        let file = kubeconfig(directory.path(), &server);
        for more in [&[][..], &["-A"], &["--watch"], &["podinfo", "--wait", "1s"]] {
            let ended = run(&mut command(&file, more)).with_status(1);
            assert!(ended.only_error().contains(words) && ended.output.is_empty(), "{ended:?}");
        }
    }
    let mut nowhere = tagboat_without_cluster();
    nowhere.arg("status").env("HOME", "/nonexistent");
    let ended = run(&mut nowhere).with_status(1);
    let words = "error: there is no kubeconfig or in-cluster configuration (";
    assert!(ended.only_error().starts_with(words) && ended.errors.ends_with(")\n"), "{ended:?}");
}

/// kubectl ignores them, too; the crate refuses the list.
#[test]
fn missing_files_of_a_kubeconfig_list_are_ignored_if_another_exists() {
    let directory = tempfile::tempdir().unwrap();
    let file = kubeconfig(directory.path(), "http://127.0.0.1:1").display().to_string();
    let missing = directory.path().join("missing").display().to_string();
    let broken = directory.path().join("broken");
    std::fs::write(&broken, "users: [{name: a, user: {token: [hunter2").unwrap();
    let unreachable = "error: cannot read DeploymentStatuses at http://127.0.0.1:1: ";
    let none = "error: no file of KUBECONFIG exists: ";
    let unparsed = format!("error: KUBECONFIG {}: failed to parse kubeconfig YAML", broken.display());
    let undefined = directory.path().join("undefined").display().to_string();
    let text = std::fs::read_to_string(&file).unwrap();
    let other = text.replace(r#""users":[{"name":"test""#, r#""users":[{"name":"other""#);
    assert_ne!(text, other);
    std::fs::write(&undefined, other).unwrap();
    for (list, arguments, status, words) in [
        (format!("{missing}:{file}"), &[][..], 1, unreachable),
        (format!("{file}::{missing}"), &[], 1, unreachable),
        (format!("{missing}:{file}"), &["--context", "test"], 1, unreachable),
        (format!("{missing}:{file}"), &["--context", "other"], 2, "error: --context other: "),
        (missing.clone(), &[], 1, none),
        (format!("{missing}:{missing}"), &[], 1, none),
        // Only a missing file is ignored.
        (format!("{missing}:{}", broken.display()), &[], 1, &unparsed),
        (broken.display().to_string(), &[], 1, &unparsed),
        (undefined, &[], 1, "error: KUBECONFIG: the context test has the user "),
    ] {
        let mut program = tagboat_without_cluster();
        // In a pod, its own cluster would be used in place of the named one.
        program.env("KUBERNETES_SERVICE_HOST", "127.0.0.1").env("KUBERNETES_SERVICE_PORT", "1");
        program.arg("status").args(arguments).env("KUBECONFIG", &list).env("HOME", "/nonexistent");
        let ended = run(&mut program).with_status(status);
        assert!(ended.only_error().starts_with(words), "{list}: {ended:?}");
        assert!(!ended.errors.contains("hunter2"), "{ended:?}");
    }
}

#[test]
fn an_empty_kubeconfig_and_an_unknown_context_are_one_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let file = kubeconfig(directory.path(), "http://127.0.0.1:1").display().to_string();
    let empty = directory.path().join("empty").display().to_string();
    std::fs::write(&empty, "").unwrap();
    let home = directory.path().join("home");
    std::fs::create_dir_all(home.join(".kube")).unwrap();
    std::fs::write(home.join(".kube/config"), "").unwrap();
    let is_empty = "it is empty: write the kubeconfig of a cluster to it, or select another file";
    let unknown = "the context prod is not in contexts";
    for (environment, arguments, status, expected) in [
        ("", vec!["--kubeconfig", &empty], 2, format!("--kubeconfig {empty}: {is_empty}")),
        (&empty, vec![], 1, format!("KUBECONFIG {empty}: {is_empty}")),
        (&empty, vec!["--context", "prod"], 2, format!("--context prod: KUBECONFIG {empty}: {is_empty}")),
        ("", vec!["--context", "prod"], 2, format!("--context prod: ~/.kube/config: {is_empty}")),
        (
            "",
            vec![],
            1,
            format!("there is no kubeconfig or in-cluster configuration (~/.kube/config: {is_empty})"),
        ),
        (&file, vec!["--context", "prod"], 2, format!("--context prod: {unknown}")),
        ("", vec!["--kubeconfig", &file, "--context", "prod"], 2, format!("--kubeconfig {file}: {unknown}")),
    ] {
        let mut program = tagboat_without_cluster();
        program.arg("status").args(arguments).env("KUBECONFIG", environment).env("HOME", &home);
        let ended = run(&mut program).with_status(status);
        assert_eq!(ended.only_error(), format!("error: {expected}"));
    }
}

#[test]
fn the_path_of_a_bad_token_file_has_one_kind_of_quotes() {
    let directory = tempfile::tempdir().unwrap();
    let file = kubeconfig(directory.path(), "http://127.0.0.1:1");
    let token = directory.path().join("token");
    let text = std::fs::read_to_string(&file).unwrap();
    let text = text.replace(r#""token":"hunter2""#, &format!(r#""tokenFile":"{}""#, token.display()));
    std::fs::write(&file, text).unwrap();
    let ended = run(&mut command(&file, &[])).with_status(1);
    let path = format!("'{}'", token.display());
    assert!(ended.errors.contains(&path) && !ended.errors.contains('"'), "{ended:?}");
}

/// The client panicked at such a token.
#[test]
fn a_token_that_no_header_can_have_is_one_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let file = kubeconfig(directory.path(), "http://127.0.0.1:1");
    let text = std::fs::read_to_string(&file).unwrap().replace("hunter2", "hunter2\\n");
    std::fs::write(&file, text).unwrap();
    let ended = run(&mut command(&file, &[])).with_status(1);
    let sentence = "error: the kubeconfig cannot be used: its token has a line break or another character that an \
                    HTTP header cannot have";
    assert_eq!(ended.only_error(), sentence);
    let mut controller = tagboat_without_cluster();
    let ended =
        run(controller.args(["controller", "--health-addr=0", "--metrics-addr=0"]).env("KUBECONFIG", &file));
    assert!(ended.with_status(1).errors.contains("its token has a line break"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_file_may_end_with_a_line_break() {
    let scene = Scene::new().await;
    scene.deploy("podinfo", &installed("6.5.1")).await;
    let token = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&token, format!("{ADMIN_TOKEN}\n")).unwrap();
    let file = scene.cluster.administrators_kubeconfig();
    let text = std::fs::read_to_string(&file).unwrap();
    let given = format!(r#""tokenFile":"{}""#, token.path().display());
    let text = text.replace(&format!(r#""token":"{ADMIN_TOKEN}""#), &given);
    assert!(text.contains(&given), "{text}");
    std::fs::write(&file, text).unwrap();
    run(&mut command(&file, &["podinfo"])).with_status(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_and_watch_of_one_kind_are_the_only_permissions_needed() {
    let scene = Scene::new().await;
    scene.deploy("podinfo", &installed("6.5.1")).await;
    let kubeconfig = scene.cluster.kubeconfig(&scene.cluster.token("reader").await);
    let ended = run(&mut command(&kubeconfig, &[])).with_status(1);
    assert!(ended.only_error().starts_with("error: cannot read DeploymentStatuses at http"), "{ended:?}");
    assert!(ended.errors.contains(": deploymentstatuses.tagboat.dev is forbidden: "), "{ended:?}");
    let rule = json!({"apiGroups": ["tagboat.dev"], "resources": ["deploymentstatuses"], "verbs": ["list", "watch"]});
    scene.cluster.grant("reader", rule).await;
    // A role is in force a moment after it is created.
    let begin = std::time::Instant::now();
    while run(&mut command(&kubeconfig, &[])).status != Some(0) {
        assert!(begin.elapsed().as_secs() < 60);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    run(&mut command(&kubeconfig, &["podinfo", "--wait", "1s"])).with_status(0);
    let ended =
        run(&mut command(&kubeconfig, &["podinfo", "--image", "ghcr.io/org/app:7.0.0", "--wait", "1s"]));
    assert!(ended.only_error().contains("its image is ghcr.io/org/app:6.5.1"), "{ended:?}");
    let ended = run(&mut command(&kubeconfig, &["-A"])).with_status(1);
    assert!(ended.only_error().contains(": deploymentstatuses.tagboat.dev is forbidden: "), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_usage_is_one_sentence() {
    let scene = Scene::new().await;
    for (arguments, words) in [
        (&["-l", "team in web"][..], "error: --selector \"team in web\": "),
        (&["-n", "No/Namespace"], "error: --namespace \"No/Namespace\" cannot be the name of a namespace"),
        (
            &["-n", "a", "-A"],
            "error: the argument '--namespace <NAMESPACE>' cannot be used with '--all-namespaces'",
        ),
        (&["--wait", "podinfo"], "`podinfo` is not a duration"),
        (&["--wait", "podinfo"], "write names before --wait"),
        (&["--image", "ghcr.io/org/app"], "it has neither a tag nor a digest: write NAME:TAG or NAME@DIGEST"),
        (&["--image", "ghcr.io/org/App:1"], "is not an image name"),
        (&["--image", "sha256:12"], "64 lower case hexadecimal digits"),
        (&["-o", "yaml"], "invalid value 'yaml' for '--output <FORMAT>'"),
        (&["--context", "other"], "other"),
    ] {
        let ended = scene.status(arguments).with_status(2);
        assert!(ended.errors.contains(words) && ended.output.is_empty(), "{arguments:?} {ended:?}");
    }
}

#[test]
fn an_object_that_cannot_be_read_is_named_and_the_others_are_shown() {
    let directory = tempfile::tempdir().unwrap();
    let object = |name: &str, state: &str| {
        let mut status = installed("6.5.1");
        status["state"] = json!(state);
        json!({
            "apiVersion": "tagboat.dev/v1alpha1",
            "kind": "DeploymentStatus",
            "metadata": {"name": name, "namespace": "apps"},
            "spec": {"policyRef": {"name": name}},
            "status": status,
        })
    };
    let list = json!({
        "apiVersion": "tagboat.dev/v1alpha1",
        "kind": "DeploymentStatusList",
        "metadata": {"resourceVersion": "1"},
        "items": [object("odd", "later"), object("podinfo", "installed")],
    });
    let front =
        Front::alone(move |_| Reply::body(200, list.to_string()).with("content-type", "application/json"));
    let file = kubeconfig(directory.path(), &front.url(""));
    let ended = run(&mut command(&file, &[])).with_status(1);
    assert!(
        ended.only_error().starts_with("error: apps/odd cannot be read: Unknown variant later"),
        "{ended:?}"
    );
    assert_eq!(ended.output.lines().count(), 2, "{ended:?}");
    run(&mut command(&file, &["podinfo"])).with_status(0);
    let ended = run(&mut command(&file, &["--wait", "0s"])).with_status(1);
    assert!(ended.only_error().contains("within 0s: apps/odd cannot be read: "), "{ended:?}");
}

/// A wait for a name that no object can have took its whole time.
#[test]
fn names_that_no_object_can_have_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = kubeconfig(directory.path(), "http://127.0.0.1:1");
    for (arguments, sentence) in [
        (&["apps/web", "--wait"][..], "error: \"apps/web\" has a namespace: write web, and -n apps"),
        (&["--automation", "apps/fleet"], "error: \"apps/fleet\" has a namespace: write fleet, and -n apps"),
        (&["Web!"], "error: \"Web!\" cannot be the name of an object"),
        (&[""], "error: \"\" cannot be the name of an object"),
    ] {
        let ended = run(&mut command(&file, arguments)).with_status(2);
        assert_eq!(ended.only_error(), sentence);
    }
}
