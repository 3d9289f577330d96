//! The kubeconfig of the environment, as kubectl reads it.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

/// Reads the configuration of `$KUBECONFIG`, of `~/.kube/config` or of the pod.
///
/// # Errors
///
/// If there is none, with a sentence that does not quote any of them.
pub(super) async fn infer() -> Result<Config, String> {
    let Some(merged) = with_missing_files() else {
        return Config::infer().await.map_err(|error| first_line(&error));
    };
    let options = KubeConfigOptions::default();
    let configuration = async { Config::from_custom_kubeconfig(merged?, &options).await };
    let mut configuration = match configuration.await {
        Ok(configuration) => configuration,
        Err(error) => Config::incluster().map_err(|_| first_line(&error))?,
    };
    configuration.apply_debug_overrides();
    Ok(configuration)
}

/// Reads a context of `$KUBECONFIG` or `~/.kube/config`.
///
/// # Errors
///
/// If there is none, with a sentence that does not quote the files.
pub(super) async fn with_context(context: &str) -> Result<Config, String> {
    let options = KubeConfigOptions { context: Some(context.to_owned()), ..KubeConfigOptions::default() };
    let configuration = match with_missing_files() {
        Some(Ok(merged)) => Config::from_custom_kubeconfig(merged, &options).await,
        Some(Err(error)) => Err(error),
        None => Config::from_kubeconfig(&options).await,
    };
    configuration.map_err(|error| first_line(&error))
}

/// Reads a file.
///
/// # Errors
///
/// If it has no such context, with a sentence that does not quote it.
pub(super) async fn from_file(file: &Path, context: Option<String>) -> Result<Config, String> {
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    let configuration =
        async { Config::from_custom_kubeconfig(Kubeconfig::read_from(file)?, &options).await };
    configuration.await.map_err(|error| first_line(&error))
}

/// Merges the files of `$KUBECONFIG` if some of them exist and others do not.
///
/// kubectl ignores the missing ones, while the crate refuses the list.
fn with_missing_files() -> Option<Result<Kubeconfig, KubeconfigError>> {
    let existing = existing_of(&env::var_os("KUBECONFIG")?)?;
    let merge = |merged: Kubeconfig, file| merged.merge(Kubeconfig::read_from(file)?);
    Some(existing.into_iter().try_fold(Kubeconfig::default(), merge))
}

/// Returns the files of a list that exist, if there are such and others.
fn existing_of(list: &OsStr) -> Option<Vec<PathBuf>> {
    let files = env::split_paths(list).filter(|file| !file.as_os_str().is_empty());
    let is_missing =
        |file: &PathBuf| file.metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    let (missing, existing): (Vec<PathBuf>, Vec<PathBuf>) = files.partition(is_missing);
    (!missing.is_empty() && !existing.is_empty()).then_some(existing)
}

/// Returns the first line of an error of a kubeconfig.
///
/// Further lines quote the file, which may hold a token. The crate puts a path in two kinds of quotes.
fn first_line(error: &impl std::fmt::Display) -> String {
    let line = error.to_string().lines().next().unwrap_or_default().to_owned();
    line.replace("'\"", "'").replace("\"'", "'")
}
