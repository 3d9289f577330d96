//! Conditions and events of branches.

use std::time::Duration;

use super::report::AWAITED;
use super::*;
use crate::error::chain;
use crate::git::CommitId;
use crate::git::checkout::Revision;
use crate::git::outcome::Outcome;
use crate::reconcile::action::Action;
use crate::reconcile::automation::conclusion::{Conclusion, RunFailure, Stage};
use crate::reconcile::automation::report::tests::status;
use crate::reconcile::automation::report::{Report, report};
use crate::reconcile::run::tests::{run, short};

fn commit(digit: &str) -> CommitId {
    digit.repeat(40).parse().unwrap()
}

fn branch(name: &str, action: BranchAction, own: Option<&str>) -> BranchOutcome {
    BranchOutcome {
        branch: name.parse().unwrap(),
        action,
        tip: Some(commit("1")),
        commit: own.map(commit),
        message: "Update".to_owned(),
        dropped: Vec::new(),
    }
}

fn delivered(branches: Vec<BranchOutcome>) -> Delivered {
    let (base, forge) = ("main".to_owned(), ForgeProgress::NotAsked);
    Delivered {
        base,
        branches,
        invalid: Vec::new(),
        without_branch: BTreeSet::new(),
        policies: BTreeMap::new(),
        forge,
        shown: BTreeMap::new(),
    }
}

fn now() -> Timestamp {
    "2026-01-01T00:00:05Z".parse().unwrap()
}

fn reported(branches: Vec<BranchOutcome>) -> Report {
    let reference = Some("refs/heads/main".parse().unwrap());
    let outcome = Outcome::NothingToCommit { source: Revision { reference, commit: commit("9") } };
    let done = Conclusion::Success { outcome, policies: [].into() };
    let outcome = DeliveryOutcome::Branches(delivered(branches));
    let report = report(&run(1), Duration::ZERO, &status(&[]), &done, now());
    report.with_delivery(&outcome, &done, &run(1), now())
}

#[test]
fn the_status_has_the_commit_of_the_last_branch_and_the_revision_of_the_base() {
    use BranchAction::{Created, Kept, Rebuilt};
    let report = reported(vec![
        branch("a", Created, Some("2")),
        branch("b", Rebuilt, Some("3")),
        branch("c", Kept, None),
    ]);
    assert_eq!(report.status.last_push_commit, Some(commit("3").to_string()));
    assert_eq!(report.status.observed_source_revision, Some(format!("main@sha1:{}", commit("9"))));
    let events: Vec<(&str, &str)> =
        report.branch_events.iter().map(|one| (one.event.message.as_str(), one.commit.as_str())).collect();
    let [two, three] = ["2", "3"].map(|digit| commit(digit).to_string());
    assert_eq!(
        events,
        [
            ("pushed commit '2222222' to branch 'a'\nUpdate", two.as_str()),
            ("pushed commit '3333333' to branch 'b'\nUpdate", three.as_str()),
        ]
    );
    let kept = reported(vec![branch("c", Kept, None)]);
    assert_eq!((kept.status.last_push_commit, kept.branch_events), (None, vec![]));
}

#[test]
fn the_condition_names_branches_or_the_commit_of_others() {
    use BranchAction::{Created, Kept, Left};
    let edited = || Left(LeftReason::EditedByOthers { commit: commit("4") });
    let left = |name: &str| branch(name, Left(LeftReason::NothingLeft), None);
    for (branches, expected) in [
        (vec![], "True Current no branch differs from 'main'"),
        (vec![left("a")], "True Current no branch differs from 'main'"),
        (vec![branch("a", Kept, None), left("b")], "True Current 1 branch: a"),
        (
            ["a", "b", "c", "d", "e", "f"].map(|name| branch(name, Created, None)).into(),
            "True Current 6 branches: a, b, c, d, e, …",
        ),
        (
            vec![branch("a", Kept, None), branch("b", edited(), None)],
            "False EditedByOthers branch 'b' has commit 4444444 of others and is left alone; the next retry is when the \
             branch, the base or an image changes",
        ),
        (
            vec![branch("a", edited(), None), branch("b", edited(), None)],
            "False EditedByOthers branch 'a' has commit 4444444 of others and is left alone; and another branch; the \
             next retry is when the branch, the base or an image changes",
        ),
    ] {
        let report = reported(branches);
        let conditions = short(&report.status.conditions);
        let found = conditions.iter().find_map(|one| one.strip_prefix("Delivery="));
        assert_eq!(found, Some(expected));
        let done = Conclusion::Success { outcome: Outcome::NothingNew, policies: [].into() };
        let after = |report: Report, outcome| report.with_delivery(outcome, &done, &run(1), now());
        let unknown = after(report.clone(), &DeliveryOutcome::Unknown).status.conditions;
        assert_eq!(short(&unknown), conditions);
        let without = after(report, &DeliveryOutcome::Push).status.conditions;
        assert!(!short(&without).iter().any(|one| one.starts_with("Delivery")));
    }
}

