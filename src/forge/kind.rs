//! The forges, and the features that each has.

use std::fmt;
use std::str::FromStr;

/// A forge: a product that serves git repositories and pull requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ForgeKind {
    /// github.com, GitHub Enterprise Cloud and Server.
    Github,
    /// gitlab.com and GitLab Self-Managed.
    Gitlab,
    /// Gitea.
    Gitea,
    /// Forgejo, such as Codeberg.
    Forgejo,
    /// Bitbucket Cloud.
    Bitbucket,
    /// Bitbucket Data Center.
    BitbucketDataCenter,
    /// Azure DevOps.
    AzureDevops,
}

/// The parts of a pull request that a forge adds after opening it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeparateParts {
    /// Labels.
    pub labels: bool,
    /// Reviewers.
    pub reviewers: bool,
    /// Assignees.
    pub assignees: bool,
}

/// The features of a forge on which settings depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForgeFeatures {
    /// Pull requests have labels.
    pub labels: bool,
    /// The forge merges a pull request when its checks have passed.
    pub auto_merge: bool,
    /// A closed pull request can be reopened.
    pub reopening: bool,
    /// The forge signs commits that are made by its API.
    pub signing: bool,
    /// The parts of a pull request that it adds after opening it.
    pub separate: SeparateParts,
    /// The maximum length of a pull request's body, in characters, if it is known.
    pub body_limit: Option<usize>,
}

impl ForgeKind {
    /// All forges.
    pub const ALL: [Self; 7] = [
        Self::Github,
        Self::Gitlab,
        Self::Gitea,
        Self::Forgejo,
        Self::Bitbucket,
        Self::BitbucketDataCenter,
        Self::AzureDevops,
    ];

    /// Returns the name of the forge, as settings and metrics have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Github => "github",
            Self::Gitlab => "gitlab",
            Self::Gitea => "gitea",
            Self::Forgejo => "forgejo",
            Self::Bitbucket => "bitbucket",
            Self::BitbucketDataCenter => "bitbucket-data-center",
            Self::AzureDevops => "azure-devops",
        }
    }

    /// Returns the features of the forge.
    pub fn features(self) -> ForgeFeatures {
        let all = ForgeFeatures {
            labels: true,
            auto_merge: true,
            reopening: true,
            signing: false,
            separate: SeparateParts::default(),
            body_limit: None,
        };
        let separate = SeparateParts { labels: true, reviewers: true, assignees: true };
        let reviewers = SeparateParts { reviewers: true, ..SeparateParts::default() };
        match self {
            Self::Github => ForgeFeatures { signing: true, separate, body_limit: Some(65_536), ..all },
            Self::Gitlab => all,
            Self::Gitea | Self::Forgejo => ForgeFeatures { separate, ..all },
            Self::Bitbucket => ForgeFeatures {
                labels: false,
                auto_merge: false,
                reopening: false,
                separate: reviewers,
                ..all
            },
            Self::BitbucketDataCenter => ForgeFeatures { labels: false, separate: reviewers, ..all },
            Self::AzureDevops => ForgeFeatures { separate: reviewers, body_limit: Some(4_000), ..all },
        }
    }
}

impl fmt::Display for ForgeKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The error of a text that names no forge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("allowed are github, gitlab, gitea, forgejo, bitbucket, bitbucket-data-center, azure-devops")]
pub struct UnknownForge;

impl FromStr for ForgeKind {
    type Err = UnknownForge;

    fn from_str(text: &str) -> Result<Self, UnknownForge> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or(UnknownForge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written_alike() {
        for kind in ForgeKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert!(UnknownForge.to_string().contains(kind.name()), "{kind}");
        }
        for bad in ["", "GitHub", "bitbucket-server"] {
            assert_eq!(bad.parse::<ForgeKind>(), Err(UnknownForge), "{bad}");
        }
    }
}
