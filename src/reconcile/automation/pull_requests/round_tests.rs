//! Rounds on a forge that fails for single branches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tagboat_api::settings::{MergeTime, PullRequestSettings, TemplateLanguage};
use tagboat_api::{ObjectName, Reason};

use super::super::delivered::{Delivered, ForgeProgress};
use super::super::delivery::{CautiousAutomation, Memory, OwnerHash, PullRequestReason, REBUILD_LABEL};
use super::super::waiting::WriteRules;
use super::order::{BranchContent, PullRequestOrder};
use super::outcome::{OutcomeReason, PullRequestOutcome, PullRequestVerb};
use super::progress::PullRequestProgress;
use super::round::{Round, RoundMode, RoundOutcome, RoundWork};
use super::snapshot::Snapshot;
use super::test_forge::{TestForge, open};
use crate::forge::{ForgeError, PullRequest, PullRequestState, SeparateParts};
use crate::git::{BranchAction, BranchFacts, BranchName, BranchOutcome, CommitId, LeftReason};
use crate::message::MessageData;
use crate::schedule::Windows;
use crate::tenancy::BlockingPool;

/// An order whose pull requests have vanished.
pub(super) fn order(branches: &[&str]) -> PullRequestOrder {
    let automation = ObjectName { namespace: "apps".to_owned(), name: "fleet".to_owned() };
    PullRequestOrder {
        owner: OwnerHash::of(&automation, None),
        automation,
        base: "main".parse().unwrap(),
        settings: PullRequestSettings::default(),
        cautious: Vec::new(),
        language: TemplateLanguage::Go,
        facts: BTreeMap::new(),
        rendered: branches.iter().map(|name| name.parse().unwrap()).collect(),
        readable: BTreeSet::new(),
        unreadable: BTreeSet::new(),
        reported_open: BTreeSet::from([7]),
        contents: BTreeMap::new(),
        delivered: Delivered {
            base: "main".to_owned(),
            branches: Vec::new(),
            invalid: Vec::new(),
            forge: ForgeProgress::Awaited,
        },
        gate: None,
        made_at: Instant::now(),
    }
}

async fn round(forge: &TestForge, order: PullRequestOrder, snapshot: &mut Snapshot) -> RoundOutcome {
    round_with(forge, order, snapshot, true).await
}

async fn round_with(
    forge: &TestForge,
    order: PullRequestOrder,
    snapshot: &mut Snapshot,
    is_dry_run: bool,
) -> RoundOutcome {
    round_of(forge, vec![order], snapshot, is_dry_run).await
}

async fn round_of(
    forge: &TestForge,
    orders: Vec<PullRequestOrder>,
    snapshot: &mut Snapshot,
    is_dry_run: bool,
) -> RoundOutcome {
    let orders = orders.into_iter().map(|order| (order.automation.clone(), Arc::new(order))).collect();
    let (pool, handled) = (BlockingPool::new(2), BTreeMap::new());
    let mode = if is_dry_run { RoundMode::DryRun } else { RoundMode::Single };
    let round = Round { mode, ..plain_round(forge, &pool, &orders, &handled) };
    run(&round, snapshot).await
}

/// Returns what a dry run would do with some open pull requests.
pub(super) async fn decided(orders: Vec<PullRequestOrder>, listed: Vec<PullRequest>) -> Vec<String> {
    let forge = TestForge::with(listed);
    let done = round_of(&forge, orders, &mut Snapshot::default(), true).await;
    assert_eq!(done.failure, None);
    let shown = |one: &PullRequestOutcome| match one.number {
        Some(number) => format!("{} #{number}", one.action.name()),
        None => format!("{} {}", one.action.name(), one.branch),
    };
    done.all().map(shown).collect()
}

async fn run(round: &Round<'_, TestForge>, snapshot: &mut Snapshot) -> RoundOutcome {
    let mut work = RoundWork { snapshot: std::mem::take(snapshot), ..RoundWork::default() };
    round.ask(&mut work).await;
    round.act(&mut work).await;
    *snapshot = work.snapshot;
    work.outcome
}

