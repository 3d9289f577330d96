//! Checks the fields of an object against the schema of its kind.

use std::collections::{BTreeMap, HashMap, HashSet};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use tagboat_api::Kind;
use tagboat_api::nearest::nearest;
use tagboat_api::object_name::{InvalidName, validate_name, validate_namespace};
use tagboat_api::substitution::contains_placeholder;
use tagboat_api::{GoDuration, crds, duration};

use super::finding::{Findings, Location, Rule, hint};
use super::object::Object;
use crate::yaml::tree::Content;
use crate::yaml::{Node, Style, plain};

/// The schemas of the checked kinds.
#[derive(Debug)]
pub(super) struct Schemas(Vec<CustomResourceDefinition>);

/// A required field that is missing.
#[derive(Debug, Clone)]
pub(super) struct Missing {
    /// The path of the field.
    pub(super) path: String,
    /// The location where it belongs.
    pub(super) location: Location,
}

/// Compares by path alone, not by location.
impl PartialEq for Missing {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

/// The fields of metadata, which Kubernetes defines and a kind's schema omits.
const METADATA: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
];

/// Fields of GitRepository outside the part of its schema that automations need.
const OTHER_GIT_FIELDS: [&str; 8] = [
    "verify",
    "ignore",
    "include",
    "recurseSubmodules",
    "sparseCheckout",
    "gitImplementation",
    "accessFrom",
    "depth",
];

impl Schemas {
    pub(super) fn new() -> Self {
        Self(crds::all())
    }

    /// Checks all fields of an object except its status, which programs write.
    ///
    /// Missing fields are returned rather than reported, since the object may be only a part of one.
    pub(super) fn check(&self, object: &Object<'_>, findings: &mut Findings<'_>) -> Vec<Missing> {
        let schema = crds::schema(&self.0, object.kind.group(), object.version, object.kind.name())
            .expect("every kind that is looked at has a schema in both versions");
        let mut check = Check { findings, kind: CheckedKind::Flux(object.kind), missing: Vec::new() };
        let properties = schema.properties.as_ref();
        let spec = properties.and_then(|properties| properties.get("spec"));
        check.object(object.node, spec.expect("every kind has a spec"));
        if object.name().is_empty() && object.node.text_at(&["metadata", "generateName"]).is_none() {
            check
                .missing
                .push(Missing { path: "metadata.name".to_owned(), location: Location::of(object.node) });
        }
        if object.node.at(&["spec"]).is_none_or(Node::is_null) {
            // The schema of some kinds does not require it, but without it no controller can do anything.
            check.missing.push(Missing { path: "spec".to_owned(), location: object.location() });
        }
        if let Some(spec) = object.node.field("spec")
            && object.kind == Kind::Automation
            && spec.value.is_mapping()
            && spec.value.at(&["git"]).is_none_or(Node::is_null)
        {
            // The controller requires it, the schema does not.
            check.missing.push(Missing { path: "spec.git".to_owned(), location: Location::of(spec.key) });
        }
        check.missing
    }
}

/// Checks all fields of a Namespace except its status.
pub(super) fn check_namespace(node: &Node, findings: &mut Findings<'_>) {
    let of_type =
        |type_: &str| JSONSchemaProps { type_: Some(type_.to_owned()), ..JSONSchemaProps::default() };
    let names = JSONSchemaPropsOrArray::Schema(Box::new(of_type("string")));
    let finalizers = JSONSchemaProps { items: Some(names), ..of_type("array") };
    let properties = BTreeMap::from([("finalizers".to_owned(), finalizers)]);
    let spec = JSONSchemaProps { properties: Some(properties), ..of_type("object") };
    Check { findings, kind: CheckedKind::Namespace, missing: Vec::new() }.object(node, &spec);
}

fn unknown(kind: CheckedKind, path: &str, hint: &str) -> String {
    format!("{} has no field `{path}`{hint}", kind.name())
}

/// A kind whose fields are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckedKind {
    Flux(Kind),
    Namespace,
}

