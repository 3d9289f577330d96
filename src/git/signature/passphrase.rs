//! The passphrase of a key.

use crate::secrets::{Secret, SecretData};

/// The passphrase in a secret, if it has one.
#[derive(Debug)]
pub(super) struct Passphrase<'s> {
    value: Option<&'s Secret>,
}

impl<'s> Passphrase<'s> {
    /// Reads the passphrase under a key of a secret; an empty one counts as none.
    pub(super) fn of(secret: SecretData<'s>, key: &str) -> Self {
        Self { value: secret.data.get(key).filter(|value| !value.expose().is_empty()) }
    }

    /// Returns true if there is one.
    pub(super) fn is_present(&self) -> bool {
        self.value.is_some()
    }

    /// Tries the passphrase as it stands, then without the line break of a text file.
    ///
    /// The second attempt is made only if the first passphrase is wrong. If both are, the result is `None`, as that of an
    /// attempt with a wrong passphrase.
    ///
    /// # Errors
    ///
    /// The error of the last attempt, against which no passphrase helps.
    pub(super) fn try_each<T, E>(
        &self,
        mut attempt: impl FnMut(&[u8]) -> Result<Option<T>, E>,
    ) -> Result<Option<T>, E> {
        let whole = self.value.map_or(&[][..], |value| value.expose());
        let line = whole.strip_suffix(b"\n").unwrap_or(whole);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match attempt(whole)? {
            None if line.len() < whole.len() => attempt(line),
            unlocked => Ok(unlocked),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_passphrase_is_tried_with_and_without_its_final_line_break() {
        for (text, expected) in
            [("a", &["a"][..]), ("a\n", &["a\n", "a"]), ("a\r\n", &["a\r\n", "a"]), ("a b ", &["a b "])]
        {
            let data = BTreeMap::from([("p".to_owned(), Secret::new(text))]);
            let passphrase = Passphrase::of(SecretData { name: "n", data: &data }, "p");
            let mut tried = Vec::new();
            let found: Result<Option<()>, &str> = passphrase.try_each(|bytes| {
                tried.push(String::from_utf8(bytes.to_vec()).unwrap());
                Ok(None)
            });
            assert_eq!((found, passphrase.is_present()), (Ok(None), true));
            assert_eq!(tried, expected);
            // Unlocking is expensive, so only a different passphrase is tried.
            let mut attempts = 0;
            let found: Result<Option<()>, &str> = passphrase.try_each(|_| {
                attempts += 1;
                Err("damaged")
            });
            assert_eq!((found, attempts), (Err("damaged"), 1));
        }
    }
}