/// Returns a round that waits for no report.
fn plain_round<'r>(
    forge: &'r TestForge,
    pool: &'r BlockingPool,
    orders: &'r BTreeMap<ObjectName, Arc<PullRequestOrder>>,
    handled: &'r BTreeMap<BranchName, CommitId>,
) -> Round<'r, TestForge> {
    Round {
        forge,
        pool,
        limit: None,
        separate: SeparateParts::default(),
        orders,
        handled,
        text_age: Duration::ZERO,
        mode: RoundMode::Single,
        is_present: &|_, _| true,
    }
}

#[tokio::test]
async fn an_error_of_one_branch_leaves_the_others_and_one_of_the_forge_ends_the_round() {
    let host = || "forge.example".to_owned();
    let operation = "find a pull request";
    for (error, is_of_all, reason) in [
        (ForgeError::Forbidden { host: host(), operation, detail: host() }, false, Reason::Forbidden),
        (
            ForgeError::Refused { host: host(), operation, status: 409, detail: host() },
            false,
            Reason::ForgeUnavailable,
        ),
        (ForgeError::Malformed { host: host(), operation, detail: host() }, false, Reason::ForgeUnavailable),
        (
            ForgeError::Unauthenticated { host: host(), login: host(), detail: host() },
            true,
            Reason::Forbidden,
        ),
        (ForgeError::Unavailable { host: host(), detail: host() }, true, Reason::ForgeUnavailable),
    ] {
        let forge = TestForge { errors: BTreeMap::from([("a", error.clone())]), ..TestForge::default() };
        let done = round(&forge, order(&["a", "b"]), &mut Snapshot::default()).await;
        // They are searched at the same time.
        assert_eq!(*forge.searched.lock(), ["a", "b"], "{error}");
        assert_eq!(done.failure, is_of_all.then(|| error.clone()));
        let (branches, failure) = (done.branches, done.failure);
        let outcomes: Vec<_> = branches.into_values().collect();
        assert_eq!(outcomes[0].reason, Some(OutcomeReason::ForgeFailed(error)));
        let progress =
            PullRequestProgress::after(None, (outcomes, failure), &BTreeSet::new(), &Snapshot::default());
        assert_eq!(progress.condition().1, reason);
    }
}

#[tokio::test]
async fn a_rate_limit_leaves_calls_for_other_branches_that_may_go_on() {
    let limited =
        ForgeError::RateLimited { host: "forge.example".to_owned(), retry_after: Duration::from_secs(9) };
    let forge = TestForge { errors: BTreeMap::from([("a", limited.clone())]), ..TestForge::default() };
    let done = round(&forge, order(&["a", "b"]), &mut Snapshot::default()).await;
    assert_eq!(*forge.searched.lock(), ["a", "b"]);
    assert_eq!((done.failure, done.branches.len()), (Some(limited), 0));
}

#[tokio::test]
async fn a_listing_is_urgent_if_a_pull_request_is_to_be_opened_or_closed() {
    let order = order(&["a"]);
    let data = MessageData::plain_sample();
    let changing = PullRequestOrder {
        contents: BTreeMap::from([("a".parse().unwrap(), BranchContent { data, message: None })]),
        ..order.clone()
    };
    // Git has created the branch, or a person has closed its pull request.
    let created = |action| {
        let tip = Some("1".repeat(40).parse().unwrap());
        let branch = "a".parse().unwrap();
        let outcome =
            BranchOutcome { branch, action, tip, commit: None, message: String::new(), dropped: Vec::new() };
        let delivered = Delivered { branches: vec![outcome], ..changing.delivered.clone() };
        PullRequestOrder { delivered, ..changing.clone() }
    };
    let memory = Memory { owners: [order.owner.clone()].into(), ..Memory::default() };
    let own = PullRequest { body: memory.to_string(), ..pull_request("a") };
    for (name, order, open, is_urgent) in [
        ("idle without a change", order.clone(), None, false),
        ("to be opened", created(BranchAction::Created), None, true),
        ("git waits for the forge", created(BranchAction::Left(LeftReason::AwaitingForge)), None, true),
        ("refused", created(BranchAction::Left(LeftReason::Refused)), None, false),
        ("open", created(BranchAction::Kept), Some(own.clone()), false),
        ("to be closed", order, Some(own), true),
    ] {
        let mut snapshot = Snapshot::default();
        open.into_iter().for_each(|one| snapshot.put(one, Instant::now()));
        let forge = TestForge::default();
        round(&forge, order, &mut snapshot).await;
        assert_eq!(*forge.is_urgent.lock(), Some(is_urgent), "{name}");
    }
}

