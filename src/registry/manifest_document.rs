//! Parses manifests and configurations of images, keeping only dates and digests.

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny};

use super::json::{self, Fold, Outline, OutlineSeed};
use crate::reference::Digest;

/// The parts of a manifest or an index that give an image's age.
///
/// Manifests of schema 1 are read too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManifestDocument {
    /// The creation time, if the manifest itself has it.
    pub created: Option<Timestamp>,
    /// In an index, the manifest for linux/amd64, or else the first manifest of an image.
    pub platform: Option<Digest>,
    /// The configuration of the image.
    pub configuration: Option<Digest>,
}

/// Parses a manifest or an index.
///
/// # Errors
///
/// A sentence about the defect, without a quotation of the document.
pub fn parse(bytes: &[u8]) -> Result<ManifestDocument, String> {
    let document = json::object(bytes, std::marker::PhantomData::<Document>);
    let document = document.map_err(|error| json::describe(&error))?;
    if document.version.is_none() {
        return Err("it has no schemaVersion".to_owned());
    }
    let annotated = document.annotations.and_then(|annotations| annotations.created.0);
    let digest = |text: Option<String>| text.and_then(|text| Digest::parse(&text).ok());
    Ok(ManifestDocument {
        created: annotated.as_deref().and_then(time).or(document.history.0),
        platform: digest(document.manifests.usual.or(document.manifests.first)),
        configuration: digest(document.config.and_then(|config| config.digest.0)),
    })
}

/// Returns the creation time in an image's configuration.
pub fn configured_creation(bytes: &[u8]) -> Option<Timestamp> {
    // Other artifacts, such as charts, have configurations of another form.
    let configuration: Configuration = serde_json::from_slice(bytes).unwrap_or_default();
    configuration.created.0.as_deref().and_then(time)
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Document {
    #[serde(rename = "schemaVersion")]
    version: Option<IgnoredAny>,
    annotations: Option<Annotations>,
    manifests: Platforms,
    config: Option<Descriptor>,
    history: Newest,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Descriptor {
    digest: Text<256>,
    platform: Option<Platform>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Platform {
    os: Text<64>,
    architecture: Text<64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Configuration {
    created: Text<64>,
}

/// The first bytes of a string, or `None` for any other value.
#[derive(Default)]
struct Text<const MAX: usize>(Option<String>);

impl<'de, const MAX: usize> Deserialize<'de> for Text<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Outline::Text(text) = OutlineSeed(MAX).deserialize(deserializer)? else { return Ok(Self(None)) };
        Ok(Self(Some(text)))
    }
}

/// The annotations, without all others.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Annotations {
    #[serde(rename = "org.opencontainers.image.created")]
    created: Text<64>,
}

/// The candidates among the manifests of an index.
#[derive(Default)]
struct Platforms {
    /// The manifest for linux/amd64.
    usual: Option<String>,
    /// The first manifest that is not an attestation.
    first: Option<String>,
}

impl<'de> Deserialize<'de> for Platforms {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pick = |platforms: &mut Self, descriptor: Descriptor| {
            let is = |os: &str, architecture: &str| {
                let platform = descriptor.platform.as_ref();
                platform.is_some_and(|platform| {
                    platform.os.0.as_deref() == Some(os)
                        && platform.architecture.0.as_deref() == Some(architecture)
                })
            };
            let digest = || descriptor.digest.0.clone().unwrap_or_default();
            if platforms.usual.is_none() && is("linux", "amd64") {
                platforms.usual = Some(digest());
            }
            if platforms.first.is_none() && !is("unknown", "unknown") {
                platforms.first = Some(digest());
            }
        };
        Fold::new(Self::default(), pick).deserialize(deserializer)
    }
}

/// The first, and so the newest, history entry of a manifest of schema 1.
#[derive(Default)]
struct Newest(Option<Timestamp>);

#[derive(Deserialize, Default)]
#[serde(default)]
struct LegacyHistory {
    #[serde(rename = "v1Compatibility")]
    compatibility: Option<String>,
}

impl<'de> Deserialize<'de> for Newest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let first = |(index, created): &mut (usize, Option<Timestamp>), entry: LegacyHistory| {
            if *index == 0 {
                *created = entry.compatibility.and_then(|text| configured_creation(text.as_bytes()));
            }
            *index += 1;
        };
        let (_, created) = Fold::new((0, None), first).deserialize(deserializer)?;
        Ok(Self(created))
    }
}

/// Parses a time after the Unix epoch.
///
/// Reproducible builds set the epoch, which says nothing about the age.
fn time(text: &str) -> Option<Timestamp> {
    let time: Timestamp = text.parse().ok()?;
    (time > Timestamp::UNIX_EPOCH).then_some(time)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const CREATED: &str = "org.opencontainers.image.created";

    fn manifest(mut value: Value) -> ManifestDocument {
        value["schemaVersion"] = json!(2);
        parse(value.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn an_index_leads_to_an_image() {
        let digest = |digit: &str| format!("sha256:{}", digit.repeat(64));
        let entry = |digit: &str, os: &str, architecture: &str| json!({"digest": digest(digit), "platform": {"os": os, "architecture": architecture}});
        for (manifests, expected) in [
            (json!([entry("1", "linux", "arm64"), entry("2", "linux", "amd64")]), Some("2")),
            (json!([entry("1", "unknown", "unknown"), entry("2", "windows", "amd64")]), Some("2")),
            (json!([{"digest": digest("3")}]), Some("3")),
            (json!([{"digest": "sha512:00"}]), None),
            (json!([]), None),
            (json!(null), None),
        ] {
            let found = manifest(json!({ "manifests": manifests })).platform;
            assert_eq!(found.map(|found| found.to_string()), expected.map(digest));
        }
    }

    #[test]
    fn the_creation_time_may_come_from_an_annotation_of_the_manifest() {
        let created = |value: Value| manifest(value).created.map(|time| time.to_string());
        let annotated = json!({"annotations": {"a": [{}], CREATED: "2026-01-02T03:04:05Z"}});
        assert_eq!(created(annotated).as_deref(), Some("2026-01-02T03:04:05Z"));
        let entry = |time: &str| json!({"v1Compatibility": format!("{{\"created\":\"{time}\"}}")});
        let legacy =
            json!({"history": [entry("2019-01-02T03:04:05.123456789Z"), entry("2018-01-02T03:04:05Z")]});
        assert_eq!(created(legacy).as_deref(), Some("2019-01-02T03:04:05.123456789Z"));
        for nothing in [
            json!({}),
            json!({"annotations": {CREATED: "1970-01-01T00:00:00Z"}}),
            json!({"annotations": {CREATED: "0001-01-01T00:00:00Z"}}),
            json!({"annotations": {CREATED: 7}}),
            json!({"annotations": null, "history": [{"v1Compatibility": "x"}]}),
        ] {
            assert_eq!(created(nothing), None);
        }
    }

    #[test]
    fn a_malformed_manifest_is_not_quoted() {
        for (text, defect) in [
            (r#"{"secret": 1}"#, "it has no schemaVersion"),
            (r#"{"schemaVersion": null}"#, "it has no schemaVersion"),
            (r#"["secret"]"#, "a member has an unexpected type"),
            (
                r#"{"schemaVersion": 2, "config": "secret"}"#,
                "a member has an unexpected type, at line 1 column 39",
            ),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(defect.to_owned()), "{text}");
        }
    }
}
