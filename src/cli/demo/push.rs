//! Pushes of images.

use std::time::Duration;

use serde_json::json;

use super::registry::MANIFEST_TYPE;
use crate::cli::Failure;
use crate::net::{HttpClientOptions, ProxyChoice};

/// Timeout of requests within one machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Pushes an image to a registry without TLS. Images with different `content` have different digests.
pub(super) fn push(registry: &str, repository: &str, tag: &str, content: &str) -> Result<(), Failure> {
    let url = format!("http://{registry}/v2/{repository}/manifests/{tag}");
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "annotations": {"org.opencontainers.image.title": content},
        "layers": [],
    });
    let failed =
        |error: &dyn std::fmt::Display| Failure::new(format!("cannot push {repository}:{tag}: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed(&error))?;
    runtime.block_on(async {
        let connections = HttpClientOptions {
            proxy: ProxyChoice::Direct,
            ..HttpClientOptions::with_timeouts(TIMEOUT, TIMEOUT)
        };
        let client = connections.build().map_err(|error| failed(&error))?;
        let request = client.put(url).header("content-type", MANIFEST_TYPE).body(manifest.to_string());
        let answer = request.send().await.map_err(|error| failed(&error))?;
        answer.error_for_status().map(drop).map_err(|error| failed(&error))
    })
}
