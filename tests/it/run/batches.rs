//! Several automations that push to one branch in one run.

use crate::support::content::file;
use crate::support::git_host::{Operation, Settings};
use crate::support::manifests::{automation, marker, policy_with_status};
use crate::support::remote_fleet::{RemoteFleet, git_fields, git_repository};

/// An automation `default/pN`, the one policy that it follows, and the one line that is marked for it.
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

/// A fleet with a file of one line a member.
pub(super) fn fleet(members: &[Member]) -> RemoteFleet {
    let lines: String = members.iter().map(|member| member.line("1.0.0")).collect();
    let fleet = RemoteFleet::of_files(&[file("fleet.yaml", lines)], Settings::default());
    let url = fleet.host.url("fleet.git");
    let manifests: String = members.iter().map(Member::manifests).collect();
    fleet.write_manifests(&(manifests + &git_repository(&url, "timeout: 60s")));
    fleet
}

/// Insists that each member has one commit, which changes its own line and no other.
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

#[test]
fn automations_of_one_branch_share_a_push_and_have_a_commit_each() {
    let members = Member::several(4);
    let fleet = fleet(&members);
    let run = fleet.run().with_status(0);
    assert_eq!(fleet.host.requests_for(Operation::Push).len(), 1);
    assert_each_landed_once(&fleet, &members);
    let own = fleet.own_commits();
    for (member, outcome) in members.iter().zip(run.json()["automations"].as_array().unwrap()) {
        let commit = outcome["commit"]["id"].as_str().unwrap();
        let author = &own.iter().find(|own| own.id == commit).unwrap().author;
        assert_eq!(*author, format!("{} <bot@example.com>", member.author));
        assert_eq!(fleet.status(&member.name)["lastPushCommit"], commit);
    }
    let requests = fleet.host.requests().len();
    let again = fleet.run().with_status(0);
    for outcome in again.json()["automations"].as_array().unwrap() {
        assert_eq!(outcome["outcome"], "skipped");
    }
    assert_eq!(fleet.host.requests().len() - requests, 2, "one listing for all");
}

/// The push branch does not exist yet, and each would make it from another place.
#[test]
fn automations_that_start_from_different_branches_do_not_share_a_transaction() {
    let members = Member::several(2);
    let lines: String = members.iter().map(|member| member.line("2.0.0")).collect();
    let fleet = RemoteFleet::of_files(&[file("fleet.yaml", lines)], Settings::default());
    let old: String = members.iter().map(|member| member.line("1.0.0")).collect();
    let main = fleet.repository.id("main").unwrap();
    fleet.repository.commit("release", "Behind", &[file("fleet.yaml", old)]);
    let url = fleet.host.url("fleet.git");
    let manifest = |member: &Member, branch: &str| {
        let checkout = format!("    checkout: {{ref: {{branch: {branch}}}}}\n");
        member
            .manifests()
            .replace("  git:\n", &format!("  git:\n{checkout}"))
            .replace("branch: main", "branch: auto")
    };
    let both = [
        manifest(&members[0], "main").replace("{ref: {branch: auto}}", "{ref: {branch: main}}"),
        manifest(&members[1], "release"),
    ];
    fleet.write_manifests(&(both.concat() + &git_repository(&url, "timeout: 60s")));
    let run = fleet.run().with_status(0);
    let outcomes: Vec<_> =
        run.json()["automations"].as_array().unwrap().iter().map(|one| one["outcome"].clone()).collect();
    assert_eq!(outcomes, ["unchanged", "pushed"], "{run:?}");
    let log = fleet.repository.log("auto");
    assert_eq!(log[0].parents, [fleet.repository.id("release").unwrap()]);
    assert_eq!(fleet.repository.id("main"), Some(main));
    fleet.assert_sound();
}
