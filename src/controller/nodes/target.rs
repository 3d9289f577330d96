//! The resolution of the tag of a pool, with the registry client of ImageRepositories.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tagboat_api::node_pool::{PoolImage, PullSecretReference};
use tagboat_api::reference::LocalObjectReference;
use tagboat_api::repository::{ImageProvider, ImageRepositorySpec};
use tagboat_api::{GoDuration, ImageRepository, NodePool, ObjectName};
use tokio::task::JoinSet;
use tracing::Instrument;

use super::state::NodePools;
use crate::nodes::{Resolution, Settings};
use crate::reconcile::lookup::{LookupFailure, LookupFailureKind};
use crate::reconcile::tags::{Registry, RepositoryTarget};
use crate::reference::{Digest, ImageName, RepositoryAddress, Tag};
use crate::registry::INSECURE_ADVICE;

/// The remedy in the error of a registry without TLS, which no pool may use.
const TLS_ADVICE: &str = "; a pool needs a registry with TLS, or a digest in spec.image.ref";

/// The time that a registry has to answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The resolution of the tag of a pool, and whether its image is known.
#[derive(Debug, Default)]
pub(super) struct Target {
    /// The last resolution.
    pub(super) resolution: Resolution,
    /// `true` if the image of the reference is not known yet.
    ///
    /// Then that of the reference before counts.
    pub(super) is_pending: bool,
    /// The time of the next resolution, or of the end of the present one.
    pub(super) next: Option<Timestamp>,
}

/// A resolution in progress, which ends with its drop.
#[derive(Debug)]
pub(super) struct Resolving {
    /// The image that is resolved, by which the resolution is known.
    image: Arc<PoolImage>,
    task: JoinSet<()>,
}

impl Resolving {
    /// Returns `true` for a resolution of this image that has not ended.
    fn is_of(&mut self, image: &PoolImage) -> bool {
        *self.image == *image && self.task.try_join_next().is_none()
    }
}

/// Returns the last resolution of a pool's tag, and begins a due one.
///
/// The new one makes the pool due when it ends, so no reconcile waits for a registry. There is one at a time for a pool.
pub(super) fn resolve<R: Registry>(
    pools: &Arc<NodePools<R>>,
    object: &NodePool,
    settings: &Settings,
) -> Target {
    let (name, now) = (ObjectName::of(object), pools.now());
    let (Some(reference), Some(image)) = (settings.unresolved_tag(), &object.spec.image) else {
        // The next tag is resolved at once.
        pools.with_memory(&name, |memory| (memory.resolution, memory.resolving) = (None, None));
        return Target::default();
    };
    let restored = || {
        let status =
            object.status.as_ref().map(|status| (status, object.metadata.generation.unwrap_or_default()));
        let nodes = pools.share(&name.name).nodes;
        Resolution::restored(reference, status, nodes.iter().map(AsRef::as_ref))
    };
    let is_known = pools.with_memory(&name, |memory| memory.resolution.is_some());
    let restored = if is_known { Resolution::default() } else { restored() };
    pools.with_memory(&name, |memory| {
        let resolution = memory.resolution.get_or_insert(restored).clone();
        let is_due = resolution.is_due(reference, now);
        // One of another image must not replace the image of the reference.
        memory.resolving.take_if(|resolving| !resolving.is_of(image));
        if is_due && memory.resolving.is_none() {
            let (image, mut task) = (Arc::new(image.clone()), JoinSet::new());
            let (reference, resolved) = ((reference.0.clone(), reference.1.clone()), image.clone());
            task.spawn(renew(pools.clone(), object.clone(), reference, resolved).in_current_span());
            memory.resolving = Some(Resolving { image, task });
        }
        let timeout = || now.checked_add(SignedDuration::try_from(TIMEOUT).ok()?).ok();
        let next = if is_due { timeout() } else { resolution.next };
        Target { is_pending: resolution.is_pending(reference, now), next, resolution }
    })
}

