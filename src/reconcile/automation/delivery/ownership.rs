//! The commits and changes on a branch that count as ours without a journal.
//!
//! A commit is ours if an automation of the branch, or its App, is author and committer, and if it changes only values
//! whose markers name policies of the branch, in files of these automations. Another cluster with the same names and another
//! path changes other files, so its commits are not ours.

use std::collections::BTreeSet;

use tagboat_api::ObjectName;

use crate::git::{Author, CommitPeople};
use crate::update::TreePath;
use crate::update::history::is_file_name;
use crate::update::marker_values::strip_values;
use crate::yaml::Limits;

/// The commits and changes of a branch that count as ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnershipScope {
    /// Pairs of author and committer: those of the automations, and of their App.
    pub people: Vec<(Author, Author)>,
    /// The policies of the branch.
    pub policies: BTreeSet<ObjectName>,
    /// `spec.update.path` of each automation; the root for none.
    pub paths: Vec<TreePath>,
}

impl OwnershipScope {
    /// Returns true if a commit has one of the pairs of author and committer.
    pub fn has_people(&self, people: CommitPeople<'_>) -> bool {
        let author = (people.author_name, people.author_email);
        let committer = (people.committer_name, people.committer_email);
        self.people.iter().any(|(first, second)| first.is_read_as(author) && second.is_read_as(committer))
    }

    /// Returns true if a file has changed in values of own markers only.
    pub fn owns_change(&self, path: &TreePath, old: &[u8], new: &[u8]) -> bool {
        let is_in_scope = |scope: &TreePath| path == scope || path.relative_to(scope).is_some();
        if !is_file_name(path.file_name()) || !self.paths.iter().any(is_in_scope) {
            return false;
        }
        let limits = Limits::default();
        let rest = |content| strip_values(content, &limits, &|marker| self.policies.contains(&marker.policy));
        rest(old) == rest(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> OwnershipScope {
        let bot = Author::new("bot", "bot@example.com");
        let (app, forge) = (Author::new("app[bot]", "1+app[bot]@x"), Author::new("Forge", "noreply@x"));
        OwnershipScope {
            people: vec![(bot.clone(), bot), (app, forge)],
            policies: BTreeSet::from([ObjectName { namespace: "n".to_owned(), name: "web".to_owned() }]),
            paths: vec![TreePath::from_bytes("clusters/prod"), TreePath::from_bytes("apps/web.yaml")],
        }
    }

    #[test]
    fn author_and_committer_are_ours_together() {
        let (bot, app, forge) =
            (("bot", "bot@example.com"), ("app[bot]", "1+app[bot]@x"), ("Forge", "noreply@x"));
        for (author, committer, is_ours) in [
            (bot, bot, true),
            (app, forge, true),
            (bot, forge, false),
            (app, app, false),
            (("ann", "ann@example.com"), bot, false),
            (bot, ("ann", "ann@example.com"), false),
            (("bot", "ann@example.com"), bot, false),
            (("ann", "bot@example.com"), bot, false),
        ] {
            let people = CommitPeople {
                author_name: author.0.as_bytes(),
                author_email: author.1.as_bytes(),
                committer_name: committer.0.as_bytes(),
                committer_email: committer.1.as_bytes(),
            };
            assert_eq!(scope().has_people(people), is_ours, "{author:?} {committer:?}");
        }
    }

    #[test]
    fn only_values_of_own_markers_in_own_files_are_ours() {
        const OWN: &str = r#"# {"$imagepolicy": "n:web:tag"}"#;
        const OTHER: &str = r#"# {"$imagepolicy": "n:api:tag"}"#;
        let text =
            |own: &str, other: &str, rest: &str| format!("a: {own} {OWN}\nb: {other} {OTHER}\nc: {rest}\n");
        let old = text("1", "1", "x");
        let file = "clusters/prod/web.yaml";
        for (path, new, is_ours) in [
            (file, text("2", "1", "x"), true),
            (file, text("\"1.10\"", "1", "x"), true),
            ("clusters/prod/a/b/Kustomization", text("2", "1", "x"), true),
            ("apps/web.yaml", text("2", "1", "x"), true),
            // The marker of another policy, and a value without a marker.
            (file, text("2", "2", "x"), false),
            (file, text("2", "1", "y"), false),
            (file, format!("{}d: e\n", text("2", "1", "x")), false),
            (file, text("2", "1", "x").replace("n:web:tag", "n:web"), false),
            // Another cluster has another path.
            ("clusters/staging/web.yaml", text("2", "1", "x"), false),
            ("clusters/prod2/web.yaml", text("2", "1", "x"), false),
            ("apps/api.yaml", text("2", "1", "x"), false),
            // An update reads no such file.
            ("clusters/prod/web.txt", text("2", "1", "x"), false),
            (file, format!("{}{{", text("2", "1", "x")), false),
        ] {
            let path = TreePath::from_bytes(path);
            assert_eq!(scope().owns_change(&path, old.as_bytes(), new.as_bytes()), is_ours, "{path} {new}");
        }
        let everywhere = OwnershipScope { paths: vec![TreePath::root()], ..scope() };
        let (path, new) = (TreePath::from_bytes("any/where.yml"), text("2", "1", "x"));
        assert!(everywhere.owns_change(&path, old.as_bytes(), new.as_bytes()));
        assert!(!everywhere.owns_change(&path, b"\xff", b"\xfe"));
    }
}