/// A process that was killed afterwards did not report what it had opened.
#[test]
fn a_stall_by_the_name_of_a_branch_reports_pull_requests_and_lists_them() {
    let stall = Conclusion::Stall(RunFailure {
        stage: Stage::Source,
        reason: Reason::InvalidBranch,
        message: "no branch".to_owned(),
        hint: None,
        pushed: None,
    });
    let shown = |outcome: &DeliveryOutcome| {
        let report = report(&run(1), Duration::ZERO, &status(&[]), &stall, now());
        let report = report.with_delivery(outcome, &stall, &run(1), now());
        let conditions = short(&report.status.conditions);
        let found = conditions.iter().find_map(|one| one.strip_prefix("Delivery=")).unwrap().to_owned();
        (found, report.pull_requests.is_some())
    };
    let known = (PullRequestProgress::default(), &delivered(Vec::new()));
    let known = DeliveryOutcome::Unknown.with_pull_requests(Some(known));
    for (outcome, message, is_reported) in
        [(DeliveryOutcome::Unknown, "no branch", false), (known, "no branch", true)]
    {
        assert_eq!(shown(&outcome), (format!("False InvalidBranch {message}"), is_reported));
    }
}

#[test]
fn a_branch_that_waits_for_another_automation_names_it_and_is_tried_again_soon() {
    let shared = LeftReason::SharedWith { name: "shop/two".to_owned() };
    let report = reported(vec![branch("a", BranchAction::Left(shared), None)]);
    let name = ConditionType::Delivery.to_string();
    let found = report.status.conditions.iter().find(|condition| condition.type_ == name).unwrap();
    let expected = "branch 'a' is left alone, because it has a commit of automation shop/two, which took no part in this \
        run or failed, or has a policy without an image; a run in which all automations of the branch succeed makes it anew";
    assert_eq!((found.reason.as_str(), found.message.as_str()), ("EditedByOthers", expected));
    assert_eq!(report.action, Action::RequeueAfter(AWAITED));
    let kept = reported(vec![branch("a", BranchAction::Kept, None)]);
    assert_ne!(kept.action, report.action);
}

#[test]
fn a_problem_of_git_keeps_the_list_of_open_pull_requests() {
    let edited = BranchAction::Left(LeftReason::EditedByOthers { commit: commit("4") });
    let problem = delivered(vec![branch("a", edited, None)]);
    let message = |forge, listed: &[u64]| {
        let listed = listed.iter().copied().collect();
        Delivered { forge, ..problem.clone() }.condition(&listed).unwrap().2
    };
    let plain = message(ForgeProgress::NotAsked, &[]);
    assert!(plain.ends_with(" or an image changes"), "{plain}");
    for (forge, listed, end) in [
        (ForgeProgress::Awaited, &[12, 14][..], "; 2 open: #12, #14"),
        // The forge has not answered yet.
        (ForgeProgress::Awaited, &[], ""),
        (ForgeProgress::Known(Box::default()), &[], ""),
    ] {
        assert_eq!(message(forge, listed), format!("{plain}{end}"));
    }
    let known = reported(vec![branch("a", BranchAction::Kept, None)]).status.conditions.remove(0);
    let of = |status: &str, message: &str| Condition {
        type_: "Delivery".to_owned(),
        status: status.to_owned(),
        message: message.to_owned(),
        ..known.clone()
    };
    let found = |conditions: &[Condition]| listed(conditions).into_iter().collect::<Vec<_>>();
    assert_eq!(found(&[]), [0; 0]);
    assert_eq!(found(&[of("True", "1 open: #7; refused by a person: #9")]), [7]);
    assert_eq!(found(&[of("False", &format!("{plain}; 1 open: #7"))]), [7]);
    assert_eq!(found(&[of("False", &plain)]), [0; 0]);
}

/// A name that a template or a server gives was shown as it is.
#[test]
fn messages_and_events_show_the_names_of_branches_without_secrets() {
    let mut redactor = Redactor::default();
    redactor.add_secret(b"hunter2");
    let named = |branches: Vec<BranchOutcome>| {
        let shown = Delivered::shown_names(&branches, &redactor);
        Delivered { shown, ..delivered(branches) }
    };
    let there = named(vec![
        branch("a", BranchAction::Kept, None),
        branch("b/hunter2", BranchAction::Created, Some("2")),
    ]);
    assert_eq!(there.shown.len(), 1);
    assert_eq!(there.condition(&BTreeSet::new()).unwrap().2, "2 branches: a, b/••••");
    let events: Vec<String> =
        there.branches.iter().filter_map(|one| Some(there.event(one)?.event.message)).collect();
    assert_eq!(events, ["pushed commit '2222222' to branch 'b/••••'\nUpdate"]);
    let edited = BranchAction::Left(LeftReason::EditedByOthers { commit: commit("4") });
    let message = named(vec![branch("hunter2", edited, None)]).condition(&BTreeSet::new()).unwrap().2;
    assert!(message.starts_with("branch '••••' has commit 4444444 of others"), "{message}");
}

#[test]
fn a_failure_names_the_first_branch_and_counts_the_others() {
    let failed = |name: &str| {
        let message = format!("{name} was refused");
        branch(name, BranchAction::Failed { message, is_deletion: false }, None)
    };
    let kept = || branch("z", BranchAction::Kept, None);
    for (branches, expected) in [
        (vec![kept()], None),
        (vec![failed("a"), kept()], Some("a was refused")),
        (vec![failed("a"), failed("b")], Some("a was refused; and another branch")),
        (vec![failed("a"), failed("b"), failed("c")], Some("a was refused; and 2 other branches")),
    ] {
        let failure = delivered(branches).failure();
        assert_eq!(failure.as_ref().map(|failure| chain(failure)).as_deref(), expected);
    }
}
