//! Calls that find pull requests, and their failures.

use super::*;

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

#[tokio::test]
async fn a_listing_is_urgent_if_a_pull_request_is_to_be_opened_or_closed() {
    let order = order(&["a"]);
    let data = MessageData::plain_sample();
    let changing = PullRequestOrder {
        contents: BTreeMap::from([("a".parse().unwrap(), BranchContent { data, path: None, message: None })]),
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
