//! Unknown fields and values of each kind.

use serde_json::{Value, json};

use super::{Fields, KINDS, KnownFields, VERSIONS};
use crate::crds;

#[test]
fn known_fields_match_the_crds() {
    let all = crds::all();
    for kind in KINDS {
        for version in VERSIONS {
            let schema = crds::schema(&all, kind.group, version, kind.name).unwrap();
            let mut expected = Fields::in_schema(&serde_json::to_value(schema).unwrap());
            let mut found = kind.fields(version);
            for fields in [&mut expected, &mut found] {
                // Every object has these, and they are not examined.
                super::OBJECT_FIELDS.iter().for_each(|name| fields.remove(&[name]));
            }
            assert_eq!(found, expected, "{} {version}", kind.name);
        }
    }
}

fn image(version: &str, kind: &str, manifest: &Value) -> Vec<String> {
    let violations =
        KnownFields::default().violations("image.toolkit.fluxcd.io", version, kind, manifest).unwrap();
    violations.iter().map(ToString::to_string).collect()
}

#[test]
fn finds_unknown_fields_at_every_depth() {
    let manifest = json!({
        "apiVersion": "image.toolkit.fluxcd.io/v1",
        "kind": "ImageRepository",
        "metadata": { "name": "app", "annotation": {}, "whatever": true },
        "spce": {},
        "spec": {
            "image": "ghcr.io/org/app",
            "intervall": "1m",
            "registry": "ghcr.io",
            "accessFrom": { "namespaceSelectors": [{ "matchLabels": { "any": "x" } }, { "matchLabel": {} }] },
            "exclusionList": ["a"],
        },
        "status": { "conditions": [{ "type": "Ready", "massage": "" }] },
    });
    assert_eq!(
        image("v1", "ImageRepository", &manifest),
        [
            "unknown field `metadata.annotation`: did you mean `annotations`?",
            "unknown field `metadata.whatever`",
            "unknown field `spce`",
            "unknown field `spec.intervall`: did you mean `interval`?",
            "unknown field `spec.registry`",
            "unknown field `spec.accessFrom.namespaceSelectors[1].matchLabel`: did you mean `matchLabels`?",
            "unknown field `status.conditions[0].massage`: did you mean `message`?",
        ]
    );
}

#[test]
fn any_key_of_a_map_is_known() {
    let manifest = json!({
        "spec": {
            "git": {
                "commit": { "author": { "email": "a@b.c" }, "messageTemplateValues": { "foo": "bar" } },
                "push": { "options": { "ci.skip": "" } },
            },
            "policySelector": { "matchLabels": { "app": "x" } },
        },
        "status": { "observedPolicies": { "app": { "name": "app", "tag": "1", "digset": "" } } },
    });
    assert_eq!(
        image("v1", "ImageUpdateAutomation", &manifest),
        ["unknown field `status.observedPolicies.app.digset`: did you mean `digest`?"]
    );
}

#[test]
fn the_versions_differ() {
    let key = json!({ "secretRef": { "name": "key" }, "type": "ssh" });
    let manifest = json!({ "spec": { "git": { "commit": { "signingKey": key } } } });
    assert!(image("v1", "ImageUpdateAutomation", &manifest).is_empty());
    assert_eq!(
        image("v1beta2", "ImageUpdateAutomation", &manifest),
        ["unknown field `spec.git.commit.signingKey.type`"]
    );
    let manifest = json!({ "status": { "latestImage": "app:1", "observedPreviousImage": "app:0" } });
    assert!(image("v1beta2", "ImagePolicy", &manifest).is_empty());
    assert_eq!(image("v1", "ImagePolicy", &manifest).len(), 2);
}

