//! Finds unknown fields and values, and values of wrong types, in a manifest file.
//!
//! An API server drops or rejects such fields. A manifest file does not pass through an API server, so a misspelled
//! `polcySelector` would silently select every policy, and `digestReflectionPolicy: always` would silently remove
//! every digest. This module finds such defects and suggests the correct name. It checks types because the parser would
//! take the items of a list for the fields of a mapping, in the order in which the program declares them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::OnceLock;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};

use crate::fields::{Fields, ValueType};
use crate::{
    DEPRECATED_VERSION, GitRepository, IMAGE_GROUP, ImagePolicy, ImageRepository, ImageUpdateAutomation,
    SOURCE_GROUP, VERSION, nearest, v1beta2,
};

/// The fields of every object beside those of its schema.
const OBJECT_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// A value of a type that its field does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeMismatch {
    /// The required type, with its article.
    required: String,
    /// The type of the value, or a number or boolean itself.
    found: String,
}

impl TypeMismatch {
    fn new(value: &Value, types: &BTreeSet<ValueType>) -> Self {
        let required: Vec<String> = types.iter().map(ToString::to_string).collect();
        let found = match value {
            Value::Null => "null".to_owned(),
            Value::Object(_) => ValueType::Mapping.to_string(),
            Value::Array(_) => ValueType::List.to_string(),
            Value::String(_) => ValueType::String.to_string(),
            Value::Bool(_) | Value::Number(_) if types.contains(&ValueType::String) => {
                format!("`{value}`; put it in quotes")
            }
            Value::Bool(_) | Value::Number(_) => format!("`{value}`"),
        };
        Self { required: required.join(" or "), found }
    }
}

/// Formats the mismatch as a predicate: `must be a mapping, but is a list`.
impl fmt::Display for TypeMismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "must be {}, but is {}", self.required, self.found)
    }
}

/// A field or value that the schema of a kind does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// An unknown field.
    UnknownField {
        /// Path of the field, such as `spec.accessFrom.namespaceSelectors[0].labels`.
        path: String,
        /// A similar name of a known field.
        nearest: Option<String>,
    },
    /// A value that is not one of the possible values of a field.
    UnknownValue {
        /// Path of the field.
        path: String,
        /// The value.
        value: String,
        /// The possible values.
        choices: Vec<String>,
        /// A similar possible value.
        nearest: Option<String>,
    },
    /// A value of a wrong type.
    WrongType {
        /// Path of the value; empty for the manifest as a whole.
        path: String,
        /// The types.
        mismatch: TypeMismatch,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownField { path, nearest: None } => write!(formatter, "unknown field `{path}`"),
            Self::UnknownField { path, nearest: Some(nearest) } => {
                write!(formatter, "unknown field `{path}`: did you mean `{nearest}`?")
            }
            Self::UnknownValue { path, value, choices, nearest } => {
                write!(formatter, "`{path}` cannot be {value:?}, only {}", choices.join(", "))?;
                nearest.iter().try_for_each(|nearest| write!(formatter, ": did you mean `{nearest}`?"))
            }
            Self::WrongType { path, mismatch } if path.is_empty() => {
                write!(formatter, "the manifest {mismatch}")
            }
            Self::WrongType { path, mismatch } => write!(formatter, "`{path}` {mismatch}"),
        }
    }
}

/// A kind, and a function that returns its fields.
struct Kind {
    group: &'static str,
    name: &'static str,
    fields: fn() -> Fields,
}

const KINDS: [Kind; 4] = [
    Kind { group: IMAGE_GROUP, name: "ImagePolicy", fields: Fields::of::<ImagePolicy> },
    Kind { group: IMAGE_GROUP, name: "ImageRepository", fields: Fields::of::<ImageRepository> },
    Kind { group: IMAGE_GROUP, name: "ImageUpdateAutomation", fields: Fields::of::<ImageUpdateAutomation> },
    Kind { group: SOURCE_GROUP, name: "GitRepository", fields: Fields::of::<GitRepository> },
];

impl Kind {
    fn fields(&self, version: &str) -> Fields {
        let mut fields = (self.fields)();
        if version == DEPRECATED_VERSION {
            v1beta2::missing_fields(self.name).iter().for_each(|path| fields.remove(path));
        }
        fields
    }
}

/// The known fields of this crate's kinds.
///
/// One value serves for many manifests: the fields of a kind and version are computed on first use.
#[derive(Clone, Debug, Default)]
pub struct KnownFields {
    of: [[OnceLock<Fields>; VERSIONS.len()]; KINDS.len()],
    namespace: OnceLock<Fields>,
    metadata: OnceLock<Fields>,
}

const VERSIONS: [&str; 2] = [VERSION, DEPRECATED_VERSION];

