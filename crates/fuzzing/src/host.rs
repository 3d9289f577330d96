//! Any bytes as what programs of a node's host print.

use tagboat::host::{bootc_status, os_release};
use tagboat::printable::is_unprintable;
use tagboat::reference::Digest;

/// The maximum length of a version: 128 bytes, each of which may be escaped.
const MAX_VERSION: usize = 128 * 8 + 3;

/// Parses any bytes as the status of bootc and as `os-release`.
///
/// Accepted values are bounded, printable and well-formed; a rejection has a sentence for which the same holds.
pub fn host(input: &[u8]) {
    check_version(os_release::version(&String::from_utf8_lossy(input)).as_deref());
    let status = match bootc_status::parse(input) {
        Ok(status) => status,
        Err(error) => {
            let sentence = error.to_string();
            assert!(sentence.len() < 4096 && !sentence.contains(is_hidden), "{sentence:?}");
            return;
        }
    };
    check_version(status.version.as_deref());
    for image in [Some(&status.booted), status.staged.as_ref()].into_iter().flatten() {
        assert!(Digest::parse(&image.digest).is_ok(), "{image:?}");
        assert!(image.reference.len() <= 1024 && !image.reference.contains(is_unprintable), "{image:?}");
    }
}

fn check_version(version: Option<&str>) {
    let version = version.unwrap_or_default();
    assert!(version.len() <= MAX_VERSION && !version.contains(is_hidden), "{version:?}");
}

/// Returns whether a character is not allowed on a line; tabs are.
fn is_hidden(character: char) -> bool {
    character != '\t' && is_unprintable(character)
}
