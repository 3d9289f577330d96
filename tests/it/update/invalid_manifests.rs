//! Manifests that are broken, missing, foreign or incomplete: one error message, and nothing is written.

use crate::support::fleet::{Fleet, IMAGE, podinfo, tag_line};
use crate::support::manifests::{automation, marker, policy, policy_with_status};
use crate::support::program::{run, run_with_input, tagboat, update};

/// Asserts that the update fails with this status, and writes nothing.
/// There must be one message that contains all of `words`.
#[track_caller]
fn refused(manifests: &str, status: i32, words: &[&str]) {
    let fleet = Fleet::new([("app.yaml", &tag_line("4.0.6"))], manifests);
    let run = fleet.update(["--output", "text"]).with_status(status);
    let error = run.only_error();
    assert!(error.starts_with("error: ") || error.starts_with("default/fleet: "), "{error}");
    for word in words {
        assert!(error.contains(word), "no {word:?} in {error:?}");
    }
    assert_eq!(run.output, "");
    assert_eq!(fleet.text("app.yaml"), tag_line("4.0.6"));
}

#[test]
fn broken_yaml_is_named_with_its_place() {
    refused("apiVersion: image.toolkit.fluxcd.io/v1\nkind: [unclosed\n", 1, &["manifests.yaml:", "not YAML"]);
    let tab = "apiVersion: image.toolkit.fluxcd.io/v1\nkind: ImagePolicy\nmetadata:\n\tname: x\n";
    refused(tab, 1, &["manifests.yaml:4:", "not YAML"]);
}

#[test]
fn one_invalid_document_makes_the_manifests_an_error() {
    refused(&format!("{}---\na: b: c\n", podinfo()), 1, &["manifests.yaml:", "not YAML"]);
}

#[test]
fn a_missing_manifest_is_named() {
    let fleet = Fleet::small();
    let missing = fleet.root().join("nowhere.yaml");
    let run = update(&fleet.directory(), &missing, [""; 0]).with_status(1);
    assert!(run.only_error().contains("nowhere.yaml"), "{run:?}");
    assert!(run.only_error().contains("No such file"), "{run:?}");
    assert_eq!(fleet.text("app.yaml"), tag_line("4.0.6"));
}

#[test]
fn a_missing_directory_is_named() {
    let fleet = Fleet::small();
    let run = update(&fleet.root().join("nowhere"), &fleet.manifests(), [""; 0]).with_status(1);
    assert!(run.only_error().contains("nowhere"), "{run:?}");
    let file = fleet.directory().join("app.yaml");
    let run = update(&file, &fleet.manifests(), [""; 0]).with_status(1);
    assert!(run.only_error().contains("app.yaml"), "{run:?}");
}

#[test]
fn an_unknown_kind_of_our_group_is_an_error() {
    let manifest = "apiVersion: image.toolkit.fluxcd.io/v1\nkind: ImagePolcy\nmetadata: {name: x}\n";
    refused(manifest, 1, &["image.toolkit.fluxcd.io/v1 has no kind \"ImagePolcy\"", "ImagePolicy"]);
}

#[test]
fn an_unknown_version_of_our_group_is_an_error() {
    let manifest = "apiVersion: image.toolkit.fluxcd.io/v7\nkind: ImagePolicy\nmetadata: {name: x}\n";
    refused(manifest, 1, &["image.toolkit.fluxcd.io/v7", "image.toolkit.fluxcd.io/v1"]);
}

#[test]
fn an_unknown_field_gets_a_hint() {
    let misspelled = automation("default", "fleet", "  policySelektor: {matchLabels: {a: b}}\n");
    let words =
        ["ImageUpdateAutomation default/fleet", "spec.policySelektor", "did you mean policySelector?"];
    refused(&format!("{}{misspelled}", podinfo()), 1, &words);
    let nested = automation("default", "fleet", "  update: {pth: ./apps}\n");
    refused(&format!("{}{nested}", podinfo()), 1, &["spec.update.pth", "did you mean path?"]);
}

/// An API server would refuse it; read as `Never` it would remove every digest.
#[test]
fn a_misspelled_digest_reflection_policy_is_an_error() {
    let misspelled = podinfo().replace("spec: {", "spec: {digestReflectionPolicy: always, ");
    assert_ne!(misspelled, podinfo());
    let manifests = format!("{misspelled}{}", automation("default", "fleet", ""));
    let words = [
        "spec.digestReflectionPolicy",
        "`always` is not allowed; allowed are Always, IfNotPresent, Never",
        "did you mean Always?",
    ];
    refused(&manifests, 1, &words);
}

