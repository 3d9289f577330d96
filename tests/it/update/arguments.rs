//! Tests of the arguments that select the automation, the images and the path.
//! Wrong arguments are refused.

use crate::support::fleet::{Fleet, podinfo, tag_line};
use crate::support::manifests::{automation, marker, policy};

fn two_automations() -> String {
    let (one, other) = (automation("default", "one", ""), automation("other", "two", ""));
    format!("{}{}{one}{other}", podinfo(), policy("other", "podinfo", "ab", "v9"))
}

fn two_namespaces() -> Fleet {
    let text = format!("{}other: old {}\n", tag_line("4.0.6"), marker("other:podinfo:tag"));
    Fleet::new([("app.yaml", &text)], &two_automations())
}

#[test]
fn several_automations_need_a_choice() {
    let fleet = two_namespaces();
    let before = fleet.tree();
    let run = fleet.update([""; 0]).with_status(2);
    for word in ["default/one", "other/two", "--automation"] {
        assert!(run.only_error().contains(word), "{run:?}");
    }
    assert_eq!(fleet.tree(), before);
}

#[test]
fn the_chosen_automation_rules_its_own_namespace() {
    for (choice, changed) in
        [("one", "4.0.6"), ("default/one", "4.0.6"), ("two", "old"), ("other/two", "old")]
    {
        let fleet = two_namespaces();
        let before = fleet.text("app.yaml");
        fleet.update(["--automation", choice]).with_status(0);
        let new = if changed == "old" { "v9" } else { "5.0.3" };
        assert_eq!(fleet.text("app.yaml"), before.replace(changed, new), "{choice}");
    }
}

#[test]
fn an_unknown_automation_is_wrong_usage() {
    for choice in ["nope", "default/two", "other/one"] {
        let fleet = two_namespaces();
        let before = fleet.tree();
        let run = fleet.update(["--automation", choice]).with_status(2);
        assert!(run.only_error().contains("default/one, other/two"), "{run:?}");
        assert_eq!(fleet.tree(), before);
    }
    let run = Fleet::small().update(["--automation", "one"]).with_status(2);
    assert!(run.only_error().contains("there is none"), "{run:?}");
}

#[test]
fn an_automation_without_a_name_is_wrong_usage() {
    for choice in ["", "/", "/one", "default/"] {
        let run = two_namespaces().update(["--automation", choice]).with_status(2);
        let sentence = format!("error: --automation {choice:?} is not of the form [NAMESPACE/]NAME");
        assert_eq!(run.only_error(), sentence);
    }
}

#[test]
fn an_image_override_has_precedence_over_the_status() {
    for given in ["podinfo=ab:v2", "default/podinfo=ab:v2"] {
        let fleet = Fleet::small();
        fleet.update(["--latest", given]).with_status(0);
        assert_eq!(fleet.text("app.yaml"), tag_line("v2"), "{given}");
    }
}

#[test]
fn an_invalid_image_override_is_wrong_usage() {
    for (given, words) in [
        ("podinfo", "not of the form [NAMESPACE/]NAME=IMAGE"),
        ("podinfo=", "has no tag"),
        ("podinfo=ab", "has no tag"),
        ("podinfo=UPPER:1", "is not an image name"),
        ("podinfo=ab:1@sha256:00", "is not a digest"),
        ("nope=ab:v1", "no ImagePolicy of that name"),
        ("other/podinfo=ab:v1", "no ImagePolicy of that name"),
        ("=ab:v1", "no ImagePolicy of that name"),
    ] {
        let fleet = Fleet::small();
        let run = fleet.update(["--latest", given]).with_status(2);
        assert!(run.only_error().contains(words), "{run:?}");
        assert!(run.only_error().contains("--latest"), "{run:?}");
        assert_eq!(fleet.text("app.yaml"), tag_line("4.0.6"));
    }
}

