//! Inputs of a run: manifests, state and options, read and checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::reference::LocalObjectReference;
use tagboat_api::{GitRepository, ImageUpdateAutomation};

use super::arguments::{GitLogin, RunArguments};
use super::images::{ChoiceOptions, Selection, left_out};
use crate::cli::Failure;
use crate::cli::choice::{choose_automation, full_name};
use crate::cli::inputs::{SECRET_ADVICE, read_manifests, secret_directory};
use crate::cli::namespace_rules::namespace_rules;
use crate::cli::overrides::image_overrides;
use crate::cli::terminal::say;
use crate::cli::warnings::warn_of_idle_secrets;
use crate::cloud::Clouds;
use crate::error::chain;
use crate::forge::{ForgeClientOptions, ForgeClients};
use crate::git::{CommitTime, Keyring, PrivateDirectory, PrivateFiles, ProcessEnv, SshAlgorithms};
use crate::metrics::Metrics;
use crate::net::LocalAddresses;
use crate::objects::manifests::{
    Destination, ManifestStore, Manifests, SecretDirectory, StateDirectory, StateError,
};
use crate::policy::DowngradeProtection;
use crate::reconcile::automation::batch_logins::BatchLogins;
use crate::reconcile::automation::login::LoginOptions;
use crate::reconcile::automation::proposal::Detail;
use crate::reconcile::automation::provider_login::GitClouds;
use crate::reconcile::automation::pull_requests::{PullRequestQueue, PullRequestQueueOptions};
use crate::reconcile::automation::request::ImageOverrides;
use crate::reconcile::automation::siblings::Siblings;
use crate::reconcile::automation::source::ObjectName;
use crate::reconcile::automation::transaction::TransactionOptions;
use crate::reconcile::automation::waiting::WriteRules;
use crate::reconcile::branch_references::BranchReferences;
use crate::reconcile::cross_namespace::CrossNamespace;
use crate::reconcile::repository::logins::Logins;
use crate::reconcile::repository::request::ObjectIdentity;
use crate::reconcile::times::TimeBounds;
use crate::registry::RegistryOptions;
use crate::tenancy::Capacity;

/// The inputs of a run.
pub(super) struct Inputs {
    pub(super) store: ManifestStore,
    pub(super) automations: Vec<ImageUpdateAutomation>,
    /// The automations of each namespace and GitRepository, among them those that are not reconciled.
    pub(super) siblings: BTreeMap<(String, ObjectName), Siblings>,
    /// The full names of automations that changed, or whose source did, since they last succeeded.
    pub(super) new: Vec<String>,
    pub(super) started: Timestamp,
    pub(super) options: TransactionOptions,
    pub(super) mirrors: Mirrors,
    /// The maximum size of all mirrors together, in bytes.
    pub(super) mirrors_size: u64,
    /// The policies that choose images from registries, and their repositories.
    pub(super) selection: Selection,
    pub(super) registry_logins: Logins,
    pub(super) choice: ChoiceOptions,
}

/// The directory of the mirrors.
pub(super) enum Mirrors {
    /// In the state directory.
    InStateDirectory(PathBuf),
    /// In a directory that the end of the run removes, or the next sweep.
    Temporary(PrivateDirectory),
}

impl Mirrors {
    /// Returns the directory.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::InStateDirectory(path) => path,
            Self::Temporary(directory) => directory.path(),
        }
    }
}

