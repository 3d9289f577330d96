//! Parses manifest files: defaults, nulls, unknown fields and values, without an API server.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tagboat_api::automation::{SigningKeyType, SourceKind};
use tagboat_api::git_repository::GitProvider;
use tagboat_api::policy::{DigestReflectionPolicy, PolicyRule};
use tagboat_api::{GitRepository, ImagePolicy, ImageRepository, ImageUpdateAutomation, crds};

fn read<T: DeserializeOwned>(kind: &str, spec: &Value) -> T {
    let manifest =
        json!({ "apiVersion": "any/v1", "kind": kind, "metadata": { "name": "app" }, "spec": spec });
    serde_json::from_value(manifest).unwrap_or_else(|error| panic!("{kind}: {error}"))
}

/// Adds the defaults of a schema as an API server does.
fn fill(value: &mut Value, schema: &JSONSchemaProps) {
    match value {
        Value::Object(fields) => {
            for (name, property) in schema.properties.iter().flatten() {
                if let Some(default) = &property.default
                    && fields.get(name).is_none_or(Value::is_null)
                {
                    fields.insert(name.clone(), default.0.clone());
                }
                if let Some(field) = fields.get_mut(name) {
                    fill(field, property);
                }
            }
        }
        Value::Array(items) => {
            if let Some(JSONSchemaPropsOrArray::Schema(schema)) = &schema.items {
                items.iter_mut().for_each(|item| fill(item, schema));
            }
        }
        _ => {}
    }
}

/// Asserts that a parsed and written spec equals the one of an API server.
fn assert_same_defaults<T: DeserializeOwned + Serialize>(group: &str, kind: &str, spec: &Value) {
    let all = crds::all();
    let schema = crds::schema(&all, group, "v1", kind).expect("the kind is one of ours");
    let mut stored = json!({ "spec": spec });
    fill(&mut stored, schema);
    let written = serde_json::to_value(read::<T>(kind, spec)).expect("an object can be written as JSON");
    assert_eq!(written["spec"], stored["spec"], "{kind}");
}

fn automation() -> Value {
    json!({ "interval": "1m", "sourceRef": { "name": "app" } })
}

fn policy() -> Value {
    json!({ "imageRepositoryRef": { "name": "app" }, "policy": { "alphabetical": {}, "numerical": {} } })
}

fn repository() -> Value {
    json!({ "image": "ghcr.io/org/app", "interval": "1m" })
}

fn git_repository() -> Value {
    json!({ "url": "https://example.com/app", "interval": "1m" })
}

#[test]
fn defaults_match_the_schema() {
    assert_same_defaults::<ImageUpdateAutomation>(
        "image.toolkit.fluxcd.io",
        "ImageUpdateAutomation",
        &automation(),
    );
    assert_same_defaults::<ImagePolicy>("image.toolkit.fluxcd.io", "ImagePolicy", &policy());
    assert_same_defaults::<ImageRepository>("image.toolkit.fluxcd.io", "ImageRepository", &repository());
    assert_same_defaults::<GitRepository>("source.toolkit.fluxcd.io", "GitRepository", &git_repository());
}

#[test]
fn null_means_absent() {
    let nulls = |mut spec: Value, names: &[&str]| {
        for name in names {
            spec[*name] = Value::Null;
        }
        spec
    };
    let given = nulls(automation(), &["git", "policySelector", "update", "suspend"]);
    let read_automation: ImageUpdateAutomation = read("ImageUpdateAutomation", &given);
    assert_eq!(read_automation, read("ImageUpdateAutomation", &automation()));
    let given = nulls(policy(), &["filterTags", "digestReflectionPolicy", "interval", "suspend"]);
    assert_eq!(read::<ImagePolicy>("ImagePolicy", &given), read("ImagePolicy", &policy()));
    let given = nulls(repository(), &["timeout", "exclusionList", "provider", "insecure", "accessFrom"]);
    assert_eq!(read::<ImageRepository>("ImageRepository", &given), read("ImageRepository", &repository()));
    let given = nulls(git_repository(), &["ref", "timeout", "provider", "suspend"]);
    assert_eq!(read::<GitRepository>("GitRepository", &given), read("GitRepository", &git_repository()));
}

#[test]
fn unknown_fields_and_values_of_a_newer_flux_are_accepted() {
    let mut spec = automation();
    spec["newField"] = json!({ "any": 1 });
    spec["sourceRef"]["kind"] = json!("OCIRepository");
    spec["interval"] = json!("every day");
    let automation: ImageUpdateAutomation = read("ImageUpdateAutomation", &spec);
    assert_eq!(automation.spec.source_ref.kind, SourceKind::Other("OCIRepository".to_owned()));
    assert_eq!(automation.spec.source_ref.kind.to_string(), "OCIRepository");
    assert!(automation.spec.interval.to_duration().is_err());
}