impl CheckedKind {
    fn name(self) -> &'static str {
        match self {
            Self::Flux(kind) => kind.name(),
            Self::Namespace => "Namespace",
        }
    }
}

struct Check<'f, 'a> {
    findings: &'f mut Findings<'a>,
    kind: CheckedKind,
    missing: Vec<Missing>,
}

impl Check<'_, '_> {
    /// Checks all fields of an object.
    fn object(&mut self, node: &Node, spec: &JSONSchemaProps) {
        let sections = ["apiVersion", "kind", "metadata", "spec", "status"];
        for field in node.fields() {
            let at = Location::of(field.key);
            match field.name {
                "spec" => self.value("spec", field.value, spec, at),
                "metadata" => self.metadata(field.value, at),
                name if sections.contains(&name) || name.starts_with('$') => {}
                name => {
                    let free = sections.into_iter().filter(|name| node.field(name).is_none());
                    let hint = hint(nearest(name, free));
                    self.findings.add(at, Rule::UnknownField, unknown(self.kind, name, &hint));
                }
            }
        }
        self.duplicates(node, "");
    }

    fn invalid(&mut self, location: Location, path: &str, what: impl std::fmt::Display) {
        self.findings.add(location, Rule::InvalidValue, format!("`{path}` {what}"));
    }

    /// Checks a value; `key` is the location of its name.
    fn value(&mut self, path: &str, node: &Node, schema: &JSONSchemaProps, key: Location) {
        if node.is_null() {
            // An API server drops it.
            return;
        }
        let location = Location::of(node);
        match (schema.type_.as_deref(), &node.content) {
            (Some("object"), Content::Mapping(_)) => self.mapping(path, node, schema, key),
            (Some("array"), Content::Sequence(items)) => {
                if let Some(limit) = schema.max_items.and_then(|limit| usize::try_from(limit).ok())
                    && items.len() > limit
                {
                    self.invalid(
                        location,
                        path,
                        format_args!("has {} entries; {limit} are allowed", items.len()),
                    );
                }
                if let Some(JSONSchemaPropsOrArray::Schema(schema)) = &schema.items {
                    for (index, item) in items.iter().enumerate() {
                        self.value(&format!("{path}[{index}]"), item, schema, Location::of(item));
                    }
                }
            }
            (Some(_), Content::Scalar { text, .. }) if contains_placeholder(text) => {}
            (Some("object"), _) => self.invalid(location, path, "must be a mapping"),
            (Some("array"), _) => self.invalid(location, path, "must be a list"),
            (Some(kind), Content::Scalar { .. }) => self.scalar(path, node, kind, schema),
            (Some(kind), _) => self.invalid(location, path, format_args!("must be {}", with_article(kind))),
            (None, _) => {}
        }
    }

    fn mapping(&mut self, path: &str, node: &Node, schema: &JSONSchemaProps, key: Location) {
        let fields = node.fields();
        let present: HashSet<&str> = fields.iter().map(|field| field.name).collect();
        let named = schema.properties.as_ref();
        for field in &fields {
            let path = format!("{path}.{}", field.name);
            let at = Location::of(field.key);
            if let Some(schema) = named.and_then(|named| named.get(field.name)) {
                self.value(&path, field.value, schema, at);
            } else if let Some(JSONSchemaPropsOrBool::Schema(schema)) = &schema.additional_properties {
                self.value(&path, field.value, schema, at);
            } else if let Some(named) = named.filter(|named| !named.is_empty()) {
                let is_git = self.kind == CheckedKind::Flux(Kind::GitRepository);
                let others = OTHER_GIT_FIELDS.into_iter().filter(|_| is_git);
                if field.name.starts_with('$') || others.clone().any(|other| other == field.name) {
                    continue;
                }
                let is_free = |name: &&str| !present.contains(name);
                let near =
                    nearest(field.name, named.keys().map(String::as_str).chain(others).filter(is_free));
                // Flux may have added fields to GitRepository that are unknown here; a misspelling is reported anyway.
                if !is_git || near.is_some() {
                    let sentence = unknown(self.kind, &path, &hint(near));
                    self.findings.add(at, Rule::UnknownField, sentence);
                }
            }
        }
        for name in schema.required.iter().flatten() {
            let is_there = fields.iter().any(|field| field.name == name && !field.value.is_null());
            let has_default =
                named.and_then(|named| named.get(name)).is_some_and(|schema| schema.default.is_some());
            if !is_there && !has_default {
                self.missing.push(Missing { path: format!("{path}.{name}"), location: key });
            }
        }
    }

