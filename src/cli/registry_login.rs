//! Who logs in to registries from the command line.

use std::path::PathBuf;

use clap::ValueEnum;
use tagboat_api::ImageRepository;
use tagboat_api::repository::ImageProvider;

use super::Failure;
use super::terminal::say;
use crate::reference::RepositoryAddress;
use crate::registry::{Credential, DockerConfig};

/// Who logs in to registries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum RegistryLogin {
    /// The secrets that are given.
    Secrets,
    /// You: the logins that docker or podman keep in your config.json.
    User,
}

/// A repository that the caller's own login is for: what it says of logins does not count.
pub(super) fn without_logins(mut repository: ImageRepository) -> ImageRepository {
    let spec = &mut repository.spec;
    (spec.secret_ref, spec.service_account_name, spec.provider) = (None, None, ImageProvider::Generic);
    repository
}

/// The caller's own login for a repository.
pub(super) fn of_the_user(address: &RepositoryAddress) -> Result<Credential, Failure> {
    let path = path()?;
    let failed = |flaw: &dyn std::fmt::Display| Failure::new(format!("{}: {flaw}", path.display()));
    let bytes = std::fs::read(&path).map_err(|error| failed(&error))?;
    let config = DockerConfig::from_json(&bytes).map_err(|error| failed(&error))?;
    let credential = config.login(address);
    if matches!(credential, Credential::Anonymous) {
        let mut programs = ["credsStore", "credHelpers"].into_iter();
        let names: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(&bytes).unwrap_or_default();
        let reason = match programs.find(|name| names.contains_key(*name)) {
            Some(name) => format!("; it names programs that have logins ({name}), which are not started"),
            None => String::new(),
        };
        say(&format!(
            "warning: {} has no login for {}{reason}; the registry is asked without one",
            path.display(),
            address.canonical()
        ));
    }
    Ok(credential)
}

/// Where docker keeps its logins.
fn path() -> Result<PathBuf, Failure> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let directory = set("DOCKER_CONFIG").or_else(|| Some(set("HOME")?.join(".docker")));
    let directory = directory.ok_or_else(|| {
        Failure::new("there is no place to look for your logins: neither DOCKER_CONFIG nor HOME is set")
    })?;
    Ok(directory.join("config.json"))
}