/// Resolves the tag of a pool, and records the result.
///
/// If another resolution has taken its place, it records nothing.
async fn renew<R: Registry>(
    pools: Arc<NodePools<R>>,
    object: NodePool,
    (image_name, tag): (ImageName, Tag),
    image: Arc<PoolImage>,
) {
    let reference = (&image_name, &tag);
    let result = digest(&pools, &object, reference).await;
    if let Err(error) = &result {
        tracing::warn!(error, "the tag of the image cannot be resolved; the pool keeps its image");
    }
    let name = ObjectName::of(&object);
    pools.with_known_memory(&name, |memory| {
        if memory.resolving.as_ref().is_some_and(|resolving| Arc::ptr_eq(&resolving.image, &image)) {
            let resolution = memory.resolution.get_or_insert_default();
            resolution.record(reference, result, pools.options.tag_interval, pools.now());
            memory.resolving = None;
        }
    });
    pools.enqueue(&name.name);
}

async fn digest<R: Registry>(
    pools: &NodePools<R>,
    object: &NodePool,
    (name, tag): (&ImageName, &Tag),
) -> Result<Digest, String> {
    let address = RepositoryAddress::parse(&name.to_string(), false).map_err(|error| error.to_string())?;
    let repository = Arc::new(repository(object, name));
    let target = RepositoryTarget { repository, address, timeout: TIMEOUT, referred_from: None };
    let digest = pools.registry.digest(&target, tag.as_str()).await;
    let secret = object.spec.image.as_ref().and_then(|image| image.pull_secret_ref.as_ref());
    let digest = digest.map_err(|failure| {
        let advice = login_advice(&failure, secret).unwrap_or_default();
        failure.message.replace(INSECURE_ADVICE, TLS_ADVICE) + &advice
    })?;
    Digest::parse(&digest).map_err(|error| error.to_string())
}

/// Returns the remedy for a login that is missing or refused.
fn login_advice(failure: &LookupFailure, secret: Option<&PullSecretReference>) -> Option<String> {
    let names_secret = ["secret '", "secrets \""].iter().any(|text| failure.message.contains(text));
    (failure.kind == LookupFailureKind::Denied || names_secret).then(|| match secret {
        Some(PullSecretReference { namespace, name }) => format!(
            "; the key .dockerconfigjson of the Secret {namespace}/{name}, which spec.image.pullSecretRef names, must have \
             a login for the registry"
        ),
        None => "; if the registry needs a login, name its Secret in spec.image.pullSecretRef".to_owned(),
    })
}

/// Returns an ImageRepository with the image and the login of a pool.
fn repository(object: &NodePool, name: &ImageName) -> ImageRepository {
    let secret = object.spec.image.as_ref().and_then(|image| image.pull_secret_ref.as_ref());
    let spec = ImageRepositorySpec {
        image: name.to_string(),
        interval: GoDuration::from(TIMEOUT),
        timeout: None,
        secret_ref: secret.map(|secret| LocalObjectReference { name: secret.name.clone() }),
        proxy_secret_ref: None,
        service_account_name: None,
        cert_secret_ref: None,
        suspend: false,
        access_from: None,
        exclusion_list: Vec::new(),
        provider: ImageProvider::default(),
        insecure: false,
    };
    let mut repository = ImageRepository::new(&ObjectName::of(object).name, spec);
    repository.metadata.namespace = secret.map(|secret| secret.namespace.clone());
    repository
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_login_names_the_secret_its_key_and_the_field() {
        let secret = PullSecretReference { namespace: "fleet".to_owned(), name: "login".to_owned() };
        let advice = |kind, message: &str, secret| {
            login_advice(&LookupFailure { kind, message: message.to_owned(), retry_after: None }, secret)
        };
        let named = Some(
            "; the key .dockerconfigjson of the Secret fleet/login, which spec.image.pullSecretRef names, must have a login \
             for the registry"
                .to_owned(),
        );
        use LookupFailureKind::{Denied, Missing, Unavailable};
        assert_eq!(advice(Denied, "401", Some(&secret)), named);
        assert_eq!(advice(Unavailable, "secrets \"login\" not found", Some(&secret)), named);
        let unnamed = "; if the registry needs a login, name its Secret in spec.image.pullSecretRef";
        assert_eq!(advice(Denied, "401", None).as_deref(), Some(unnamed));
        assert_eq!(advice(Missing, "404", Some(&secret)), None);
        assert_eq!(advice(Unavailable, "registry.example.com/secrets/os: no answer", Some(&secret)), None);
    }
}
