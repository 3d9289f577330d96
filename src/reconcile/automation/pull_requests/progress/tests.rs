use std::time::Duration;

use PullRequestVerb::{Closed, Kept, Left, Merged, Opened};

use super::super::super::delivered::{BranchPolicies, Delivered, ForgeProgress};
use super::super::super::waiting::{self, WaitReason};
use super::super::open_list::{open_beside_problem, open_in};
use super::*;
use crate::git::{BranchAction, BranchOutcome, LeftReason};

fn outcome(number: u64, action: PullRequestVerb) -> PullRequestOutcome {
    let branch = format!("b{number}").parse().unwrap();
    PullRequestOutcome {
        number: Some(number),
        url: format!("https://h/{number}"),
        is_open: !matches!(action, Closed | Merged | Left),
        ..PullRequestOutcome::without(&branch, &"main".parse().unwrap(), action)
    }
}

fn progress(outcomes: Vec<PullRequestOutcome>) -> PullRequestProgress {
    PullRequestProgress { outcomes, ..PullRequestProgress::default() }
}

#[test]
fn the_condition_counts_pull_requests_or_names_the_problem() {
    let refused = PullRequestOutcome {
        reason: Some(OutcomeReason::Decided(PullRequestReason::ClosedByPerson)),
        ..outcome(9, Left)
    };
    let edited = PullRequestOutcome {
        reason: Some(OutcomeReason::Decided(PullRequestReason::EditedByOthers)),
        is_open: true,
        ..outcome(9, Left)
    };
    let unmerged = PullRequestOutcome { merge_refusal: Some("no rule".to_owned()), ..outcome(12, Kept) };
    let limited = ForgeError::RateLimited { host: "h".to_owned(), retry_after: Duration::from_secs(9) };
    let retry: Timestamp = "2026-01-01T00:00:05Z".parse().unwrap();
    let waiting = |until: Option<&str>, outcome: PullRequestOutcome| PullRequestOutcome {
        reason: Some(OutcomeReason::Waiting(WithheldChange {
            rule: waiting::Closed {
                reason: WaitReason::WindowClosed,
                by: "deny window `night` of automation shop/app".to_owned(),
                until: until.map(|until| until.parse().unwrap()),
                look_again: None,
                changes: None,
            },
            delays_images: true,
        })),
        ..outcome
    };
    let branch = |number| PullRequestOutcome { number: None, ..outcome(number, Left) };
    let open = PullRequestOutcome { is_open: true, ..outcome(12, Left) };
    let until = Some("2026-12-02T06:00:00Z");
    for (progress, expected) in [
        (progress(vec![]), "True Current no pull request is open"),
        (
            progress(vec![waiting(until, open.clone()), outcome(14, Kept)]),
            "True Current 2 open: #12, #14; a change of #12 waits: deny window `night` of automation shop/app; until \
             2026-12-02T06:00:00Z",
        ),
        (
            progress(vec![waiting(None, branch(1)), waiting(None, open)]),
            "True Current 1 open: #12; changes of branch 'b1', #12 wait: deny window `night` of automation shop/app; no end is \
             known",
        ),
        (
            progress(vec![waiting(None, branch(1))]),
            "True Current no pull request is open; a change of branch 'b1' waits: deny window `night` of automation shop/app; \
             no end is known",
        ),
        (
            progress(vec![outcome(12, Kept), outcome(14, Opened), refused.clone()]),
            "True Current 2 open: #12, #14; refused by a person: #9",
        ),
        (progress(vec![refused]), "True Current refused by a person: #9"),
        (
            progress(vec![outcome(12, Kept), edited]),
            "False EditedByOthers pull request #9 has changes of others and is left alone; 2 open: #9, #12",
        ),
        (
            progress(vec![unmerged]),
            "False AutoMergeRefused pull request #12 is not merged: no rule; 1 open: #12",
        ),
        (
            PullRequestProgress {
                failure: Some(limited.clone()),
                retry: Some(retry),
                has_listing: true,
                ..progress(vec![])
            },
            "False RateLimited h limits requests: the next one is sent in 9 s; 0 open; the next retry is at \
             2026-01-01T00:00:05Z",
        ),
        // It was told as `0 open` before the forge had ever answered.
        (
            PullRequestProgress { failure: Some(limited), retry: Some(retry), ..progress(vec![]) },
            "False RateLimited h limits requests: the next one is sent in 9 s; the next retry is at 2026-01-01T00:00:05Z",
        ),
    ] {
        let (status, reason, message) = progress.condition();
        assert_eq!(format!("{status} {reason} {message}"), expected);
    }
}

