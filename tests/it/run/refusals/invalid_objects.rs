//! Objects with missing, contradictory or unsupported fields.

use std::fs;

use serde_json::json;

use super::{CHECKOUT, NONE, SOURCE, refused};
use crate::run::scene::Scene;
use crate::support::git_host::Settings;

#[test]
fn urls_that_are_not_taken() {
    let scene = Scene::new();
    for (url, words) in [
        (
            "git@github.com:org/fleet.git",
            " 'git@github.com:org/fleet.git' is the short form of SSH: write ssh://git@github.com/org/fleet.git",
        ),
        ("ext::sh -c id", " 'ext::sh -c id' has the scheme 'ext::': use http, https or ssh"),
        (
            "git://github.com/org/fleet.git",
            " 'git://github.com/org/fleet.git' has the scheme 'git': use http, https or ssh",
        ),
        ("ftp://a/b", " 'ftp://a/b' has the scheme 'ftp': use http, https or ssh"),
        ("", " is empty: give an http, https or ssh URL"),
        ("https://", " 'https://' names no host"),
        (
            "https://bot:hunter2@a b/c",
            " 'https://••••@a b/c' has a host that is neither a name nor an address: correct it",
        ),
    ] {
        scene.source(json!({"url": url}));
        refused(&scene, NONE, &format!("{SOURCE}: the repository URL{words}"));
    }
    let here = scene.root().join("nowhere");
    for (url, shown, path) in [
        ("/nowhere", "/nowhere", "/nowhere"),
        ("file:///nowhere", "file:///nowhere", "/nowhere"),
        ("nowhere", here.to_str().unwrap(), here.to_str().unwrap()),
    ] {
        scene.source(json!({"url": url}));
        let words = "there is no such repository, or the credentials may not see it";
        let sentence = format!(
            "{CHECKOUT}: unable to list '{shown}': {words}: '{path}' does not appear to be a git repository"
        );
        refused(&scene, NONE, &sentence);
    }
}

#[test]
fn paths_of_this_machine_are_taken() {
    let scene = Scene::new();
    for (tag, url) in [
        ("5.0.3", scene.repository.path().display().to_string()),
        ("5.0.4", format!("file://{}", scene.repository.path().display())),
        ("5.0.5", "served/fleet.git".to_owned()),
    ] {
        scene.source(json!({"url": url}));
        scene.latest(tag);
        scene.run(NONE).with_status(0);
        assert_eq!(scene.tag("main"), tag, "{url}");
    }
    scene.repository.assert_sound();
}

#[test]
fn objects_with_missing_fields() {
    let scene = Scene::new();
    refused(
        &scene,
        NONE,
        "failed configuring source manager: referenced git repository does not exist: GitRepository.source.toolkit.fluxcd.io \"fleet\" not found",
    );
    let host = scene.serve(Settings::default());
    let no_push = "failed configuring source manager: push spec not provided, and cannot be inferred from \
                   .spec.git.checkout.ref or GitRepository .spec.ref";
    for (spec, sentence) in [
        (
            json!({"git": null}),
            "source kind 'GitRepository' necessitates field .spec.git: invalid source configuration",
        ),
        (
            json!({"sourceRef": {"kind": "Bucket"}}),
            "source kind 'Bucket' not supported: invalid source configuration",
        ),
        (json!({"git": {"checkout": {"ref": {"tag": "v1"}}}}), no_push),
        (json!({"git": {"checkout": {"ref": {"name": "refs/heads/main"}}}}), no_push),
        (
            json!({"git": {"push": {"branch": "a b"}}}),
            "spec.git.push.branch cannot be used: \"a b\" is not a valid branch name: it has a space, a control character or \
             one of ~ ^ : ? * [ \\",
        ),
        (
            json!({"git": {"push": {"refspec": ":refs/heads/x"}}}),
            "spec.git.push.refspec \":refs/heads/x\" is not [+]SOURCE:DESTINATION with one source and one full \
             destination: an empty source would delete the destination",
        ),
        (json!({"update": {"strategy": "Magic"}}), "unsupported update strategy: Magic"),
        (
            json!({"policySelector": {"matchExpressions": [{"key": "a", "operator": "Bogus"}]}}),
            "failed to parse policy selector: \"Bogus\" is not a valid label selector operator",
        ),
    ] {
        scene.automation(spec);
        refused(&scene, NONE, sentence);
    }
    scene.automation_with(json!({"metadata": {"annotations": {"tagboat.dev/nonsense": "1"}}}));
    refused(&scene, NONE, "…");
    scene.automation(json!({}));
    for (spec, sentence) in [
        (
            json!({"timeout": "1h"}),
            "spec.timeout of GitRepository default/fleet cannot be used: `1h` counts hours, which this field does not take: write \
             it in ms, s and m, such as 90m",
        ),
        (
            json!({"timeout": "0s"}),
            "spec.timeout of GitRepository default/fleet is `0s`, which leaves no time at all: write a number above zero with a \
             unit of ms, s or m, such as 1m30s",
        ),
        (json!({"ref": null}), no_push),
    ] {
        let mut spec = spec;
        spec["url"] = host.url("fleet.git").into();
        scene.source(spec);
        refused(&scene, NONE, sentence);
    }
}

#[test]
fn manifests_without_an_automation() {
    let scene = Scene::new();
    fs::remove_file(scene.root().join("manifests/automation.yaml")).unwrap();
    let run = scene.run(NONE).with_status(1);
    assert_eq!(run.only_error(), "error: there is no ImageUpdateAutomation among the manifests");
}
