//! Messages of servers about rate limits and archived repositories.

/// Words by which servers say that they limit the rate of requests, in lower case.
///
/// GitHub has a limit per hour, and secondary ones, which it called abuse detection.
const LIMITED: [&str; 2] = ["rate limit", "abuse detection"];

/// Words by which servers say that a repository is archived, in lower case.
const ARCHIVED: [&str; 5] = [
    "repository was archived",
    "repository is archived",
    "repo is archived",
    "archived repository",
    "archived project",
];

/// Returns true if a message says that a server limits the rate of requests.
pub fn tells_rate_limit(message: &str) -> bool {
    has_any(message, &LIMITED)
}

/// Returns true if a message says that the repository is archived.
pub fn tells_archived(message: &str) -> bool {
    has_any(message, &ARCHIVED)
}

fn has_any(message: &str, words: &[&str]) -> bool {
    let message = message.to_ascii_lowercase();
    words.iter().any(|words| message.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_limit_and_an_archived_repository_are_known_by_the_words_of_each_server() {
        for (message, is_limited, is_archived) in [
            ("API rate limit exceeded for installation ID 1.", true, false),
            ("You have exceeded a Secondary Rate Limit", true, false),
            ("You have triggered an abuse detection mechanism.", true, false),
            ("Resource not accessible by integration", false, false),
            ("This repository was archived so it is read-only.", false, true),
            ("Repository was archived so is read-only.", false, true),
            ("This repository is archived", false, true),
            ("This repo is archived. You can view files and clone it, but cannot push", false, true),
            ("Cannot push to an archived repository", false, true),
            ("You can't push code to an archived project.", false, true),
            ("unable to access 'https://git.example/archived/project/'", false, false),
            ("", false, false),
        ] {
            assert_eq!(
                (tells_rate_limit(message), tells_archived(message)),
                (is_limited, is_archived),
                "{message}"
            );
        }
    }
}
