//! The version of a system in its file `os-release`, parsed.

use super::excerpt;

/// The maximum length of a version, in bytes before it is escaped.
const MAX_VERSION: usize = 128;

/// Returns the value of `VERSION`, or else of `VERSION_ID`, printable.
///
/// The values may be quoted as in a shell; the last assignment of a name counts (os-release(5)).
#[must_use]
pub fn version(text: &str) -> Option<String> {
    let value = |name: &str| {
        let assigned = |line: &str| Some(line.trim().strip_prefix(name)?.strip_prefix('=')?.to_owned());
        text.lines().rev().find_map(assigned).map(|value| unquoted(&value)).filter(|value| !value.is_empty())
    };
    Some(excerpt::beginning(&value("VERSION").or_else(|| value("VERSION_ID"))?, MAX_VERSION))
}

/// Removes quotes and backslashes as a shell does.
///
/// In single quotes, a backslash is itself. A quote that is not closed ends with the line.
fn unquoted(value: &str) -> String {
    let (mut result, mut quote, mut characters) = (String::new(), None, value.chars());
    while let Some(character) = characters.next() {
        match (character, quote) {
            ('\\', None | Some('"')) => result.extend(characters.next()),
            ('"' | '\'', None) => quote = Some(character),
            (_, Some(open)) if open == character => quote = None,
            _ => result.push(character),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_quoted_or_not() {
        for (text, expected) in [
            ("NAME=Flatcar\nVERSION=4230.2.1\nVERSION_ID=4230.2.1\n", Some("4230.2.1")),
            ("VERSION_ID=\"12\"\nVERSION=\"12 (bookworm)\"\n", Some("12 (bookworm)")),
            ("VERSION='24.04.1 LTS'", Some("24.04.1 LTS")),
            ("VERSION_ID=3.22.0\r\n", Some("3.22.0")),
            ("VERSION=\"\"\nVERSION_ID=rolling", Some("rolling")),
            ("VERSION=1\nVERSION=2", Some("2")),
            ("# VERSION=1\nVERSION_CODENAME=x\nMY_VERSION=3", None),
            (r#"VERSION="a \"b\" \$c \\""#, Some(r#"a "b" $c \"#)),
            (r"VERSION='a\b'", Some(r"a\b")),
            ("VERSION=\"1.2", Some("1.2")),
            ("VERSION=1\\", Some("1")),
            ("VERSION=\"'\"'\"'", Some("'\"")),
            ("VERSION=a\u{1b}[2Jb", Some(r"a\u{1b}[2Jb")),
            ("", None),
            ("VERSION", None),
            ("VERSION=", None),
        ] {
            assert_eq!(version(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_long_version_is_cut() {
        let version = version(&format!("VERSION={}", "1".repeat(1_000_000))).unwrap();
        assert_eq!(version, format!("{}…", "1".repeat(MAX_VERSION)));
    }
}
