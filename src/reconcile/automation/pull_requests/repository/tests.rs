use futures::FutureExt;
use tagboat_api::settings::MergeTime;

use super::super::super::delivery::{ClosedReason, Memory, PullRequestReason};
use super::super::super::waiting::WriteRules;
use super::super::outcome::OutcomeReason;
use super::super::round_tests::{order, pull_request};
use super::super::test_forge::open;
use super::*;
use crate::forge::{
    ApiLogin, ForgeAddress, ForgeCredential, ForgeKind, ForgeRepository, PullRequest, PullRequestState,
};
use crate::git::{BranchAction, DropReason, DroppedCommit};
use crate::message::MessageData;
use crate::net::ProxyChoice;
use crate::net::http::Route;
use crate::secrets::Secret;

pub(in super::super) fn repository() -> Repository {
    Repository::new(&access("t"), Arc::default())
}

/// The API of a repository, with this token.
fn access(token: &str) -> Arc<ForgeAccess> {
    let name = ForgeRepository { owner: "acme".to_owned(), project: None, name: "fleet".to_owned() };
    let api = "https://git.example/api/v1";
    let route = Route { proxy: ProxyChoice::Direct, ..Route::default() };
    Arc::new(ForgeAccess {
        address: ForgeAddress {
            kind: ForgeKind::Gitea,
            api: api.to_owned(),
            is_api_given: false,
            repository: name,
        },
        api: api.parse().unwrap(),
        login: ApiLogin {
            namespace: "apps".to_owned(),
            owner: "Secret apps/forge".to_owned(),
            credential: ForgeCredential::Bearer(Secret::new(token.to_owned())),
            identity: None,
            route,
        },
        entry: None,
    })
}

fn take(repository: &mut Repository, outcome: &RoundOutcome) {
    let begun = Arc::clone(&repository.access);
    repository.take(&repository.orders.clone(), outcome, None, &begun);
}

/// The branch stayed, and no later run knows of it.
#[test]
fn the_branch_of_a_closed_pull_request_can_end_after_a_round_of_any_length() {
    let (mut repository, order) = (repository(), order(&["b"]));
    let (base, owner) = (order.base.clone(), order.owner.clone());
    let head: BranchName = "a".parse().unwrap();
    let memory = Memory {
        owners: [owner.clone()].into(),
        closed: Some(ClosedReason::Superseded),
        ..Memory::default()
    };
    let closed = PullRequest { state: PullRequestState::Closed, body: memory.to_string(), ..open(7, "a") };
    Arc::make_mut(&mut repository.snapshot).close_unwanted(&closed);
    let begin = Instant::now();
    let after = |seconds| begin + Duration::from_secs(seconds);
    assert!(!repository.is_up_to_date(begin));
    repository.listed = Some(begin);
    assert!(!repository.needs_list_for_ends(after(61)), "there is no order");
    repository.orders.insert(order.automation.clone(), Arc::new(order));
    assert_eq!(repository.heads(), BTreeSet::from(["b".parse().unwrap()]));
    let is_known = |repository: &Repository, seconds| {
        let needs_list = repository.needs_list_for_ends(after(seconds));
        assert_eq!(needs_list, !repository.is_up_to_date(after(seconds)));
        !needs_list
    };
    assert_eq!([60, 61, 3_600].map(|seconds| is_known(&repository, seconds)), [true, false, false]);
    let failure = ForgeError::Unavailable { host: String::new(), detail: String::new() };
    assert!(repository.take_list(Err(failure), after(3_600)).is_err());
    assert!(!is_known(&repository, 3_600) && repository.look_up_failure.is_some());
    let listed = Snapshot::clone(&repository.snapshot);
    repository.take_list(Ok(listed), after(3_600)).unwrap();
    assert!(is_known(&repository, 3_600));
    assert!(repository.snapshot.facts(&base, &head, None, &owner).is_finished);
}

#[test]
fn a_round_that_a_person_asks_for_ends_a_delay() {
    let repository = repository();
    for (age, ends) in [(Duration::from_secs(30), false), (Duration::ZERO, true)] {
        repository.end_delay(age);
        assert_eq!(repository.changed.notified().now_or_never().is_some(), ends, "{age:?}");
    }
}

