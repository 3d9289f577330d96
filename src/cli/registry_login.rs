//! Sources of registry logins on the command line.

use std::path::PathBuf;

use clap::ValueEnum;

use super::Failure;
use crate::directory;
use crate::reconcile::repository::logins::{GivenLogins, Logins};
use crate::registry::DockerConfig;

/// The source of registry logins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum RegistryLogin {
    /// The Secrets that are given.
    Secrets,
    /// Your own logins, which docker or podman keep in config.json.
    User,
}

impl RegistryLogin {
    /// Returns the logins for objects.
    ///
    /// # Errors
    ///
    /// If the user's logins cannot be read.
    pub(super) fn logins(self) -> Result<Logins, Failure> {
        match self {
            Self::Secrets => Ok(Logins::default()),
            Self::User => of_the_user().map(Logins::Given),
        }
    }
}

/// Reads the user's own logins.
pub(super) fn of_the_user() -> Result<GivenLogins, Failure> {
    let path = path()?;
    let failed = |error: &dyn std::fmt::Display| Failure::new(format!("{}: {error}", path.display()));
    let bytes = directory::read(&path).map_err(|error| failed(&error))?;
    let logins = DockerConfig::from_json(&bytes).map_err(|error| failed(&error))?;
    let mut programs = ["credsStore", "credHelpers"].into_iter();
    let names: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(&bytes).unwrap_or_default();
    let remark = match programs.find(|name| names.contains_key(*name)) {
        Some(name) => format!("; its credential helpers ({name}) are not started"),
        None => String::new(),
    };
    Ok(GivenLogins { logins, origin: path.display().to_string(), remark })
}

/// Returns the path of docker's config.json.
fn path() -> Result<PathBuf, Failure> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let directory = set("DOCKER_CONFIG").or_else(|| Some(set("HOME")?.join(".docker")));
    let directory = directory
        .ok_or_else(|| Failure::new("your logins cannot be found: neither DOCKER_CONFIG nor HOME is set"))?;
    Ok(directory.join("config.json"))
}