#[test]
fn effective_values_of_an_automation() {
    let mut spec = automation();
    spec["git"] = json!({ "commit": { "author": { "email": "a@b.c" }, "signingKey": { "secretRef": { "name": "k" } } } });
    let automation: ImageUpdateAutomation = read("ImageUpdateAutomation", &spec);
    let key = automation.spec.git.and_then(|git| git.commit.signing_key).expect("the manifest has a key");
    assert_eq!(key.effective_type(), SigningKeyType::Gpg);
    let mut source = automation.spec.source_ref;
    assert_eq!(source.effective_namespace("own"), "own");
    source.namespace = Some(String::new());
    assert_eq!(source.effective_namespace("own"), "own");
    source.namespace = Some("other".to_owned());
    assert_eq!(source.effective_namespace("own"), "other");
}

#[test]
fn effective_values_of_a_policy() {
    let mut spec = policy();
    let rule = |spec: &Value| match read::<ImagePolicy>("ImagePolicy", spec).spec.policy.effective_rule() {
        Some(PolicyRule::SemVer(semver)) => semver.range.clone(),
        Some(PolicyRule::Alphabetical(alphabetical)) => alphabetical.order.to_string(),
        Some(PolicyRule::Numerical(_)) => "numerical".to_owned(),
        None => "none".to_owned(),
    };
    assert_eq!(rule(&spec), "asc");
    spec["policy"]["semver"] = json!({ "range": "1.x" });
    assert_eq!(rule(&spec), "1.x");
    spec["policy"] = json!({});
    assert_eq!(rule(&spec), "none");

    for (digest_policy, interval, seconds) in [
        ("Never", "1m", None),
        ("IfNotPresent", "1m", None),
        ("Always", "1m", Some(60)),
        ("Always", "0s", Some(600)),
    ] {
        spec["digestReflectionPolicy"] = json!(digest_policy);
        spec["interval"] = json!(interval);
        let policy: ImagePolicy = read("ImagePolicy", &spec);
        let effective = policy.spec.effective_interval().expect("the interval is a duration");
        assert_eq!(effective.map(|interval| interval.as_secs()), seconds, "{digest_policy} {interval}");
    }
    let never: ImagePolicy = read("ImagePolicy", &policy());
    assert_eq!(never.spec.digest_reflection_policy, DigestReflectionPolicy::Never);
}

#[test]
fn effective_values_of_a_repository() {
    for (interval, timeout, milliseconds) in [
        ("1m", None, Some(60_000)),
        ("1h", None, Some(3_600_000)),
        ("0s", None, Some(1000)),
        ("1m", Some("20ms"), Some(1000)),
        ("1m", Some("1.5s"), Some(1500)),
        ("1m", Some("1h"), None),
        ("soon", None, None),
    ] {
        let mut spec = repository();
        spec["interval"] = json!(interval);
        spec["timeout"] = json!(timeout);
        let repository: ImageRepository = read("ImageRepository", &spec);
        let effective = repository.spec.effective_timeout().ok().map(|timeout| timeout.as_millis());
        assert_eq!(effective, milliseconds, "{interval} {timeout:?}");
    }
    let mut spec = repository();
    spec["exclusionList"] = json!([]);
    let repository: ImageRepository = read("ImageRepository", &spec);
    assert!(repository.spec.exclusion_list.is_empty());
    assert_eq!(repository.spec.effective_exclusion_list(), [r"^.*\.sig$"]);
}

#[test]
fn effective_values_of_a_git_repository() {
    let repository: GitRepository = read("GitRepository", &git_repository());
    assert_eq!(repository.spec.timeout.as_str(), "60s");
    assert_eq!(repository.spec.effective_provider(), GitProvider::Generic);
}

#[test]
fn a_status_is_read_and_written_as_flux_does() {
    let status = json!({
        "lastAutomationRunTime": "2026-11-20T14:00:00Z",
        "observedGeneration": 2,
        "conditions": [{
            "lastTransitionTime": "2026-11-20T14:00:01Z",
            "message": "repository up-to-date",
            "reason": "Succeeded",
            "status": "True",
            "type": "Ready",
        }],
        "observedPolicies": { "app": { "name": "ghcr.io/org/app", "tag": "1.0.0" } },
        "observedSourceRevision": "main@sha1:0000000000000000000000000000000000000000",
    });
    let manifest = json!({ "metadata": {}, "spec": automation(), "status": status });
    let automation: ImageUpdateAutomation =
        serde_json::from_value(manifest).expect("the manifest is an automation");
    let written = serde_json::to_value(&automation).expect("an object can be written as JSON");
    assert_eq!(written["status"], status);
    let policies = automation.status.expect("the manifest has a status").observed_policies;
    assert_eq!(policies["app"].to_string(), "ghcr.io/org/app:1.0.0");
}