/// After a failure of another automation, merges and texts waited for up to ten minutes.
#[test]
fn a_report_that_is_awaited_ends_a_delay() {
    let mut repository = repository();
    let automation = order(&["a"]).automation;
    for is_awaited in [false, true, false] {
        repository.awaits_report = is_awaited;
        assert_eq!(repository.announced(&automation, &PullRequestProgress::default()), is_awaited);
        assert_eq!(repository.changed.notified().now_or_never().is_some(), is_awaited);
    }
}

/// It still opened 180 pull requests, and merged by settings that a person had changed.
#[test]
fn the_orders_of_a_round_are_outdated_once_an_automation_goes_or_wants_a_branch_otherwise() {
    let of = |name: &str, branches: &[&str]| {
        let mut order = order(branches);
        order.automation.name = name.to_owned();
        order
    };
    let begun = [of("app", &["a"]), of("web", &["a", "b"])];
    let by_name = |orders: &[PullRequestOrder]| -> BTreeMap<_, _> {
        orders.iter().map(|order| (order.automation.clone(), Arc::new(order.clone()))).collect()
    };
    let [app, web] = begun.clone();
    let later = PullRequestOrder { made_at: Instant::now() + Duration::from_secs(1), ..app.clone() };
    let mut changed = later.clone();
    changed.settings.merge = MergeTime::Immediately;
    let night = "[{name: night, kind: deny, cron: '0 18 * * *', window: 12h}]".parse().unwrap();
    let gate = WriteRules::default().gate(app.automation.clone(), Some(Arc::new(night)), None);
    let with_window = PullRequestOrder { gate: Some(gate), ..later.clone() };
    let mut looked_at = of("new", &[]);
    looked_at.facts.insert("b".parse().unwrap(), BranchFacts::default());
    for (name, now, expected) in [
        ("the same", vec![app.clone(), web.clone()], (true, true)),
        ("another run", vec![later, web.clone()], (true, true)),
        ("other settings", vec![changed, web.clone()], (false, true)),
        ("another window", vec![with_window, web.clone()], (false, true)),
        ("suspended", vec![web.clone()], (false, true)),
        ("no longer rendered", vec![app.clone(), of("web", &["a"])], (true, false)),
        ("rendered by another", vec![app.clone(), of("new", &["b"]), web.clone()], (true, false)),
        ("looked at by another", vec![app.clone(), looked_at, web.clone()], (true, false)),
        ("another base", vec![PullRequestOrder { base: "next".parse().unwrap(), ..app }, web], (false, true)),
    ] {
        let mut repository = repository();
        repository.orders = by_name(&now);
        let base = "main".parse().unwrap();
        let is_present =
            |branch: &str| repository.has_terms_of(&by_name(&begun), (&base, &branch.parse().unwrap()));
        assert_eq!((is_present("a"), is_present("b")), expected, "{name}");
    }
}

/// Rounds of hours later merged in the closed window.
#[test]
fn an_override_ends_with_the_first_round_of_its_run() {
    let mut repository = repository();
    let gate = |ignores_own| {
        let rules = WriteRules { ignores_own, ..WriteRules::default() };
        Some(rules.gate(order(&["a"]).automation, None, None))
    };
    let forced = PullRequestOrder { gate: gate(true), ..order(&["a"]) };
    let name = forced.automation.clone();
    repository.orders.insert(name.clone(), Arc::new(forced.clone()));
    let round = repository.orders.clone();
    let is_forced = |repository: &Repository| repository.orders[&name].ignores_own();
    // A report during the round changes nothing, and a later run has its own round.
    repository.announced(&name, &PullRequestProgress::default());
    repository.end_overrides(&round);
    assert!(!is_forced(&repository));
    let later = PullRequestOrder { made_at: forced.made_at + Duration::from_secs(1), ..forced };
    repository.orders.insert(name.clone(), Arc::new(later));
    repository.end_overrides(&round);
    assert!(is_forced(&repository));
    // A run in which git finds nothing new keeps its order.
    for forces in [false, true, false] {
        repository.set_gate(&name, gate(forces));
        assert_eq!(is_forced(&repository), forces);
    }
}

