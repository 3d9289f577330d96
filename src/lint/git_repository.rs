//! Checks the logins and the timeout of GitRepositories.

use tagboat_api::git_repository::GitProvider;
use tagboat_api::substitution::contains_placeholder;
use tagboat_api::{GoDuration, Kind};

use super::finding::{Findings, Location, Rule};
use super::object::Object;
use crate::cloud::check_git_url;
use crate::error::chain;
use crate::git::{LocalPaths, RemoteUrl};
use crate::reconcile::automation::provider_login::http_url;

/// Checks a GitRepository.
pub(super) fn check(object: &Object<'_>, findings: &mut Findings<'_>) {
    if object.kind != Kind::GitRepository {
        return;
    }
    check_timeout(object, findings);
    check_provider(object, findings);
}

fn check_timeout(object: &Object<'_>, findings: &mut Findings<'_>) {
    let Some(node) = object.node.at(&["spec", "timeout"]) else { return };
    let timeout =
        node.text().map(GoDuration::new).and_then(|timeout| timeout.to_duration_without_hours().ok());
    if timeout.is_some_and(|timeout| timeout.is_zero()) {
        let message = "`spec.timeout` leaves no time at all: write a number above zero with a unit of ms, s or m, such as 1m30s";
        findings.add(Location::of(node), Rule::InvalidValue, message);
    }
}

fn check_provider(object: &Object<'_>, findings: &mut Findings<'_>) {
    let Some(node) = object.node.at(&["spec", "url"]) else { return };
    let provider = match object.node.text_at(&["spec", "provider"]) {
        Some("github") => GitProvider::GitHub,
        Some("azure") => GitProvider::Azure,
        Some("aws") => GitProvider::Aws,
        // Others are findings of their own.
        _ => return,
    };
    let text = node.text().filter(|text| !contains_placeholder(text));
    let Some(url) = text.and_then(|text| RemoteUrl::parse(text, LocalPaths::Refused).ok()) else { return };
    let defect = match http_url(&provider, &url) {
        Err(error) => Some(chain(&error)),
        Ok(url) => check_git_url(&provider, &url).err().map(|error| chain(&error)),
    };
    if let Some(defect) = defect {
        findings.add(Location::of(node), Rule::InvalidValue, format!("`spec.url`: {defect}"));
    }
}
