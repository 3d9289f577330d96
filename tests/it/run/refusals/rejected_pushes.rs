//! Pushes that the server rejects.

use std::time::{Duration, Instant};

use crate::run::shared_branch::{self, Member};
use crate::support::git_host::Operation;
use crate::support::remote_fleet::{RemoteFleet, outcome_and_commit, ready};

#[test]
fn a_rejection_is_quoted_and_the_next_run_retries() {
    for hook in ["pre-receive", "update"] {
        let fleet = RemoteFleet::small();
        let before = fleet.tip();
        fleet.repository.hook(hook, "echo 'Not on Fridays.' >&2; exit 1");
        let begin = Instant::now();
        for pushes in 1..=2 {
            let run = fleet.run().with_status(1);
            assert_eq!(run.only_error().matches("Not on Fridays.").count(), 1, "{run:?}");
            assert!(run.only_error().contains(&fleet.host.url("fleet.git")), "{run:?}");
            assert_eq!(outcome_and_commit(&run), ("failed".to_owned(), None));
            assert_eq!(fleet.host.requests_for(Operation::Push).len(), pushes, "it is not tried in vain");
            let status = fleet.status("fleet");
            assert_eq!(ready(&status)["reason"], "GitOperationFailed", "{status:#}");
            assert!(ready(&status)["message"].as_str().unwrap().contains("Not on Fridays."), "{status:#}");
        }
        assert!(begin.elapsed() < Duration::from_secs(30));
        assert_eq!(fleet.tip(), before);
        fleet.repository.hook(hook, "exit 0");
        let run = fleet.run().with_status(0);
        assert_eq!(outcome_and_commit(&run), ("pushed".to_owned(), Some(fleet.tip())), "{hook}");
        fleet.assert_pushed_once();
    }
}

#[test]
fn a_refused_commit_does_not_fail_the_others() {
    let members = Member::several(3);
    let fleet = shared_branch::fleet(&members);
    // As a forge that accepts commits of its members only.
    fleet.repository.hook(
        "pre-receive",
        "while read old new name; do\n\
         if git log --format=%an $old..$new | grep -q 'Author1'; then echo 'Who is Author1?' >&2; exit 1; fi\n\
         done",
    );
    for commits in [2, 2] {
        let run = fleet.run().with_status(1);
        assert_eq!(run.only_error().matches("Who is Author1?").count(), 1, "{run:?}");
        assert!(run.only_error().contains("default/p1"), "{run:?}");
        let authors: Vec<String> = fleet.own_commits().into_iter().map(|commit| commit.author).collect();
        assert_eq!(authors.len(), commits);
        assert_eq!(authors, ["Author2 <bot@example.com>", "Author0 <bot@example.com>"]);
        for (name, is_ready) in [("p0", "True"), ("p1", "False"), ("p2", "True")] {
            assert_eq!(ready(&fleet.status(name))["status"], is_ready, "{name}");
        }
    }
    fleet.repository.hook("pre-receive", "exit 0");
    fleet.run().with_status(0);
    shared_branch::assert_each_landed_once(&fleet, &members);
}
