//! The author of commits.

/// The author of a commit, who is also its committer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    name: String,
    email: String,
}

impl Author {
    /// Creates an author with this name, which may be empty, and this address.
    ///
    /// The characters that would end a field of a commit (`<`, `>`, line feed) are left out as in Flux; so is NUL, at
    /// which git would stop reading.
    pub fn new(name: &str, email: &str) -> Self {
        let clean = |text: &str| text.replace(['<', '>', '\n', '\0'], "");
        Self { name: clean(name), email: clean(email) }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The address.
    pub fn email(&self) -> &str {
        &self.email
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_end_a_field_are_removed_from_an_author() {
        for (name, email, expected) in [
            ("A", "a@example.com", ("A", "a@example.com")),
            ("", "a@example.com", ("", "a@example.com")),
            ("A <x>", "<a@example.com>\n", ("A x", "a@example.com")),
            ("A\ntree 0", "a\0b", ("Atree 0", "ab")),
        ] {
            let author = Author::new(name, email);
            assert_eq!((author.name(), author.email()), expected);
        }
    }
}
