//! Refspecs, which are pushed beside the branch, and push options.

use serde_json::json;

use crate::support::content::file;
use crate::support::git_host::Operation;
use crate::support::remote_fleet::{RemoteFleet, outcome_and_commit, ready};

fn pushing(refspec: &str) -> RemoteFleet {
    RemoteFleet::pushing(&format!("branch: main, refspec: {refspec:?}"))
}

#[test]
fn a_copy_of_the_branch_follows_it() {
    let fleet = pushing("HEAD:refs/heads/copy");
    assert_eq!(outcome_and_commit(&fleet.run().with_status(0)).0, "pushed");
    assert_eq!(fleet.repository.id("refs/heads/copy"), Some(fleet.tip()));
    fleet.assert_pushed_once();
    assert_eq!(outcome_and_commit(&fleet.run()).0, "skipped");
    // A mirror without history does not have the commits of others in between.
    for number in 0..3 {
        fleet.repository.commit("main", "Between", &[file(format!("{number}.yaml"), "1\n")]);
    }
    let run = fleet.run_with_tag("5.0.4").with_status(0);
    assert_eq!(outcome_and_commit(&run), ("pushed".to_owned(), Some(fleet.tip())));
    assert_eq!(fleet.repository.id("refs/heads/copy"), Some(fleet.tip()));
    assert_eq!(fleet.repository.log("main").len(), 6);
    fleet.assert_sound();
}

#[test]
fn a_refspec_for_the_branch_itself_is_not_pushed_twice() {
    let fleet = pushing("HEAD:refs/heads/main");
    assert_eq!(outcome_and_commit(&fleet.run().with_status(0)), ("pushed".to_owned(), Some(fleet.tip())));
    fleet.assert_pushed_once();
    assert_eq!(outcome_and_commit(&fleet.run()).0, "skipped");
}

/// As with Flux, which pushes nothing without a commit.
#[test]
fn a_copy_that_was_deleted_comes_back_with_the_next_commit() {
    let fleet = pushing("HEAD:refs/heads/copy");
    fleet.run().with_status(0);
    fleet.repository.delete_branch("copy");
    assert_eq!(outcome_and_commit(&fleet.run().with_status(0)).0, "skipped");
    assert_eq!(fleet.repository.id("refs/heads/copy"), None);
    assert_eq!(outcome_and_commit(&fleet.run_with_tag("5.0.4").with_status(0)).0, "pushed");
    assert_eq!(fleet.repository.id("refs/heads/copy"), Some(fleet.tip()));
    fleet.assert_sound();
}

/// The checkout is pushed to one reference, and the commit to another.
#[test]
fn a_refspec_can_push_the_checkout() {
    let fleet = RemoteFleet::pushing("branch: auto, refspec: 'main:refs/heads/copy'");
    for number in 0..2 {
        fleet.repository.commit("main", "Person", &[file(format!("{number}.yaml"), "1\n")]);
        fleet.run_with_tag(&format!("5.0.{number}")).with_status(0);
        assert_eq!(fleet.repository.id("refs/heads/copy"), Some(fleet.tip()));
    }
    assert_eq!(fleet.repository.log("auto").len(), 4);
    fleet.assert_sound();
}

#[test]
fn a_copy_that_went_its_own_way_is_overwritten_by_force_only() {
    for (refspec, is_forced) in [("HEAD:refs/heads/copy", false), ("+HEAD:refs/heads/copy", true)] {
        let fleet = pushing(refspec);
        let own_way = fleet.repository.commit("copy", "Own way", &[file("own.yaml", "1\n")]);
        let run = fleet.run().with_status(i32::from(!is_forced));
        assert_eq!(fleet.own_commits().len(), 1, "{refspec}: the branch is pushed in any case");
        if is_forced {
            assert_eq!(fleet.repository.id("refs/heads/copy"), Some(fleet.tip()));
        } else {
            assert!(run.only_error().contains("refs/heads/copy"), "{run:?}");
            assert!(run.only_error().contains("fast-forward"), "{run:?}");
            assert_eq!(fleet.repository.id("refs/heads/copy"), Some(own_way));
            assert_eq!(ready(&fleet.status("fleet"))["status"], "False");
            // The refspec stays pending until it can be pushed.
            fleet.run().with_status(1);
            fleet.repository.delete_branch("copy");
            assert_eq!(
                outcome_and_commit(&fleet.run().with_status(0)),
                ("pushed".to_owned(), Some(fleet.tip()))
            );
            assert_eq!(fleet.repository.id("refs/heads/copy"), Some(fleet.tip()));
        }
        fleet.assert_pushed_once();
    }
}