#[test]
fn a_misspelled_value_of_an_enumeration_is_found() {
    let spec = |policy: &str| json!({ "spec": { "digestReflectionPolicy": policy } });
    assert_eq!(
        image("v1", "ImagePolicy", &spec("always")),
        [
            "`spec.digestReflectionPolicy` cannot be \"always\", only Always, IfNotPresent, Never: did you mean `Always`?"
        ]
    );
    for good in ["Always", "IfNotPresent", "Never", ""] {
        assert!(image("v1", "ImagePolicy", &spec(good)).is_empty(), "{good}");
    }
    for (kind, manifest, path) in [
        (
            "ImagePolicy",
            json!({ "policy": { "numerical": { "order": "up" } } }),
            "spec.policy.numerical.order",
        ),
        (
            "ImagePolicy",
            json!({ "policy": { "alphabetical": { "order": "ASC" } } }),
            "spec.policy.alphabetical.order",
        ),
        ("ImageRepository", json!({ "provider": "AWS" }), "spec.provider"),
        ("ImageUpdateAutomation", json!({ "sourceRef": { "kind": "Bucket" } }), "spec.sourceRef.kind"),
        ("ImageUpdateAutomation", json!({ "update": { "strategy": "setters" } }), "spec.update.strategy"),
        (
            "ImageUpdateAutomation",
            json!({ "git": { "commit": { "signingKey": { "type": "GPG" } } } }),
            "spec.git.commit.signingKey.type",
        ),
    ] {
        let found = image("v1", kind, &json!({ "spec": manifest }));
        assert!(found.len() == 1 && found[0].starts_with(&format!("`{path}` cannot be ")), "{found:?}");
    }
    let git = json!({ "spec": { "provider": "gitlab", "any": 1 } });
    let found = KnownFields::default().violations("source.toolkit.fluxcd.io", "v1", "GitRepository", &git);
    assert!(found.unwrap()[0].to_string().starts_with("`spec.provider` cannot be \"gitlab\""));
}

#[test]
fn every_field_of_a_git_repository_is_known() {
    let manifest =
        json!({ "spec": { "verify": {}, "ref": { "x": 1 } }, "status": { "artifact": {} }, "y": 1 });
    let violations =
        KnownFields::default().violations("source.toolkit.fluxcd.io", "v1", "GitRepository", &manifest);
    assert_eq!(violations, Some(Vec::new()));
}

#[test]
fn metadata_has_to_be_a_mapping() {
    let defects = image("v1", "ImagePolicy", &json!({ "metadata": [] }));
    assert_eq!(defects, ["`metadata` must be a mapping, but is a list"]);
    let defects = image("v1", "ImagePolicy", &json!([]));
    assert_eq!(defects, ["the manifest must be a mapping, but is a list"]);
    let metadata = json!({
        "namespace": 5, "labels": ["a"], "managedFields": [{ "any": 1 }], "ownerReferences": [["v1"]],
    });
    assert_eq!(
        image("v1", "ImagePolicy", &json!({ "metadata": metadata })),
        [
            "`metadata.namespace` must be a string, but is `5`; put it in quotes",
            "`metadata.labels` must be a mapping, but is a list",
            "`metadata.ownerReferences[0]` must be a mapping, but is a list",
        ]
    );
}

#[test]
fn the_metadata_of_a_git_repository_is_known() {
    let manifest = json!({ "metadata": { "annotation": {} }, "spec": { "verify": {} } });
    let violations =
        KnownFields::default().violations("source.toolkit.fluxcd.io", "v1", "GitRepository", &manifest);
    let found: Vec<String> = violations.unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(found, ["unknown field `metadata.annotation`: did you mean `annotations`?"]);
}

/// A setting in a field that nothing reads was lost.
#[test]
fn the_fields_of_a_namespace_are_those_of_kubernetes() {
    let known = KnownFields::default();
    for (manifest, expected) in [
        (
            json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": { "name": "shop", "labels": null, "annotations": { "a": "b" }, "creationTimestamp": null },
                "spec": { "finalizers": ["kubernetes"] },
                "status": { "phase": "Active", "any": 1 },
            }),
            &[][..],
        ),
        (json!({ "annotations": {} }), &["unknown field `annotations`"]),
        (
            json!({ "spec": { "finalizer": [] } }),
            &["unknown field `spec.finalizer`: did you mean `finalizers`?"],
        ),
        (json!({ "spec": [] }), &["`spec` must be a mapping, but is a list"]),
        (
            json!({ "metadata": { "Annotations": {} } }),
            &["unknown field `metadata.Annotations`: did you mean `annotations`?"],
        ),
        (
            json!({ "metadata": { "tagboat.dev/freeze": "x" } }),
            &["unknown field `metadata.tagboat.dev/freeze`"],
        ),
        (
            json!({ "metadata": { "annotations": ["tagboat.dev/freeze"] } }),
            &["`metadata.annotations` must be a mapping, but is a list"],
        ),
        (
            json!({ "metadata": { "annotations": { "tagboat.dev/freeze": 4711 } } }),
            &["`metadata.annotations.tagboat.dev/freeze` must be a string, but is `4711`; put it in quotes"],
        ),
    ] {
        let violations = known.violations("", "v1", "Namespace", &manifest).unwrap();
        let found: Vec<String> = violations.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{manifest}");
    }
}

