//! Renders the manifests in `deploy` with helm and kustomize.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::folder;
use crate::support::api_server::documents;
use crate::support::built_program::{HELM, KUSTOMIZE};
use crate::support::program::run;

/// The documents of a kustomization.
pub(super) fn kustomize(directory: &Path) -> Vec<Value> {
    // An overlay may have bases that are not below it.
    let mut command = Command::new(KUSTOMIZE.file());
    command.args(["build", "--load-restrictor", "LoadRestrictionsNone"]).arg(directory);
    documents(&run(&mut command).with_status(0).output)
}

/// The directory of the chart.
pub(super) fn chart() -> PathBuf {
    folder().join("chart/tagboat")
}

/// Helm with a home directory of its own, for releases in one namespace.
pub(super) struct Helm {
    home: TempDir,
    namespace: String,
}

impl Helm {
    pub(super) fn new(namespace: &str) -> Self {
        Self { home: tempfile::tempdir().unwrap(), namespace: namespace.to_owned() }
    }

    /// A command of helm, with values that override the chart's own.
    pub(super) fn command(&self, arguments: &[&str], over: &Value) -> Command {
        let values = self.home.path().join("values.json");
        std::fs::write(&values, over.to_string()).unwrap();
        let mut command = Command::new(HELM.file());
        command.args(arguments).arg("--namespace").arg(&self.namespace);
        if over.as_object().is_some_and(|over| !over.is_empty()) {
            command.arg("--values").arg(values);
        }
        command.env("HOME", self.home.path()).env_remove("KUBECONFIG");
        command
    }

    /// The objects of a release.
    pub(super) fn template(&self, release: &str, over: &Value) -> Vec<Value> {
        let mut command = self.command(&["template", release], over);
        documents(&run(command.arg(chart())).with_status(0).output)
    }
}