pub(super) fn pull_request(head: &str) -> PullRequest {
    open(7, head)
}

#[tokio::test]
async fn closed_pull_requests_of_many_branches_are_looked_up_at_once_where_the_forge_can() {
    let searched = async |forge: TestForge| {
        round(&forge, order(&["a", "b", "c"]), &mut Snapshot::default()).await;
        forge.searched.into_inner()
    };
    assert_eq!(searched(TestForge::default()).await, ["a", "b", "c"]);
    let many = || TestForge { finds_many: true, ..TestForge::default() };
    assert_eq!(searched(many()).await, ["a+b+c"]);
    let (host, detail, operation) = (String::new(), String::new(), "find a pull request");
    let odd = ForgeError::Malformed { host: host.clone(), operation, detail: detail.clone() };
    let errors = BTreeMap::from([("b", odd)]);
    assert_eq!(searched(TestForge { errors, ..many() }).await, ["a+b+c", "a", "b", "c"]);
    let errors = BTreeMap::from([("b", ForgeError::Unavailable { host, detail })]);
    assert_eq!(searched(TestForge { errors, ..many() }).await, ["a+b+c"]);
}

/// An order from before the merge opened another pull request.
#[tokio::test]
async fn a_merge_asks_git_before_another_pull_request_is_opened() {
    let mut wanted = order(&["a"]);
    let data = MessageData::plain_sample();
    wanted.contents.insert("a".parse().unwrap(), BranchContent { data, message: None });
    let tip = Some("1".repeat(40).parse().unwrap());
    let branch = "a".parse().unwrap();
    let kept = BranchOutcome {
        branch,
        action: BranchAction::Kept,
        tip,
        commit: None,
        message: String::new(),
        dropped: Vec::new(),
    };
    wanted.delivered.branches.push(kept);
    let memory = Memory { owners: [wanted.owner.clone()].into(), ..Memory::default() };
    let own = PullRequest { body: memory.to_string(), ..pull_request("a") };
    let merged = PullRequest { state: PullRequestState::Merged, ..own.clone() };
    let forge = TestForge { found: vec![merged], ..TestForge::default() };
    let mut snapshot = Snapshot::default();
    snapshot.put(own, Instant::now());
    let opened = async |order: &PullRequestOrder, snapshot: &mut Snapshot| {
        let done = round(&forge, order.clone(), snapshot).await;
        assert_eq!(done.failure, None);
        let stale = snapshot.found(&order.base, &"a".parse().unwrap()).have_ended_since(order.made_at);
        (done.branches.values().any(|one| one.action == PullRequestVerb::Opened), stale)
    };
    for _ in 0..2 {
        assert_eq!(opened(&wanted, &mut snapshot).await, (false, true));
    }
    // The base lacks the value after a revert.
    wanted.made_at = Instant::now();
    assert_eq!(opened(&wanted, &mut snapshot).await, (true, false));
}

/// Gitea opened two pull requests of one branch, and both stayed open.
#[tokio::test]
async fn the_newer_of_two_pull_requests_that_parallel_runs_opened_is_closed() {
    let mut wanted = order(&["a"]);
    let data = MessageData::plain_sample();
    wanted.contents.insert("a".parse().unwrap(), BranchContent { data, message: None });
    wanted.facts.insert("a".parse().unwrap(), BranchFacts::default());
    let kept = BranchOutcome {
        branch: "a".parse().unwrap(),
        action: BranchAction::Kept,
        tip: Some("1".repeat(40).parse().unwrap()),
        commit: None,
        message: String::new(),
        dropped: Vec::new(),
    };
    wanted.delivered.branches.push(kept);
    let memory = Memory { owners: [wanted.owner.clone()].into(), ..Memory::default() };
    let own = |number| PullRequest { number, body: memory.to_string(), ..pull_request("a") };
    let of_person = PullRequest { number: 11, ..pull_request("a") };
    // Forges list the newest first.
    let forge = || TestForge::with([of_person.clone(), own(9), own(7)]);
    let shown = |outcome: &RoundOutcome| {
        assert_eq!(outcome.failure, None);
        let one = |one: &PullRequestOutcome| format!("{} #{}", one.action.name(), one.number.unwrap());
        outcome.all().map(one).collect::<Vec<_>>()
    };
    let dry = forge();
    let done = round(&dry, wanted.clone(), &mut Snapshot::default()).await;
    assert_eq!(shown(&done)[1..], ["closed #9"]);
    assert!(dry.closed.lock().is_empty());
    let (forge, mut snapshot) = (forge(), Snapshot::default());
    let done = round_with(&forge, wanted.clone(), &mut snapshot, false).await;
    let superseded = OutcomeReason::Decided(PullRequestReason::Superseded);
    assert_eq!((shown(&done)[1].as_str(), done.seconds[0].reason.as_ref()), ("closed #9", Some(&superseded)));
    for _ in 0..2 {
        assert_eq!(*forge.closed.lock(), [9]);
        assert!(snapshot.is_open(7) && !snapshot.is_open(9));
        let again = round_with(&forge, wanted.clone(), &mut snapshot, false).await;
        assert_eq!(again.all().map(|one| one.number).collect::<Vec<_>>(), [Some(7)]);
    }
}

