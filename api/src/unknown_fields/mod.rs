//! Finds unknown fields and values, and values of wrong types, in a manifest file.
//!
//! An API server drops or rejects such fields. A manifest file does not pass through an API server, so a misspelled
//! `polcySelector` would silently select every policy, and `digestReflectionPolicy: always` would silently remove
//! every digest. This module finds such defects and suggests the correct name. It checks types because the parser would
//! take the items of a list for the fields of a mapping, in the order in which the program declares them.

#[cfg(test)]
mod tests;
mod violation;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};

pub use self::violation::{TypeMismatch, Violation};
use crate::fields::{Fields, ValueType};
use crate::{
    DEPRECATED_VERSION, GitRepository, IMAGE_GROUP, ImagePolicy, ImageRepository, ImageUpdateAutomation,
    SOURCE_GROUP, VERSION, nearest, v1beta2,
};

/// The fields of every object beside those of its schema.
const OBJECT_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

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