    fn scalar(&mut self, path: &str, node: &Node, kind: &str, schema: &JSONSchemaProps) {
        let location = Location::of(node);
        let text = node.text().unwrap_or_default();
        match (kind, scalar_type(node)) {
            ("string", ScalarType::Text | ScalarType::Either)
            | ("boolean", ScalarType::Bool | ScalarType::Either) => {}
            ("integer" | "number", ScalarType::Number) => {}
            ("string", ScalarType::Bool | ScalarType::Number) => {
                let sentence = format_args!("must be a string, but is `{text}`; put it in quotes");
                return self.invalid(location, path, sentence);
            }
            (kind, _) => {
                let (what, hint) = match text {
                    "true" | "false" => ("the string ", "; remove the quotes"),
                    _ => ("", ""),
                };
                let sentence = format!("must be {}, but is {what}`{text}`{hint}", with_article(kind));
                return self.invalid(location, path, sentence);
            }
        }
        let allowed: Vec<&str> = schema.enum_.iter().flatten().filter_map(|value| value.0.as_str()).collect();
        if !allowed.is_empty() && !allowed.contains(&text) {
            let hint = hint(
                nearest(text, allowed.iter().copied())
                    .or_else(|| allowed.iter().copied().find(|value| value.eq_ignore_ascii_case(text))),
            );
            let names = allowed.join(", ");
            self.invalid(location, path, format_args!("is `{text}`; allowed: {names}{hint}"));
        }
        if let Some(limit) = schema.max_length.and_then(|limit| usize::try_from(limit).ok())
            && text.chars().count() > limit
        {
            self.invalid(location, path, format_args!("has more than {limit} characters"));
        }
        let duration = GoDuration::new(text);
        let error = match schema.pattern.as_deref() {
            Some(duration::PATTERN) => duration.to_duration().err(),
            Some(duration::PATTERN_WITHOUT_HOURS) => duration.to_duration_without_hours().err(),
            Some(_) if self.kind == CheckedKind::Flux(Kind::GitRepository) && path == "spec.url" => {
                if !["http://", "https://", "ssh://"].iter().any(|scheme| text.starts_with(scheme)) {
                    let is_local = ["file://", "/", "./", "../"].iter().any(|start| text.starts_with(start));
                    let sentence = if is_local {
                        "leads to a repository on this machine, which is for `tagboat run` only; in a cluster it must \
                         begin with http://, https:// or ssh://"
                    } else {
                        "must begin with http://, https:// or ssh://"
                    };
                    self.invalid(location, path, sentence);
                }
                None
            }
            _ => None,
        };
        if let Some(error) = error {
            self.findings.add(location, Rule::InvalidValue, format!("`{path}`: {error}"));
        }
        let starts_reconciles = path == "spec.interval"
            && matches!(self.kind, CheckedKind::Flux(Kind::Automation | Kind::Repository));
        if starts_reconciles && duration.to_duration().is_ok_and(|interval| interval.is_zero()) {
            self.invalid(
                location,
                path,
                format_args!("is `{text}`, so there are no periodic reconciles; write a duration such as 5m"),
            );
        }
    }

