//! Makes the configuration of an automation's work from its objects (`docs/flux-behaviour.md`, Source of an
//! automation).
//!
//! The checks have Flux's order, so that an object with two defects shows the same one.

mod error;
mod target;

use std::time::Duration;

use kube::ResourceExt;
use tagboat_api::automation::{GitSpec, SigningKeyType, SourceKind};
use tagboat_api::git_repository::{GitProvider, GitRepositorySpec};
use tagboat_api::reference::LocalObjectReference;
use tagboat_api::settings::{AutomationSettings, Delivery, GitRepositorySettings};
use tagboat_api::{GitRepository, ImageUpdateAutomation};

pub use self::error::SourceError;
pub use self::target::Branches;
use self::target::target;
use crate::git::author::Author;
use crate::git::outcome::Target;
pub use crate::objects::ObjectName;
use crate::reconcile::cross_namespace::CrossNamespace;
use crate::reconcile::repository::request::ObjectIdentity;

/// The configuration of an automation's work: its repository, target and author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceConfiguration {
    /// The name of the repository.
    pub repository: ObjectName,
    /// The address of the repository, as its object has it.
    pub url: String,
    /// The reference that is checked out, and the target of the push.
    pub target: Target,
    /// True if the push branch is not the branch that is checked out.
    pub branches: Branches,
    /// The time that git may take to read, and again to push.
    pub timeout: Duration,
    /// The provider of the login.
    pub provider: GitProvider,
    /// The service account of the automation's namespace that logs in at a cloud.
    pub service_account: Option<String>,
    /// The secret with the credentials.
    pub secret: Option<ObjectName>,
    /// The secret that names a proxy.
    pub proxy_secret: Option<ObjectName>,
    /// The secret with the signing key, which is in the automation's namespace.
    pub signing_secret: Option<SigningSecret>,
    /// The settings of the repository's forge.
    pub forge: GitRepositorySettings,
    /// The author and committer.
    pub author: Author,
    /// The template of the message; without it, the message is the default.
    pub message_template: Option<String>,
}

/// A secret with a signing key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningSecret {
    /// The secret.
    pub name: ObjectName,
    /// The kind of its key.
    pub kind: SigningKeyType,
}

/// An automation whose source may be looked up.
#[derive(Clone, Debug)]
pub struct SourceReference<'a> {
    git: &'a GitSpec,
    /// The automation's own namespace.
    namespace: String,
    repository: ObjectName,
    /// True if it pushes to branches of its own, and so to no push branch.
    has_own_branches: bool,
}

impl<'a> SourceReference<'a> {
    /// Resolves the repository that an automation names, before it is read.
    ///
    /// # Errors
    ///
    /// If there is no repository to look up, or the reference is forbidden.
    pub fn of(automation: &'a ImageUpdateAutomation, access: CrossNamespace) -> Result<Self, SourceError> {
        let reference = &automation.spec.source_ref;
        if let SourceKind::Other(kind) = &reference.kind {
            return Err(SourceError::UnsupportedKind { kind: kind.clone() });
        }
        let git = automation.spec.git.as_ref().ok_or(SourceError::NoGitSpec)?;
        let own = automation.namespace().unwrap_or_default();
        let repository = automation.git_repository();
        if repository.namespace != own && access == CrossNamespace::Forbidden {
            return Err(SourceError::CrossNamespace { repository });
        }
        let settings = automation.metadata.annotations.as_ref().map(AutomationSettings::from_annotations);
        // Invalid settings are an error of their own.
        let has_own_branches =
            settings.is_some_and(|read| read.is_ok_and(|read| read.delivery != Delivery::Push));
        Ok(Self { git, namespace: own, repository, has_own_branches })
    }

    /// Returns the repository to look up.
    pub fn repository(&self) -> &ObjectName {
        &self.repository
    }

    /// Makes the configuration from the repository that was found, if any.
    ///
    /// # Errors
    ///
    /// If the two objects together do not make a configuration.
    pub fn configure(
        self,
        found: Option<&GitRepository>,
        identity: ObjectIdentity,
    ) -> Result<SourceConfiguration, SourceError> {
        let Self { git, namespace, repository, has_own_branches } = self;
        let Some(GitRepository { spec, metadata, .. }) = found else {
            return Err(SourceError::NoRepository { repository });
        };
        let (target, branches) = target((git, has_own_branches), spec, &repository)?;
        let timeout = spec
            .timeout
            .to_duration_without_hours()
            .map_err(|cause| SourceError::Timeout { repository: repository.clone(), cause })?;
        if timeout.is_zero() {
            return Err(SourceError::NoTime { repository, text: spec.timeout.to_string() });
        }
        check_login(spec, &repository, identity)?;
        let annotations = metadata.annotations.clone().unwrap_or_default();
        let forge = GitRepositorySettings::from_annotations(&annotations)
            .map_err(|cause| SourceError::Settings { repository: repository.clone(), cause })?;
        let beside = |secret: &Option<LocalObjectReference>| {
            let name = secret.as_ref().map(|secret| secret.name.clone());
            name.map(|name| ObjectName { namespace: repository.namespace.clone(), name })
        };
        let signing_secret = git.commit.signing_key.as_ref().map(|key| SigningSecret {
            name: ObjectName { namespace, name: key.secret_ref.name.clone() },
            kind: key.effective_type(),
        });
        let author = &git.commit.author;
        Ok(SourceConfiguration {
            provider: spec.effective_provider(),
            service_account: spec.service_account_name.clone().filter(|name| !name.is_empty()),
            secret: beside(&spec.secret_ref),
            proxy_secret: beside(&spec.proxy_secret_ref),
            repository,
            url: spec.url.clone(),
            target,
            branches,
            timeout,
            signing_secret,
            forge,
            author: Author::new(author.name.as_deref().unwrap_or_default(), &author.email),
            message_template: git.commit.message_template.clone().filter(|template| !template.is_empty()),
        })
    }
}

