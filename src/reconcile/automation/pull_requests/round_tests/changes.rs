//! The changes that a round makes, and those that it leaves.

use super::*;

/// An order from before the merge opened another pull request.
#[tokio::test]
async fn a_merge_asks_git_before_another_pull_request_is_opened() {
    let mut wanted = order(&["a"]);
    let data = MessageData::plain_sample();
    wanted.contents.insert("a".parse().unwrap(), BranchContent { data, path: None, message: None });
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
    wanted.contents.insert("a".parse().unwrap(), BranchContent { data, path: None, message: None });
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
    let duplicate = OutcomeReason::Decided(PullRequestReason::Duplicate);
    assert_eq!((shown(&done)[1].as_str(), done.seconds[0].reason.as_ref()), ("closed #9", Some(&duplicate)));
    // It was said that another branch supersedes it.
    let sentence = done.seconds[0].sentence(false);
    assert!(sentence.ends_with(": another pull request of the branch supersedes it"), "{sentence}");
    for _ in 0..2 {
        assert_eq!(*forge.closed.lock(), [9]);
        assert!(snapshot.is_open(7) && !snapshot.is_open(9));
        let again = round_with(&forge, wanted.clone(), &mut snapshot, false).await;
        assert_eq!(again.all().map(|one| one.number).collect::<Vec<_>>(), [Some(7)]);
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
            owner: OwnerHash::of(&other(&[]).automation, None),
            merge: MergeTime::ByHand,
            branches: branches.map(|names| names.iter().map(|name| name.parse().unwrap()).collect()),
            standstill: None,
        };
        let order = PullRequestOrder { cautious: vec![cautious], ..wanted.clone() };
        let forge = TestForge::with([told.clone()]);
        let orders = [order].into_iter().chain(order_of_other).collect();
        let done = round_of(&forge, orders, &mut Snapshot::default(), false).await;
        assert_eq!(done.failure, None);
        assert_eq!(forge.changes.lock().contains(&"merge"), is_merged, "{branches:?}");
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
        wanted.contents.insert("a".parse().unwrap(), BranchContent { data, path: None, message: None });
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

/// No auto-merge was ever cancelled.
#[tokio::test]
async fn an_auto_merge_is_cancelled_once_when_it_is_not_wanted_any_more() {
    use MergeTime::{ByHand, Immediately, WhenReady};
    let (order, [told, _]) = kept();
    let forge = TestForge { hides_auto_merge: true, ..TestForge::with([told]) };
    *forge.answers.lock() = vec![MergeAnswer::Scheduled, MergeAnswer::Scheduled];
    let (pool, handled) = (BlockingPool::new(2), BTreeMap::new());
    let (mut snapshot, mut merges) = (Snapshot::default(), AskedMerges::default());
    for (name, merge, mode, is_failing, expected) in [
        ("it is asked for", WhenReady, RoundMode::Single, false, &["merge"][..]),
        ("it stays", WhenReady, RoundMode::Single, false, &[]),
        ("a dry run", ByHand, RoundMode::DryRun, false, &[]),
        ("the forge fails", ByHand, RoundMode::Single, true, &["cancel"]),
        ("by hand", ByHand, RoundMode::Single, false, &["cancel"]),
        ("at rest", ByHand, RoundMode::Single, false, &[]),
        ("it is asked for again", WhenReady, RoundMode::Single, false, &["merge"]),
        ("at once", Immediately, RoundMode::Single, false, &["cancel", "merge"]),
    ] {
        forge.changes.lock().clear();
        *forge.is_cancel_failing.lock() = is_failing;
        let mut order = order.clone();
        order.settings.merge = merge;
        let orders = BTreeMap::from([(order.automation.clone(), Arc::new(order))]);
        let round = Round { mode, ..plain_round(&forge, &pool, &orders, &handled) };
        let mut work = RoundWork { snapshot, merges, ..RoundWork::default() };
        round.ask(&mut work).await;
        round.act(&mut work).await;
        assert_eq!(*forge.changes.lock(), expected, "{name}");
        assert_eq!(work.outcome.has_failed(), is_failing, "{name}");
        (snapshot, merges) = (work.snapshot, work.merges);
    }
}

/// One that the forge shows was left, also before a merge at once.
#[tokio::test]
async fn an_auto_merge_that_the_forge_shows_is_cancelled_only_if_it_may_be_ours() {
    use MergeTime::{ByHand, Immediately, WhenReady};
    let (order, [told, _]) = kept();
    let stranger = ObjectName { namespace: "shop".to_owned(), name: "other".to_owned() };
    let owners = [OwnerHash::of(&stranger, None)].into();
    let of_others = Memory { owners, ..Memory::of_body(&told.body).unwrap() };
    let of_others = PullRequest { body: of_others.to_string(), ..told.clone() };
    let edited =
        || BranchAction::Left(LeftReason::EditedByOthers { commit: "2".repeat(40).parse().unwrap() });
    for (name, own, merge, action, has_auto_merge, expected) in [
        ("wanted", &told, WhenReady, BranchAction::Kept, true, &[][..]),
        ("commits of people", &told, WhenReady, edited(), true, &["cancel"]),
        ("commits of people, and none is there", &told, WhenReady, edited(), false, &[]),
        ("by hand", &told, ByHand, BranchAction::Kept, true, &[]),
        ("at once", &told, Immediately, BranchAction::Kept, true, &["cancel", "merge"]),
        ("the pull request is of others", &of_others, WhenReady, edited(), true, &[]),
    ] {
        let listed = PullRequest { has_auto_merge, ..own.clone() };
        let forge = TestForge::with([listed]);
        let mut order = order.clone();
        order.settings.merge = merge;
        order.delivered.branches[0].action = action;
        let done = round_of(&forge, vec![order], &mut Snapshot::default(), false).await;
        assert!(!done.has_failed(), "{name}");
        assert_eq!(*forge.changes.lock(), expected, "{name}");
    }
}
