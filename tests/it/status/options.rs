//! The options that select deployments and the cluster.

use serde_json::json;

use super::scene::{Scene, installed};
use crate::support::program::{run, tagboat_without_cluster};

/// The names in a table, of which the first column may be the namespace.
fn names(output: &str, column: usize) -> Vec<&str> {
    output.lines().skip(1).map(|line| line.split_whitespace().nth(column).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn options_select_by_name_labels_and_automation() {
    let scene = Scene::new().await;
    let namespace = scene.namespace();
    for (name, labels, automation) in [
        ("a", json!({"team": "web", "tier": "front"}), "apps"),
        ("b", json!({"team": "web"}), "infra"),
        ("c", json!({}), "apps"),
    ] {
        let mut status = installed("1.0.0");
        status["components"][0]["automation"] = json!(automation);
        scene.create(namespace, name, &labels).await;
        scene.set(namespace, name, &status).await;
    }
    for (arguments, expected) in [
        (&[][..], &["a", "b", "c"][..]),
        (&["b"], &["b"]),
        (&["c", "a", "c"], &["a", "c"]),
        (&["-l", "team=web"], &["a", "b"]),
        (&["--selector", "team=web,tier notin (front)"], &["b"]),
        (&["-l", "!team"], &["c"]),
        (&["-l", ""], &["a", "b", "c"]),
        (&["--automation", "apps"], &["a", "c"]),
        (&["--automation", "apps", "-l", "team"], &["a"]),
        (&["--automation", "apps", "b", "c", "-l", "team!=web", "c"], &["c"]),
        (&["--automation", "none"], &[]),
    ] {
        let ended = scene.status(arguments);
        if arguments.contains(&"b") && expected == ["c"] {
            let words = format!("error: no DeploymentStatus b in the namespace {namespace} is selected");
            assert_eq!((ended.status, ended.only_error()), (Some(1), words.as_str()));
        } else {
            assert_eq!(ended.status, Some(0), "{arguments:?} {ended:?}");
        }
        assert_eq!(names(&ended.output, 0), expected, "{arguments:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_namespace_is_that_of_the_context_or_of_an_option() {
    let scene = Scene::new().await;
    let (own, other) = (scene.namespace().to_owned(), scene.cluster.another_namespace().await);
    for (namespace, name) in [(&own, "own"), (&other, "other"), (&own, "both"), (&other, "both")] {
        // The names are unique, because other tests have deployments in other namespaces.
        let name = format!("{name}-{own}");
        scene.create(namespace, &name, &json!({"test": own.clone()})).await;
        scene.set(namespace, &name, &installed("1.0.0")).await;
    }
    let full = |name: &str| format!("{name}-{own}");
    let kubeconfig = scene.cluster.administrators_kubeconfig();
    for arguments in [&[][..], &["-n", &own], &["--namespace", &own], &["--context", "test"]] {
        let ended = scene.status(arguments).with_status(0);
        assert_eq!(names(&ended.output, 0), [full("both"), full("own")], "{arguments:?}");
        let mut by_environment = tagboat_without_cluster();
        by_environment.arg("status").args(arguments).env("KUBECONFIG", &kubeconfig);
        assert_eq!(run(&mut by_environment).with_status(0).output, ended.output);
    }
    let ended = scene.status(&["-n", &other]).with_status(0);
    assert_eq!(names(&ended.output, 0), [full("both"), full("other")]);
    let labels = format!("test={own}");
    for option in ["-A", "--all-namespaces"] {
        let ended = scene.status(&[option, "-l", &labels]).with_status(0);
        assert!(ended.output.starts_with("NAMESPACE"), "{}", ended.output);
        let mut expected =
            [(&own, full("both")), (&own, full("own")), (&other, full("both")), (&other, full("other"))];
        expected.sort();
        let found: Vec<_> = names(&ended.output, 0).into_iter().zip(names(&ended.output, 1)).collect();
        let expected: Vec<_> =
            expected.iter().map(|(namespace, name)| (namespace.as_str(), name.as_str())).collect();
        assert_eq!(found, expected);
        let both = scene.status(&[option, &full("both"), "-o", "json"]).with_status(0);
        assert_eq!(both.json()["summary"]["total"], 2);
        let ended = scene.status(&[option, "no-such"]).with_status(1);
        assert_eq!(ended.only_error(), "error: no DeploymentStatus no-such of the cluster is selected");
    }
}