/// An order with a branch that git has kept, and two pull requests.
///
/// The first has the images in its text, the second has not.
fn kept() -> (PullRequestOrder, [PullRequest; 2]) {
    let mut order = order(&["a"]);
    let branch: BranchName = "a".parse().unwrap();
    let content = BranchContent { data: MessageData::plain_sample(), message: None };
    let images = [content.images(), BTreeSet::new()];
    order.contents.insert(branch.clone(), content);
    order.facts.insert(branch.clone(), BranchFacts::default());
    let (tip, message) = (Some("1".repeat(40).parse().unwrap()), String::new());
    let outcome =
        BranchOutcome { branch, action: BranchAction::Kept, tip, commit: None, message, dropped: Vec::new() };
    order.delivered.branches.push(outcome);
    let pull_requests = images.map(|images| {
        let memory = Memory { owners: [order.owner.clone()].into(), images, ..Memory::default() };
        PullRequest { body: memory.to_string(), ..pull_request("a") }
    });
    (order, pull_requests)
}

/// The events of closings were lost whose branches no policy renders.
#[tokio::test]
async fn pull_requests_that_ended_before_a_kill_are_reported_by_the_next_process() {
    use PullRequestState::{Closed, Merged, Open};
    let wanted = PullRequestOrder { reported_open: (6..=10).collect(), ..order(&["b"]) };
    let of = |number, owner: &OwnerHash, state| {
        let memory = Memory { owners: [owner.clone()].into(), ..Memory::default() };
        PullRequest { number, state, body: memory.to_string(), ..pull_request("a") }
    };
    let other = OwnerHash::of(&ObjectName { namespace: "apps".to_owned(), name: "other".to_owned() }, None);
    // There is no pull request 6 any more.
    let found = vec![
        of(7, &wanted.owner, Closed),
        of(8, &wanted.owner, Merged),
        of(9, &other, Closed),
        of(10, &wanted.owner, Open),
    ];
    let (forge, mut snapshot) = (TestForge { found, ..TestForge::default() }, Snapshot::default());
    for _ in 0..2 {
        let done = round_with(&forge, wanted.clone(), &mut snapshot, false).await;
        assert_eq!(done.failure, None);
        // Each is read once.
        assert_eq!(*forge.read.lock(), [6, 7, 8, 9, 10]);
        let outcomes = (done.all().cloned().collect(), None);
        let progress = PullRequestProgress::after(None, outcomes, &wanted.reported_open, &snapshot);
        let events: Vec<String> =
            progress.events(Some(&wanted.reported_open)).into_iter().map(|event| event.key).collect();
        assert_eq!(events, ["PullRequestClosed 7 ", "PullRequestMerged 8 "]);
    }
}

/// Below a tenth of a limit, nothing was opened or closed any more.
#[tokio::test]
async fn a_rate_limit_for_reads_ends_look_ups_for_reports_and_no_merge() {
    let (mut order, [told, _]) = kept();
    order.settings.merge = MergeTime::Immediately;
    order.reported_open = BTreeSet::from([3, 4, 7]);
    let forge = TestForge { is_limited: true, ..TestForge::with([told]) };
    let mut snapshot = Snapshot::default();
    let done = round_with(&forge, order, &mut snapshot, false).await;
    assert_eq!((forge.read.lock().as_slice(), forge.changes.lock().as_slice()), (&[3][..], &["merge"][..]));
    assert!(matches!(done.failure, Some(ForgeError::RateLimited { .. })), "{:?}", done.failure);
    // They stay in the report until they were looked up.
    let outcomes = (done.all().cloned().collect(), done.failure.clone());
    let progress = PullRequestProgress::after(None, outcomes, &BTreeSet::from([3, 4, 7]), &snapshot);
    assert_eq!(progress.listed(), BTreeSet::from([3, 4]));
}