#[test]
fn a_field_of_the_wrong_type_is_an_error() {
    let wrong = automation("default", "fleet", "  suspend: maybe\n");
    refused(&format!("{}{wrong}", podinfo()), 1, &["ImageUpdateAutomation default/fleet", "spec.suspend"]);
}

/// A list was once taken for a mapping, and errors named types of the program.
#[test]
fn a_list_or_a_string_instead_of_a_mapping_is_an_error() {
    let policies = [
        ("policy: {semver: [1.x]}", "spec.policy.semver: it must be a mapping, but is a list"),
        ("policy: {semver: 1.x}", "spec.policy.semver: it must be a mapping, but is a string"),
        ("policy: [{range: 1.x}]", "spec.policy: it must be a mapping, but is a list"),
        (
            "policy: {semver: {range: '*'}}, filterTags: [a]",
            "spec.filterTags: it must be a mapping, but is a list",
        ),
    ];
    for (spec, words) in policies {
        let wrong = podinfo().replace("policy: {semver: {range: \"*\"}}", spec);
        assert_ne!(wrong, podinfo());
        refused(&wrong, 1, &["ImagePolicy default/podinfo is not valid at", words]);
    }
    for (fields, words) in [
        (
            "  git: {commit: {author: [x@y, me]}}\n",
            "spec.git.commit.author: it must be a mapping, but is a list",
        ),
        ("  update: [Setters, ./apps]\n", "spec.update: it must be a mapping, but is a list"),
    ] {
        let wrong = automation("default", "fleet", fields);
        refused(&format!("{}{wrong}", podinfo()), 1, &["ImageUpdateAutomation default/fleet", words]);
    }
}

/// Names become paths in the state directory, and an API server rejects them as well.
#[test]
fn a_name_that_kubernetes_rejects_is_an_error() {
    for (metadata, words) in [
        (
            "name: ../../x, namespace: default",
            "metadata.name: a lowercase RFC 1123 subdomain must consist of",
        ),
        ("name: Web, namespace: default", "metadata.name: a lowercase RFC 1123 subdomain must consist of"),
        ("name: web, namespace: Shop X", "metadata.namespace: a lowercase RFC 1123 label must consist of"),
        ("name: web, namespace: a.b", "metadata.namespace: a lowercase RFC 1123 label must consist of"),
        (
            "name: \"../${x}\", namespace: default",
            "metadata.name: a lowercase RFC 1123 subdomain must consist of",
        ),
        ("name: web, namespace: 5", "metadata.namespace: it must be a string, but is `5`; put it in quotes"),
    ] {
        let wrong = podinfo().replace("name: podinfo, namespace: default", metadata);
        assert_ne!(wrong, podinfo());
        refused(&wrong, 1, &["ImagePolicy ", " is not valid at ", words]);
    }
}

#[test]
fn a_name_with_a_placeholder_is_accepted() {
    let open = podinfo().replace("name: podinfo,", "name: \"${app}-web\",");
    assert_ne!(open, podinfo());
    let fleet = Fleet::new([("app.yaml", &tag_line("4.0.6"))], &format!("{}---\n{open}", podinfo()));
    fleet.update([""; 0]).with_status(0);
    assert_eq!(fleet.text("app.yaml"), tag_line("5.0.3"));
}

#[test]
fn a_status_that_is_a_list_is_ignored_with_a_warning() {
    let bad = policy_with_status("default", "bad", "", "").replace("status: {}", "status: []");
    let fleet = Fleet::new([("app.yaml", &tag_line("4.0.6"))], &format!("{}{bad}", podinfo()));
    let run = fleet.update([""; 0]).with_status(0);
    let words = "a part of the status of ImagePolicy default/bad was ignored: status: it must be a mapping, but is a list";
    assert!(run.errors.contains(words), "{run:?}");
    assert_eq!(fleet.text("app.yaml"), tag_line("5.0.3"));
}

#[test]
fn a_foreign_kind_is_skipped_with_a_warning() {
    let foreign = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n";
    let fleet = Fleet::new([("app.yaml", &tag_line("4.0.6"))], &format!("{}{foreign}", podinfo()));
    let run = fleet.update([""; 0]).with_status(0);
    assert!(run.only_error().starts_with("warning: "), "{run:?}");
    assert!(run.only_error().contains("a ConfigMap of v1"), "{run:?}");
    assert_eq!(fleet.text("app.yaml"), tag_line("5.0.3"));
}

