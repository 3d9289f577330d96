//! The flags of clusters: the name of the own one, and the others.

use std::path::PathBuf;

use super::ControllerArguments;
use super::status::MAX_HOST;
use crate::cli::Failure;
use crate::objects::remote_clusters::RemoteClusterOptions;
use crate::web::store::UNNAMED;

impl ControllerArguments {
    /// Returns the name of the own cluster; may be empty.
    pub(super) fn cluster_name(&self) -> Result<String, Failure> {
        const NAME: &str = "cluster-name";
        let name = self.value(NAME);
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._/:".contains(c);
        if name.len() > MAX_HOST || !name.chars().all(is_name) {
            return Err(self.invalid(NAME, "write at most 253 letters, digits, and - . _ / :"));
        }
        Ok(name.to_owned())
    }

    /// Returns the options of other clusters, unless nothing is observed there.
    pub(super) fn remote_clusters(&self) -> Option<RemoteClusterOptions> {
        let directory =
            self.text("clusters").filter(|_| self.switch("rollout") && !self.switch("dry-run"))?;
        let own_name = self.text("cluster-name").unwrap_or(UNNAMED).to_owned();
        Some(RemoteClusterOptions { directory: PathBuf::from(directory), own_name })
    }
}