/// Checks the login before any secret is read (`docs/flux-behaviour.md`, Source of an automation).
fn check_login(
    spec: &GitRepositorySpec,
    repository: &ObjectName,
    identity: ObjectIdentity,
) -> Result<(), SourceError> {
    let provider = spec.effective_provider();
    if let GitProvider::Other(provider) = provider {
        return Err(SourceError::UnknownProvider { repository: repository.clone(), provider });
    }
    if provider == GitProvider::GitHub && spec.secret_ref.is_none() {
        return Err(SourceError::NoGitHubSecret);
    }
    let names_account = spec.service_account_name.as_ref().is_some_and(|name| !name.is_empty());
    if names_account && identity == ObjectIdentity::Off {
        return Err(SourceError::ServiceAccount);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tagboat_api::Reason;

    use super::*;
    use crate::error::{ReconcileError, chain};

    fn automation(source: &Value, git: &Value) -> ImageUpdateAutomation {
        serde_json::from_value(json!({
            "apiVersion": "image.toolkit.fluxcd.io/v1",
            "kind": "ImageUpdateAutomation",
            "metadata": {"namespace": "n", "name": "a"},
            "spec": {"interval": "1m", "sourceRef": source, "git": git},
        }))
        .unwrap()
    }

    fn repository(spec: &Value) -> GitRepository {
        let mut whole = json!({"url": "https://git.example/r", "interval": "1m", "ref": {"branch": "main"}});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        serde_json::from_value(json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1",
            "kind": "GitRepository",
            "metadata": {"namespace": "n", "name": "r"},
            "spec": whole,
        }))
        .unwrap()
    }

    fn own() -> Value {
        json!({"kind": "GitRepository", "name": "r"})
    }

    fn git() -> Value {
        json!({"commit": {"author": {"email": "a@example.com"}}})
    }

    fn configure(
        automation: &ImageUpdateAutomation,
        repository: Option<&GitRepository>,
    ) -> Result<SourceConfiguration, SourceError> {
        SourceReference::of(automation, CrossNamespace::Forbidden)?.configure(repository, ObjectIdentity::Off)
    }

    #[test]
    fn the_settings_of_a_run_come_from_both_objects() {
        let git = json!({"commit": {
            "author": {"name": "A <b>", "email": "<a@example.com>"},
            "messageTemplate": "{{ .Changed }}",
            "signingKey": {"secretRef": {"name": "key"}},
        }});
        let source = json!({"kind": "GitRepository", "name": "r", "namespace": "other"});
        let automation = automation(&source, &git);
        let reference = SourceReference::of(&automation, CrossNamespace::Allowed).unwrap();
        assert_eq!(reference.repository().to_string(), "other/r");
        let spec = json!({
            "timeout": "1m30s", "secretRef": {"name": "login"}, "proxySecretRef": {"name": "proxy"},
            "suspend": true, "provider": "generic",
        });
        let found = reference.configure(Some(&repository(&spec)), ObjectIdentity::Off).unwrap();
        assert_eq!(found.url, "https://git.example/r");
        assert_eq!(found.timeout, Duration::from_secs(90));
        assert_eq!(found.secret.unwrap().to_string(), "other/login");
        assert_eq!(found.proxy_secret.unwrap().to_string(), "other/proxy");
        let name = ObjectName { namespace: "n".to_owned(), name: "key".to_owned() };
        assert_eq!(found.signing_secret, Some(SigningSecret { name, kind: SigningKeyType::Gpg }));
        assert_eq!(found.author, Author::new("A b", "a@example.com"));
        assert_eq!(found.message_template.as_deref(), Some("{{ .Changed }}"));
        assert_eq!(found.target.push.as_str(), "main");
        assert_eq!(found.branches, Branches::Same);
    }

    #[test]
    fn omitted_fields_have_defaults() {
        for template in [json!(null), json!("")] {
            let git = json!({"commit": {"author": {"email": "a@example.com"}, "messageTemplate": template}});
            let found = configure(&automation(&own(), &git), Some(&repository(&json!({})))).unwrap();
            assert_eq!(found.message_template, None);
            assert_eq!(found.author, Author::new("", "a@example.com"));
            assert_eq!(found.timeout, Duration::from_secs(60));
            assert_eq!((found.secret, found.proxy_secret, found.signing_secret), (None, None, None));
        }
    }

    #[test]
    fn a_provider_logs_in_with_an_account_if_the_gate_is_on() {
        let spec = json!({"provider": "azure", "serviceAccountName": "robot", "secretRef": {"name": "tls"}});
        let automation = automation(&own(), &git());
        let reference = SourceReference::of(&automation, CrossNamespace::Forbidden).unwrap();
        let found = reference.configure(Some(&repository(&spec)), ObjectIdentity::On).unwrap();
        assert_eq!((found.provider, found.service_account.as_deref()), (GitProvider::Azure, Some("robot")));
        for provider in ["aws", "azure"] {
            let found = configure(&automation, Some(&repository(&json!({"provider": provider})))).unwrap();
            assert_eq!((found.provider.to_string().as_str(), found.service_account), (provider, None));
        }
    }

    /// The rows of `docs/flux-behaviour.md`, Source of an automation, that need no secret.
    #[test]
    fn each_check_has_its_message_and_result() {
        use Reason::{AccessDenied, FeatureGateDisabled, InvalidSourceConfiguration, SourceManagerFailed};
        let elsewhere = json!({"kind": "GitRepository", "name": "r", "namespace": "other"});
        let signing = json!({"commit": {
            "author": {"email": "a@example.com"},
            "signingKey": {"secretRef": {"name": "key"}},
        }});
        let rows = [
            (
                json!({"kind": "Bucket", "name": "b"}),
                json!(null),
                Some(json!({})),
                InvalidSourceConfiguration,
                "source kind 'Bucket' not supported: invalid source configuration",
            ),
            (
                elsewhere.clone(),
                json!(null),
                Some(json!({})),
                InvalidSourceConfiguration,
                "source kind 'GitRepository' necessitates field .spec.git: invalid source configuration",
            ),
            (
                elsewhere,
                git(),
                None,
                AccessDenied,
                "can't access 'GitRepository/other/r', cross-namespace references have been blocked",
            ),
            (
                own(),
                signing.clone(),
                None,
                SourceManagerFailed,
                "referenced git repository does not exist: GitRepository.source.toolkit.fluxcd.io \"r\" not found",
            ),
            (
                own(),
                signing.clone(),
                Some(json!({"ref": null, "provider": "github"})),
                SourceManagerFailed,
                "push spec not provided, and cannot be inferred from .spec.git.checkout.ref or GitRepository \
                 .spec.ref",
            ),
            (
                own(),
                git(),
                Some(json!({"timeout": "1h", "provider": "github"})),
                InvalidSourceConfiguration,
                "spec.timeout of GitRepository n/r cannot be used: `1h` counts hours, which this field does not \
                 take: write it in ms, s and m, such as 90m",
            ),
            (
                own(),
                git(),
                Some(json!({"timeout": "0m0s"})),
                InvalidSourceConfiguration,
                "spec.timeout of GitRepository n/r is `0m0s`, which leaves no time at all: write a number above zero \
                 with a unit of ms, s or m, such as 1m30s",
            ),
            (
                own(),
                git(),
                Some(json!({"timeout": "-5s"})),
                InvalidSourceConfiguration,
                "spec.timeout of GitRepository n/r cannot be used: `-5s` is negative: expected numbers, each \
                 with a unit of ms, s or m, such as 1m30s",
            ),
            (
                own(),
                git(),
                Some(json!({"provider": "github", "serviceAccountName": "s"})),
                InvalidSourceConfiguration,
                "secretRef with github app data must be specified when provider is set to github: invalid source \
                 configuration",
            ),
            (
                own(),
                git(),
                Some(json!({"provider": "gitea", "serviceAccountName": "s"})),
                InvalidSourceConfiguration,
                "spec.provider of GitRepository n/r is \"gitea\": known are generic, aws, azure, github",
            ),
            (
                own(),
                signing,
                Some(json!({"provider": "azure", "serviceAccountName": "s"})),
                FeatureGateDisabled,
                "to use spec.serviceAccountName for provider authentication please enable the \
                 ObjectLevelWorkloadIdentity feature gate in the controller",
            ),
        ];
        for (source, git, spec, reason, message) in rows {
            let repository = spec.map(|spec| repository(&spec));
            let error = configure(&automation(&source, &git), repository.as_ref()).unwrap_err();
            assert_eq!(chain(&error), message);
            assert_eq!(error.reason(), reason, "{message}");
            assert_eq!(error.is_retryable(), reason == SourceManagerFailed, "{message}");
        }
        let error = SourceError::UnreadableRepository { cause: "connection refused".into() };
        assert_eq!(chain(&error), "failed to get referenced git repository: connection refused");
        assert!(error.is_retryable());
    }
}
