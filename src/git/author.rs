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

    /// Returns true if a commit of this author is read with a name and an address.
    ///
    /// libgit2 leaves blanks and some punctuation at the ends out as it reads a commit, so plain equality does not suffice.
    pub fn is_read_as(&self, (name, email): (&[u8], &[u8])) -> bool {
        trimmed(self.name.as_bytes()) == trimmed(name) && trimmed(self.email.as_bytes()) == trimmed(email)
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

/// Returns a name or an address as libgit2 reads it.
fn trimmed(mut text: &[u8]) -> &[u8] {
    let is_left_out =
        |byte: u8| byte <= b' ' || matches!(byte, b',' | b':' | b';' | b'<' | b'>' | b'"' | b'\\' | b'\'');
    while let Some((_, rest)) = text.split_first().filter(|(byte, _)| is_left_out(**byte)) {
        text = rest;
    }
    while let Some((_, rest)) = text.split_last().filter(|(byte, _)| is_left_out(**byte)) {
        text = rest;
    }
    text
}

#[cfg(test)]
mod tests {
    use git2::Repository;

    use super::*;

    /// A run without state took its own commits for those of others.
    #[test]
    fn the_author_of_a_commit_is_known_by_what_git_reads() {
        let directory = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(directory.path()).unwrap();
        let tree = repository.treebuilder(None).unwrap().write().unwrap();
        let people = [
            ("T", "t@example.com"),
            (" T <x> ", "t@example.com"),
            ("T", "a<b>@c "),
            ("T, Inc.", " t@example.com"),
            ("\"T\"", "'t@example.com'"),
            ("T;\r", "\tt@example.com:"),
            ("", "t@example.com"),
            ("T", ""),
            ("T U", "t@example.com"),
        ];
        for (at, (name, email)) in people.into_iter().enumerate() {
            let author = Author::new(name, email);
            let person = format!("{} <{}> 1 +0000", author.name(), author.email());
            let text = format!("tree {tree}\nauthor {person}\ncommitter {person}\n\nm\n");
            let commit = repository.odb().unwrap().write(git2::ObjectType::Commit, text.as_bytes()).unwrap();
            let commit = repository.find_commit(commit).unwrap();
            let read = commit.author();
            let is = |other: &Author| other.is_read_as((read.name_bytes(), read.email_bytes()));
            assert!(is(&author), "{author:?}");
            let others = ["U", "T V"].map(|name| Author::new(name, email));
            assert!(!others.iter().any(is), "{at} {author:?}");
            assert!(!is(&Author::new(name, "u@example.com")), "{author:?}");
        }
    }

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
