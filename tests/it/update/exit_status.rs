//! Exit status and message of the errors before any file is read, in one table.

use std::path::Path;
use std::process::Command;

use crate::support::fleet::{Fleet, podinfo, tag_line};
use crate::support::manifests::{automation, policy};
use crate::support::program::{run, tagboat, update};

/// Asserts that `tagboat update` in the fleet's root refuses these arguments.
/// There must be this exit status, one error message with all of `words`, and no written file.
#[track_caller]
fn refused(manifests: &str, arguments: &[&str], status: i32, words: &[&str]) {
    let fleet = Fleet::new([("app.yaml", &tag_line("4.0.6"))], manifests);
    let before = fleet.tree();
    let mut command = tagboat();
    let ended = run(command.current_dir(fleet.root()).arg("update").args(arguments)).with_status(status);
    for word in words {
        assert!(ended.only_error().contains(word), "no {word:?} in {ended:?}");
    }
    assert_eq!(ended.output, "");
    assert_eq!(fleet.tree(), before);
}

#[test]
fn a_path_that_is_not_a_directory_is_named_with_the_cause() {
    let of_fleet = format!("{}{}", podinfo(), automation("default", "fleet", ""));
    for (directory, words) in [
        ("nowhere", ["cannot read the directory nowhere: ", "No such file or directory"]),
        ("fleet/app.yaml", ["cannot read the directory fleet/app.yaml: ", "Not a directory"]),
        ("fleet/app.yaml/deeper", ["cannot read the directory fleet/app.yaml/deeper: ", "Not a directory"]),
    ] {
        for more in [&[][..], &["--dry-run"], &["--strict"]] {
            let arguments = [&[directory, "--policies", "manifests"], more].concat();
            let [place, cause] = words;
            refused(&podinfo(), &arguments, 1, &["error: ", place, cause]);
            refused(&of_fleet, &arguments, 1, &["default/fleet: ", place, cause]);
        }
    }
}

/// The advice was to write `-- -1`, which makes it a path.
#[test]
fn values_that_are_too_small_are_refused_with_advice() {
    const LENGTH: &str = "it cannot be negative: write a duration such as 1m30s, or 0s";
    const POSITIVE: &str = "it must be longer than 0s: write a duration such as 1m30s";
    const NUMBER: &str = "write a whole number without a sign, such as 4";
    const SIZE: &str = "it is not a size such as 2GiB, 500MB or 1048576";
    for (command, option, value, words) in [
        ("run", "--wait-for-state", "-1s", LENGTH),
        ("run", "--regression-time", "-15m", LENGTH),
        ("run", "--regression-scans", "-1", NUMBER),
        ("run", "--mirror-max-size", "-1", SIZE),
        ("run", "--mirrors-max-size", "-1GiB", SIZE),
        ("scan", "--limit", "-1", NUMBER),
        ("scan", "--timeout", "-1m", POSITIVE),
        ("scan", "--timeout", "0s", POSITIVE),
        ("run", "--mirror-max-size", "0", "it must be larger than 0, such as 2GiB"),
    ] {
        let ended = run(tagboat().args([command, "nowhere", option, value])).with_status(2);
        let first = ended.errors.lines().next().unwrap_or_default();
        assert!(first.contains(option) && first.ends_with(words), "{ended:?}");
        assert!(!ended.errors.contains("tip:"), "{ended:?}");
    }
}

#[test]
fn roles_are_printed_for_a_label_selector_only() {
    let ended = run(tagboat().args(["rbac", "--watch-label-selector", "!!"])).with_status(2);
    assert_eq!(
        ended.only_error(),
        "error: --watch-label-selector \"!!\" cannot be used: write requirements such as KEY=VALUE, separated by commas"
    );
    assert_eq!(ended.output, "");
    run(tagboat().args(["rbac", "--watch-label-selector", "shard in (a, b),!c"])).with_status(0);
    // The role for rollouts has no Lease.
    let both = ["rbac", "--rollout", "--watch-label-selector", "a=b"];
    assert!(run(tagboat().args(both)).with_status(2).errors.contains("cannot be used with"));
}

#[test]
fn a_bare_repository_is_refused_as_state_directory() {
    let fleet = Fleet::new([("app.yaml", &tag_line("4.0.6"))], &automation("default", "fleet", ""));
    let bare = fleet.root().join("bare.git");
    run(Command::new("git").args(["init", "--quiet", "--bare"]).arg(&bare)).with_status(0);
    let ended = run(tagboat().arg("run").arg(fleet.manifests()).arg("--state").arg(&bare)).with_status(1);
    let sentence = format!(
        "error: cannot use the state in {}: HEAD: it is not a state directory; name an empty directory, or one that \
         does not exist",
        bare.display()
    );
    assert_eq!(ended.only_error(), sentence);
    assert!(!bare.join("lock").exists() && !bare.join("mirrors").exists());
}

