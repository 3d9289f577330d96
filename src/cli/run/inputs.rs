//! What the command line asks of a run.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::reference::LocalObjectReference;
use tagboat_api::{GitRepository, ImageUpdateAutomation};

use super::arguments::{GitLogin, RunArguments};
use super::images::{ChoiceOptions, Wanted};
use crate::cli::Failure;
use crate::cli::choice::{choose_automation, full_name};
use crate::cli::given::given_images;
use crate::cli::inputs::{read_manifests, secret_directory};
use crate::cli::terminal::say;
use crate::cli::warnings::warn_of_idle_secrets;
use crate::error::chain;
use crate::git::{CommitTime, Keyring, PrivateDirectory, PrivateFiles, SshAlgorithms, Surroundings};
use crate::net::LocalAddresses;
use crate::objects::manifests::{
    Destination, ManifestStore, Manifests, SecretDirectory, StateDirectory, StateError,
};
use crate::policy::DowngradeProtection;
use crate::reconcile::automation::batch_logins::BatchLogins;
use crate::reconcile::automation::login::LoginOptions;
use crate::reconcile::automation::proposal::Detail;
use crate::reconcile::automation::source::ObjectName;
use crate::reconcile::automation::transaction::TransactionOptions;
use crate::reconcile::cross_namespace::CrossNamespace;
use crate::reconcile::repository::logins::Logins;
use crate::reconcile::times::TimeBounds;
use crate::tenancy::Capacity;

/// What the command line asks for, read and checked.
pub(super) struct Inputs {
    pub(super) store: ManifestStore,
    pub(super) automations: Vec<ImageUpdateAutomation>,
    /// The full names of automations that are others than in their last run that succeeded, or whose source is.
    pub(super) new: Vec<String>,
    pub(super) started: Timestamp,
    pub(super) options: TransactionOptions,
    pub(super) mirrors: Mirrors,
    /// The size that all of them may have together, in bytes.
    pub(super) mirrors_size: u64,
    /// Whose images are chosen from registries, and how.
    pub(super) wanted: Wanted,
    pub(super) registry_logins: Logins,
    pub(super) choice: ChoiceOptions,
}

/// Where mirrors are.
pub(super) enum Mirrors {
    /// In the state directory.
    Kept(PathBuf),
    /// In a directory that goes when the run ends, or with the next sweep.
    Temporary(PrivateDirectory),
}

impl Mirrors {
    /// The directory.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(directory) => directory.path(),
        }
    }
}

