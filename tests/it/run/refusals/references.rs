//! References that do not exist or are invalid.

use serde_json::json;

use super::{CHECKOUT, NONE, refused};
use crate::run::scene::Scene;
use crate::support::content::file;
use crate::support::git_host::Settings;

#[test]
fn a_reference_that_is_not_there() {
    let scene = Scene::new();
    scene.repository.commit("release/1", "Other", &[file("app.yaml", "a: 1\n")]);
    let host = scene.serve(Settings::default());
    let url = host.url("fleet.git");
    scene.automation(json!({"git": {"push": {"branch": "main"}}}));
    let missing = |name| format!("couldn't find remote ref {name:?}; its branches are main, release/1");
    let tags = |name, tags| format!("couldn't find remote ref {name:?}; {tags}");
    let nobody = "0123456789012345678901234567890123456789";
    for (reference, words) in [
        (json!({"branch": "mian"}), missing("refs/heads/mian")),
        (json!({"branch": null}), missing("refs/heads/master")),
        (json!({"tag": "v1"}), tags("refs/tags/v1", "it has no tags")),
        (json!({"name": "refs/pull/1/head"}), missing("refs/pull/1/head")),
        (json!({"semver": ">=1"}), "no match found for semver: >=1; it has no tags".to_owned()),
        (
            json!({"commit": nobody}),
            format!("commit {nobody} does not exist, or the server does not serve it"),
        ),
        (
            json!({"commit": nobody, "branch": "main"}),
            format!("commit {nobody} does not exist, or the server does not serve it"),
        ),
    ] {
        scene.source(json!({"url": url, "ref": reference}));
        refused(&scene, NONE, &format!("{CHECKOUT}: unable to clone '{url}': {words}"));
    }
    scene.repository.tag("v0", "main");
    scene.source(json!({"url": url, "ref": {"tag": "v1"}}));
    let words = tags("refs/tags/v1", "its tags are v0");
    refused(&scene, NONE, &format!("{CHECKOUT}: unable to clone '{url}': {words}"));
    // A tag such as v0 is no version. An `x` stands for any version, as in Masterminds/semver, so the range is valid.
    scene.source(json!({"url": url, "ref": {"semver": ">=x"}}));
    let words = "no match found for semver: >=x; its tags are v0";
    refused(&scene, NONE, &format!("{CHECKOUT}: unable to clone '{url}': {words}"));
    for (reference, sentence) in [
        (
            json!({"name": "main"}),
            "spec.ref of GitRepository default/fleet cannot be used: \"main\" is not a valid reference name: it does not begin with refs/",
        ),
        (
            json!({"commit": "0123"}),
            "spec.ref of GitRepository default/fleet cannot be used: \"0123\" is not a commit ID: a commit ID has 40 hexadecimal digits",
        ),
        (json!({"semver": "one"}), "failed to checkout source: semver parse error: \"one\"…"),
    ] {
        scene.source(json!({"url": url, "ref": reference}));
        refused(&scene, NONE, sentence);
    }
    let blob = scene.repository.id("main:app.yaml").unwrap();
    scene.repository.tag("blob", &blob);
    scene.source(json!({"url": url, "ref": {"tag": "blob"}}));
    scene.automation(json!({"git": {"push": {"branch": "new"}}}));
    refused(&scene, NONE, &format!("{CHECKOUT}: {blob} of '{url}' does not lead to a commit…"));
}
