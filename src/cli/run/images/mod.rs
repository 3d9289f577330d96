//! Images of a run: the choices of policies, made before anything is written to git.
//!
//! [`selection`] finds the policies that choose and the repositories to scan; [`scanning`] lists the tags, [`resolve`]
//! reconciles the policies, [`unavailable`] handles those of repositories without tags, [`allowed`] checks images against
//! policies, [`groups`] finds the release groups, [`digests`] looks up the digests of floating tags, and [`left_out`] reads the
//! images of the policies that are not chosen. The result is an [`Images`]. The reconciles are those
//! of the controller; [`state`] takes the place of the cluster.

mod allowed;
mod choice;
mod digests;
mod groups;
mod left_out;
mod resolve;
mod scanning;
mod selection;
mod sources;
mod state;
mod unavailable;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use tagboat_api::ImageRef;

use crate::cancel::StopToken;
use crate::cli::Failure;
use crate::cli::terminal::say;
use crate::objects::ObjectName;
use crate::objects::manifests::ManifestStore;
use crate::policy::DowngradeProtection;
use crate::polling::PollingInterval;
use crate::reconcile::automation::request::ImageOverrides;
use crate::reconcile::cross_namespace::CrossNamespace;
use crate::reconcile::policy::digest::FirstImage;
use crate::reconcile::policy::run::PolicyOptions;
use crate::reconcile::registries::AuthenticatedRegistries;
use crate::reconcile::repository::logins::Logins;
use crate::reconcile::repository::request::ObjectIdentity;
use crate::reconcile::tags::SharedTagStore;
use crate::reconcile::times::TimeBounds;
use crate::reference::ImageReference;
use crate::registry::store::TagStore;
use crate::registry::{Registries, RegistryOptions};
use crate::tenancy::Capacity;

use choice::Choice;
pub(super) use left_out::left_out;
pub(super) use selection::Selection;
use sources::Sources;
use state::RunState;

/// The images of policies, by name.
#[derive(Debug, Default)]
pub(super) struct Images {
    choices: BTreeMap<ObjectName, Choice>,
    /// The images of policies that did not choose; none if the policy forbids it now.
    skipped: BTreeMap<ObjectName, Option<ImageRef>>,
}

impl Images {
    /// Returns the choice of a policy, if it chose.
    pub(super) fn choice(&self, policy: &ObjectName) -> Option<&Choice> {
        self.choices.get(policy)
    }

    /// Returns the images in the form of `--latest`, which takes precedence over the manifests.
    ///
    /// A policy that chose no image gets none.
    pub(super) fn overrides(&self) -> ImageOverrides {
        let chosen = self.choices.iter().map(|(policy, choice)| (policy, &choice.latest));
        let all = chosen.chain(&self.skipped);
        let mut overrides: ImageOverrides = all.clone().map(|(policy, _)| (policy.clone(), None)).collect();
        let images = all.filter_map(|(policy, image)| Some((policy, image.as_ref()?)));
        for (policy, ImageRef { name, tag, digest }) in images {
            match ImageReference::from_parts(name, tag, digest.as_deref()) {
                Ok(image) => {
                    overrides.insert(policy.clone(), Some(image));
                }
                Err(error) => {
                    say(&format!("warning: ImagePolicy {policy}: its image cannot be used: {error}"));
                }
            }
        }
        overrides
    }
}

/// Options of the choice.
#[derive(Debug)]
pub(super) struct ChoiceOptions {
    /// The conditions under which a downgrade counts.
    pub(super) downgrade_protection: DowngradeProtection,
    /// True if nothing is saved.
    pub(super) is_dry_run: bool,
    /// The threads and the memory that all tenants share.
    pub(super) capacity: Capacity,
}

/// Scans repositories and lets policies choose. Returns `None` if `stop` is given meanwhile.
///
/// # Errors
///
/// If the state cannot be read or saved.
pub(super) async fn choose(
    store: &ManifestStore,
    selection: &Selection,
    logins: Logins,
    options: &ChoiceOptions,
    stop: &StopToken,
) -> Result<Option<Images>, Failure> {
    let tags = match &store.state {
        None => TagStore::new(None),
        Some(state) if options.is_dry_run => TagStore::dry_run(state.tags()),
        Some(state) => TagStore::new(Some(state.tags())),
    };
    let sources = Sources {
        registry: AuthenticatedRegistries {
            objects: store.clone(),
            registries: Registries::new(RegistryOptions::from_env()),
            logins,
        },
        tag_store: SharedTagStore::new(tags, options.capacity.clone()),
        state: RunState::new(store.state.clone(), options.is_dry_run),
        policies: PolicyOptions {
            cross_namespace: CrossNamespace::Allowed,
            identity: ObjectIdentity::On,
            requeue_dependency: Duration::from_secs(30),
            downgrade_protection: options.downgrade_protection,
            polling: PollingInterval::default(),
            first_image: FirstImage::LookedUp,
            times: TimeBounds::default(),
            capacity: options.capacity.clone(),
        },
    };
    tokio::select! {
        images = sources.images(selection) => images.map(Some),
        () = stop.cancelled() => Ok(None),
    }
}

impl Sources {
    async fn images(&self, selection: &Selection) -> Result<Images, Failure> {
        let scanned = self.scan(&selection.repositories).await?;
        let mut choices = self.resolve(selection, &scanned).await?;
        let manifests = &self.registry.objects.manifests;
        let there: BTreeSet<ObjectName> = manifests.repositories().map(ObjectName::of).collect();
        self.tag_store.sweep_old(|name| there.contains(name), SystemTime::now());
        for (policy, choice) in &choices {
            for message in choice.held.iter().chain(&choice.stale) {
                say(&format!("warning: ImagePolicy {policy}: {message}"));
            }
        }
        let skipped = self.skipped(&selection.skipped, &mut choices)?;
        for (policy, reason) in &selection.skipped {
            let policy = ObjectName::of(policy);
            if !skipped.contains_key(&policy) && !choices.contains_key(&policy) {
                say(&format!("warning: {}", reason.without_image(&policy)));
            }
        }
        self.save_overrides(&selection.overrides)?;
        Ok(Images { choices, skipped })
    }
}
