//! The errors of an automation's source, in the words of Flux if it has any.

use std::error::Error;

use tagboat_api::Reason;
use tagboat_api::duration::DurationError;
use tagboat_api::settings::SettingErrors;

use super::ObjectName;
use crate::error::ReconcileError;
use crate::git::name::NameError;
use crate::git::refspec::RefspecError;

/// The error of a source that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The source is of a kind other than GitRepository.
    #[error("source kind '{kind}' not supported: invalid source configuration")]
    UnsupportedKind {
        /// The kind.
        kind: String,
    },
    /// The automation has no settings for git.
    #[error("source kind 'GitRepository' necessitates field .spec.git: invalid source configuration")]
    NoGitSpec,
    /// The repository is in another namespace, which is forbidden.
    #[error("can't access 'GitRepository/{repository}', cross-namespace references have been blocked")]
    CrossNamespace {
        /// The repository.
        repository: ObjectName,
    },
    /// The repository does not exist.
    #[error(
        "referenced git repository does not exist: GitRepository.source.toolkit.fluxcd.io {:?} not found",
        .repository.name
    )]
    NoRepository {
        /// The repository.
        repository: ObjectName,
    },
    /// The repository cannot be read.
    #[error("failed to get referenced git repository")]
    UnreadableRepository {
        /// The cause.
        #[source]
        cause: Box<dyn Error + Send + Sync>,
    },
    /// The push branch is missing.
    #[error(
        "push spec not provided, and cannot be inferred from .spec.git.checkout.ref or GitRepository .spec.ref"
    )]
    NoPushBranch,
    /// A field that must have a name in git has none.
    #[error("{field} cannot be used")]
    Name {
        /// The path of the field.
        field: String,
        /// The defect.
        #[source]
        cause: NameError,
    },
    /// A refspec that is not supported.
    #[error(transparent)]
    Refspec(#[from] RefspecError),
    /// A push option that no server accepts.
    #[error(
        "spec.git.push.options has the option {key:?}, which has a line feed or NUL in it: git cannot send it"
    )]
    PushOption {
        /// Its name.
        key: String,
    },
    /// The timeout is no duration.
    #[error("spec.timeout of GitRepository {repository} cannot be used")]
    Timeout {
        /// The repository.
        repository: ObjectName,
        /// The defect.
        #[source]
        cause: DurationError,
    },
    /// The timeout leaves no time.
    #[error(
        "spec.timeout of GitRepository {repository} is `{text}`, which leaves no time at all: write a number above zero \
         with a unit of ms, s or m, such as 1m30s"
    )]
    NoTime {
        /// The repository.
        repository: ObjectName,
        /// The timeout as it was written.
        text: String,
    },
    /// The annotations of the repository are invalid.
    #[error("the settings of GitRepository {repository} cannot be used")]
    Settings {
        /// The repository.
        repository: ObjectName,
        /// The defects.
        #[source]
        cause: SettingErrors,
    },
    /// A GitHub App without a secret, in Flux's words.
    #[error(
        "secretRef with github app data must be specified when provider is set to github: \
         invalid source configuration"
    )]
    NoGitHubSecret,
    /// An unknown provider.
    #[error(
        "spec.provider of GitRepository {repository} is {provider:?}: known are generic, aws, azure, github"
    )]
    UnknownProvider {
        /// The repository.
        repository: ObjectName,
        /// The provider.
        provider: String,
    },
    /// An identity per object, which is disabled.
    #[error(
        "to use spec.serviceAccountName for provider authentication please enable the \
         ObjectLevelWorkloadIdentity feature gate in the controller"
    )]
    ServiceAccount,
}

impl ReconcileError for SourceError {
    fn reason(&self) -> Reason {
        match self {
            Self::CrossNamespace { .. } => Reason::AccessDenied,
            Self::ServiceAccount => Reason::FeatureGateDisabled,
            Self::NoRepository { .. } | Self::UnreadableRepository { .. } | Self::NoPushBranch => {
                Reason::SourceManagerFailed
            }
            _ => Reason::InvalidSourceConfiguration,
        }
    }

    /// Returns whether the run is retried, as in Flux.
    ///
    /// It is even if only a changed object can help: the retry notices a new GitRepository.
    fn is_retryable(&self) -> bool {
        self.reason() == Reason::SourceManagerFailed
    }
}