#[test]
fn a_refused_refspec_is_retried_until_it_is_accepted() {
    let fleet = pushing("HEAD:refs/heads/copy");
    let hook = r#"test "$1" != refs/heads/copy || { echo 'No copies.' >&2; exit 1; }"#;
    fleet.repository.hook("update", hook);
    let run = fleet.run().with_status(1);
    assert_eq!(run.only_error().matches("No copies.").count(), 1, "{run:?}");
    assert_eq!(fleet.own_commits().len(), 1);
    let commit = fleet.tip();
    assert_eq!(ready(&fleet.status("fleet"))["status"], "False");
    fleet.run().with_status(1);
    fleet.repository.hook("update", "echo \"$1\" >>\"$GIT_DIR/updates\"");
    fleet.repository.commit("main", "On top", &[file("other.yaml", "1\n")]);
    let run = fleet.run().with_status(0);
    assert_eq!(outcome_and_commit(&run), ("pushed".to_owned(), Some(commit)));
    let updates = std::fs::read_to_string(fleet.repository.path().join("updates")).unwrap();
    assert_eq!(updates, "refs/heads/copy\n");
    assert_eq!(fleet.repository.id("refs/heads/copy"), Some(fleet.tip()));
    fleet.assert_pushed_once();
    assert_eq!(outcome_and_commit(&fleet.run()).0, "skipped");
}

/// The report did not say that a commit was pushed to the branch.
#[test]
fn a_refused_refspec_is_reported_with_the_commit_that_was_pushed() {
    let fleet = pushing("HEAD:refs/heads/copy");
    fleet.repository.hook("update", "test \"$1\" != refs/heads/copy");
    let report = |run: &crate::support::program::Run| run.json()["automations"][0].clone();
    let run = fleet.run().with_status(1);
    let (first, commit) = (report(&run), fleet.tip());
    let pushed = format!(
        "failed to update source: pushed commit '{}' to branch 'main', but not refspecs 'HEAD:refs/heads/copy': failed to push ",
        &commit[..7]
    );
    assert!(run.only_error().contains(&pushed), "{run:?}");
    assert_eq!(first["outcome"], "failed");
    assert!(first["message"].as_str().unwrap().starts_with(&pushed), "{first:#}");
    assert_eq!((&first["commit"]["id"], &first["commit"]["branch"]), (&json!(commit), &json!("main")));
    let status = fleet.status("fleet");
    assert_eq!(status["lastPushCommit"], commit);
    assert!(ready(&status)["message"].as_str().unwrap().starts_with(&pushed), "{status:#}");
    // The next run has pushed nothing.
    let again = report(&fleet.run().with_status(1));
    let earlier =
        format!("commit '{}' of an earlier run is on branch 'main', but not refspecs ", &commit[..7]);
    assert!(again["message"].as_str().unwrap().contains(&earlier), "{again:#}");
    assert_eq!(again["commit"], json!(null));
    assert_eq!(fleet.status("fleet")["lastPushTime"], status["lastPushTime"]);
    fleet.repository.hook("update", "exit 0");
    assert_eq!(outcome_and_commit(&fleet.run().with_status(0)), ("pushed".to_owned(), Some(commit)));
    fleet.assert_pushed_once();
}

/// As with Gerrit: the reference accepts pushes, and no listing shows it.
#[test]
fn a_destination_outside_the_listing_is_pushed_once() {
    let fleet = pushing("HEAD:refs/for/main");
    fleet.repository.hook(
        "post-receive",
        "while read old new name; do\n\
         echo \"$name\" >>\"$GIT_DIR/updates\"\n\
         case $name in refs/for/*) git update-ref -d \"$name\";; esac\n\
         done",
    );
    let updates = || std::fs::read_to_string(fleet.repository.path().join("updates")).unwrap();
    fleet.run().with_status(0);
    assert_eq!(updates(), "refs/heads/main\nrefs/for/main\n");
    fleet.assert_pushed_once();
    assert_eq!(outcome_and_commit(&fleet.run()).0, "skipped");
    // A reconcile for another reason.
    fleet.repository.commit("main", "On top", &[file("other.yaml", "1\n")]);
    assert_eq!(outcome_and_commit(&fleet.run()).0, "unchanged");
    assert_eq!(updates(), "refs/heads/main\nrefs/for/main\n");
    assert_eq!(fleet.host.requests_for(Operation::Push).len(), 1);
    fleet.run_with_tag("5.0.4").with_status(0);
    assert_eq!(updates(), "refs/heads/main\nrefs/for/main\n".repeat(2));
}

#[test]
fn push_options_reach_a_server_that_takes_them_and_no_other() {
    let options = "branch: main, options: {merge_request.create: '', ci.skip: 'a b'}";
    for is_taken in [true, false] {
        let fleet = RemoteFleet::pushing(options);
        fleet.repository.configure("receive.advertisePushOptions", &is_taken.to_string());
        fleet.repository.hook(
            "pre-receive",
            "env | grep '^GIT_PUSH_OPTION' | LC_ALL=C sort >\"$GIT_DIR/options\"; exit 0",
        );
        let run = fleet.run().with_status(0);
        assert_eq!(run.errors, "");
        fleet.assert_pushed_once();
        let seen = std::fs::read_to_string(fleet.repository.path().join("options")).unwrap();
        let expected = "GIT_PUSH_OPTION_0=ci.skip=a b\nGIT_PUSH_OPTION_1=merge_request.create=\n\
            GIT_PUSH_OPTION_COUNT=2\n";
        assert_eq!(seen, if is_taken { expected } else { "GIT_PUSH_OPTION_COUNT=0\n" });
    }
}
