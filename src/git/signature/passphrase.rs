//! The passphrase beside a key.

use crate::git::SecretData;
use crate::secret::Secret;

/// What a secret has to unlock its key with.
#[derive(Debug)]
pub(super) struct Passphrase<'s> {
    value: Option<&'s Secret>,
}

impl<'s> Passphrase<'s> {
    /// The one under a key of a secret; an empty one is none.
    pub(super) fn of(secret: SecretData<'s>, key: &str) -> Self {
        Self { value: secret.data.get(key).filter(|value| !value.expose().is_empty()) }
    }

    /// Whether there is one.
    pub(super) fn is_given(&self) -> bool {
        self.value.is_some()
    }

    /// Tries it, less the line break that a text file brings along, and then as it stands. Gives nothing where neither
    /// fits.
    pub(super) fn try_each<T>(&self, mut attempt: impl FnMut(&[u8]) -> Option<T>) -> Option<T> {
        let whole = self.value?.expose();
        let line = whole.strip_suffix(b"\n").unwrap_or(whole);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        attempt(line).or_else(|| if line.len() < whole.len() { attempt(whole) } else { None })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_line_break_at_the_end_may_belong_to_it_or_not() {
        for (text, expected) in [
            ("", &[][..]),
            ("a", &["a"]),
            ("a\n", &["a", "a\n"]),
            ("a\r\n", &["a", "a\r\n"]),
            ("a b ", &["a b "]),
        ] {
            let data = BTreeMap::from([("p".to_owned(), Secret::new(text))]);
            let passphrase = Passphrase::of(SecretData { name: "n", data: &data }, "p");
            let mut tried = Vec::new();
            let found: Option<()> = passphrase.try_each(|bytes| {
                tried.push(String::from_utf8(bytes.to_vec()).unwrap());
                None
            });
            assert_eq!((found, passphrase.is_given()), (None, !text.is_empty()));
            assert_eq!(tried, expected);
        }
    }
}
