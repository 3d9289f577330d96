//! The syntax that versions and constraint patterns share: `vA.B.C-PRERELEASE+METADATA`.

/// A text with the syntax of a version, split into its members.
///
/// The values of the members are not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape<'t> {
    /// The whole text.
    pub(super) text: &'t str,
    /// True if it begins with `v`.
    pub(super) has_prefix: bool,
    /// The first part.
    pub(super) major: &'t str,
    /// The second part, without its dot.
    pub(super) minor: Option<&'t str>,
    /// The third part, without its dot.
    pub(super) patch: Option<&'t str>,
    /// The identifiers behind the `-`.
    pub(super) prerelease: Option<&'t str>,
    /// The identifiers behind the `+`.
    pub(super) metadata: Option<&'t str>,
}

impl<'t> Shape<'t> {
    /// Splits the longest match at the beginning of `text`.
    ///
    /// `is_part` accepts the bytes of the three parts. Every member ends at a byte that the member cannot have, so
    /// the longest match is the only candidate: a caller that needs a match up to a certain position compares its
    /// length.
    pub(super) fn scan(text: &'t str, is_part: fn(u8) -> bool) -> Option<Self> {
        let unprefixed = text.strip_prefix('v');
        let (major, mut rest) = take(unprefixed.unwrap_or(text), is_part)?;
        let mut behind = |mark: char, take: &dyn Fn(&'t str) -> Option<(&'t str, &'t str)>| {
            let (member, after) = rest.strip_prefix(mark).and_then(take)?;
            rest = after;
            Some(member)
        };
        let part = |text| take(text, is_part);
        let minor = behind('.', &part);
        let patch = behind('.', &part);
        let prerelease = behind('-', &identifiers);
        let metadata = behind('+', &identifiers);
        let text = &text[..text.len() - rest.len()];
        Some(Self { text, has_prefix: unprefixed.is_some(), major, minor, patch, prerelease, metadata })
    }
}

/// Splits off the accepted bytes at the beginning of a text, at least one.
fn take(text: &str, is_wanted: fn(u8) -> bool) -> Option<(&str, &str)> {
    let length = text.bytes().take_while(|&byte| is_wanted(byte)).count();
    (length > 0).then(|| text.split_at(length))
}

/// Splits off dot-separated identifiers at the beginning of a text.
fn identifiers(text: &str) -> Option<(&str, &str)> {
    let (_, mut rest) = take(text, is_identifier)?;
    while let Some((_, after)) = rest.strip_prefix('.').and_then(|text| take(text, is_identifier)) {
        rest = after;
    }
    Some(text.split_at(text.len() - rest.len()))
}

fn is_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_piece_in_front_is_cut_up() {
        let digits = |byte: u8| byte.is_ascii_digit();
        for (text, expected) in [
            ("1", Some("1")),
            ("v1.2-a.b+c.d", Some("v1.2-a.b+c.d")),
            ("1.2.3.4", Some("1.2.3")),
            ("1.2.", Some("1.2")),
            ("1-", Some("1")),
            ("1-a..b", Some("1-a")),
            ("1+a+b", Some("1+a")),
            ("1.2 - 3", Some("1.2")),
            ("1.٣", Some("1")),
            ("", None),
            ("v", None),
            ("vv1", None),
            ("x", None),
        ] {
            assert_eq!(Shape::scan(text, digits).map(|shape| shape.text), expected, "{text:?}");
        }
    }
}
