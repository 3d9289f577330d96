//! The Flux kinds that Tagboat reads.

use crate::{IMAGE_GROUP, SOURCE_GROUP};

/// A kind of Flux's that Tagboat reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// [`ImageUpdateAutomation`](crate::ImageUpdateAutomation).
    Automation,
    /// [`ImagePolicy`](crate::ImagePolicy).
    Policy,
    /// [`ImageRepository`](crate::ImageRepository).
    Repository,
    /// [`GitRepository`](crate::GitRepository).
    GitRepository,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Automation, Self::Policy, Self::Repository, Self::GitRepository];

    /// Returns the kind of a name in an API group.
    pub fn of(group: &str, name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.group() == group && kind.name() == name)
    }

    /// Returns the name of the kind in manifests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Automation => "ImageUpdateAutomation",
            Self::Policy => "ImagePolicy",
            Self::Repository => "ImageRepository",
            Self::GitRepository => "GitRepository",
        }
    }

    /// Returns the API group of the kind.
    pub fn group(self) -> &'static str {
        match self {
            Self::Automation | Self::Policy | Self::Repository => IMAGE_GROUP,
            Self::GitRepository => SOURCE_GROUP,
        }
    }
}
