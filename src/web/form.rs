//! The forms of the document of a deployment.

use std::str::FromStr;

use tagboat_api::DeploymentStatus;

use super::http::json;
use crate::rollout::document::{Document, MargoManifest};

/// The form of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The first proposal of the Margo specification, with our fields.
    Seed,
    /// The current manifest of the Margo specification.
    Margo,
}

/// A text that is not the name of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write seed or margo")]
pub struct InvalidForm;

impl Form {
    /// The names of all forms.
    pub(super) const NAMES: [&str; 2] = [Self::Seed.name(), Self::Margo.name()];

    /// Returns the name of the form.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seed => "seed",
            Self::Margo => "margo",
        }
    }

    /// Writes the document of an object as JSON; `null` if the object has no status.
    pub(super) fn document(self, object: &DeploymentStatus, cluster: Option<&str>) -> String {
        match self {
            Self::Seed => json(&Document::new(object)),
            Self::Margo => json(&MargoManifest::new(object, cluster)),
        }
    }
}

impl FromStr for Form {
    type Err = InvalidForm;

    fn from_str(text: &str) -> Result<Self, InvalidForm> {
        match text {
            "seed" => Ok(Self::Seed),
            "margo" => Ok(Self::Margo),
            _ => Err(InvalidForm),
        }
    }
}
