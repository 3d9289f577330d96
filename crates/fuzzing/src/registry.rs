//! Text from a registry or a Docker configuration.
//!
//! One line each for a challenge, a link, a configuration and an image.

use tagboat::reference::RepositoryAddress;
use tagboat::registry::DockerConfig;
use tagboat::registry::challenge::Challenge;
use tagboat::registry::link::{NextPage, next_page};
use url::Url;

use crate::text::text_of;

/// Parses any text as input from a registry or a Docker configuration.
///
/// One line each for a challenge, a link, a configuration and an image.
pub fn registry(input: &[u8]) {
    let text = text_of(input);
    let mut lines = text.splitn(4, '\n');
    let mut next = || lines.next().unwrap_or_default();
    let (challenge, link, image, config) = (next(), next(), next(), next());
    let _ = Challenge::choose([challenge]);
    let page = Url::parse("https://registry.example:8443/v2/app/web/tags/list?n=1000").expect("it is one");
    if let NextPage::At(next) = next_page([link], &page) {
        assert_eq!(next.origin(), page.origin());
        assert_eq!((next.username(), next.password()), ("", None));
    }
    let address = RepositoryAddress::parse(image, false);
    let address =
        address.or_else(|_| RepositoryAddress::parse("ghcr.io/org/app", false)).expect("one of them is");
    let configs = [DockerConfig::from_json(config.as_bytes()), DockerConfig::from_legacy(config.as_bytes())];
    for config in configs.into_iter().flatten() {
        let _ = config.login(&address);
    }
}
