//! Parses any text as a comment and as an image reference; the results must round-trip.

use tagboat::reference::ImageReference;
use tagboat::update::marker;

use crate::text::text_of;

/// Parses any text as a comment and as an image reference; the results must round-trip.
pub fn marker(input: &[u8]) {
    let text = text_of(input);
    check_marker(text);
    check_reference(text);
}

fn check_marker(comment: &str) {
    let Ok(marker) = marker::parse(comment) else { return };
    let named = format!("{}:{}", marker.policy.namespace, marker.policy.name);
    let is_prefix = marker.setter.starts_with(&named) || marker.setter == marker.policy.namespace;
    assert!(is_prefix, "the policy {named} is not that of {}", marker.setter);
    if marker.setter.is_empty() {
        return;
    }
    let setter = serde_json::Value::from(marker.setter.as_str());
    let printed = format!("# {{\"{}\": {setter}}}", marker::TOKEN);
    assert_eq!(marker::parse(&printed), Ok(marker), "{printed}");
}

fn check_reference(text: &str) {
    let Ok(reference) = ImageReference::parse(text) else { return };
    let printed = reference.to_string();
    assert_eq!(ImageReference::parse(&printed).as_ref(), Ok(&reference), "{printed}");
    // An empty digest is treated as no digest.
    assert_eq!(printed, text.strip_suffix('@').unwrap_or(text));
    assert!(reference.digest.is_none_or(|digest| printed.ends_with(digest.as_str())));
}