impl Inputs {
    /// Reads the manifests and the state of earlier runs.
    pub(super) fn read(arguments: &RunArguments) -> Result<Self, Failure> {
        let secrets: Vec<SecretDirectory> =
            arguments.secret.iter().map(|text| secret_directory(text)).collect::<Result<_, _>>()?;
        let manifests = read_manifests(&arguments.manifests, arguments.state.as_deref())?;
        let mut automations: Vec<ImageUpdateAutomation> = manifests.automations().cloned().collect();
        if let Some(requested) = &arguments.reconcile.automation {
            automations = choose_automation(&manifests, Some(requested))?.cloned().into_iter().collect();
        }
        if automations.is_empty() {
            return Err(Failure::new("there is no ImageUpdateAutomation among the manifests"));
        }
        let chosen: Vec<&ImageUpdateAutomation> = automations.iter().collect();
        let given = image_overrides(&arguments.reconcile.latest, &manifests, &chosen)?;
        let selection = match arguments.no_scan {
            true => Selection::without_scans(&manifests, &automations, &given),
            false => Selection::of(&manifests, &automations, &given),
        };
        selection.warn_of_idle_settings(&manifests);
        let given_secrets: Vec<_> = arguments.secret.iter().map(String::as_str).zip(&secrets).collect();
        let mut required_secrets = required_secrets(&automations, &manifests, arguments.git_login);
        required_secrets.extend(selection.secrets(&manifests, arguments.registry_login));
        let reason = "neither these automations nor their GitRepositories and ImageRepositories name it";
        warn_of_idle_secrets(&given_secrets, &required_secrets, reason);
        let registry_logins = match selection.scans_anything() {
            true => arguments.registry_login.logins()?,
            false => Logins::default(),
        };
        let state = arguments.state.as_deref().map(StateDirectory::new);
        let mut new = Vec::new();
        if let Some(state) = &state {
            let failed = |error: StateError| Failure::new(chain(&error));
            for automation in &mut automations {
                state.load_automation(automation).map_err(failed)?;
                let Some(source) = source_of(automation, &manifests) else { continue };
                if state.has_changed(automation, source).map_err(failed)? {
                    new.push(full_name(automation));
                }
                let (now, before) = (Destination::of(automation, source), state.destination(automation));
                if let Some(before) = before.map_err(failed)?.filter(|before| *before != now) {
                    say(&format!(
                        "warning: {}: with this state it was last run for {before}, and now for {now}: if these are two sets of \
                         manifests, give each its own --state; if the repository or the branch has changed, ignore this",
                        full_name(automation)
                    ));
                }
            }
        } else {
            for automation in &mut automations {
                automation.status = None;
            }
        }
        // Without a name, all active automations are reconciled, and their policies choose.
        let images = match &state {
            Some(state) if arguments.reconcile.automation.is_some() => {
                left_out(&manifests, &selection, &given, state)
                    .map_err(|error| Failure::new(chain(&error)))?
            }
            _ => ImageOverrides::new(),
        };
        let siblings = siblings(&manifests, &automations, &images);
        let mirrors = match &arguments.state {
            Some(state) => Mirrors::InStateDirectory(state.join("mirrors")),
            None => Mirrors::Temporary(
                PrivateDirectory::create_on_disk().map_err(|error| Failure::new(chain(&error)))?,
            ),
        };
        let here = std::env::current_dir()
            .map_err(|error| Failure::new(format!("cannot read the current directory: {error}")))?;
        let capacity = Capacity::default();
        let forges = ForgeClients::new(ForgeClientOptions {
            capacity: capacity.clone(),
            gives_up: true,
            ..ForgeClientOptions::default()
        });
        let pull_requests = PullRequestQueue::new(PullRequestQueueOptions {
            clients: forges.clone(),
            pool: capacity.pool.clone(),
            metrics: Metrics::default(),
            on_progress: None,
            is_dry_run: arguments.reconcile.dry_run,
        });
        let options = TransactionOptions {
            ends_branches_only: false,
            named: given.keys().cloned().collect(),
            given,
            cross_namespace: CrossNamespace::Allowed,
            login: LoginOptions {
                local_addresses: LocalAddresses::Allowed,
                local_paths: Some(here),
                is_of_the_user: arguments.git_login == GitLogin::User,
                process_env: ProcessEnv::from_process(),
                ssh_algorithms: SshAlgorithms::default(),
                mirror_size: arguments.mirror_max_size.0,
                files: PrivateFiles::default(),
                capacity: capacity.clone(),
                git: GitClouds {
                    clouds: Arc::new(clouds(&capacity)),
                    identity: ObjectIdentity::On,
                    accounts: None,
                },
                forges,
                large: None,
            },
            logins: BatchLogins::default(),
            keyring: Keyring::new(capacity.clone()),
            time: CommitTime::now(),
            detail: if arguments.reconcile.dry_run { Detail::Diff } else { Detail::Everything },
            is_forced: false,
            times: TimeBounds::default(),
            references: BranchReferences::default(),
            pull_requests,
            rules: Some(WriteRules {
                reader: namespace_rules(&manifests).map_err(|error| Failure::new(error.to_string()))?,
                ignores_own: arguments.now,
                ..WriteRules::default()
            }),
            known_wait: None,
            siblings: Siblings::default(),
        };
        let store = ManifestStore { manifests: manifests.into(), secrets, state, advice: SECRET_ADVICE };
        let started = Timestamp::now();
        let default = DowngradeProtection::default();
        let downgrade_protection = DowngradeProtection {
            scans: arguments.regression_scans.unwrap_or(default.scans),
            time: arguments.regression_time.unwrap_or(default.time),
        };
        if arguments.state.is_none() {
            warn_of_idle_downgrade_protection(arguments, downgrade_protection);
        }
        let choice =
            ChoiceOptions { downgrade_protection, is_dry_run: arguments.reconcile.dry_run, capacity };
        let mirrors_size = arguments.mirrors_max_size.0;
        Ok(Self {
            store,
            automations,
            siblings,
            new,
            started,
            options,
            mirrors,
            mirrors_size,
            selection,
            registry_logins,
            choice,
        })
    }
}