/// The older tip counted: the pull request was refreshed in each round and never merged.
#[test]
fn the_tip_of_a_round_is_handled_beside_an_older_one_of_another_automation() {
    let mut repository = repository();
    let (branch, base): (BranchName, BranchName) = ("a".parse().unwrap(), "main".parse().unwrap());
    let tip = |digit: &str| digit.repeat(40).parse().unwrap();
    let of = |name: &str, digit: &str| {
        let mut order = order(&["a"]);
        order.automation.name = name.to_owned();
        order.facts.insert(branch.clone(), BranchFacts::default());
        order.delivered.branches.push(BranchOutcome {
            branch: branch.clone(),
            action: BranchAction::Rebuilt,
            tip: Some(tip(digit)),
            commit: None,
            message: String::new(),
            dropped: Vec::new(),
        });
        (order.automation.clone(), Arc::new(order))
    };
    repository.orders = BTreeMap::from([of("app", "2"), of("web", "1")]);
    // One that was left alone is still to be refreshed.
    for (verb, expected) in [(PullRequestVerb::Left, None), (PullRequestVerb::Kept, Some(tip("2")))] {
        let done = PullRequestOutcome::without(&branch, &base, verb);
        let done = PullRequestOutcome { commit: Some(tip("2")), ..done };
        let branches = BTreeMap::from([((base.clone(), branch.clone()), done)]);
        let outcome = RoundOutcome { branches, ..RoundOutcome::default() };
        take(&mut repository, &outcome);
        assert_eq!(repository.handled.get(&branch).copied(), expected, "{verb:?}");
    }
}

/// Ones that were suspended since kept a pull request from being merged.
#[test]
fn a_run_that_finds_nothing_new_renews_the_more_cautious_automations() {
    let mut repository = repository();
    let order = order(&["a"]);
    let name = order.automation.clone();
    let cautious = CautiousAutomation {
        automation: ObjectName { namespace: "apps".to_owned(), name: "other".to_owned() },
        owner: order.owner.clone(),
        merge: MergeTime::ByHand,
        branches: None,
        standstill: None,
    };
    assert!(!repository.set_cautious(&name, vec![cautious.clone()]));
    repository.orders.insert(name.clone(), Arc::new(order));
    for (now, expected) in
        [(vec![], false), (vec![cautious.clone()], true), (vec![cautious], false), (vec![], true)]
    {
        assert_eq!(repository.set_cautious(&name, now.clone()), expected, "{now:?}");
        assert_eq!(repository.orders[&name].cautious, now);
    }
}

