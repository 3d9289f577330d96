//! The destinations of automations: the repository and branch of the last run.
//!
//! They distinguish sets of manifests with the same names.

use std::fmt;

use serde::{Deserialize, Serialize};
use tagboat_api::{GitRepository, ImageUpdateAutomation};

use super::file::Stored;
use super::{StateDirectory, StateError};
use crate::secrets::redact_url;

/// The directory of destinations; it replaces the directory of a kind.
const DESTINATIONS: &str = "destinations";

/// The git repository of an automation, without secrets in its URL, and the branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destination {
    url: String,
    branch: Option<String>,
}

impl Destination {
    /// Returns the destination of an automation and its source.
    pub fn of(automation: &ImageUpdateAutomation, source: &GitRepository) -> Self {
        let checkout = automation.spec.git.as_ref().and_then(|git| git.checkout.as_ref());
        let reference = checkout.map(|checkout| &checkout.reference).or(source.spec.reference.as_ref());
        // The login does not identify the repository.
        let url = redact_url(&source.spec.url).replacen("••••@", "", 1);
        Self { url, branch: reference.and_then(|reference| reference.branch.clone()) }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.url)?;
        self.branch.as_ref().map_or(Ok(()), |branch| write!(formatter, " (branch {branch})"))
    }
}

impl StateDirectory {
    /// Returns the destination of an automation's last run, if it is known.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn destination(&self, automation: &ImageUpdateAutomation) -> Result<Option<Destination>, StateError> {
        Ok(match self.read(&self.path_of(DESTINATIONS, automation))? {
            Stored::Valid(destination) => Some(destination),
            Stored::Missing | Stored::Corrupt => None,
        })
    }

    /// Saves the destination of an automation.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn save_destination(
        &self,
        automation: &ImageUpdateAutomation,
        destination: &Destination,
    ) -> Result<(), StateError> {
        let content = serde_json::to_vec(destination).expect("a destination is plain JSON");
        self.write(&self.path_of(DESTINATIONS, automation), &content)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_fingerprint_of_a_destination_ignores_and_hides_the_login() {
        let root = tempfile::tempdir().unwrap();
        let state = StateDirectory::new(root.path());
        let automation: ImageUpdateAutomation = serde_json::from_value(json!({
            "metadata": {"namespace": "n", "name": "a"},
            "spec": {"interval": "1m", "sourceRef": {"kind": "GitRepository", "name": "r"}},
        }))
        .unwrap();
        let destination = |url: &str, branch: &str| {
            let source = json!({"metadata": {"namespace": "n", "name": "r"},
                "spec": {"interval": "1m", "url": url, "ref": {"branch": branch}}});
            Destination::of(&automation, &serde_json::from_value(source).unwrap())
        };
        assert_eq!(state.destination(&automation).unwrap(), None);
        let known = destination("https://bot:hunter2@git.example/r", "main");
        state.save_destination(&automation, &known).unwrap();
        assert_eq!(state.destination(&automation).unwrap(), Some(known.clone()));
        assert_eq!(known.to_string(), "https://git.example/r (branch main)");
        assert_eq!(known, destination("https://git.example/r", "main"));
        assert_ne!(known, destination("https://git.example/s", "main"));
        assert_ne!(known, destination("https://git.example/r", "staging"));
    }
}