/// There was no event of the merge until a restart.
#[tokio::test]
async fn a_pull_request_that_was_closed_and_reopened_is_announced_when_it_is_merged() {
    let (mut order, [open, _]) = kept();
    let ended = |state| vec![PullRequest { state, ..open.clone() }];
    let (mut snapshot, mut progress, mut events) = (Snapshot::default(), None, Vec::new());
    for (listed, found) in [
        (Vec::new(), ended(PullRequestState::Closed)),
        (vec![open.clone()], Vec::new()),
        (Vec::new(), ended(PullRequestState::Merged)),
    ] {
        let forge = TestForge { found, ..TestForge::with(listed) };
        // Each is announced once.
        for _ in 0..2 {
            let done = round(&forge, order.clone(), &mut snapshot).await;
            let (outcomes, reported) = (done.all().cloned().collect(), &order.reported_open);
            let now =
                PullRequestProgress::after(progress.as_ref(), (outcomes, done.failure), reported, &snapshot);
            events.extend(now.events(Some(reported)).into_iter().map(|event| event.key));
            order.reported_open = now.listed();
            let after = progress.insert(now.clone());
            after.announced(&now);
        }
    }
    assert_eq!(events, ["PullRequestClosed 7 ", "PullRequestOpened 7 ", "PullRequestMerged 7 "]);
}

/// The event of the closing was lost.
#[tokio::test]
async fn a_pull_request_that_a_person_closes_before_an_edit_is_known_as_ended() {
    let (order, [_, untold]) = kept();
    let closed = PullRequest { state: PullRequestState::Closed, ..untold.clone() };
    let forge = TestForge { found: vec![closed], is_closed_meanwhile: true, ..TestForge::with([untold]) };
    let mut snapshot = Snapshot::default();
    let done = round_with(&forge, order, &mut snapshot, false).await;
    assert_eq!(done.all().map(|one| one.is_open).collect::<Vec<_>>(), [false]);
    assert_eq!(snapshot.ended(7).map(|one| one.state), Some(PullRequestState::Closed));
}

/// It had two outcomes, one without its number, and the first automation was blamed.
#[tokio::test]
async fn an_open_pull_request_without_a_text_has_one_outcome_with_its_number() {
    let (mut order, [_, untold]) = kept();
    order.settings.body = "{{ .Nope }}".parse().unwrap();
    let name = order.automation.clone();
    order.contents.values_mut().for_each(|content| content.data = content.data.clone().of_automation(&name));
    for is_shared in [false, true] {
        let mut orders = vec![order.clone()];
        if is_shared {
            let mut first = order.clone();
            first.settings.body = PullRequestSettings::default().body;
            "a-first".clone_into(&mut first.automation.name);
            orders.push(first);
        }
        let forge = TestForge::with([untold.clone()]);
        let mut snapshot = Snapshot::default();
        let done = round_of(&forge, orders, &mut snapshot, false).await;
        let all: Vec<&PullRequestOutcome> = done.all().collect();
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!((all[0].action, all[0].number, all[0].is_open), (PullRequestVerb::Left, Some(7), true));
        let progress =
            PullRequestProgress::after(None, (vec![all[0].clone()], None), &BTreeSet::from([7]), &snapshot);
        let errors = progress.errors();
        let of = if is_shared { " of automation apps/fleet" } else { "" };
        let begin = format!("the annotation tagboat.dev/pull-request-body{of} cannot be rendered: ");
        assert!(errors.len() == 1 && errors[0].starts_with(&begin), "{errors:?}");
        assert!(progress.condition().2.ends_with("; 1 open: #7"), "{:?}", progress.condition());
    }
}