/// Images behind a failure at one branch, and refusals beside an open pull request, were called written.
#[test]
fn images_that_the_forge_or_people_keep_out_are_named() {
    let failed = PullRequestOutcome {
        number: None,
        reason: Some(OutcomeReason::ForgeFailed(ForgeError::Unavailable {
            host: "h".to_owned(),
            detail: "no".to_owned(),
        })),
        ..outcome(1, Left)
    };
    let refusal = Some(OutcomeReason::Decided(PullRequestReason::ClosedByPerson));
    let refused = PullRequestOutcome { reason: refusal.clone(), ..outcome(2, Left) };
    let older =
        PullRequestOutcome { reason: refusal, refused_by: Some(9), is_open: true, ..outcome(1, Left) };
    let awaiting = |number: u64| BranchOutcome {
        branch: format!("b{number}").parse().unwrap(),
        action: BranchAction::Left(LeftReason::AwaitingForge),
        tip: None,
        commit: None,
        message: String::new(),
        dropped: Vec::new(),
    };
    for (branches, outcomes, expected) in [
        (&[1, 2][..], vec![failed, outcome(2, Kept)], "; not delivered: p1; 1 open: #2"),
        (&[1, 2], vec![older.clone(), refused], "#2, #9; not delivered: p1 (#9), p2 (#2)"),
        // It is clear of which branch the refusal is.
        (&[1], vec![older], "1 open: #1; refused by a person: #9"),
        (&[1], vec![outcome(1, Kept)], "1 open: #1"),
    ] {
        let policies = |number: &u64| {
            let names: BTreeSet<String> = [format!("p{number}")].into();
            let policies = BranchPolicies { all: names.clone(), changed: names };
            (format!("b{number}").parse().unwrap(), policies)
        };
        let delivered = Delivered {
            base: "main".to_owned(),
            branches: branches.iter().copied().map(awaiting).collect(),
            invalid: Vec::new(),
            without_branch: BTreeSet::new(),
            policies: branches.iter().map(policies).collect(),
            forge: ForgeProgress::Known(Box::new(progress(outcomes))),
            shown: BTreeMap::new(),
        };
        let (_, _, message) = delivered.condition(&BTreeSet::new()).unwrap();
        assert!(message.ends_with(expected), "{message}");
    }
}

#[test]
fn each_action_is_announced_once() {
    let keys = |progress: &PullRequestProgress, before: &str| -> Vec<String> {
        let events = progress.events(&open_in(before)).into_iter();
        events.map(|event| event.key.trim_end().to_owned()).collect()
    };
    let open = progress(vec![outcome(12, Kept), outcome(14, Kept)]);
    assert_eq!(keys(&open, ""), ["PullRequestOpened 12", "PullRequestOpened 14"]);
    assert_eq!(keys(&open, "1 open: #12; refused by a person: #14"), ["PullRequestOpened 14"]);
    assert!(keys(&open, &open.condition().2).is_empty());
    // The action of this process, and the list, are the same event.
    let opened = outcome(15, Opened);
    let opened = PullRequestOutcome { is_opened: true, ..opened };
    let new = PullRequestProgress { unreported: events_of(&opened), ..progress(vec![opened]) };
    assert_eq!(keys(&new, "no pull request is open"), ["PullRequestOpened 15"]);
    let ended = |number, is_merged| EndedPullRequest { number, url: String::new(), is_merged };
    let ended = PullRequestProgress { ended: vec![ended(12, true), ended(14, false)], ..progress(vec![]) };
    let expected = ["PullRequestMerged 12", "PullRequestClosed 14"];
    assert_eq!(keys(&ended, "2 open: #12, #14"), expected);
    assert!(keys(&ended, "no pull request is open").is_empty());
}

/// A restart announced nothing of what was done while the condition named a problem.
#[test]
fn what_was_open_stays_listed_while_the_forge_fails_and_each_end_is_announced_once() {
    let unavailable = || ForgeError::Unavailable { host: "h".to_owned(), detail: "no answer".to_owned() };
    let after = |before: Option<&PullRequestProgress>, outcomes, failure, known: &[u64]| {
        let known = known.iter().copied().collect();
        PullRequestProgress::after(before, (outcomes, failure), &known, &Snapshot::default())
    };
    // The first round of a process fails, and the message of the condition is all that it knows.
    let failed = after(None, vec![], Some(unavailable()), &[12, 14]);
    let message = failed.condition().2;
    assert!(message.ends_with("; 2 open: #12, #14"), "{message}");
    let again = after(Some(&failed), vec![outcome(12, Kept)], Some(unavailable()), &[]);
    assert!(again.condition().2.ends_with("; 2 open: #12, #14"));
    // A round without a failure has seen them all.
    let done = after(Some(&again), vec![outcome(12, Kept), outcome(15, Kept)], None, &[12, 14]);
    assert_eq!(done.condition().2, "2 open: #12, #15");
    let keys: Vec<String> =
        done.events(&open_beside_problem(&message)).into_iter().map(|event| event.key).collect();
    assert_eq!(keys, ["PullRequestOpened 15 "]);
    // The failure of one branch leaves the number of its pull request unknown.
    let one = PullRequestOutcome {
        number: None,
        reason: Some(OutcomeReason::ForgeFailed(unavailable())),
        ..outcome(12, Left)
    };
    let failed = after(Some(&done), vec![one, outcome(15, Kept)], None, &[]);
    assert!(failed.condition().2.ends_with("; 2 open: #12, #15"), "{}", failed.condition().2);
}
