//! Which fields of a manifest file the schema of its kind does not have.
//!
//! An API server drops or refuses such fields. A manifest file meets no API server, so a misspelled
//! `polcySelector` would silently select every policy: this module finds it, and names what was probably meant.

use std::fmt;
use std::slice;
use std::sync::OnceLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::{Map, Value};

use crate::crds::{self, KINDS};
use crate::{DEPRECATED_VERSION, VERSION, nearest, v1beta2};

/// The fields that every object has beside those of its schema.
const OBJECT_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Something in a manifest that has no place in its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// A field that the schema does not have.
    UnknownField {
        /// Path of the field, such as `spec.accessFrom.namespaceSelectors[0].labels`.
        path: String,
        /// Name of the field beside it that was probably meant.
        nearest: Option<String>,
    },
    /// The metadata, or the manifest as a whole, is no object.
    NotAnObject {
        /// Path of the value; empty for the manifest as a whole.
        path: String,
    },
}

impl fmt::Display for Misfit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownField { path, nearest: None } => write!(formatter, "unknown field `{path}`"),
            Self::UnknownField { path, nearest: Some(nearest) } => {
                write!(formatter, "unknown field `{path}`: did you mean `{nearest}`?")
            }
            Self::NotAnObject { path } if path.is_empty() => {
                formatter.write_str("the manifest is not an object")
            }
            Self::NotAnObject { path } => write!(formatter, "`{path}` is not an object"),
        }
    }
}

/// The fields that the kinds of this crate have. One is enough for many manifests: a kind's schema is made when the
/// kind is first met.
#[derive(Clone, Debug, Default)]
pub struct KnownFields {
    crds: [OnceLock<CustomResourceDefinition>; KINDS.len()],
}

impl KnownFields {
    /// Lists what a manifest has that its kind has no place for, in the manifest's order.
    ///
    /// Gives nothing (`None`) for a kind or version that is none of ours. Keys of maps, such as labels, are free.
    /// Of GitRepository only a part of Flux's schema is known, so none of its fields is ever unknown. Values of a
    /// wrong type are left to those who read them.
    #[must_use]
    pub fn misfits(&self, group: &str, version: &str, kind: &str, manifest: &Value) -> Option<Vec<Misfit>> {
        let known =
            KINDS.iter().zip(&self.crds).find(|(known, _)| known.group == group && known.name == kind);
        let (known, crd) = known.filter(|_| [VERSION, DEPRECATED_VERSION].contains(&version))?;
        let Value::Object(fields) = manifest else {
            return Some(vec![Misfit::NotAnObject { path: String::new() }]);
        };
        let mut misfits = Vec::new();
        if fields.get("metadata").is_some_and(|metadata| !metadata.is_object()) {
            misfits.push(Misfit::NotAnObject { path: "metadata".to_owned() });
        }
        if group == crate::SOURCE_GROUP {
            return Some(misfits);
        }
        let crd = crd.get_or_init(|| known.crd());
        let schema = crds::schema(slice::from_ref(crd), group, version, kind)?;
        check_object("", fields, schema, &mut misfits);
        if version == DEPRECATED_VERSION {
            misfits.retain(|misfit| !is_still_read(kind, misfit));
        }
        Some(misfits)
    }
}

fn is_still_read(kind: &str, misfit: &Misfit) -> bool {
    matches!(misfit, Misfit::UnknownField { path, .. } if v1beta2::is_still_read(kind, path))
}

fn check(path: &str, value: &Value, schema: &JSONSchemaProps, misfits: &mut Vec<Misfit>) {
    match value {
        Value::Object(fields) => check_object(path, fields, schema, misfits),
        Value::Array(items) => {
            let Some(JSONSchemaPropsOrArray::Schema(schema)) = &schema.items else { return };
            for (index, item) in items.iter().enumerate() {
                check(&format!("{path}[{index}]"), item, schema, misfits);
            }
        }
        _ => {}
    }
}

fn check_object(
    path: &str,
    fields: &Map<String, Value>,
    schema: &JSONSchemaProps,
    misfits: &mut Vec<Misfit>,
) {
    let known = schema.properties.as_ref();
    let is_root = path.is_empty();
    for (name, value) in fields {
        if is_root && OBJECT_FIELDS.contains(&name.as_str()) {
            continue;
        }
        let path = if is_root { name.clone() } else { format!("{path}.{name}") };
        if let Some(property) = known.and_then(|known| known.get(name)) {
            check(&path, value, property, misfits);
        } else if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
            check(&path, value, values, misfits);
        } else if known.is_some() && schema.x_kubernetes_preserve_unknown_fields != Some(true) {
            let siblings = known.into_iter().flat_map(|known| known.keys().map(String::as_str));
            let names = siblings.chain(OBJECT_FIELDS.into_iter().filter(|_| is_root));
            // A name that the manifest uses as well is not the one that was meant here.
            let free = names.filter(|name| !fields.contains_key(*name));
            let nearest = nearest::nearest(name, free).map(str::to_owned);
            misfits.push(Misfit::UnknownField { path, nearest });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::KnownFields;

    fn image(version: &str, kind: &str, manifest: &Value) -> Vec<String> {
        let misfits =
            KnownFields::default().misfits("image.toolkit.fluxcd.io", version, kind, manifest).unwrap();
        misfits.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn finds_unknown_fields_at_every_depth() {
        let manifest = json!({
            "apiVersion": "image.toolkit.fluxcd.io/v1",
            "kind": "ImageRepository",
            "metadata": { "name": "app", "whatever": true },
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
                "unknown field `spce`",
                "unknown field `spec.intervall`: did you mean `interval`?",
                "unknown field `spec.registry`",
                "unknown field `spec.accessFrom.namespaceSelectors[1].matchLabel`: did you mean `matchLabels`?",
                "unknown field `status.conditions[0].massage`: did you mean `message`?",
            ]
        );
    }

    #[test]
    fn the_keys_of_maps_are_free() {
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
    fn of_git_repository_every_field_passes() {
        let manifest =
            json!({ "spec": { "verify": {}, "ref": { "x": 1 } }, "status": { "artifact": {} }, "y": 1 });
        let misfits =
            KnownFields::default().misfits("source.toolkit.fluxcd.io", "v1", "GitRepository", &manifest);
        assert_eq!(misfits, Some(Vec::new()));
    }

    #[test]
    fn metadata_has_to_be_an_object() {
        assert_eq!(image("v1", "ImagePolicy", &json!({ "metadata": [] })), ["`metadata` is not an object"]);
        assert_eq!(image("v1", "ImagePolicy", &json!([])), ["the manifest is not an object"]);
    }

    #[test]
    fn other_kinds_are_not_ours() {
        for (group, version, kind) in [
            ("apps", "v1", "Deployment"),
            ("image.toolkit.fluxcd.io", "v1", "GitRepository"),
            ("image.toolkit.fluxcd.io", "v1beta1", "ImagePolicy"),
        ] {
            assert_eq!(
                KnownFields::default().misfits(group, version, kind, &json!({})),
                None,
                "{group} {version} {kind}"
            );
        }
    }
}
