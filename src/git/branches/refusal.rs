//! Advice about a server's refusal of a branch.

use crate::net::tells_archived;

/// The place of branches among references.
const HEADS: &str = "refs/heads/";

/// Words by which servers say that they protect a branch: GitHub, GitLab, Gitea, Azure DevOps.
const PROTECTED: [&str; 5] = ["gh006", "gh013", "protected branch", "is protected", "forcepush"];

/// Words by which git says that one branch cannot be a folder of the other.
const CONFLICT: [&str; 3] = ["cannot create 'refs/heads/", "directory/file conflict", "refname conflict"];

/// Adds to the text of a server what can be done, if that is known.
pub(super) fn with_advice(text: String) -> String {
    match advice(&text) {
        Some(advice) => format!("{text}: {advice}"),
        None => text,
    }
}

/// Returns what can be done about a refusal with this text.
fn advice(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let has_one = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if tells_archived(text) {
        return Some("unarchive the repository, or suspend the automation".to_owned());
    }
    if has_one(&CONFLICT) {
        let other = match in_the_way(text) {
            Some(name) => format!("the branch '{name}' of the server"),
            None => "a branch of the server".to_owned(),
        };
        return Some(format!(
            "{other} is in the way, because one branch cannot be a folder of another: delete it, or set another name by the \
             annotation tagboat.dev/push-branch"
        ));
    }
    has_one(&PROTECTED).then(|| {
        "the server protects this branch: allow the login of git to push and force-push to it, or set another name by the \
         annotation tagboat.dev/push-branch"
            .to_owned()
    })
}

/// Returns the branch that a message names as existing.
fn in_the_way(text: &str) -> Option<&str> {
    let before = &text[..text.find("' exists; cannot create")?];
    let name = &before[before.rfind('\'')? + 1..];
    name.strip_prefix(HEADS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_known_kinds_say_what_to_do() {
        for (text, expected) in [
            (
                "[remote rejected] (failed to update ref); error: cannot lock ref 'refs/heads/tagboat/web': \
                 'refs/heads/tagboat' exists; cannot create 'refs/heads/tagboat/web'",
                Some("the branch 'tagboat' of the server is in the way"),
            ),
            (
                "cannot lock ref 'refs/heads/a': 'refs/heads/a/b' exists; cannot create 'refs/heads/a'",
                Some("the branch 'a/b' of the server is in the way"),
            ),
            ("[remote rejected] (directory/file conflict)", Some("a branch of the server is in the way")),
            (
                "GH006: Protected branch update failed for refs/heads/x.",
                Some("the server protects this branch"),
            ),
            (
                "GitLab: You are not allowed to force push code to a protected branch on this project.",
                Some("the server protects this branch"),
            ),
            ("Gitea: branch x is protected from force push", Some("the server protects this branch")),
            (
                "This repository was archived so it is read-only.",
                Some("unarchive the repository, or suspend the automation"),
            ),
            ("unable to push to 'https://git.example/archived/fleet': [remote rejected] (no)", None),
            ("[remote rejected] (pre-receive hook declined)", None),
            ("' exists; cannot create", None),
            ("", None),
        ] {
            let found = with_advice(text.to_owned());
            match expected {
                Some(advice) => assert!(found.starts_with(&format!("{text}: {advice}")), "{found}"),
                None => assert_eq!(found, text),
            }
        }
    }
}
