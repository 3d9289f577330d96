//! Looks up the digest of a tag and the creation time of its image.

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::error::RegistryError;
use super::listing::success;
use super::manifest_document::{self, ManifestDocument, configured_creation};
use super::repository::Repository;
use super::server::Server;
use crate::net::http::Request;
use crate::net::http::Response;
use crate::net::http::{Deadline, HttpError};
use crate::reference::{Digest, Tag};

/// The media types of manifests, in the order in which Flux requests them.
///
/// Types for several platforms are among them, so the digest is that of the index.
const TYPES: &str = "application/vnd.docker.distribution.manifest.v1+json,\
    application/vnd.docker.distribution.manifest.v1+prettyjws,\
    application/vnd.docker.distribution.manifest.v2+json,\
    application/vnd.oci.image.manifest.v1+json,\
    application/vnd.docker.distribution.manifest.list.v2+json,\
    application/vnd.oci.image.index.v1+json";

/// The maximum size of a manifest in bytes, which is that of registries.
const MAX_MANIFEST: usize = 4 * 1024 * 1024;

/// The maximum size of an image's configuration in bytes.
const MAX_CONFIGURATION: usize = 8 * 1024 * 1024;

/// The digest and creation time of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFacts {
    /// The digest of its manifest, or of the index of its manifests.
    pub digest: Digest,
    /// The creation time, if the image has one.
    pub created: Option<Timestamp>,
}

impl Repository {
    /// Looks up the digest of a tag.
    ///
    /// # Errors
    ///
    /// If the registry does not give it; [`RegistryError::is_not_found`] if there is no such tag.
    pub async fn digest(&self, tag: &Tag) -> Result<Digest, RegistryError> {
        let deadline = self.deadline();
        let operation = || self.digest_label(tag);
        self.redacting_errors(deadline.limit(operation, Box::pin(self.digest_until(tag, &deadline)))).await
    }

    /// Names the lookup in messages.
    pub(super) fn digest_label(&self, tag: &Tag) -> String {
        format!("the digest of {}:{tag}", self.address())
    }

    /// Looks up the digest and creation time of an image.
    ///
    /// # Errors
    ///
    /// If the registry does not give them; [`RegistryError::is_not_found`] if there is no such tag.
    pub async fn facts(&self, tag: &Tag) -> Result<ImageFacts, RegistryError> {
        let deadline = self.deadline();
        let operation = || format!("the manifest of {}:{tag}", self.address());
        self.redacting_errors(deadline.limit(operation, Box::pin(self.facts_until(tag, &deadline)))).await
    }

    /// Requests the header, or else the manifest, of which the digest is computed.
    async fn digest_until(&self, tag: &Tag, deadline: &Deadline) -> Result<Digest, RegistryError> {
        let server = self.server(deadline).await?;
        let url = self.url(&server, &format!("manifests/{tag}"))?;
        let response = self.send_authenticated(&server, Request::head(url).accept(TYPES), deadline).await?;
        if response.status.is_success() {
            if let Some(digest) = header_digest(&response) {
                return Ok(digest);
            }
        } else if !matches!(response.status.as_u16(), 400 | 405 | 406 | 501) {
            return Err(response.to_error());
        }
        let response = self.manifest(&server, tag.as_str(), deadline).await?;
        // Parsed, because an error page has a digest too.
        Ok(self.parse(response, None, manifest_document::parse).await?.0)
    }

    async fn facts_until(&self, tag: &Tag, deadline: &Deadline) -> Result<ImageFacts, RegistryError> {
        let server = self.server(deadline).await?;
        let response = self.manifest(&server, tag.as_str(), deadline).await?;
        let (digest, manifest) = self.parse(response, None, manifest_document::parse).await?;
        let created = match manifest.created {
            Some(created) => Some(created),
            None => self.created(&server, manifest, deadline).await?,
        };
        Ok(ImageFacts { digest, created })
    }

    /// Returns the creation time in the configuration of a manifest's image.
    async fn created(
        &self,
        server: &Server,
        mut manifest: ManifestDocument,
        deadline: &Deadline,
    ) -> Result<Option<Timestamp>, RegistryError> {
        if let Some(platform) = manifest.platform {
            let response = self.manifest(server, platform.as_str(), deadline).await?;
            (_, manifest) = self.parse(response, Some(&platform), manifest_document::parse).await?;
            if let Some(created) = manifest.created {
                return Ok(Some(created));
            }
        }
        let Some(digest) = manifest.configuration else { return Ok(None) };
        let url = self.url(server, &format!("blobs/{digest}"))?;
        let response =
            success(self.send_authenticated(server, Request::get(url, MAX_CONFIGURATION), deadline).await?)?;
        Ok(self.parse(response, Some(&digest), |bytes| Ok(configured_creation(bytes))).await?.1)
    }

    /// Parses a response, and returns the result with its digest.
    ///
    /// The digest must be `expected`, if one is given.
    async fn parse<T: Send + 'static>(
        &self,
        response: Response,
        expected: Option<&Digest>,
        read: fn(&[u8]) -> Result<T, String>,
    ) -> Result<(Digest, T), RegistryError> {
        let header_digest = header_digest(&response).filter(|_| is_legacy(&response));
        let Response { request, body, reserved, .. } = response;
        let bytes = body.len();
        let job = move || (computed_digest(&body), read(&body));
        let (found, read) = self.client.process(bytes, job).await;
        drop(reserved);
        if expected.is_some_and(|expected| *expected != found) {
            return Err(RegistryError::DigestMismatch { request, found: found.to_string() });
        }
        let read = read.map_err(|defect| HttpError::Malformed {
            request,
            defect: format!("it is not a manifest ({defect})"),
        })?;
        Ok((header_digest.unwrap_or(found), read))
    }

    async fn manifest(
        &self,
        server: &Server,
        reference: &str,
        deadline: &Deadline,
    ) -> Result<Response, RegistryError> {
        let url = self.url(server, &format!("manifests/{reference}"))?;
        let request = Request::get(url, MAX_MANIFEST).accept(TYPES);
        success(self.send_authenticated(server, request, deadline).await?)
    }
}

/// Returns the digest in the response's header, if its algorithm is known.
fn header_digest(response: &Response) -> Option<Digest> {
    response.header("docker-content-digest").and_then(|text| Digest::parse(text.trim()).ok())
}

/// Returns `true` for a manifest of schema 1.
///
/// Its digest excludes the signatures in it, so the digest in the header counts.
fn is_legacy(response: &Response) -> bool {
    response.content_type().is_some_and(|kind| kind.contains("manifest.v1+"))
}

fn computed_digest(bytes: &[u8]) -> Digest {
    Digest::parse(&format!("sha256:{:x}", Sha256::digest(bytes))).expect("a digest has 64 digits")
}
