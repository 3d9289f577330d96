//! What stands behind a tag: the digest of its manifest, and when the image was made.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::answer::Answer;
use super::call::Call;
use super::deadline::Deadline;
use super::error::RegistryError;
use super::listing::success;
use super::repository::Repository;
use super::server::Server;
use crate::reference::{Digest, Tag};

/// The kinds of manifests, in the order in which Flux asks for them. Those of several platforms are among them, so
/// their digest is that of the index.
const TYPES: &str = "application/vnd.docker.distribution.manifest.v1+json,\
    application/vnd.docker.distribution.manifest.v1+prettyjws,\
    application/vnd.docker.distribution.manifest.v2+json,\
    application/vnd.oci.image.manifest.v1+json,\
    application/vnd.docker.distribution.manifest.list.v2+json,\
    application/vnd.oci.image.index.v1+json";

/// How much is read of a manifest: what registries take at most.
const LARGEST_MANIFEST: usize = 4 * 1024 * 1024;

/// How much is read of an image's configuration.
const LARGEST_CONFIGURATION: usize = 8 * 1024 * 1024;

/// The annotation that says when an image was made.
const CREATED: &str = "org.opencontainers.image.created";

/// What is known of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFacts {
    /// The digest of its manifest, or of the index of its manifests.
    pub digest: Digest,
    /// When it was made, as far as it says so.
    pub created: Option<Timestamp>,
}