#[test]
fn a_manifest_that_is_not_utf8_is_named_with_its_place() {
    let fleet = Fleet::new([("app.yaml", &tag_line("4.0.6"))], "");
    let text = [podinfo().as_bytes(), "# \u{e4}".as_bytes(), b"\xff\n"].concat();
    std::fs::write(fleet.manifests().join("manifests.yaml"), &text).unwrap();
    let run = fleet.update([""; 0]).with_status(1);
    let line = 1 + podinfo().lines().count();
    let words = format!(
        "manifests.yaml:{line}:4: the manifest is not YAML: it is not UTF-8 here: save the file as UTF-8\n"
    );
    assert!(run.errors.ends_with(&words), "{run:?}");
}

/// A file of a directory was skipped with a warning, and with it a freeze.
#[test]
fn a_namespace_in_utf16_or_utf32_is_an_error_like_any_other_manifest_that_cannot_be_read() {
    let fleet = Fleet::new([("app.yaml", &tag_line("4.0.6"))], &podinfo());
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: default\n  annotations:\n    \
        tagboat.dev/freeze: incident\n";
    let wide = |units: &dyn Fn(char) -> Vec<u8>| namespace.chars().flat_map(units).collect::<Vec<u8>>();
    let little = wide(&|c| u16::try_from(c).unwrap().to_le_bytes().to_vec());
    let big = wide(&|c| u16::try_from(c).unwrap().to_be_bytes().to_vec());
    let longer = wide(&|c| u32::from(c).to_le_bytes().to_vec());
    let marked = |mark: &[u8], text: &[u8]| [mark, text].concat();
    for content in [
        marked(b"\xff\xfe", &little),
        marked(b"\xfe\xff", &big),
        marked(b"\xff\xfe\0\0", &longer),
        little.clone(),
    ] {
        std::fs::write(fleet.manifests().join("namespace.yaml"), content).unwrap();
        let run = fleet.update([""; 0]).with_status(1);
        assert!(run.errors.contains("namespace.yaml:1:") && run.errors.contains("is not YAML"), "{run:?}");
        assert_eq!(fleet.text("app.yaml"), tag_line("4.0.6"));
    }
}

#[test]
fn an_object_given_twice_is_an_error() {
    refused(&format!("{}{}", podinfo(), podinfo()), 1, &["ImagePolicy default/podinfo is defined twice"]);
}

#[test]
fn an_object_given_twice_in_a_file_is_named_with_the_file_once() {
    let fleet = Fleet::new([("app.yaml", &tag_line("4.0.6"))], &format!("{}{}", podinfo(), podinfo()));
    let run = fleet.update([""; 0]).with_status(1);
    let file = fleet.manifests().join("manifests.yaml");
    let words = format!(
        "error: ImagePolicy default/podinfo is defined twice, both times in {}; keep one",
        file.display()
    );
    assert_eq!(run.only_error(), words);
}

#[test]
fn every_error_is_one_line() {
    let bad = "---\napiVersion: image.toolkit.fluxcd.io/v1\nkind: Nope\nmetadata: {name: x}\n";
    let fleet = Fleet::new([("app.yaml", &tag_line("4.0.6"))], &format!("{bad}{bad}{bad}"));
    let run = fleet.update([""; 0]).with_status(1);
    assert_eq!(run.errors.lines().count(), 3, "{run:?}");
    assert!(run.errors.lines().all(|line| line.starts_with("error: ")), "{run:?}");
}

#[test]
fn manifests_may_come_from_standard_input_several_paths_and_lists() {
    let fleet = Fleet::small();
    let mut command = tagboat();
    command.arg("update").arg(fleet.directory()).args(["--policies", "-"]);
    run_with_input(&mut command, &podinfo()).with_status(0);
    assert_eq!(fleet.text("app.yaml"), tag_line("5.0.3"));

    let list = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: image.toolkit.fluxcd.io/v1\n  kind: ImagePolicy\n  \
                metadata: {name: other, namespace: default}\n  spec: {imageRepositoryRef: {name: x}, policy: \
                {semver: {range: '*'}}}\n  status: {latestRef: {name: ab, tag: v7}}\n";
    let second = fleet.root().join("second.yaml");
    std::fs::write(&second, list).unwrap();
    let marked = format!("{}other: x {}\n", tag_line("4"), marker("default:other:tag"));
    std::fs::write(fleet.directory().join("app.yaml"), &marked).unwrap();
    let mut command = tagboat();
    command.arg("update").arg(fleet.directory()).arg("--policies").arg(fleet.manifests()).arg(&second);
    run(&mut command).with_status(0);
    assert_eq!(
        fleet.text("app.yaml"),
        format!("{}other: v7 {}\n", tag_line("5.0.3"), marker("default:other:tag"))
    );
}

