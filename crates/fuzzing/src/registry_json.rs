//! Any bytes as the JSON body of a registry's response.

use tagboat::reference::Tag;
use tagboat::registry::error_document::OciError;
use tagboat::registry::page::{self, PageError, TagLimits};
use tagboat::registry::{error_document, manifest_document};

/// A low limit of tags, so that inputs can exceed it.
const LIMITS: TagLimits = TagLimits { tags: 20, bytes: 400 };

/// Parses any bytes as tags, an error document, a manifest and an image configuration.
///
/// Accepted values are bounded and well-formed; a rejection has a message.
pub fn registry_json(input: &[u8]) {
    check_page(input);
    check_errors(&error_document::parse(input));
    if let Err(sentence) = manifest_document::parse(input) {
        assert!(!sentence.is_empty());
    }
    let _ = manifest_document::configured_creation(input);
}

fn check_errors(errors: &[OciError]) {
    let bytes: usize = errors.iter().map(|error| error.code.len() + error.message.len()).sum();
    assert!(errors.len() <= 8 && bytes <= 8 * 2 * 2_048, "{errors:?}");
}

fn check_page(input: &[u8]) {
    let page = match page::parse(input, LIMITS) {
        Ok(page) => page,
        Err(PageError::Errors(errors)) => return check_errors(&errors),
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let tags = &page.found.tags;
    assert!(tags.len() <= LIMITS.tags && page.found.bytes <= LIMITS.bytes, "{page:?}");
    assert_eq!(tags.iter().map(|tag| tag.len()).sum::<usize>(), page.found.bytes);
    assert!(tags.iter().all(|tag| Tag::parse(tag).is_ok()), "{page:?}");
    assert!(page.left_out + tags.len() <= page.entries, "{page:?}");
    assert!(page.last.is_none() || page.entries > 0, "{page:?}");
}
