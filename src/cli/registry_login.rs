//! Who logs in to registries from the command line.

use std::path::PathBuf;

use clap::ValueEnum;

use super::Failure;
use crate::directory;
use crate::reconcile::repository::logins::{GivenLogins, Logins};
use crate::registry::DockerConfig;

/// Who logs in to registries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum RegistryLogin {
    /// The secrets that are given.
    Secrets,
    /// You: the logins that docker or podman keep in your config.json.
    User,
}

impl RegistryLogin {
    /// Who that is for objects.
    ///
    /// # Errors
    ///
    /// When the caller's logins cannot be read.
    pub(super) fn logins(self) -> Result<Logins, Failure> {
        match self {
            Self::Secrets => Ok(Logins::default()),
            Self::User => of_the_user().map(Logins::Given),
        }
    }
}

/// The caller's own logins.
pub(super) fn of_the_user() -> Result<GivenLogins, Failure> {
    let path = path()?;
    let failed = |flaw: &dyn std::fmt::Display| Failure::new(format!("{}: {flaw}", path.display()));
    let bytes = directory::read(&path).map_err(|error| failed(&error))?;
    let logins = DockerConfig::from_json(&bytes).map_err(|error| failed(&error))?;
    let mut programs = ["credsStore", "credHelpers"].into_iter();
    let names: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(&bytes).unwrap_or_default();
    let remark = match programs.find(|name| names.contains_key(*name)) {
        Some(name) => format!("; it names programs that have logins ({name}), which are not started"),
        None => String::new(),
    };
    Ok(GivenLogins { logins, origin: path.display().to_string(), remark })
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