impl KnownFields {
    /// Lists the parts of a manifest that its kind does not allow, in order.
    ///
    /// Returns `None` for a kind or version that is neither in this crate nor a Namespace. Keys of maps, such as labels,
    /// are free. Of GitRepository only a part of Flux's schema is known, so none of its own fields is ever unknown. Fields
    /// inside those of the metadata are not unknown either, because programs write them. Empty strings, which in Go equal
    /// absent fields, are left to the parser.
    #[must_use]
    pub fn violations(
        &self,
        group: &str,
        version: &str,
        kind: &str,
        manifest: &Value,
    ) -> Option<Vec<Violation>> {
        let known = self.fields(group, version, kind)?;
        let Value::Object(fields) = manifest else {
            let mismatch = TypeMismatch::new(manifest, &BTreeSet::from([ValueType::Mapping]));
            return Some(vec![Violation::WrongType { path: String::new(), mismatch }]);
        };
        let mut violations = Vec::new();
        check_object("", fields, known, &mut violations);
        if group == SOURCE_GROUP {
            violations.retain(|violation| !matches!(violation, Violation::UnknownField { .. }));
        }
        if version == DEPRECATED_VERSION {
            violations.retain(|violation| !is_still_read(kind, violation));
        }
        let of_metadata = fields.get("metadata").map(|metadata| self.violations_of_metadata(metadata));
        Some(of_metadata.into_iter().flatten().chain(violations).collect())
    }

    fn violations_of_metadata(&self, metadata: &Value) -> Vec<Violation> {
        let known = self.metadata.get_or_init(Fields::of::<ObjectMeta>);
        let mut violations = Vec::new();
        check("metadata", metadata, known, &mut violations);
        let is_own =
            |path: &str| path.strip_prefix("metadata.").is_some_and(|name| metadata.get(name).is_some());
        violations.retain(|violation| match violation {
            Violation::UnknownField { path, .. } => is_own(path),
            _ => true,
        });
        violations
    }

    /// Returns the fields of a kind.
    fn fields(&self, group: &str, version: &str, kind: &str) -> Option<&Fields> {
        if (group, version, kind) == ("", "v1", "Namespace") {
            return Some(self.namespace.get_or_init(namespace_fields));
        }
        let index = KINDS.iter().position(|known| known.group == group && known.name == kind)?;
        let of_version = &self.of[index][VERSIONS.iter().position(|known| *known == version)?];
        Some(of_version.get_or_init(|| KINDS[index].fields(version)))
    }
}

/// Returns the fields of a Namespace, in whose status anything may be.
fn namespace_fields() -> Fields {
    let mut fields = Fields::of::<Namespace>();
    fields.named.insert("status".to_owned(), Fields::default());
    fields
}

fn is_still_read(kind: &str, violation: &Violation) -> bool {
    matches!(violation, Violation::UnknownField { path, .. } if v1beta2::is_still_read(kind, path))
}

fn check(path: &str, value: &Value, known: &Fields, violations: &mut Vec<Violation>) {
    if !known.types.is_empty() && !known.types.iter().any(|known| known.matches(value)) {
        let mismatch = TypeMismatch::new(value, &known.types);
        violations.push(Violation::WrongType { path: path.to_owned(), mismatch });
        return;
    }
    match value {
        Value::Object(fields) => check_object(path, fields, known, violations),
        Value::Array(items) => {
            let Some(known) = &known.items else { return };
            for (index, item) in items.iter().enumerate() {
                check(&format!("{path}[{index}]"), item, known, violations);
            }
        }
        Value::String(text)
            if !text.is_empty() && !known.choices.is_empty() && !known.choices.contains(text) =>
        {
            let choices = known.choices.clone();
            let nearest = nearest::nearest(text, choices.iter().map(String::as_str)).map(str::to_owned);
            let (path, value) = (path.to_owned(), text.clone());
            violations.push(Violation::UnknownValue { path, value, choices, nearest });
        }
        _ => {}
    }
}

fn check_object(path: &str, fields: &Map<String, Value>, known: &Fields, violations: &mut Vec<Violation>) {
    let is_root = path.is_empty();
    for (name, value) in fields {
        if is_root && OBJECT_FIELDS.contains(&name.as_str()) {
            continue;
        }
        let path = if is_root { name.clone() } else { format!("{path}.{name}") };
        if let Some(field) = known.named.get(name) {
            check(&path, value, field, violations);
        } else if let Some(values) = &known.values {
            check(&path, value, values, violations);
        } else if !known.named.is_empty() && !known.is_open {
            let siblings = known.named.keys().map(String::as_str);
            let names = siblings.chain(OBJECT_FIELDS.into_iter().filter(|_| is_root));
            // A name that the manifest also uses is not the intended one.
            let free = names.filter(|name| !fields.contains_key(*name));
            let nearest = nearest::nearest(name, free).map(str::to_owned);
            violations.push(Violation::UnknownField { path, nearest });
        }
    }
}

#[cfg(test)]
mod tests {
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
        let found =
            KnownFields::default().violations("source.toolkit.fluxcd.io", "v1", "GitRepository", &git);
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
                &[
                    "`metadata.annotations.tagboat.dev/freeze` must be a string, but is `4711`; put it in quotes",
                ],
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
            (
                "ImageRepository",
                json!({ "suspend": "no" }),
                "suspend` must be true or false, but is a string",
            ),
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
        let defects =
            KnownFields::default().violations("source.toolkit.fluxcd.io", "v1", "GitRepository", &git);
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
        let manifest =
            json!({ "metadata": null, "spec": { "policy": null, "suspend": null }, "status": null });
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
}
