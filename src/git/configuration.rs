//! The text of a git configuration file.

use std::fmt;

use zeroize::Zeroizing;

/// Settings of a git configuration file. They may hold secrets, so none is printed.
#[derive(Default)]
pub struct Configuration(Zeroizing<Vec<u8>>);

impl Configuration {
    /// A file without settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns true if there is no setting.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the setting `section.subsection.name`.
    /// The value is truncated at its first zero byte, because git's values cannot contain one.
    pub fn set(&mut self, section: &str, subsection: Option<&str>, name: &str, value: impl AsRef<[u8]>) {
        let text = &mut self.0;
        text.push(b'[');
        text.extend_from_slice(section.as_bytes());
        if let Some(subsection) = subsection {
            text.extend_from_slice(b" \"");
            for &byte in subsection.as_bytes() {
                if b"\"\\".contains(&byte) {
                    text.push(b'\\');
                }
                text.push(byte);
            }
            text.push(b'"');
        }
        text.extend_from_slice(b"]\n\t");
        text.extend_from_slice(name.as_bytes());
        // Spaces and comment signs mean nothing in quotes.
        text.extend_from_slice(b" = \"");
        for &byte in value.as_ref().iter().take_while(|&&byte| byte != 0) {
            match byte {
                b'"' => text.extend_from_slice(b"\\\""),
                b'\\' => text.extend_from_slice(b"\\\\"),
                b'\n' => text.extend_from_slice(b"\\n"),
                byte => text.push(byte),
            }
        }
        text.extend_from_slice(b"\"\n");
    }

    /// The file's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Prints dots.
impl fmt::Debug for Configuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Configuration(\"••••\")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted() {
        let mut file = Configuration::new();
        file.set("http", Some("https://h/\"\\"), "extraHeader", "A: b\"c\\d#e;f\ng ");
        file.set("http", None, "proxy", "");
        let expected = "[http \"https://h/\\\"\\\\\"]\n\textraHeader = \"A: b\\\"c\\\\d#e;f\\ng \"\n[http]\n\tproxy = \"\"\n";
        assert_eq!(std::str::from_utf8(file.as_bytes()).unwrap(), expected);
        assert_eq!(format!("{file:?}"), "Configuration(\"••••\")");
    }
}