/// The parts of a manifest, an index or a manifest of old that say where to look for the time.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Manifest {
    #[serde(rename = "schemaVersion")]
    version: Option<Value>,
    annotations: Option<serde_json::Map<String, Value>>,
    manifests: Option<Vec<Descriptor>>,
    config: Option<Descriptor>,
    history: Option<Vec<LegacyHistory>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Descriptor {
    digest: String,
    platform: Option<Platform>,
    annotations: Option<serde_json::Map<String, Value>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Platform {
    os: String,
    architecture: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct LegacyHistory {
    #[serde(rename = "v1Compatibility")]
    compatibility: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Configuration {
    created: Option<String>,
}

impl Repository {
    /// The digest that a tag stands for.
    ///
    /// # Errors
    ///
    /// When the registry does not say; [`RegistryError::is_not_found`] where there is no such tag.
    pub async fn digest(&self, tag: &Tag) -> Result<Digest, RegistryError> {
        let deadline = self.deadline();
        let what = || self.digest_in_words(tag);
        self.discreetly(deadline.hold(what, Box::pin(self.digest_until(tag, &deadline)))).await
    }

    /// What a look at a tag is for, in messages.
    pub(super) fn digest_in_words(&self, tag: &Tag) -> String {
        format!("the digest of {}:{tag}", self.address())
    }

    /// The digest of an image, and when it was made.
    ///
    /// # Errors
    ///
    /// When the registry does not say; [`RegistryError::is_not_found`] where there is no such tag.
    pub async fn facts(&self, tag: &Tag) -> Result<ImageFacts, RegistryError> {
        let deadline = self.deadline();
        let what = || format!("the manifest of {}:{tag}", self.address());
        self.discreetly(deadline.hold(what, Box::pin(self.facts_until(tag, &deadline)))).await
    }

    /// Asks for the header only. Where a registry does not answer that as it should, the manifest itself has the digest.
    async fn digest_until(&self, tag: &Tag, deadline: &Deadline) -> Result<Digest, RegistryError> {
        let server = self.server(deadline).await?;
        let url = self.url(&server, &format!("manifests/{tag}"))?;
        let answer = self.ask(&server, Call::head(url).accepting(TYPES), deadline).await?;
        if answer.status.is_success() {
            if let Some(digest) = announced(&answer) {
                return Ok(digest);
            }
        } else if !matches!(answer.status.as_u16(), 400 | 405 | 406 | 501) {
            return Err(answer.to_error());
        }
        let answer = self.manifest(&server, tag.as_str(), deadline).await?;
        // Else the digest of an error page would be taken for that of an image.
        read(&answer)?;
        Ok(digest_of(&answer))
    }

    async fn facts_until(&self, tag: &Tag, deadline: &Deadline) -> Result<ImageFacts, RegistryError> {
        let server = self.server(deadline).await?;
        let answer = self.manifest(&server, tag.as_str(), deadline).await?;
        let digest = digest_of(&answer);
        let manifest: Manifest = read(&answer)?;
        let created = match manifest.created() {
            Some(created) => Some(created),
            None => self.created(&server, manifest, deadline).await?,
        };
        Ok(ImageFacts { digest, created })
    }

    /// When the image of a manifest was made, by its configuration.
    async fn created(
        &self,
        server: &Server,
        mut manifest: Manifest,
        deadline: &Deadline,
    ) -> Result<Option<Timestamp>, RegistryError> {
        if let Some(platform) = manifest.platform() {
            let answer = self.manifest(server, platform.as_str(), deadline).await?;
            sound(&answer, &platform)?;
            manifest = read(&answer)?;
            if let Some(created) = manifest.created() {
                return Ok(Some(created));
            }
        }
        let configuration = manifest.config.as_ref().and_then(|config| Digest::parse(&config.digest).ok());
        let Some(digest) = configuration else { return Ok(None) };
        let url = self.url(server, &format!("blobs/{digest}"))?;
        let answer = success(self.ask(server, Call::get(url, LARGEST_CONFIGURATION), deadline).await?)?;
        sound(&answer, &digest)?;
        // What is no image (a chart, say) has a configuration of another form.
        let configuration: Configuration = serde_json::from_slice(&answer.body).unwrap_or_default();
        Ok(configuration.created.as_deref().and_then(time))
    }

    async fn manifest(
        &self,
        server: &Server,
        reference: &str,
        deadline: &Deadline,
    ) -> Result<Answer, RegistryError> {
        let url = self.url(server, &format!("manifests/{reference}"))?;
        let call = Call::get(url, LARGEST_MANIFEST).accepting(TYPES);
        success(self.ask(server, call, deadline).await?)
    }
}

impl Manifest {
    /// When the image was made, where the manifest itself says so.
    fn created(&self) -> Option<Timestamp> {
        let annotated = self.annotations.as_ref().and_then(annotated);
        let legacy = || {
            let newest = self.history.as_ref()?.first()?;
            let configuration: Configuration = serde_json::from_str(&newest.compatibility).ok()?;
            configuration.created.as_deref().and_then(time)
        };
        annotated.or_else(legacy)
    }

    /// Of an index, the manifest to look at: that of the most usual platform, or else the first that is an image.
    fn platform(&self) -> Option<Digest> {
        let manifests = self.manifests.as_ref()?;
        let is = |descriptor: &&Descriptor, os: &str, architecture: &str| {
            descriptor
                .platform
                .as_ref()
                .is_some_and(|platform| platform.os == os && platform.architecture == architecture)
        };
        let is_attestation = |descriptor: &&Descriptor| is(descriptor, "unknown", "unknown");
        let usual = manifests.iter().find(|descriptor| is(descriptor, "linux", "amd64"));
        let chosen = usual.or_else(|| manifests.iter().find(|descriptor| !is_attestation(descriptor)))?;
        Digest::parse(&chosen.digest).ok()
    }
}

fn annotated(annotations: &serde_json::Map<String, Value>) -> Option<Timestamp> {
    annotations.get(CREATED)?.as_str().and_then(time)
}

/// A time that somebody set. Builds that are to be the same each time set the beginning of time, which says nothing.
fn time(text: &str) -> Option<Timestamp> {
    let time: Timestamp = text.parse().ok()?;
    (time > Timestamp::UNIX_EPOCH).then_some(time)
}

/// The digest that the registry announces, if it is of the kind that we know.
fn announced(answer: &Answer) -> Option<Digest> {
    answer.header("docker-content-digest").and_then(|text| Digest::parse(text.trim()).ok())
}

/// The digest of what was sent.
///
/// A manifest of old has signatures in it that its digest leaves out, so of that kind what the registry says counts.
fn digest_of(answer: &Answer) -> Digest {
    let is_legacy = answer.content_type().is_some_and(|kind| kind.contains("manifest.v1+"));
    announced(answer).filter(|_| is_legacy).unwrap_or_else(|| computed(&answer.body))
}

fn computed(bytes: &[u8]) -> Digest {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    Digest::parse(&format!("sha256:{hex}")).expect("a digest has 64 digits")
}

/// Insists that what was sent is what was asked for.
fn sound(answer: &Answer, digest: &Digest) -> Result<(), RegistryError> {
    let found = computed(&answer.body);
    if found == *digest {
        return Ok(());
    }
    Err(RegistryError::Damaged { request: answer.request.clone(), found: found.to_string() })
}

fn read(answer: &Answer) -> Result<Manifest, RegistryError> {
    let manifest: Manifest =
        answer.object().map_err(|error| answer.malformed(format!("it is no manifest ({error})")))?;
    match manifest.version {
        Some(_) => Ok(manifest),
        None => Err(answer.malformed("it is no manifest (there is no schemaVersion in it)")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn manifest(value: Value) -> Manifest {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn an_index_leads_to_an_image() {
        let digest = |digit: &str| format!("sha256:{}", digit.repeat(64));
        let entry = |digit: &str, os: &str, architecture: &str| json!({"digest": digest(digit), "platform": {"os": os, "architecture": architecture}});
        for (manifests, wanted) in [
            (json!([entry("1", "linux", "arm64"), entry("2", "linux", "amd64")]), Some("2")),
            (json!([entry("1", "unknown", "unknown"), entry("2", "windows", "amd64")]), Some("2")),
            (json!([{"digest": digest("3")}]), Some("3")),
            (json!([{"digest": "sha512:00"}]), None),
            (json!([]), None),
            (json!(null), None),
        ] {
            let found = manifest(json!({ "manifests": manifests })).platform();
            assert_eq!(found.map(|found| found.to_string()), wanted.map(digest));
        }
    }

    #[test]
    fn a_manifest_may_say_itself_when_the_image_was_made() {
        let created = |value: Value| manifest(value).created().map(|time| time.to_string());
        let annotated = json!({"annotations": {CREATED: "2026-01-02T03:04:05Z"}});
        assert_eq!(created(annotated).as_deref(), Some("2026-01-02T03:04:05Z"));
        let legacy =
            json!({"history": [{"v1Compatibility": "{\"created\":\"2019-01-02T03:04:05.123456789Z\"}"}]});
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
}
