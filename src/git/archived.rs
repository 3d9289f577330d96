//! Messages of servers about archived repositories.

/// Words, in lower case, by which servers say that a repository is archived.
const ARCHIVED: [&str; 5] = [
    "repository was archived",
    "repository is archived",
    "repo is archived",
    "archived repository",
    "archived project",
];

/// Returns true if a message says that the repository is archived.
pub fn tells_archived(message: &str) -> bool {
    let lower = message.to_ascii_lowercase();
    ARCHIVED.iter().any(|words| lower.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archived_repository_is_known_by_the_words_of_each_server() {
        for (message, expected) in [
            ("This repository was archived so it is read-only.", true),
            ("Repository was archived so is read-only.", true),
            ("This repository is archived", true),
            ("This repo is archived. You can view files and clone it, but cannot push", true),
            ("Cannot push to an archived repository", true),
            ("You can't push code to an archived project.", true),
            ("unable to access 'https://git.example/archived/project/'", false),
            ("", false),
        ] {
            assert_eq!(tells_archived(message), expected, "{message}");
        }
    }
}