/// They were missing, so nothing said of which branches the failure was.
#[test]
fn branches_that_a_failed_round_did_not_reach_are_reported_as_left() {
    use BranchAction::{Created, Kept};
    let mut repository = repository();
    let mut order = order(&["a", "b", "c", "d", "e", "f"]);
    let content = BranchContent { data: MessageData::plain_sample(), path: None, message: None };
    let failed = Failed { message: "no".to_owned(), is_deletion: false };
    for (name, action) in [
        ("a", Created),
        ("b", Left(LeftReason::AwaitingForge)),
        ("c", Kept),
        ("d", failed),
        ("e", Left(LeftReason::Refused)),
        // The refusal is that of an earlier image.
        ("f", Rebuilt),
    ] {
        let branch: BranchName = name.parse().unwrap();
        order.contents.insert(branch.clone(), content.clone());
        order.facts.insert(branch.clone(), BranchFacts::default());
        let message = String::new();
        let outcome = BranchOutcome { branch, action, tip: None, commit: None, message, dropped: Vec::new() };
        order.delivered.branches.push(outcome);
    }
    Arc::make_mut(&mut repository.snapshot).put(pull_request("c"), Instant::now());
    let (name, base) = (order.automation.clone(), order.base.clone());
    repository.orders.insert(name.clone(), Arc::new(order));
    let refusals = ["e", "f"].map(|branch| PullRequestOutcome {
        number: Some(9),
        reason: Some(OutcomeReason::Decided(PullRequestReason::ClosedByPerson)),
        ..PullRequestOutcome::without(&branch.parse().unwrap(), &base, PullRequestVerb::Left)
    });
    let (before, none) = ((refusals.to_vec(), None), BTreeSet::new());
    let before = PullRequestProgress::after(None, before, &none, &repository.snapshot);
    repository.progress.insert(name.clone(), before);
    let error = ForgeError::Unavailable { host: "h".to_owned(), detail: "no answer".to_owned() };
    let done: BranchName = "a".parse().unwrap();
    let opened = PullRequestOutcome::without(&done, &base, PullRequestVerb::Opened);
    let branches = BTreeMap::from([((base, done), opened)]);
    let outcome = RoundOutcome { branches, failure: Some(error.clone()), ..RoundOutcome::default() };
    for _ in 0..2 {
        take(&mut repository, &outcome);
        let progress = &repository.progress[&name];
        let mut told: Vec<(String, Option<u64>)> =
            progress.outcomes.iter().map(|one| (one.sentence(false), one.number)).collect();
        let expected = [
            ("opened pull request 'a' -> 'main'", None),
            ("left pull request #7 'c' -> 'main': the forge failed", Some(7)),
            ("left pull request 'b' -> 'main': the forge failed", None),
            ("left pull request #9 'e' -> 'main': a person has refused it", Some(9)),
            ("left pull request 'f' -> 'main': the forge failed", None),
        ];
        let mut expected = expected.map(|(sentence, number)| (sentence.to_owned(), number));
        told.sort();
        expected.sort();
        assert_eq!(told, expected);
        // The error is told once.
        assert_eq!(progress.errors(), [error.to_string()]);
    }
}

/// The condition left it out, and its closing had no event after a kill.
#[test]
fn an_open_pull_request_whose_branch_git_has_not_looked_at_is_listed() {
    let mut repository = repository();
    let order = order(&["a"]);
    let memory = Memory { owners: [order.owner.clone()].into(), ..Memory::default() };
    let of_others = PullRequest { number: 8, head: "b".parse().unwrap(), ..pull_request("b") };
    let own = PullRequest { body: memory.to_string(), ..pull_request("old") };
    for one in [own, of_others] {
        Arc::make_mut(&mut repository.snapshot).put(one, Instant::now());
    }
    let name = order.automation.clone();
    repository.orders.insert(name.clone(), Arc::new(order));
    take(&mut repository, &RoundOutcome::default());
    assert_eq!(repository.progress[&name].condition().2, "1 open: #7");
}

/// One stayed for each branch that there ever was.
#[test]
fn the_tip_of_a_branch_that_no_automation_has_any_more_is_forgotten() {
    let mut repository = repository();
    let tip: CommitId = "1".repeat(40).parse().unwrap();
    let mut known = order(&["a"]);
    known.facts.insert("b".parse().unwrap(), BranchFacts::default());
    repository.handled = ["a", "b", "c"].map(|branch| (branch.parse().unwrap(), tip)).into();
    repository.forget_past(&BTreeMap::from([(known.automation.clone(), Arc::new(known))]));
    let kept: Vec<&str> = repository.handled.keys().map(BranchName::as_str).collect();
    assert_eq!(kept, ["a", "b"]);
}

/// The next round searched for them once more, and git waited for it again.
#[test]
fn searches_for_an_order_that_came_during_a_round_are_kept() {
    let (mut repository, begun, later) = (repository(), order(&["a"]), order(&["b"]));
    let branches = |head: &str| (begun.base.clone(), head.parse::<BranchName>().unwrap());
    for head in ["a", "b", "c"] {
        let past = &mut Arc::make_mut(&mut repository.snapshot).past;
        past.insert(branches(head), Arc::default());
    }
    repository.orders.insert(later.automation.clone(), Arc::new(later));
    repository.forget_past(&BTreeMap::from([(begun.automation.clone(), Arc::new(begun.clone()))]));
    let kept: Vec<&str> = repository.snapshot.past.keys().map(|(_, head)| head.as_str()).collect();
    assert_eq!(kept, ["a", "b"]);
}