    /// Checks metadata, which Kubernetes defines, for misspelt names and labels that are not text.
    fn metadata(&mut self, node: &Node, key: Location) {
        if !node.is_mapping() {
            if !node.is_null() {
                self.invalid(key, "metadata", "must be a mapping");
            }
            return;
        }
        for field in node.fields() {
            let at = Location::of(field.key);
            let path = format!("metadata.{}", field.name);
            match field.name {
                "labels" | "annotations" if field.value.is_mapping() => {
                    for entry in field.value.fields() {
                        self.text(&format!("{path}.{}", entry.name), entry.value);
                    }
                }
                "labels" | "annotations" if !field.value.is_null() => {
                    self.invalid(at, &path, "must be a mapping");
                }
                // The name of a Namespace is that of a namespace.
                "name" if self.kind == CheckedKind::Namespace => {
                    self.name(&path, field.value, validate_namespace);
                }
                "name" => self.name(&path, field.value, validate_name),
                "namespace" => self.name(&path, field.value, validate_namespace),
                name if METADATA.contains(&name) || name.starts_with('$') => {}
                name => {
                    let free = METADATA.into_iter().filter(|name| node.field(name).is_none());
                    let sentence = unknown(self.kind, &path, &hint(nearest(name, free)));
                    self.findings.add(at, Rule::UnknownField, sentence);
                }
            }
        }
    }

    /// Checks the name or the namespace of an object; an empty one is absent.
    fn name(&mut self, path: &str, node: &Node, validate: fn(&str) -> Result<(), InvalidName>) {
        self.text(path, node);
        let text = node.text().filter(|text| !text.is_empty() && !contains_placeholder(text));
        if let Some(text) = text
            && matches!(scalar_type(node), ScalarType::Text | ScalarType::Either)
            && let Err(error) = validate(text)
        {
            self.invalid(Location::of(node), path, format_args!("is `{text}`: {error}"));
        }
    }

    fn text(&mut self, path: &str, node: &Node) {
        let schema = JSONSchemaProps { type_: Some("string".to_owned()), ..JSONSchemaProps::default() };
        self.value(path, node, &schema, Location::of(node));
    }

    /// Checks for fields that are given twice: Kubernetes' tools reject the file, or use either.
    fn duplicates(&mut self, node: &Node, path: &str) {
        if let Content::Mapping(entries) = &node.content {
            let mut first: HashMap<&str, usize> = HashMap::new();
            for (key, value) in entries {
                let Some(name) = key.text() else { continue };
                let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                match first.get(name) {
                    Some(line) if name != "<<" => {
                        let sentence = format!("`{path}` is given twice, first on line {line}; keep one");
                        self.findings.add(Location::of(key), Rule::DuplicateField, sentence);
                    }
                    _ => {
                        first.insert(name, key.line);
                    }
                }
                self.duplicates(value, &path);
            }
        }
        for (index, item) in node.items().iter().enumerate() {
            self.duplicates(item, &format!("{path}[{index}]"));
        }
    }
}

fn with_article(kind: &str) -> String {
    match kind {
        "integer" => "a whole number".to_owned(),
        "object" => "a mapping".to_owned(),
        "boolean" => "true or false".to_owned(),
        kind => format!("a {kind}"),
    }
}

/// The type of a scalar in Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScalarType {
    Text,
    Bool,
    Number,
    /// Readers disagree: `yes`, a date.
    Either,
}

fn scalar_type(node: &Node) -> ScalarType {
    let Content::Scalar { text, style, tag } = &node.content else { return ScalarType::Text };
    if *style != Style::Plain || tag.as_deref() == Some("tag:yaml.org,2002:str") {
        return ScalarType::Text;
    }
    if tag.is_some() {
        return ScalarType::Either;
    }
    match text.as_str() {
        "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => ScalarType::Bool,
        text if text.parse::<f64>().is_ok()
            && text.starts_with(|c: char| "+-.".contains(c) || c.is_ascii_digit()) =>
        {
            ScalarType::Number
        }
        text if plain::reads_as_other_type(text) => ScalarType::Either,
        _ => ScalarType::Text,
    }
}