impl Inputs {
    /// Reads the manifests and what is known of earlier runs.
    pub(super) fn read(arguments: &RunArguments) -> Result<Self, Failure> {
        let secrets: Vec<SecretDirectory> =
            arguments.secret.iter().map(|text| secret_directory(text)).collect::<Result<_, _>>()?;
        let manifests = read_manifests(&arguments.manifests)?;
        let mut automations: Vec<ImageUpdateAutomation> = manifests.automations().cloned().collect();
        if let Some(wanted) = &arguments.reconcile.automation {
            automations = choose_automation(&manifests, Some(wanted))?.cloned().into_iter().collect();
        }
        if automations.is_empty() {
            return Err(Failure::new("there is no ImageUpdateAutomation among the manifests"));
        }
        let chosen: Vec<&ImageUpdateAutomation> = automations.iter().collect();
        let given = given_images(&arguments.reconcile.latest, &manifests, &chosen)?;
        let wanted = match arguments.no_scan {
            true => Wanted::without_scans(&manifests, &automations, &given),
            false => Wanted::of(&manifests, &automations, &given),
        };
        wanted.warn_of_idle_settings(&manifests);
        let given_secrets: Vec<_> = arguments.secret.iter().map(String::as_str).zip(&secrets).collect();
        let mut wanted_secrets = wanted_secrets(&automations, &manifests, arguments.git_login);
        wanted_secrets.extend(wanted.secrets(&manifests, arguments.registry_login));
        let askers = "neither these automations nor their GitRepositories and ImageRepositories ask for it";
        warn_of_idle_secrets(&given_secrets, &wanted_secrets, askers);
        let registry_logins = match wanted.scans_anything() {
            true => arguments.registry_login.logins()?,
            false => Logins::default(),
        };
        let state = arguments.state.as_deref().map(StateDirectory::new);
        let mut new = Vec::new();
        if let Some(state) = &state {
            let failed = |error: StateError| Failure::new(chain(&error));
            for automation in &mut automations {
                state.recall(automation).map_err(failed)?;
                let Some(source) = source_of(automation, &manifests) else { continue };
                if state.is_new(automation, source).map_err(failed)? {
                    new.push(full_name(automation));
                }
                let (now, before) = (Destination::of(automation, source), state.destination(automation));
                if let Some(before) = before.map_err(failed)?.filter(|before| *before != now) {
                    say(&format!(
                        "warning: {}: with this state it was last run for {before}, and now for {now}: if these are two sets of \
                         manifests, give each a --state of its own; if the repository or the branch is another now, all is well",
                        full_name(automation)
                    ));
                }
            }
        } else {
            for automation in &mut automations {
                automation.status = None;
            }
        }
        let mirrors = match &arguments.state {
            Some(state) => Mirrors::Kept(state.join("mirrors")),
            None => Mirrors::Temporary(
                PrivateDirectory::create_on_disk().map_err(|error| Failure::new(chain(&error)))?,
            ),
        };
        let here = std::env::current_dir()
            .map_err(|error| Failure::new(format!("cannot tell the current directory: {error}")))?;
        let capacity = Capacity::default();
        let options = TransactionOptions {
            given,
            cross_namespace: CrossNamespace::Allowed,
            login: LoginOptions {
                local_addresses: LocalAddresses::Allowed,
                local_paths: Some(here),
                is_of_the_user: arguments.git_login == GitLogin::User,
                surroundings: Surroundings::of_this_process(),
                ssh_algorithms: SshAlgorithms::default(),
                mirror_size: arguments.mirror_max_size.0,
                files: PrivateFiles::default(),
                capacity: capacity.clone(),
                large: None,
            },
            logins: BatchLogins::default(),
            keyring: Keyring::new(capacity.clone()),
            time: CommitTime::now(),
            detail: if arguments.reconcile.dry_run { Detail::Diff } else { Detail::Everything },
            is_forced: false,
            times: TimeBounds::default(),
        };
        let store = ManifestStore { manifests: manifests.into(), secrets, state };
        let started = Timestamp::now();
        let default = DowngradeProtection::default();
        let downgrade_protection = DowngradeProtection {
            scans: arguments.regression_scans.unwrap_or(default.scans),
            time: arguments.regression_time.unwrap_or(default.time),
        };
        if arguments.state.is_none() {
            warn_of_idle_downgrade_protection(arguments, downgrade_protection);
        }
        let choice = ChoiceOptions { downgrade_protection, is_rehearsal: arguments.reconcile.dry_run, capacity };
        let mirrors_size = arguments.mirrors_max_size.0;
        Ok(Self {
            store,
            automations,
            new,
            started,
            options,
            mirrors,
            mirrors_size,
            wanted,
            registry_logins,
            choice,
        })
    }
}

/// Says so where nothing is remembered that could be counted. That a lower image need not be seen twice takes no memory.
fn warn_of_idle_downgrade_protection(arguments: &RunArguments, downgrade_protection: DowngradeProtection) {
    let scans = arguments.regression_scans.map(|_| "--regression-scans");
    let time = arguments.regression_time.map(|_| "--regression-time");
    let names: Vec<&str> = scans.into_iter().chain(time).collect();
    if names.is_empty() || downgrade_protection.scans <= 1 && downgrade_protection.time.is_zero() {
        return;
    }
    let verb = if names.len() > 1 { "have" } else { "has" };
    say(&format!(
        "warning: {} {verb} no effect without --state: nothing is counted from run to run, so a lower image waits until \
         --latest or another status.latestRef lets it count",
        names.join(" and ")
    ));
}

/// The GitRepository that an automation works on, if it is among the manifests.
pub(super) fn source_of<'m>(
    automation: &ImageUpdateAutomation,
    manifests: &'m Manifests,
) -> Option<&'m GitRepository> {
    let own = automation.namespace().unwrap_or_default();
    let reference = &automation.spec.source_ref;
    manifests.git_repository(reference.effective_namespace(&own), &reference.name)
}

/// The secrets that automations and their sources name, as far as somebody asks for them.
fn wanted_secrets(
    automations: &[ImageUpdateAutomation],
    manifests: &Manifests,
    login: GitLogin,
) -> Vec<ObjectName> {
    let mut names = Vec::new();
    for automation in automations {
        let key = automation.spec.git.as_ref().and_then(|git| git.commit.signing_key.as_ref());
        names.extend(key.map(|key| beside(automation, &key.secret_ref)));
        let Some(source) = source_of(automation, manifests) else { continue };
        let login = source.spec.secret_ref.as_ref().filter(|_| login == GitLogin::Secrets);
        let secrets = login.into_iter().chain(&source.spec.proxy_secret_ref);
        names.extend(secrets.map(|secret| beside(source, secret)));
    }
    names
}

/// The full name of what an object refers to in its own namespace.
fn beside(object: &impl ResourceExt, reference: &LocalObjectReference) -> ObjectName {
    ObjectName { namespace: object.namespace().unwrap_or_default(), name: reference.name.clone() }
}
