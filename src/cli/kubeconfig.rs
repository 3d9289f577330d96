//! The kubeconfig of the environment, as kubectl reads it.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::objects::remote_clusters::undefined_user;

/// The defect of a kubeconfig without clusters, users and contexts.
const EMPTY: &str = "it is empty: write the kubeconfig of a cluster to it, or select another file";

/// Reads the configuration of `$KUBECONFIG`, of `~/.kube/config` or of the pod.
///
/// A defect in `$KUBECONFIG` is an error: another cluster than the named one is never used.
///
/// # Errors
///
/// If there is none, with a whole sentence that does not quote any of them.
pub(super) async fn infer() -> Result<Config, String> {
    let Some(merged) = of_environment() else {
        let none = |error| {
            let cause = of_home().err().filter(|cause| cause.ends_with(EMPTY));
            let cause = cause.unwrap_or_else(|| first_line(&error));
            format!("there is no kubeconfig or in-cluster configuration ({cause})")
        };
        return Config::infer().await.map_err(none);
    };
    let mut configuration = select(merged?, None).await.map_err(|error| format!("KUBECONFIG: {error}"))?;
    configuration.apply_debug_overrides();
    Ok(configuration)
}

/// Reads a context of `$KUBECONFIG` or `~/.kube/config`.
///
/// # Errors
///
/// If there is none, with a sentence that does not quote the files.
pub(super) async fn with_context(context: &str) -> Result<Config, String> {
    let merged = of_environment().unwrap_or_else(of_home);
    select(merged?, Some(context.to_owned())).await
}

/// Reads a file.
///
/// # Errors
///
/// If it has no such context, with a sentence that does not quote it.
pub(super) async fn from_file(file: &Path, context: Option<String>) -> Result<Config, String> {
    let kubeconfig = Kubeconfig::read_from(file).map_err(|error| first_line(&error))?;
    if is_empty(&kubeconfig) {
        return Err(EMPTY.to_owned());
    }
    select(kubeconfig, context).await
}

/// Returns the configuration of a context; the current one by default.
async fn select(kubeconfig: Kubeconfig, context: Option<String>) -> Result<Config, String> {
    let named = context.as_ref().or(kubeconfig.current_context.as_ref()).filter(|name| !name.is_empty());
    let Some(name) = named else {
        return Err("it has no current-context: set it, or select a context with --context".to_owned());
    };
    if !kubeconfig.contexts.iter().any(|context| context.name == *name) {
        return Err(format!("the context {name} is not in contexts"));
    }
    if let Some(defect) = undefined_user(&kubeconfig, context.as_deref()) {
        return Err(defect);
    }
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| first_line(&error))
}

/// Reads `~/.kube/config`.
fn of_home() -> Result<Kubeconfig, String> {
    let kubeconfig = Kubeconfig::read().map_err(|error| first_line(&error))?;
    if is_empty(&kubeconfig) { Err(format!("~/.kube/config: {EMPTY}")) } else { Ok(kubeconfig) }
}

fn is_empty(kubeconfig: &Kubeconfig) -> bool {
    kubeconfig.clusters.is_empty() && kubeconfig.auth_infos.is_empty() && kubeconfig.contexts.is_empty()
}

/// Merges the files of `$KUBECONFIG`, if it is set.
///
/// Of a list, kubectl ignores the missing files.
fn of_environment() -> Option<Result<Kubeconfig, String>> {
    let list = env::var_os("KUBECONFIG")?;
    let files: Vec<PathBuf> = env::split_paths(&list).filter(|file| !file.as_os_str().is_empty()).collect();
    (!files.is_empty()).then(|| merged(&files))
}

fn merged(files: &[PathBuf]) -> Result<Kubeconfig, String> {
    let is_missing =
        |file: &&PathBuf| file.metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    let existing: Vec<&PathBuf> = files.iter().filter(|file| !is_missing(file)).collect();
    let names = || files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ");
    if existing.is_empty() {
        return Err(format!("no file of KUBECONFIG exists: {}", names()));
    }
    let merged = existing.into_iter().try_fold(Kubeconfig::default(), |merged, file| {
        let next = Kubeconfig::read_from(file).and_then(|next| merged.merge(next));
        next.map_err(|error| format!("KUBECONFIG {}: {}", file.display(), first_line(&error)))
    })?;
    if is_empty(&merged) { Err(format!("KUBECONFIG {}: {EMPTY}", names())) } else { Ok(merged) }
}

/// Returns the first line of an error of a kubeconfig.
///
/// Further lines quote the file, which may hold a token. The crate puts a path in two kinds of quotes.
pub(super) fn first_line(error: &impl std::fmt::Display) -> String {
    let line = error.to_string().lines().next().unwrap_or_default().to_owned();
    line.replace("'\"", "'").replace("\"'", "'")
}
