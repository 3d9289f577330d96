//! The images of a run: what the policies choose from their registries, before anything is written to git.
//!
//! [`wanted`] says whose choice matters and what is scanned for it; [`scanning`] lists the tags, [`choosing`] lets the
//! policies choose, [`blocked`] says what becomes of those that cannot, [`permission`] which images a policy forbids, and
//! [`floating`] looks up the digests of tags that move. What comes of it is an [`Images`]. The reconciles are the controller's; [`memory`] is in the place of
//! the cluster.

mod blocked;
mod choice;
mod choosing;
mod floating;
mod memory;
mod permission;
mod scanning;
mod sources;
mod wanted;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use tagboat_api::ImageRef;

use crate::cancel::StopToken;
use crate::cli::Failure;
use crate::cli::run::signals;
use crate::cli::terminal::say;
use crate::objects::ObjectName;
use crate::objects::manifests::ManifestStore;
use crate::policy::DowngradeProtection;
use crate::polling::PollingInterval;
use crate::reconcile::automation::request::GivenImages;
use crate::reconcile::cross_namespace::CrossNamespace;
use crate::reconcile::policy::digest::FirstImage;
use crate::reconcile::policy::run::PolicyOptions;
use crate::reconcile::registries::KnownRegistries;
use crate::reconcile::repository::logins::Logins;
use crate::reconcile::repository::request::ObjectIdentity;
use crate::reconcile::tags::Shelf;
use crate::reconcile::times::TimeBounds;
use crate::reference::ImageReference;
use crate::registry::store::TagStore;
use crate::registry::{Registries, RegistryOptions};
use crate::tenancy::Capacity;
use crate::update::PolicyName;

use choice::Choice;
use memory::Memory;
use sources::Sources;
pub(super) use wanted::Wanted;

/// What the policies of a run chose, by name.
#[derive(Debug, Default)]
pub(super) struct Images {
    choices: BTreeMap<PolicyName, Choice>,
    /// What policies have that do not choose; nothing where they forbid it by now.
    resting: BTreeMap<PolicyName, Option<ImageRef>>,
}

impl Images {
    /// What came of a policy's choice, if there was one to make.
    pub(super) fn choice(&self, policy: &PolicyName) -> Option<&Choice> {
        self.choices.get(policy)
    }

    /// The images, as they count more than those of the manifests. Who was to choose and has none keeps none.
    pub(super) fn given(&self) -> GivenImages {
        let chosen = self.choices.iter().map(|(policy, choice)| (policy, &choice.latest));
        let all = chosen.chain(&self.resting);
        let mut given: GivenImages = all.clone().map(|(policy, _)| (policy.clone(), None)).collect();
        let images = all.filter_map(|(policy, image)| Some((policy, image.as_ref()?)));
        for (policy, ImageRef { name, tag, digest }) in images {
            match ImageReference::from_parts(name, tag, digest.as_deref()) {
                Ok(image) => {
                    given.insert(policy.clone(), Some(image));
                }
                Err(error) => {
                    say(&format!("warning: ImagePolicy {policy}: its image cannot be used: {error}"));
                }
            }
        }
        given
    }
}

/// What the choice goes by besides the objects.
#[derive(Debug)]
pub(super) struct ChoiceOptions {
    /// How long a lower winner must hold.
    pub(super) downgrade_protection: DowngradeProtection,
    /// Whether nothing is to be kept.
    pub(super) is_rehearsal: bool,
    /// The threads and the memory that all tenants share.
    pub(super) capacity: Capacity,
}

/// Scans and chooses; nothing is chosen by a run that is told to stop meanwhile.
///
/// # Errors
///
/// When the state cannot be read or kept.
pub(super) async fn choose(
    store: &ManifestStore,
    wanted: &Wanted,
    logins: Logins,
    options: &ChoiceOptions,
    stop: &StopToken,
) -> Result<Option<Images>, Failure> {
    let tags = match &store.state {
        None => TagStore::new(None),
        Some(state) if options.is_rehearsal => TagStore::dry_run(state.tags()),
        Some(state) => TagStore::new(Some(state.tags())),
    };
    let sources = Sources {
        registry: KnownRegistries {
            objects: store.clone(),
            registries: Registries::new(RegistryOptions::from_env()),
            logins,
        },
        shelf: Shelf::new(tags, options.capacity.clone()),
        memory: Memory::new(store.state.clone(), options.is_rehearsal),
        policies: PolicyOptions {
            cross_namespace: CrossNamespace::Allowed,
            identity: ObjectIdentity::On,
            requeue_dependency: Duration::from_secs(30),
            downgrade_protection: options.downgrade_protection,
            polling: PollingInterval::default(),
            first_image: FirstImage::LookedAt,
            times: TimeBounds::default(),
            capacity: options.capacity.clone(),
        },
    };
    tokio::select! {
        images = sources.images(wanted) => images.map(Some),
        () = signals::stopped(stop) => Ok(None),
    }
}

impl Sources {
    async fn images(&self, wanted: &Wanted) -> Result<Images, Failure> {
        let scanned = self.scan(&wanted.repositories).await?;
        let mut choices = self.let_choose(&wanted.policies, &scanned).await?;
        let manifests = &self.registry.objects.manifests;
        let there: BTreeSet<ObjectName> = manifests.repositories().map(ObjectName::of).collect();
        self.shelf.sweep_old(|name| there.contains(name), SystemTime::now());
        for (policy, choice) in &choices {
            for words in choice.held.iter().chain(&choice.stale) {
                say(&format!("warning: ImagePolicy {policy}: {words}"));
            }
        }
        let resting = self.resting(&wanted.resting, &mut choices)?;
        for (policy, rest) in &wanted.resting {
            let policy = PolicyName::from(&ObjectName::of(policy));
            if !resting.contains_key(&policy) && !choices.contains_key(&policy) {
                say(&format!("warning: {}", rest.without_image(&policy)));
            }
        }
        self.keep_given(&wanted.given)?;
        Ok(Images { choices, resting })
    }
}
