//! The URL of a repository, and the address of its forge.
//!
//! The lines are the URL, and the annotations `forge`, `forge-url` and `forge-secret` of the GitRepository.

use std::collections::BTreeMap;

use tagboat::forge::ForgeAddress;
use tagboat::git::{LocalPaths, RemoteUrl, Transport};
use tagboat::net::percent;
use tagboat_api::settings::GitRepositorySettings;
use url::Url;

/// The names of the annotations, in the order of their lines.
const ANNOTATIONS: [&str; 3] = ["forge", "forge-url", "forge-secret"];

/// Parses any text as the URL of a repository, with annotations.
///
/// An accepted URL prints as one of the same server. The API of its forge is a plain URL, encrypted if that of git is, and no part
/// of the address leads to another resource.
pub fn forge_address(input: &[u8]) {
    let Ok(input) = std::str::from_utf8(input) else { return };
    let mut lines = input.split('\n');
    let Ok(url) = RemoteUrl::parse(lines.next().unwrap_or_default(), LocalPaths::Refused) else { return };
    let again = RemoteUrl::parse(&url.to_string(), LocalPaths::Refused);
    let again = again.unwrap_or_else(|error| panic!("{url} is not read again: {error}"));
    assert!(again.is_same_origin(&url) && again.password().is_none(), "{url} {again}");
    let given = ANNOTATIONS.iter().zip(lines).filter(|(_, value)| !value.is_empty());
    let annotations: BTreeMap<String, String> =
        given.map(|(name, value)| (format!("tagboat.dev/{name}"), value.to_owned())).collect();
    let Ok(settings) = GitRepositorySettings::from_annotations(&annotations) else { return };
    match ForgeAddress::of(&url, &settings) {
        Ok(address) => check(&address, &url),
        Err(error) => assert!(error.to_string().len() < 8_192, "{error}"),
    }
}

fn check(address: &ForgeAddress, git: &RemoteUrl) {
    let api = Url::parse(&address.api).unwrap_or_else(|error| panic!("{address:?}: {error}"));
    let is_plain = api.has_host() && api.username().is_empty() && api.password().is_none();
    assert!(is_plain && api.query().is_none() && api.fragment().is_none(), "{address:?}");
    assert!(api.scheme() == "https" || git.transport() == Transport::Http, "{address:?}");
    // The parser has resolved nothing.
    assert!(address.api.ends_with(api.path().trim_end_matches('/')), "{address:?}");
    for part in api.path_segments().into_iter().flatten().filter(|_| api.path() != "/") {
        let decoded = percent::decode(part).and_then(|bytes| String::from_utf8(bytes).ok());
        check_part(&decoded.unwrap_or_else(|| panic!("{address:?}")));
    }
    let repository = &address.repository;
    repository.owner.split('/').for_each(check_part);
    repository.project.iter().for_each(|project| check_part(project));
    check_part(&repository.name);
}

/// Panics if a part leads to another resource than itself.
fn check_part(part: &str) {
    assert!(!matches!(part, "" | "." | ".."), "{part:?}");
    assert!(
        !part.contains(|c: char| c.is_control() || matches!(c, '/' | '\\' | '?' | '#' | '%')),
        "{part:?}"
    );
}