/// They were refused once, and no later run added them or said so.
#[tokio::test]
async fn labels_for_which_a_permission_is_missing_are_tried_in_each_round() {
    let (mut order, [told, untold]) = kept();
    order.settings.labels = "[images]".parse().unwrap();
    for one in [told, untold] {
        let memory = Memory { is_incomplete: true, ..Memory::of_body(&one.body).unwrap() };
        let mut listed = PullRequest { body: memory.to_string(), ..one };
        let mut snapshot = Snapshot::default();
        for refuses_labels in [true, true, false] {
            let forge = TestForge::with([listed.clone()]);
            forge.labels_kept.lock().extend(refuses_labels.then_some(7));
            let done = round_of(&forge, vec![order.clone()], &mut snapshot, false).await;
            assert!(!done.has_failed(), "{done:?}");
            let refused = done.all().next().unwrap().refused.clone();
            let expected = ["labels are missing:  refuses to change labels: no permission"];
            assert_eq!(refused, if refuses_labels { &expected[..] } else { &[] });
            listed = PullRequest::clone(snapshot.open.values().next().unwrap());
            let memory = Memory::of_body(&listed.body).unwrap();
            // The images are told all the same.
            let images = order.contents.values().flat_map(BranchContent::images).collect();
            assert_eq!((memory.is_incomplete, memory.images), (refuses_labels, images));
        }
    }
}

#[tokio::test]
async fn a_text_is_changed_without_another_look_after_a_recent_listing_only() {
    let (order, [_, untold]) = kept();
    let orders = BTreeMap::from([(order.automation.clone(), Arc::new(order))]);
    for (text_age, expected) in [(Duration::ZERO, "edit"), (Duration::MAX, "edit at once")] {
        let forge = TestForge::with([untold.clone()]);
        let (pool, handled) = (BlockingPool::new(2), BTreeMap::new());
        let round = Round { text_age, ..plain_round(&forge, &pool, &orders, &handled) };
        run(&round, &mut Snapshot::default()).await;
        assert_eq!(*forge.changes.lock(), [expected], "{text_age:?}");
    }
}

/// An automation that was suspended after the 20th opening got 180 more.
#[tokio::test]
async fn nothing_is_opened_closed_edited_or_merged_by_orders_of_before() {
    let (mut order, [told, untold]) = kept();
    order.settings.merge = MergeTime::Immediately;
    let images = Memory::of_body(&told.body).unwrap().images;
    order.readable = images.iter().map(|image| image.policy().clone()).collect();
    let nothing_left = PullRequestOrder { contents: BTreeMap::new(), ..order.clone() };
    let labels = vec![REBUILD_LABEL.to_owned()];
    let labelled = PullRequest { labels, ..told.clone() };
    for (name, order, listed) in [
        ("opened", &order, vec![]),
        ("merged", &order, vec![told.clone()]),
        ("edited", &order, vec![untold.clone()]),
        ("taken back", &order, vec![labelled]),
        ("closed as another one", &order, vec![told.clone(), PullRequest { number: 8, ..told.clone() }]),
        ("closed", &nothing_left, vec![PullRequest { head: "b".parse().unwrap(), ..told.clone() }]),
    ] {
        let mut order = order.clone();
        if name == "closed" {
            order.facts.insert("b".parse().unwrap(), BranchFacts::default());
            order.delivered.branches.clear();
            order.rendered.clear();
        }
        let orders = BTreeMap::from([(order.automation.clone(), Arc::new(order))]);
        let forge = TestForge::with(listed);
        let (pool, handled) = (BlockingPool::new(2), BTreeMap::new());
        let round = Round { is_present: &|_, _| false, ..plain_round(&forge, &pool, &orders, &handled) };
        let done = run(&round, &mut Snapshot::default()).await;
        assert!(forge.changes.lock().is_empty() && forge.closed.lock().is_empty(), "{name}");
        assert_eq!((done.failure, done.has_outdated), (None, true), "{name}");
    }
}

