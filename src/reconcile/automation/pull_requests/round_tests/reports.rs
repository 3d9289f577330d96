//! The outcomes that a round reports.

use super::*;

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
            progress.events(&wanted.reported_open).into_iter().map(|event| event.key).collect();
        assert_eq!(events, ["PullRequestClosed 7 ", "PullRequestMerged 8 "]);
    }
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
            events.extend(now.events(reported).into_iter().map(|event| event.key));
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

/// A typing error kept all pull requests of the repository from being merged.
#[tokio::test]
async fn a_merge_waits_for_an_automation_that_stands_still_only_if_it_may_have_a_part_and_names_it() {
    let (mut wanted, [told, _]) = kept();
    wanted.settings.merge = MergeTime::Immediately;
    let automation = ObjectName { namespace: "apps".to_owned(), name: "other".to_owned() };
    let owner = OwnerHash::of(&automation, Some("./prod"));
    let mut memory = Memory::of_body(&told.body).unwrap();
    memory.owners.insert(owner.clone());
    let shared = PullRequest { body: memory.to_string(), ..told.clone() };
    let (invalid, suspended) = (Standstill::InvalidSettings, Standstill::Suspended);
    for (standstill, branches, listed, merge, expected) in [
        (invalid, Some(&["b"][..]), &told, MergeTime::Immediately, None),
        (
            invalid,
            Some(&["a"]),
            &told,
            MergeTime::Immediately,
            Some("may render the same branch and has invalid"),
        ),
        (invalid, Some(&["a"]), &told, MergeTime::ByHand, Some("")),
        (invalid, None, &told, MergeTime::Immediately, Some("may render the same branch and has invalid")),
        (
            invalid,
            Some(&["b"]),
            &shared,
            MergeTime::Immediately,
            Some("has a part in the pull request and invalid"),
        ),
        (suspended, Some(&[]), &told, MergeTime::Immediately, None),
        (
            suspended,
            Some(&[]),
            &shared,
            MergeTime::Immediately,
            Some("and is suspended: resume it, or drop its"),
        ),
        (
            Standstill::UnknownBranches,
            None,
            &told,
            MergeTime::Immediately,
            Some("its branches are not known"),
        ),
    ] {
        let cautious = CautiousAutomation {
            automation: automation.clone(),
            owner: owner.clone(),
            merge: MergeTime::ByHand,
            branches: branches.map(|names| names.iter().map(|name| name.parse().unwrap()).collect()),
            standstill: Some(standstill),
        };
        let mut order = PullRequestOrder { cautious: vec![cautious], ..wanted.clone() };
        order.settings.merge = merge;
        let forge = TestForge::with([listed.clone()]);
        let done = round_of(&forge, vec![order], &mut Snapshot::default(), false).await;
        assert_eq!(done.failure, None);
        assert_eq!(
            forge.changes.lock().contains(&"merge"),
            expected.is_none(),
            "{standstill:?} {branches:?}"
        );
        let outcomes: Vec<PullRequestOutcome> = done.all().cloned().collect();
        let twice = [outcomes.clone(), outcomes].concat();
        let progress =
            PullRequestProgress::after(None, (twice, None), &BTreeSet::new(), &Snapshot::default());
        let (_, reason, message) = progress.condition();
        assert_eq!(reason, Reason::Current);
        let sentence = expected.filter(|sentence| !sentence.is_empty());
        let named = message.matches("; merges wait for automation apps/other, which ").count();
        assert_eq!(named, usize::from(sentence.is_some()), "{message}");
        assert!(message.contains(sentence.unwrap_or_default()), "{message}");
    }
}

/// Only the first was told of.
#[tokio::test]
async fn a_merge_that_waits_for_several_automations_counts_them() {
    let (mut wanted, [told, _]) = kept();
    wanted.settings.merge = MergeTime::Immediately;
    for (count, end) in [(1, ""), (2, "; and for another automation"), (3, "; and for 2 other automations")] {
        let cautious = |number: usize| {
            let automation = ObjectName { namespace: "apps".to_owned(), name: format!("other-{number}") };
            CautiousAutomation {
                owner: OwnerHash::of(&automation, None),
                automation,
                merge: MergeTime::ByHand,
                branches: None,
                standstill: Some(Standstill::UnknownBranches),
            }
        };
        let order = PullRequestOrder { cautious: (0..count).map(cautious).collect(), ..wanted.clone() };
        let forge = TestForge::with([told.clone()]);
        let done = round_of(&forge, vec![order], &mut Snapshot::default(), false).await;
        let outcomes = (done.all().cloned().collect(), None);
        let progress = PullRequestProgress::after(None, outcomes, &BTreeSet::new(), &Snapshot::default());
        let (_, _, message) = progress.condition();
        assert!(message.contains("merges wait for automation apps/other-0, "), "{message}");
        assert!(message.ends_with(&format!("see its conditions, or suspend it{end}")), "{message}");
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
