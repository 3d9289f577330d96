//! Several automations that push to one branch in one run.

use crate::run::shared_branch::{Member, assert_each_landed_once, fleet};
use crate::support::content::file;
use crate::support::git_host::{Operation, Settings};
use crate::support::remote_fleet::{RemoteFleet, git_repository};

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

/// Automations that start from different branches do not share a transaction.
/// The push branch does not exist yet, and each automation would create it from another branch.
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