/// Killed after a merge or a new text, a process reported nothing before it.
#[tokio::test]
async fn an_opening_and_a_refresh_are_reported_before_a_merge_or_a_new_text_hides_them() {
    let (mut wanted, [told, untold]) = kept();
    wanted.settings.merge = MergeTime::Immediately;
    let (branch, tip): (BranchName, _) = ("a".parse().unwrap(), "1".repeat(40).parse().unwrap());
    // The pull request, the ones that were reported as open and those with actions to report, and if the refresh is handled.
    for (name, one, open, unreported, is_handled, verb, changes, is_put_off) in [
        ("opened", &told, &[][..], &[7][..], true, "kept", &[][..], true),
        ("opened by the process before", &told, &[], &[], false, "kept", &[], true),
        ("reported as open", &told, &[7], &[], true, "merged", &["merge"], false),
        ("refreshed", &untold, &[7], &[], false, "refreshed", &[], true),
        ("the refresh is not reported", &untold, &[7], &[7], true, "kept", &[], true),
        ("the refresh is reported", &untold, &[7], &[], true, "merged", &["edit", "merge"], false),
    ] {
        let order = PullRequestOrder { reported_open: open.iter().copied().collect(), ..wanted.clone() };
        let orders = BTreeMap::from([(order.automation.clone(), Arc::new(order))]);
        let handled = if is_handled { BTreeMap::from([(branch.clone(), tip)]) } else { BTreeMap::new() };
        let repeated = RoundMode::Repeated { unreported: unreported.iter().copied().collect() };
        for (mode, verb, changes, is_put_off) in [
            (repeated, verb, changes, is_put_off),
            // Nothing comes between the round and the report of a single run.
            (
                RoundMode::Single,
                "merged",
                if one == &told { &["merge"][..] } else { &["edit", "merge"] },
                false,
            ),
        ] {
            let forge = TestForge::with([one.clone()]);
            let pool = BlockingPool::new(2);
            let round = Round { mode, ..plain_round(&forge, &pool, &orders, &handled) };
            let done = run(&round, &mut Snapshot::default()).await;
            let found: Vec<_> = done.all().map(|one| one.action.name()).collect();
            assert_eq!((found, done.failure), (vec![verb], None), "{name}");
            assert_eq!(*forge.changes.lock(), changes, "{name}");
            assert_eq!(done.has_put_off, is_put_off, "{name}");
        }
    }
}

/// It was merged as soon as the automation with `by-hand` had no order.
#[tokio::test]
async fn nothing_is_merged_while_a_more_cautious_automation_may_render_the_branch() {
    let (mut wanted, [told, _]) = kept();
    wanted.settings.merge = MergeTime::Immediately;
    let other = |branches: &[&str]| PullRequestOrder {
        automation: ObjectName { namespace: "apps".to_owned(), name: "other".to_owned() },
        settings: PullRequestSettings { merge: MergeTime::Immediately, ..PullRequestSettings::default() },
        reported_open: BTreeSet::new(),
        ..order(branches)
    };
    for (branches, order_of_other, is_merged) in [
        (Some(&["a"][..]), None, false),
        (Some(&["b"]), None, true),
        (None, None, false),
        (Some(&["a"]), Some(other(&["b"])), false),
        (None, Some(other(&["b"])), true),
        // It wants the same by now.
        (Some(&["a"]), Some(other(&["a"])), true),
    ] {
        let cautious = CautiousAutomation {
            automation: other(&[]).automation,
            merge: MergeTime::ByHand,
            branches: branches.map(|names| names.iter().map(|name| name.parse().unwrap()).collect()),
        };
        let order = PullRequestOrder { cautious: vec![cautious], ..wanted.clone() };
        let forge = TestForge::with([told.clone()]);
        let orders = [order].into_iter().chain(order_of_other).collect();
        let done = round_of(&forge, orders, &mut Snapshot::default(), false).await;
        assert_eq!(done.failure, None);
        assert_eq!(forge.changes.lock().contains(&"merge"), is_merged, "{branches:?}");
    }
}

