//! Redaction of the secrets in a URL.

/// Hides the user info of a URL, and a token behind `?` or `#`.
/// The result is on one line.
pub fn redact_url(text: &str) -> String {
    let start = text.find("://").map_or(0, |at| at + "://".len());
    let mut redacted = match text[start..].rfind('@') {
        Some(at) => format!("{}••••{}", &text[..start], &text[start + at..]),
        None => text.to_owned(),
    };
    let query = redacted.find(['?', '#']).filter(|&at| start > 0 && at + 1 < redacted.len());
    if let Some(at) = query {
        redacted.truncate(at + 1);
        redacted.push_str("••••");
    }
    let escaped = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    redacted.chars().map(escaped).collect()
}