#[test]
fn wrong_choices_are_wrong_usage_and_print_no_document() {
    let one = format!("{}{}", podinfo(), automation("default", "fleet", ""));
    let two = format!("{one}{}", automation("other", "fleet", ""));
    let both = format!("{}{}", podinfo(), policy("other", "podinfo", "ab", "v9"));
    for (manifests, more, words) in [
        (&one, &["--automation", "nope"][..], "--automation nope: no ImageUpdateAutomation of that name"),
        (&one, &["--automation", "other/fleet"], "there is default/fleet"),
        (&two, &[], "default/fleet, other/fleet"),
        (&two, &["--automation", "fleet"], "several ImageUpdateAutomations"),
        (&one, &["--latest", "podinfo"], "is not of the form [NAMESPACE/]NAME=IMAGE"),
        (&one, &["--latest", "nope=ab:1"], "no ImagePolicy of that name is among the manifests"),
        (&one, &["--latest", "podinfo=ab:1", "--latest", "podinfo=ab:1"], "two images for default/podinfo"),
        (&both, &["--latest", "podinfo=ab:1"], "both default/podinfo and other/podinfo have that name"),
    ] {
        for form in ["text", "json"] {
            let arguments = [&["fleet", "--policies", "manifests", "--output", form], more].concat();
            refused(manifests, &arguments, 2, &["error: ", words]);
        }
    }
}

#[test]
fn manifests_that_cannot_be_read_are_named() {
    let group = "apiVersion: image.toolkit.fluxcd.io/v1\nkind: ImagePolicy\n";
    for (manifests, words) in [
        (format!("{group}spec: {{}}\n"), "ImagePolicy without a metadata.name that is a string"),
        (format!("{group}metadata: {{name: 5}}\n"), "ImagePolicy without a metadata.name that is a string"),
        (format!("{group}metadata: {{name: ''}}\n"), "ImagePolicy without a metadata.name that is a string"),
        (format!("{group}metadata: x\n"), "ImagePolicy without a metadata.name that is a string"),
        (format!("{group}metadata: {{name: a}}\nspec: []\n"), "ImagePolicy default/a is not valid at spec"),
        (format!("{group}metadata: {{name: a}}\nmetadata: {{name: b}}\n"), "the manifest is not YAML"),
        ("kind: ConfigMap\napiVersion: v1\n".to_owned(), "there is no object of image.toolkit.fluxcd.io"),
        (String::new(), "there is no object of image.toolkit.fluxcd.io"),
        ("just words\n".to_owned(), "there is no object of image.toolkit.fluxcd.io"),
    ] {
        let fleet = Fleet::new([("app.yaml", &tag_line("4.0.6"))], &manifests);
        let ended =
            update(&fleet.directory(), &fleet.manifests().join("manifests.yaml"), [""; 0]).with_status(1);
        let errors: Vec<&str> = ended.errors.lines().filter(|line| !line.starts_with("warning: ")).collect();
        assert_eq!(errors.len(), 1, "{ended:?}");
        assert!(errors[0].starts_with("error: "), "{ended:?}");
        assert!(errors[0].contains("manifests/manifests.yaml") && errors[0].contains(words), "{ended:?}");
        assert_eq!(ended.output, "");
        assert_eq!(fleet.text("app.yaml"), tag_line("4.0.6"));
    }
}

/// A wrong value of one of our annotations is reported.
/// It is an error at an automation, and a warning at a policy.
#[test]
fn a_wrong_setting_is_named() {
    let at = |text: &str| text.replace("metadata: {", "metadata: {annotations: {tagboat.dev/nope: x}, ");
    let fleet = at(&automation("default", "fleet", ""));
    let arguments = ["fleet", "--policies", "manifests"];
    refused(&format!("{}{fleet}", podinfo()), &arguments, 1, &["default/fleet: ", "tagboat.dev/nope"]);
    let fleet = Fleet::new([("app.yaml", &tag_line("4.0.6"))], &at(&podinfo()));
    let ended = fleet.update([""; 0]).with_status(0);
    for word in ["warning: ImagePolicy default/podinfo", "tagboat.dev/nope"] {
        assert!(ended.only_error().contains(word), "{ended:?}");
    }
    assert_eq!(fleet.text("app.yaml"), tag_line("5.0.3"));
}

#[test]
fn manifests_without_a_policy_are_an_error() {
    let fleet = Fleet::new([("app.yaml", &tag_line("4.0.6"))], &automation("default", "fleet", ""));
    let ended = fleet.update([""; 0]).with_status(0);
    assert_eq!(ended.only_error(), "warning: there is no ImagePolicy among the manifests");
    assert!(ended.output.contains("there is no such ImagePolicy"), "{ended:?}");
    assert!(ended.output.starts_with("Policies:\n- none is selected\n"), "{ended:?}");
}

#[test]
fn an_empty_directory_of_manifests_is_an_error() {
    let fleet = Fleet::small();
    let empty = fleet.root().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let ended = update(&fleet.directory(), Path::new(&empty), [""; 0]).with_status(0);
    assert_eq!(ended.only_error(), "warning: there is no ImagePolicy among the manifests");
}