/// Nothing said that a pull request was not opened, changed or merged.
#[tokio::test]
async fn a_change_that_waits_for_a_window_is_reported() {
    let (mut wanted, [told, untold]) = kept();
    wanted.reported_open = BTreeSet::from([7]);
    let closed = "[{name: long, kind: deny, from: 2020-01-01T00:00, until: 2200-01-01T00:00}]";
    let gate = |ignores_own| {
        let rules = WriteRules { ignores_own, ..WriteRules::default() };
        let windows: Windows = closed.parse().unwrap();
        Some(rules.gate(wanted.automation.clone(), Some(Arc::new(windows)), None))
    };
    let by_hand = MergeTime::ByHand;
    for (listed, merge, ignores_own, verb, number, changes) in [
        (Some(&told), MergeTime::Immediately, true, "merged", Some(7), &["merge"][..]),
        (Some(&told), MergeTime::Immediately, false, "left", Some(7), &[]),
        (Some(&untold), MergeTime::Immediately, false, "left", Some(7), &[]),
        (Some(&told), by_hand, false, "kept", Some(7), &[]),
        // Its text would be changed.
        (Some(&untold), by_hand, false, "left", Some(7), &[]),
        // It would be opened.
        (None, by_hand, false, "left", None, &[]),
    ] {
        let mut order = PullRequestOrder { gate: gate(ignores_own), ..wanted.clone() };
        order.settings.merge = merge;
        let forge = TestForge::with(listed.cloned());
        let done = round_of(&forge, vec![order.clone()], &mut Snapshot::default(), false).await;
        let found = done.all().next().unwrap();
        assert_eq!((found.action.name(), found.number), (verb, number), "{listed:?}");
        assert_eq!(*forge.changes.lock(), changes, "{listed:?}");
        let is_left = verb == "left";
        let until: Option<jiff::Timestamp> = found.withheld().map(|withheld| withheld.rule.until.unwrap());
        let expected = is_left.then(|| "2200-01-01T00:00:00Z".parse().unwrap());
        assert_eq!(until, expected, "{listed:?}");
        assert_eq!(found.is_open, listed.is_some() && !ignores_own);
        let outcomes = (vec![found.clone()], None);
        let progress = PullRequestProgress::after(None, outcomes, &BTreeSet::new(), &Snapshot::default());
        let message = order.withheld(&progress).map(|wait| wait.to_string());
        // Images wait if it would be opened or merged.
        let delays_images = is_left && (listed.is_none() || merge == MergeTime::Immediately);
        assert_eq!(message.is_some(), delays_images, "{listed:?}");
        let by = ": deny window `long` of automation apps/fleet; until 2200-01-01T00:00:00Z";
        assert!(message.is_none_or(|message| message.ends_with(by)));
    }
}

/// The first automation by name decided, though its run was older.
#[tokio::test]
async fn the_last_run_of_git_decides_on_a_branch_that_automations_share() {
    let of = |name: &str, action: BranchAction, age: u64| {
        let mut wanted = order(&["a"]);
        wanted.automation.name = name.to_owned();
        wanted.owner = OwnerHash::of(&wanted.automation, None);
        let data = MessageData::plain_sample();
        wanted.contents.insert("a".parse().unwrap(), BranchContent { data, message: None });
        let (branch, tip) = ("a".parse().unwrap(), Some("1".repeat(40).parse().unwrap()));
        let outcome =
            BranchOutcome { branch, action, tip, commit: None, message: String::new(), dropped: Vec::new() };
        wanted.delivered.branches.push(outcome);
        wanted.made_at += Duration::from_secs(10 - age);
        wanted
    };
    let shared = || BranchAction::Left(LeftReason::SharedWith { name: "apps/fleet".to_owned() });
    for (ages, is_left) in [((2, 1), true), ((1, 2), false)] {
        let orders = vec![of("fleet", BranchAction::Kept, ages.0), of("other", shared(), ages.1)];
        let owners = orders.iter().map(|order| order.owner.clone()).collect();
        let memory = Memory { owners, ..Memory::default() };
        let own = PullRequest { body: memory.to_string(), ..pull_request("a") };
        let forge = TestForge::with([own]);
        let done = round_of(&forge, orders, &mut Snapshot::default(), true).await;
        assert_eq!(done.failure, None);
        let one = done.all().next().unwrap();
        assert_eq!(one.action == PullRequestVerb::Left, is_left, "{ages:?} {one:?}");
        assert_eq!(one.reason, None);
    }
}

/// Nothing told if a person had refused the other image.
#[tokio::test]
async fn past_pull_requests_are_searched_once_beside_an_open_one_that_gets_another_image() {
    let (order, [told, untold]) = kept();
    for (open, expected) in [(told, &[][..]), (untold, &["a"])] {
        let (forge, mut snapshot) = (TestForge::with([open]), Snapshot::default());
        for _ in 0..2 {
            round(&forge, order.clone(), &mut snapshot).await;
            assert_eq!(*forge.searched.lock(), expected);
        }
    }
}