/// Warns of `--regression-…` options without a state, in which scans are counted.
///
/// Options with which one scan is enough need no state.
fn warn_of_idle_downgrade_protection(arguments: &RunArguments, downgrade_protection: DowngradeProtection) {
    let scans = arguments.regression_scans.map(|_| "--regression-scans");
    let time = arguments.regression_time.map(|_| "--regression-time");
    let names: Vec<&str> = scans.into_iter().chain(time).collect();
    if names.is_empty() || downgrade_protection.scans <= 1 && downgrade_protection.time.is_zero() {
        return;
    }
    let verb = if names.len() > 1 { "have" } else { "has" };
    say(&format!(
        "warning: {} {verb} no effect without --state: scans are not counted from run to run; a lower image than \
         status.latestRef of the manifest is held until --latest or another status.latestRef permits it, and without \
         status.latestRef a deleted tag downgrades at once",
        names.join(" and ")
    ));
}

/// Returns all automations, by their namespace and GitRepository.
///
/// Those in `chosen` are reconciled and have their status. Of the others, the status is not needed; `images` are those of their
/// policies that the manifests lack.
fn siblings(
    manifests: &Manifests,
    chosen: &[ImageUpdateAutomation],
    images: &ImageOverrides,
) -> BTreeMap<(String, ObjectName), Siblings> {
    let chosen: BTreeMap<ObjectName, &ImageUpdateAutomation> =
        chosen.iter().map(|automation| (ObjectName::of(automation), automation)).collect();
    let mut groups: BTreeMap<_, Vec<Arc<ImageUpdateAutomation>>> = BTreeMap::new();
    for automation in manifests.automations() {
        let automation = chosen.get(&ObjectName::of(automation)).copied().unwrap_or(automation);
        groups.entry(group_of(automation)).or_default().push(Arc::new(automation.clone()));
    }
    let is_chosen = |automation: &ImageUpdateAutomation| chosen.contains_key(&ObjectName::of(automation));
    let siblings = |automations| Siblings::with_images(automations, images.clone(), is_chosen);
    groups.into_iter().map(|(group, automations)| (group, siblings(automations))).collect()
}

/// Returns the namespace and the GitRepository of an automation.
pub(super) fn group_of(automation: &ImageUpdateAutomation) -> (String, ObjectName) {
    (automation.namespace().unwrap_or_default(), automation.git_repository())
}

/// Returns the GitRepository of an automation, if it is among the manifests.
pub(super) fn source_of<'m>(
    automation: &ImageUpdateAutomation,
    manifests: &'m Manifests,
) -> Option<&'m GitRepository> {
    let ObjectName { namespace, name } = automation.git_repository();
    manifests.git_repository(&namespace, &name)
}

/// Returns the Secrets of automations and their sources that a run with this login reads.
fn required_secrets(
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

/// Returns the full name of a reference within the namespace of an object.
fn beside(object: &impl ResourceExt, reference: &LocalObjectReference) -> ObjectName {
    ObjectName { namespace: object.namespace().unwrap_or_default(), name: reference.name.clone() }
}

/// Returns the logins at clouds, with the identity in the environment.
fn clouds(capacity: &Capacity) -> Clouds {
    let options = RegistryOptions { capacity: capacity.clone(), ..RegistryOptions::from_env() };
    Clouds::new(options.http(), options.clouds)
}