/// The parser itself would take a list for a mapping.
///
/// Its errors have names of types in the program.
#[test]
fn a_value_of_a_wrong_type_is_found_at_every_depth() {
    for (kind, spec, defect) in [
        (
            "ImagePolicy",
            json!({ "policy": { "semver": "1.x" } }),
            "policy.semver` must be a mapping, but is a string",
        ),
        (
            "ImagePolicy",
            json!({ "policy": { "semver": ["1.x"] } }),
            "policy.semver` must be a mapping, but is a list",
        ),
        (
            "ImagePolicy",
            json!({ "policy": [{ "range": "1.x" }] }),
            "policy` must be a mapping, but is a list",
        ),
        ("ImagePolicy", json!({ "filterTags": ["a"] }), "filterTags` must be a mapping, but is a list"),
        (
            "ImagePolicy",
            json!({ "policy": { "semver": { "range": 1.0 } } }),
            "policy.semver.range` must be a string, but is `1.0`; put it in quotes",
        ),
        ("ImageRepository", json!({ "suspend": "no" }), "suspend` must be true or false, but is a string"),
        (
            "ImageRepository",
            json!({ "exclusionList": "a" }),
            "exclusionList` must be a list, but is a string",
        ),
        (
            "ImageRepository",
            json!({ "accessFrom": { "namespaceSelectors": [[]] } }),
            "accessFrom.namespaceSelectors[0]` must be a mapping, but is a list",
        ),
        (
            "ImageUpdateAutomation",
            json!({ "update": ["Setters"] }),
            "update` must be a mapping, but is a list",
        ),
        (
            "ImageUpdateAutomation",
            json!({ "git": { "commit": { "author": ["a@b.c", "me"] } } }),
            "git.commit.author` must be a mapping, but is a list",
        ),
        (
            "ImageUpdateAutomation",
            json!({ "git": { "push": { "options": { "a": true } } } }),
            "git.push.options.a` must be a string, but is `true`; put it in quotes",
        ),
    ] {
        for version in VERSIONS {
            let defects = image(version, kind, &json!({ "spec": spec }));
            assert_eq!(defects, [format!("`spec.{defect}")], "{kind} {version}");
        }
    }
    let git = json!({ "spec": { "ref": ["main"] }, "status": [] });
    let defects = KnownFields::default().violations("source.toolkit.fluxcd.io", "v1", "GitRepository", &git);
    let defects: Vec<String> = defects.unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(
        defects,
        ["`spec.ref` must be a mapping, but is a list", "`status` must be a mapping, but is a list"]
    );
    let count = json!({ "status": { "observedGeneration": 1.5 } });
    assert_eq!(
        image("v1", "ImagePolicy", &count),
        ["`status.observedGeneration` must be a whole number, but is `1.5`"]
    );
}

#[test]
fn null_has_every_type() {
    let manifest = json!({ "metadata": null, "spec": { "policy": null, "suspend": null }, "status": null });
    assert!(image("v1", "ImagePolicy", &manifest).is_empty());
}

#[test]
fn objects_of_other_kinds_are_not_checked() {
    for (group, version, kind) in [
        ("apps", "v1", "Deployment"),
        ("image.toolkit.fluxcd.io", "v1", "GitRepository"),
        ("image.toolkit.fluxcd.io", "v1beta1", "ImagePolicy"),
    ] {
        assert_eq!(
            KnownFields::default().violations(group, version, kind, &json!({})),
            None,
            "{group} {version} {kind}"
        );
    }
}
