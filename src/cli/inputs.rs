//! Files, manifests and Secrets that the command line names, with warnings about them.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use kube::ResourceExt;
use tagboat_api::settings::{PolicySettings, RepositorySettings};
use tagboat_api::{ImagePolicy, ImageRepository};

use super::Failure;
use super::overrides::split_name;
use super::registry_login::RegistryLogin;
use super::terminal::say;
use crate::directory;
use crate::error::chain;
use crate::objects::manifests::{self, Defect, Manifests, SecretDirectory};
use crate::objects::{ObjectName, SecretAdvice};

/// Advice for secrets that are missing among the manifests.
pub(super) const SECRET_ADVICE: SecretAdvice = SecretAdvice {
    secret: "; give it as a Secret among the manifests or as --secret NAMESPACE/NAME=DIR",
    git_login: "; give it as a Secret among the manifests or as --secret NAMESPACE/NAME=DIR, or log in as yourself with \
                --git-login user",
    registry_login: "; give it as a Secret among the manifests or as --secret NAMESPACE/NAME=DIR, or log in as yourself \
                     with --registry-login user",
    ssh_key: "; name a Secret with the key in spec.secretRef of the GitRepository, or log in as yourself with \
              --git-login user",
};

/// Returns true for `-`, which stands for standard input.
pub(super) fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns the name of a file or of standard input in messages.
pub(super) fn input_name(path: &Path) -> String {
    if is_standard_input(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// Reads a file or standard input.
pub(super) fn read_input(path: &Path) -> io::Result<Vec<u8>> {
    if !is_standard_input(path) {
        return directory::read(path);
    }
    let mut content = Vec::new();
    io::stdin().lock().read_to_end(&mut content)?;
    Ok(content)
}

/// Reads manifests, without those in a state directory, and prints warnings about them.
pub(super) fn read_manifests(paths: &[PathBuf], state: Option<&Path>) -> Result<Manifests, Failure> {
    let manifests = manifests::read(paths, state)
        .map_err(|errors| Failure::Failed(errors.iter().map(|error| chain(error)).collect()))?;
    warn_of_manifests(&manifests);
    Ok(manifests)
}

/// Reads manifests for a command that needs a few of the objects only.
///
/// Those in a state directory are left out. Returns the defects of all objects; those of other objects are no error of
/// the command.
pub(super) fn read_manifests_in_part(paths: &[PathBuf], state: Option<&Path>) -> (Manifests, Vec<Defect>) {
    let (manifests, defects) = manifests::read_in_part(paths, state);
    if defects.is_empty() {
        warn_of_manifests(&manifests);
    } else {
        warn_of_notes(&manifests);
    }
    (manifests, defects)
}

fn warn_of_manifests(manifests: &Manifests) {
    warn_of_notes(manifests);
    if manifests.policies().next().is_none() {
        say("warning: there is no ImagePolicy among the manifests");
    }
}

fn warn_of_notes(manifests: &Manifests) {
    for note in &manifests.notes {
        say(&format!("warning: {note}"));
    }
}

/// Warns of invalid `tagboat.dev/` annotations of a policy.
///
/// This is for policies that the run does not reconcile: a reconcile fails with them.
pub(super) fn warn_of_settings(policy: &ImagePolicy) {
    if let Err(errors) = PolicySettings::from_annotations(policy.annotations()) {
        say(&format!("warning: ImagePolicy {}: {}", ObjectName::of(policy), chain(&errors)));
    }
}

/// Warns of invalid `tagboat.dev/` annotations of an ImageRepository that the run does not reconcile.
pub(super) fn warn_of_repository_settings(repository: &ImageRepository) {
    if let Err(errors) = RepositorySettings::from_annotations(repository.annotations()) {
        say(&format!("warning: ImageRepository {}: {}", ObjectName::of(repository), chain(&errors)));
    }
}

/// Returns the Secrets that a scan with this login reads.
///
/// They are named by the repository and its service account.
pub(super) fn secrets_of(
    repository: &ImageRepository,
    manifests: &Manifests,
    login: RegistryLogin,
) -> Vec<ObjectName> {
    let ObjectName { namespace, .. } = ObjectName::of(repository);
    let spec = &repository.spec;
    let login = Some(spec).filter(|_| login == RegistryLogin::Secrets);
    let account = login.and_then(|spec| spec.service_account_name.as_deref());
    // The scan reports an account that is missing or invalid.
    let pulled = account.and_then(|name| manifests.pull_secrets(&namespace, name).ok().flatten());
    let own = login.and_then(|spec| spec.secret_ref.as_ref());
    let named = own.into_iter().chain(&spec.cert_secret_ref).chain(&spec.proxy_secret_ref);
    let names = named.map(|secret| &secret.name).chain(pulled.into_iter().flatten());
    names.map(|name| ObjectName { namespace: namespace.clone(), name: name.clone() }).collect()
}

/// Parses `--secret`.
pub(super) fn secret_directory(text: &str) -> Result<SecretDirectory, Failure> {
    let (name, directory) = text
        .split_once('=')
        .filter(|(name, directory)| !name.is_empty() && !directory.is_empty())
        .ok_or_else(|| {
            Failure::Usage(format!("--secret {text:?} is not of the form [NAMESPACE/]NAME=DIR"))
        })?;
    match std::fs::metadata(directory) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => {
            return Err(Failure::Usage(format!("--secret {text:?}: {directory} is not a directory")));
        }
        Err(error) => return Err(Failure::Usage(format!("--secret {text:?}: {directory}: {error}"))),
    }
    let (namespace, name) = split_name(name);
    Ok(SecretDirectory {
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
        directory: directory.into(),
    })
}
