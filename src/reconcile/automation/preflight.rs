//! The checks of a run that need no server, in its order.

use std::sync::Arc;

use tagboat_api::settings::{AutomationSettings, Delivery, SignedBy};
use tagboat_api::{GitRepository, ImagePolicy, ImageUpdateAutomation};

use super::branch_plan::{self, BranchNaming, BranchPlanError, BranchSourceError};
use super::delivery::{UnsupportedSetting, check_support};
use super::forge_login::ForgeAccessError;
use super::forge_signing::ForgeSigningRefused;
use super::request::Request;
use super::source::{SourceConfiguration, SourceError, SourceReference};
use crate::forge::ForgeAddress;
use crate::git::{LocalPaths, RemoteUrl};
use crate::reconcile::branch_references::BranchReferences;
use crate::reconcile::cross_namespace::CrossNamespace;
use crate::reconcile::repository::request::ObjectIdentity;

/// The error of an automation with which no run begins.
#[derive(Debug, thiserror::Error)]
pub enum PreflightError {
    /// The source cannot be used as it is.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// No branches can be made.
    #[error(transparent)]
    Branches(#[from] BranchSourceError),
    /// The forge cannot be used.
    #[error(transparent)]
    Forge(#[from] ForgeAccessError),
    /// The forge lacks a feature for a setting.
    #[error(transparent)]
    Unsupported(#[from] UnsupportedSetting),
    /// The forge does not sign the commits.
    #[error(transparent)]
    Signing(#[from] ForgeSigningRefused),
}

/// Checks an automation and its GitRepository.
///
/// Secrets are not read, and no server is asked.
///
/// # Errors
///
/// If a run of these objects stalls.
pub fn check(
    (automation, settings): (&ImageUpdateAutomation, &AutomationSettings),
    repository: &GitRepository,
    (request, policies): (&Request, &[Arc<ImagePolicy>]),
) -> Result<(), PreflightError> {
    let reference = SourceReference::of(automation, CrossNamespace::Allowed)?;
    let source = reference.configure(Some(repository), ObjectIdentity::On)?;
    if let Some(base) = branch_plan::base(&source.target, settings, BranchReferences::default())? {
        let naming = BranchNaming::of(automation, settings, &source.target, base);
        let bundles = naming.bundles(request, policies).map_err(BranchPlanError::from);
        bundles.map_err(BranchSourceError::from)?;
    }
    check_forge(settings, &source)
}

fn check_forge(settings: &AutomationSettings, source: &SourceConfiguration) -> Result<(), PreflightError> {
    let has_pull_requests = settings.delivery == Delivery::PullRequest;
    let is_signed = settings.signed_by == SignedBy::Forge;
    if is_signed && source.signing_secret.is_some() {
        return Err(ForgeSigningRefused::KeyToo.into());
    }
    if !has_pull_requests && !is_signed {
        return Ok(());
    }
    // An invalid URL is an error of the login.
    let Ok(url) = RemoteUrl::parse(&source.url, LocalPaths::Refused) else { return Ok(()) };
    let address = ForgeAddress::of(&url, &source.forge);
    let address = address
        .map_err(|cause| ForgeAccessError::Address { repository: source.repository.clone(), cause })?;
    if has_pull_requests {
        check_support(address.kind, &settings.pull_request)?;
    }
    if is_signed && !address.kind.features().signing {
        let (signed_by, kind) = (settings.signed_by, address.kind);
        return Err(ForgeSigningRefused::OtherForge { signed_by, kind }.into());
    }
    Ok(())
}
