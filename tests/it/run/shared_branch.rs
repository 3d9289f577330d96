//! A fleet whose automations push to one branch.

use crate::support::content::file;
use crate::support::git_host::Settings;
use crate::support::manifests::{automation, marker, policy_with_status};
use crate::support::remote_fleet::{RemoteFleet, git_fields, git_repository};

/// An automation `default/pN`, its one policy, and the one line that is marked for it.
pub(super) struct Member {
    pub(super) name: String,
    pub(super) author: String,
}

impl Member {
    pub(super) fn several(count: usize) -> Vec<Self> {
        let member = |number| Self { name: format!("p{number}"), author: format!("Author{number}") };
        (0..count).map(member).collect()
    }

    pub(super) fn line(&self, version: &str) -> String {
        let Self { name, .. } = self;
        format!("{name}: {version} {}\n", marker(&format!("default:{name}:tag")))
    }

    pub(super) fn manifests(&self) -> String {
        let Self { name, author } = self;
        let labels = format!("app: {name}");
        let status = format!("latestRef: {{name: ghcr.io/org/{name}, tag: 2.0.0}}");
        let selector = format!("  policySelector: {{matchLabels: {{app: {name}}}}}\n");
        let fields = git_fields(author, "branch: main") + &selector;
        policy_with_status("default", name, &labels, &status) + &automation("default", name, &fields)
    }
}

/// A fleet with a file of one line per member.
pub(super) fn fleet(members: &[Member]) -> RemoteFleet {
    let lines: String = members.iter().map(|member| member.line("1.0.0")).collect();
    let fleet = RemoteFleet::of_files(&[file("fleet.yaml", lines)], Settings::default());
    let url = fleet.host.url("fleet.git");
    let manifests: String = members.iter().map(Member::manifests).collect();
    fleet.write_manifests(&(manifests + &git_repository(&url, "timeout: 60s")));
    fleet
}

/// Asserts that each member has one commit, which changes its own line and no other.
#[track_caller]
pub(super) fn assert_each_landed_once(fleet: &RemoteFleet, members: &[Member]) {
    let own = fleet.own_commits();
    assert_eq!(own.len(), members.len());
    for member in members {
        let author = format!("{} <bot@example.com>", member.author);
        let commits: Vec<_> = own.iter().filter(|commit| commit.author == author).collect();
        assert_eq!(commits.len(), 1, "{author}");
        let commit = commits[0];
        let text = |revision: &str| String::from_utf8(fleet.repository.file(revision, "fleet.yaml")).unwrap();
        let (before, after) = (text(&commit.parents[0]), text(&commit.id));
        let changes: Vec<_> = before.lines().zip(after.lines()).filter(|(old, new)| old != new).collect();
        let (old, new) = (member.line("1.0.0"), member.line("2.0.0"));
        assert_eq!(changes, [(old.trim_end(), new.trim_end())]);
        let paths = fleet.repository.git(["diff-tree", "--name-only", "-r", "--no-commit-id", &commit.id]);
        assert_eq!(String::from_utf8(paths).unwrap(), "fleet.yaml\n");
    }
    fleet.assert_sound();
}