#[test]
fn an_image_override_must_name_one_policy() {
    let both = format!("{}{}", podinfo(), policy("other", "podinfo", "ab", "v9"));
    let fleet = Fleet::new([("app.yaml", &tag_line("4.0.6"))], &both);
    let run = fleet.update(["--latest", "podinfo=ab:v1"]).with_status(2);
    assert!(run.only_error().contains("both default/podinfo and other/podinfo"), "{run:?}");
    let twice = ["--latest", "podinfo=ab:v1", "--latest", "default/podinfo=ab:v2"];
    let run = Fleet::small().update(twice).with_status(2);
    assert!(run.only_error().contains("two images for default/podinfo"), "{run:?}");
}

/// The automation's namespace decides between policies of one name.
/// Only the policy in that namespace can have an effect, so the name refers to that one.
#[test]
fn the_automation_s_namespace_decides_between_policies_of_one_name() {
    for (choice, old) in [("one", "4.0.6"), ("two", "old")] {
        let fleet = two_namespaces();
        let before = fleet.text("app.yaml");
        let run = fleet.update(["--automation", choice, "--latest", "podinfo=ab:v1"]).with_status(0);
        assert_eq!(run.errors, "", "{choice}");
        assert_eq!(fleet.text("app.yaml"), before.replace(old, "v1"), "{choice}");
    }
}

#[test]
fn an_image_override_for_another_namespace_has_no_effect_and_is_warned_of() {
    let fleet = two_namespaces();
    let before = fleet.text("app.yaml");
    let run = fleet.update(["--automation", "one", "--latest", "other/podinfo=ab:v1"]).with_status(0);
    assert!(run.only_error().starts_with("warning: --latest for other/podinfo has no effect"), "{run:?}");
    assert_eq!(fleet.text("app.yaml"), before.replace("4.0.6", "5.0.3"));

    let elsewhere = format!("{}{}", podinfo(), automation("other", "two", ""));
    let fleet = Fleet::new([("app.yaml", &tag_line("4.0.6"))], &elsewhere);
    let run = fleet.update(["--latest", "podinfo=ab:v1"]).with_status(0);
    assert!(run.errors.contains("warning: --latest for default/podinfo has no effect"), "{run:?}");
}

#[test]
fn arguments_that_clap_refuses_are_wrong_usage() {
    let fleet = Fleet::small();
    for arguments in [["--output", "yaml"], ["--nope", "x"], ["--automation", "--strict"]] {
        let run = fleet.update(arguments).with_status(2);
        assert!(run.errors.starts_with("error: "), "{run:?}");
        assert_eq!(run.output, "");
    }
    let run = crate::support::program::run(crate::support::program::tagboat().arg("update")).with_status(2);
    assert!(run.errors.contains("--policies"), "{run:?}");
}

#[test]
fn an_update_path_that_is_missing_or_climbs_out_fails() {
    for (path, words) in [
        ("./nowhere", "nowhere"),
        ("app.yaml/inner", "app.yaml/inner"),
        ("../outside", "leads out of the directory"),
        ("..", "leads out of the directory"),
        ("apps/../../outside", "leads out of the directory"),
    ] {
        let fields = format!("  update: {{path: {path}}}\n");
        let manifests = format!("{}{}", podinfo(), automation("default", "fleet", &fields));
        let fleet = Fleet::new([("app.yaml", &tag_line("4.0.6")), ("apps/a.yaml", "a: 1\n")], &manifests);
        std::fs::create_dir(fleet.root().join("outside")).unwrap();
        std::fs::write(fleet.root().join("outside/a.yaml"), tag_line("4.0.6")).unwrap();
        let run = fleet.update([""; 0]).with_status(1);
        assert!(run.only_error().starts_with("default/fleet: failed to apply policies: "), "{run:?}");
        assert!(run.only_error().contains(words), "{path}: {run:?}");
        assert_eq!(fleet.text("app.yaml"), tag_line("4.0.6"));
        assert_eq!(fleet.text("../outside/a.yaml"), tag_line("4.0.6"));
    }
}