#[test]
fn the_old_version_and_its_latest_image_are_read() {
    let old = podinfo().replace("fluxcd.io/v1\n", "fluxcd.io/v1beta2\n");
    let old = old.replace(
        "latestRef: {name: \"ghcr.io/stefanprodan/podinfo\", tag: \"5.0.3\"}",
        "latestImage: 'ghcr.io/stefanprodan/podinfo:5.0.3'",
    );
    assert!(old.contains("latestImage"));
    let fleet = Fleet::new([("app.yaml", &tag_line("4.0.6"))], &old);
    fleet.update([""; 0]).with_status(0);
    assert_eq!(fleet.text("app.yaml"), tag_line("5.0.3"));
}

#[test]
fn an_invalid_reference_affects_its_own_policy_only() {
    for (image, tag) in [("img/UPPER CASE", "1"), (IMAGE, "a b"), ("https://ghcr.io/x/y", "1"), ("x", "1")] {
        let bad = policy("default", "bad", image, tag);
        let text = format!("{}bad: old {}\n", tag_line("4.0.6"), marker("default:bad:tag"));
        let fleet = Fleet::new([("app.yaml", &text)], &format!("{}{bad}", podinfo()));
        let run = fleet.update(["--output", "json"]).with_status(0);
        assert!(run.only_error().starts_with("warning: "), "{run:?}");
        assert!(run.only_error().contains("ImagePolicy default/bad"), "{run:?}");
        assert_eq!(fleet.text("app.yaml"), text.replace("4.0.6", "5.0.3"));
        assert_eq!(run.json()["markers"][1]["outcome"], "policy-without-image");
        assert_eq!(
            fleet.update(["--strict"]).with_status(1).output.matches("has no latest image").count(),
            1
        );
    }
}

#[test]
fn an_invalid_digest_affects_its_own_policy_only() {
    let bad = policy_with_status("default", "bad", "", "latestRef: {name: ab, tag: v1, digest: 'sha512:00'}");
    let fleet = Fleet::new([("app.yaml", &tag_line("4.0.6"))], &format!("{}{bad}", podinfo()));
    assert!(fleet.update([""; 0]).with_status(0).only_error().contains("sha512:00"));
    assert_eq!(fleet.text("app.yaml"), tag_line("5.0.3"));
}

#[test]
fn an_invalid_selector_is_an_error() {
    let fields = "  policySelector: {matchExpressions: [{key: a, operator: Bogus}]}\n";
    let words = ["default/fleet: failed to parse policy selector: \"Bogus\""];
    refused(&format!("{}{}", podinfo(), automation("default", "fleet", fields)), 1, &words);
    let fields = "  policySelector: {matchExpressions: [{key: a, operator: In}]}\n";
    let words = ["default/fleet: failed to parse policy selector: "];
    refused(&format!("{}{}", podinfo(), automation("default", "fleet", fields)), 1, &words);
    let fields = "  policySelector: {matchLabels: {'a b': c}}\n";
    let words =
        ["default/fleet: failed to parse policy selector: key: Invalid value: \"a b\": name part must"];
    refused(&format!("{}{}", podinfo(), automation("default", "fleet", fields)), 1, &words);
}

#[test]
fn an_unknown_strategy_is_an_error() {
    let fields = "  update: {strategy: Magic}\n";
    let words = ["default/fleet: ", "strategy", "Magic"];
    refused(&format!("{}{}", podinfo(), automation("default", "fleet", fields)), 1, &words);
}

#[test]
fn an_unknown_annotation_of_an_image_repository_is_warned_of() {
    let repository = "---\napiVersion: image.toolkit.fluxcd.io/v1\nkind: ImageRepository\n\
                      metadata: {name: podinfo, namespace: default, annotations: {tagboat.dev/window: '9-17'}}\n\
                      spec: {image: ghcr.io/stefanprodan/podinfo, interval: 1m}\n";
    let fleet = Fleet::new([("app.yaml", &tag_line("4.0.6"))], &format!("{}{repository}", podinfo()));
    let run = fleet.update([""; 0]).with_status(0);
    assert!(
        run.only_error()
            .starts_with("warning: ImageRepository default/podinfo: annotation tagboat.dev/window")
    );
    assert_eq!(fleet.text("app.yaml"), tag_line("5.0.3"));
}