/// A title with the login of before was shown once the Secret had another.
#[test]
fn texts_of_the_forge_are_redacted_by_the_login_of_the_round_and_by_the_present_one() {
    let (branch, base): (BranchName, _) = ("a/hunter1/hunter2".parse().unwrap(), "main".parse().unwrap());
    let mut order = order(&["a/hunter1/hunter2"]);
    order.facts.insert(branch.clone(), BranchFacts::default());
    let name = order.automation.clone();
    let one = PullRequestOutcome {
        number: Some(7),
        title: "hunter1 and hunter2".to_owned(),
        url: "https://git.example/hunter1/hunter2".to_owned(),
        ..PullRequestOutcome::without(&branch, &base, PullRequestVerb::Closed)
    };
    let outcome =
        RoundOutcome { branches: BTreeMap::from([((base, branch.clone()), one)]), ..RoundOutcome::default() };
    let mut repository = Repository { access: access("hunter2"), ..repository() };
    repository.orders.insert(name.clone(), Arc::new(order));
    repository.take(&repository.orders.clone(), &outcome, None, &access("hunter1"));
    let progress = &repository.progress[&name];
    assert_eq!(progress.outcomes[0].title, "•••• and ••••");
    let sentence = "closed pull request #7 https://git.example/••••/•••• 'a/••••/••••' -> 'main'";
    assert_eq!(progress.unreported[0].event.message, sentence);
    // It stays the key by which the branch is known.
    assert_eq!(progress.outcomes[0].branch, branch);
}

/// They stayed in the text until the automation succeeded again.
#[test]
fn the_images_of_a_commit_that_was_dropped_from_a_branch_count_no_more() {
    let mut repository = repository();
    let of = |name: &str, dropped: &[&str]| {
        let mut order = order(&["a", "b"]);
        order.automation.name = name.to_owned();
        for branch in ["a", "b"] {
            let content = BranchContent { data: MessageData::sample(), path: None, message: None };
            order.contents.insert(branch.parse().unwrap(), content);
        }
        let reason = DropReason::Failed;
        order.delivered.branches.push(BranchOutcome {
            branch: "a".parse().unwrap(),
            action: BranchAction::Rebuilt,
            tip: None,
            commit: None,
            message: String::new(),
            dropped: dropped.iter().map(|name| DroppedCommit { name: (*name).to_owned(), reason }).collect(),
        });
        Arc::new(order)
    };
    let contents = |repository: &Repository| -> Vec<String> {
        let of_order = |order: &Arc<PullRequestOrder>| {
            let name = order.automation.name.clone();
            order.contents.keys().map(|branch| format!("{name} {branch}")).collect::<Vec<_>>()
        };
        repository.orders.values().flat_map(of_order).collect()
    };
    assert!(repository.put_order(&of("web", &[])).is_none());
    assert!(repository.put_order(&of("app", &["apps/web", "apps/gone"])).is_none());
    assert_eq!(contents(&repository), ["app a", "app b", "web b"]);
    // It succeeds again.
    let before = repository.put_order(&of("web", &[])).unwrap();
    assert!(!before.wants_same(&of("web", &[])));
    assert_eq!(contents(&repository), ["app a", "app b", "web a", "web b"]);
}

#[test]
fn a_token_that_the_api_refuses_is_requested_anew_once() {
    let text = String::new;
    let refused = || Some(ForgeError::Unauthenticated { host: text(), login: text(), detail: text() });
    let silent = || Some(ForgeError::Unavailable { host: text(), detail: text() });
    let mut repository = repository();
    for (failure, is_listed, is_renewed) in [
        (silent(), false, false),
        (refused(), false, true),
        // The new token is refused as well.
        (refused(), false, false),
        (silent(), false, false),
        (refused(), false, false),
        (None, true, false),
        // An hour later.
        (refused(), false, true),
        (None, true, false),
        // It is refused in the middle of a round.
        (refused(), true, true),
        (refused(), false, false),
    ] {
        let listed = is_listed.then(Instant::now);
        let outcome = RoundOutcome { failure: failure.clone(), listed, ..RoundOutcome::default() };
        assert_eq!(repository.renews_login(&outcome), is_renewed, "{failure:?} {is_listed}");
    }
}
