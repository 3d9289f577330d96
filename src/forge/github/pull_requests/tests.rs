//! Requests for pull requests, and the reading of responses.

use std::collections::VecDeque;

use futures::FutureExt;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::Github;
use crate::forge::api::Forge;
use crate::forge::error::ForgeError;
use crate::forge::exchange::{ApiRequest, ApiResponse, Cost, Method, Transport};
use crate::forge::github::GithubRepository;
use crate::forge::listing::Listing;
use crate::forge::pull_request::{
    Merge, MergeAnswer, MergeMethod, MergeTime, NewPullRequest, PullRequestEdit, PullRequestState,
};

const HEAD: &str = "1111111111111111111111111111111111111111";

/// Gives responses in their order, and keeps the requests.
#[derive(Default)]
struct Recorded {
    responses: Mutex<VecDeque<(u16, Value)>>,
    requests: Mutex<Vec<ApiRequest>>,
}

impl Transport for &Recorded {
    async fn send(&self, request: ApiRequest) -> Result<ApiResponse, ForgeError> {
        self.requests.lock().push(request);
        let (status, body) = self.responses.lock().pop_front().expect("no further request was expected");
        Ok(ApiResponse::new(status, Vec::new(), body))
    }
}

fn recorded(responses: impl IntoIterator<Item = (u16, Value)>) -> Recorded {
    Recorded { responses: Mutex::new(responses.into_iter().collect()), requests: Mutex::default() }
}

fn github(recorded: &Recorded) -> Github<&Recorded> {
    let repository = GithubRepository { owner: "acme".to_owned(), name: "fleet".to_owned() };
    Github::new((recorded, recorded), repository, "api.github.com".to_owned(), "Secret a/b".to_owned())
}

/// A pull request from `bot/app` to `main`, with changes.
fn item(number: u64, changes: Value) -> Value {
    let mut item = json!({
        "number": number, "html_url": format!("https://github.com/acme/fleet/pull/{number}"), "state": "open",
        "merged_at": null, "title": "T", "body": null, "draft": false, "auto_merge": null, "labels": [{"name": "x"}],
        "head": {"ref": "bot/app", "sha": HEAD, "repo": {"full_name": "acme/fleet"}},
        "base": {"ref": "main", "repo": {"full_name": "acme/fleet"}},
    });
    let Value::Object(changes) = changes else { panic!("{changes} is no object") };
    item.as_object_mut().unwrap().extend(changes);
    item
}

fn state(changes: Value) -> Value {
    let mut found = json!({
        "id": "PR_1", "headRefOid": HEAD, "isInMergeQueue": false, "isMergeQueueEnabled": false,
        "mergeStateStatus": "BLOCKED", "autoMergeRequest": null,
        "baseRef": {"branchProtectionRule": {"requiresStatusChecks": true, "requiresApprovingReviews": false}},
    });
    let Value::Object(changes) = changes else { panic!("{changes} is no object") };
    found.as_object_mut().unwrap().extend(changes);
    json!({"data": {"repository": {"pullRequest": found}}})
}

/// The result of calls that never wait.
fn now<T>(work: impl Future<Output = T>) -> T {
    work.now_or_never().expect("recorded responses are there at once")
}

/// The method and path of each request.
fn calls(recorded: &Recorded) -> Vec<String> {
    let requests = recorded.requests.lock();
    let paths = requests.iter().map(|request| (request.method, request.path.join("/")));
    paths.map(|(method, path)| format!("{method:?} {path}")).collect()
}

fn new() -> NewPullRequest {
    NewPullRequest {
        head: "bot/app".parse().unwrap(),
        base: "main".parse().unwrap(),
        title: "T".to_owned(),
        body: "B".to_owned(),
        is_draft: false,
        labels: vec!["images".to_owned()],
        reviewers: vec!["ann".to_owned(), "acme/web".to_owned()],
        assignees: vec!["bob".to_owned()],
        completed_body: None,
    }
}

#[test]
fn open_pull_requests_are_read_page_by_page_without_those_of_forks() {
    let full: Vec<Value> = (1..=100).map(|number| item(number, json!({}))).collect();
    let fork = json!({"head": {"ref": "bot/app", "sha": HEAD, "repo": {"full_name": "eve/fleet"}}});
    let gone = json!({"head": {"ref": "bot/app", "sha": HEAD, "repo": null}});
    let last = vec![item(101, fork), item(102, gone), item(103, json!({"draft": true, "auto_merge": {}}))];
    let api = recorded([(200, full.clone().into()), (200, last.into())]);
    let found = now(github(&api).open_pull_requests(&mut Listing::all())).unwrap();
    assert_eq!(found.len(), 101);
    let one = &found[100];
    assert_eq!(
        (one.number, one.is_draft, one.has_auto_merge, one.labels.as_slice()),
        (103, true, true, &["x".to_owned()][..])
    );
    assert_eq!(one.head_commit, Some(HEAD.parse().unwrap()));
    let queries: Vec<_> =
        api.requests.lock().iter().map(|request| request.query.last().cloned().unwrap().1).collect();
    assert_eq!(queries, ["1", "2"]);
    // A server that gives the same page for ever.
    let api = recorded([(200, full.clone().into()), (200, full.into())]);
    let error = now(github(&api).open_pull_requests(&mut Listing::all())).unwrap_err();
    assert!(error.to_string().contains("a page that repeats earlier ones"), "{error}");
}

#[test]
fn a_page_of_a_pull_request_has_an_address_of_the_web() {
    for address in ["javascript:alert(1)", "", "https://user@github.com/"] {
        let api = recorded([(200, json!([item(1, json!({"html_url": address}))]))]);
        let error = now(github(&api).open_pull_requests(&mut Listing::all())).unwrap_err();
        assert!(error.to_string().ends_with("no address of the pull request's page"), "{error}");
    }
}

#[test]
fn a_pull_request_is_found_by_owner_and_branch_in_any_state() {
    let closed = json!({"state": "closed"});
    let merged = json!({"state": "closed", "merged_at": "2026-01-01T00:00:00Z"});
    let other = json!({"head": {"ref": "other", "sha": HEAD, "repo": {"full_name": "acme/fleet"}}});
    let listed = vec![item(4, json!({})), item(3, closed), item(2, merged), item(1, other)];
    let api = recorded([(200, listed.into()), (200, state(json!({"isInMergeQueue": true})))]);
    let found = now(github(&api).find(&"bot/app".parse().unwrap(), &"main".parse().unwrap())).unwrap();
    let states: Vec<_> = found.iter().map(|one| (one.number, one.state, one.is_in_merge_queue)).collect();
    use PullRequestState::{Closed, Merged, Open};
    assert_eq!(states, [(4, Open, true), (3, Closed, false), (2, Merged, false)]);
    let requests = api.requests.lock();
    assert!(requests[0].query.contains(&("head", "acme:bot/app".to_owned())), "{:?}", requests[0].query);
}

#[test]
fn the_merge_queue_of_a_base_has_numbers_and_a_base_may_have_none() {
    let entries = json!({"nodes": [{"pullRequest": {"number": 4}}, {"pullRequest": null}, {"pullRequest": {"number": 9}}]});
    let of = |queue: Value| json!({"data": {"repository": {"mergeQueue": queue}}});
    for (body, expected) in [
        (of(json!({"entries": entries})), Some(vec![4, 9])),
        (of(json!({"entries": {"nodes": []}})), Some(vec![])),
        (of(Value::Null), None),
        (json!({"errors": [{"message": "Field 'mergeQueue' doesn't exist on type 'Repository'"}]}), None),
    ] {
        let api = recorded([(200, body)]);
        let found = now(github(&api).merge_queue(&"main".parse().unwrap())).unwrap();
        assert_eq!(found.map(|numbers| numbers.into_iter().collect::<Vec<_>>()), expected);
        let body = api.requests.lock()[0].body.clone().unwrap();
        assert_eq!(
            body["variables"],
            json!({"owner": "acme", "name": "fleet", "branch": "main", "after": null})
        );
    }
    assert!(now(github(&recorded([(502, json!({}))])).merge_queue(&"main".parse().unwrap())).is_err());
}

#[test]
fn an_error_about_the_merge_queue_does_not_mean_that_there_is_none() {
    let undefined = json!({
        "message": "Field 'mergeQueue' doesn't exist on type 'Repository'", "extensions": {"code": "undefinedField"},
    });
    let broken = json!({"message": "Something went wrong while executing your query"});
    for (errors, expected) in [
        (json!([undefined]), None),
        (json!([broken]), Some("Something went wrong while executing your query")),
        (json!([undefined, broken]), Some("Something went wrong while executing your query")),
        (json!([{"type": "INTERNAL"}]), Some("an error without a message")),
    ] {
        let api = recorded([(200, json!({"data": {"repository": {"mergeQueue": null}}, "errors": errors}))]);
        let found = now(github(&api).merge_queue(&"main".parse().unwrap()));
        match (found, expected) {
            (Ok(None), None) => {}
            (Err(ForgeError::Refused { detail, .. }), Some(expected)) => assert_eq!(detail, expected),
            (found, expected) => panic!("{found:?} {expected:?}"),
        }
    }
}

#[test]
fn a_long_merge_queue_is_read_page_by_page() {
    let page = |numbers: &[u64], next: Option<&str>| {
        let nodes: Vec<_> = numbers.iter().map(|number| json!({"pullRequest": {"number": number}})).collect();
        let info = json!({"endCursor": next, "hasNextPage": next.is_some()});
        (
            200,
            json!({"data": {"repository": {"mergeQueue": {"entries": {"nodes": nodes, "pageInfo": info}}}}}),
        )
    };
    let api = recorded([page(&[1, 2], Some("c2")), page(&[3], None)]);
    let found = now(github(&api).merge_queue(&"main".parse().unwrap())).unwrap().unwrap();
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(api.requests.lock()[1].body.as_ref().unwrap()["variables"]["after"], "c2");
}

#[test]
fn a_token_that_may_not_read_the_merge_queue_still_learns_which_pull_requests_are_in_it() {
    let forbidden = || json!([{"type": "FORBIDDEN", "message": "Resource not accessible by integration"}]);
    let refused = || json!({"data": {"repository": {"mergeQueue": null}}, "errors": forbidden()});
    let nodes = |nodes: Value| json!({"data": {"repository": {"pullRequests": {"nodes": nodes}}}});
    let one = |number: u64, is_in: bool, has: bool| json!({"number": number, "isInMergeQueue": is_in, "isMergeQueueEnabled": has});
    let nothing = json!({"data": {"repository": {"pullRequests": null}}, "errors": forbidden()});
    let no_graphql = json!({"message": "Resource not accessible by personal access token"});
    for (name, responses, expected) in [
        (
            "one is in the queue",
            vec![(200, refused()), (200, nodes(json!([one(4, true, true), one(5, false, true)])))],
            Some(vec![4]),
        ),
        ("no queue", vec![(200, refused()), (200, nodes(json!([one(4, false, false)])))], None),
        (
            "one may not be read",
            vec![(200, refused()), (200, nodes(json!([null, one(5, true, true)])))],
            Some(vec![5]),
        ),
        ("nothing may be read", vec![(200, refused()), (200, nothing), (200, json!([]))], None),
        (
            "the token is not accepted",
            vec![
                (403, no_graphql.clone()),
                (403, no_graphql.clone()),
                (200, json!([{"type": "pull_request"}])),
            ],
            None,
        ),
        (
            "the rules are hidden as well",
            vec![(403, no_graphql.clone()), (403, no_graphql.clone()), (403, no_graphql)],
            None,
        ),
    ] {
        let api = recorded(responses);
        let found = now(github(&api).merge_queue(&"main".parse().unwrap()));
        let found = found.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(found.map(|numbers| numbers.into_iter().collect::<Vec<_>>()), expected, "{name}");
        assert!(api.responses.lock().is_empty(), "{name}");
    }
}

/// A pull request in the queue was rebuilt.
#[test]
fn a_base_with_a_merge_queue_is_left_alone_if_graphql_refuses_the_token() {
    let no_graphql = || (403, json!({"message": "Resource not accessible by personal access token"}));
    let rules = json!([{"type": "deletion"}, {"type": "merge_queue", "parameters": {}}]);
    let api = recorded([no_graphql(), no_graphql(), (200, rules)]);
    let error = now(github(&api).merge_queue(&"release/1".parse().unwrap())).unwrap_err();
    assert!(matches!(&error, ForgeError::Forbidden { operation: "list the merge queue", .. }), "{error}");
    let requests = api.requests.lock();
    assert_eq!(requests[2].path, ["repos", "acme", "fleet", "rules", "branches", "release/1"]);
    drop(requests);
    let api = recorded([no_graphql(), no_graphql(), (502, json!({}))]);
    assert!(now(github(&api).merge_queue(&"main".parse().unwrap())).is_err());
}

#[test]
fn a_merge_queue_that_is_read_in_part_is_not_taken_for_none() {
    let errors = json!([{"type": "FORBIDDEN", "message": "Resource not accessible by integration"}]);
    let refused = |part: &str| (200, json!({"data": {"repository": {part: null}}, "errors": errors}));
    let first = json!({
        "nodes": [{"number": 4, "isInMergeQueue": false, "isMergeQueueEnabled": true}],
        "pageInfo": {"endCursor": "c1", "hasNextPage": true},
    });
    let first = (200, json!({"data": {"repository": {"pullRequests": first}}}));
    let api = recorded([refused("mergeQueue"), first, refused("pullRequests")]);
    let error = now(github(&api).merge_queue(&"main".parse().unwrap())).unwrap_err();
    assert!(matches!(&error, ForgeError::Forbidden { detail, .. } if detail.contains("not accessible")));
    assert_eq!(api.requests.lock()[2].body.as_ref().unwrap()["variables"]["after"], "c1");
}

#[test]
fn a_state_that_the_token_may_not_read_fails_no_lookup() {
    let (head, base) = ("bot/app".parse().unwrap(), "main".parse().unwrap());
    let error = |kind: &str| json!([{"type": kind, "message": "Resource not accessible by integration"}]);
    // The rules alone are hidden, or the whole pull request.
    let mut partial = state(json!({"isInMergeQueue": true, "baseRef": {"branchProtectionRule": null}}));
    partial["errors"] = error("FORBIDDEN");
    let whole =
        json!({"data": {"repository": {"pullRequest": null}}, "errors": error("INSUFFICIENT_SCOPES")});
    for (body, is_in_queue) in [(partial.clone(), true), (whole, false)] {
        let api = recorded([(200, json!([item(5, json!({}))])), (200, body)]);
        let found = now(github(&api).find(&head, &base)).unwrap();
        assert_eq!(found[0].is_in_merge_queue, is_in_queue);
    }
    let other = json!({"data": {"repository": {"pullRequest": null}}, "errors": error("INTERNAL")});
    let api = recorded([(200, json!([item(5, json!({}))])), (200, other)]);
    assert!(now(github(&api).find(&head, &base)).is_err());

    // A rule that cannot be read is not taken for none.
    let api = recorded([(200, json!([item(5, json!({}))])), (200, state(json!({})))]);
    let current = now(github(&api).find(&head, &base)).unwrap().remove(0);
    partial["data"]["repository"]["pullRequest"]["isInMergeQueue"] = false.into();
    let merge = Merge { time: MergeTime::WhenReady, method: None, head_commit: HEAD.parse().unwrap() };
    let answer = now(github(&recorded([(200, partial)])).merge(&current, &merge)).unwrap();
    assert!(
        matches!(&answer, MergeAnswer::Refused { reason } if reason.contains("not accessible")),
        "{answer:?}"
    );
}

#[test]
fn a_pull_request_that_is_open_is_ours_even_if_a_later_call_fails() {
    let [label, assign, review] = ["label a pull request", "assign a pull request", "ask for a review"];
    for (responses, failed) in [
        ([(502, json!({})), (201, json!({})), (201, json!({}))], vec![label]),
        ([(200, json!([])), (429, json!({})), (401, json!({}))], vec![assign, review]),
        ([(500, json!({})), (500, json!({})), (500, json!({}))], vec![label, assign, review]),
    ] {
        let api = recorded([(201, item(7, json!({})))].into_iter().chain(responses));
        let opened = now(github(&api).open(&new())).unwrap();
        assert!(opened.is_new && opened.pull_request.number == 7);
        assert_eq!((opened.refused.len(), calls(&api).len()), (failed.len(), 4), "{:?}", opened.refused);
        for (sentence, operation) in opened.refused.iter().zip(failed) {
            assert!(sentence.contains(operation) || sentence.contains("credentials"), "{sentence}");
        }
    }
}

#[test]
fn a_pull_request_is_closed_only_as_it_was_known() {
    let api = recorded([(200, json!([item(5, json!({}))])), (200, state(json!({})))]);
    let current =
        now(github(&api).find(&"bot/app".parse().unwrap(), &"main".parse().unwrap())).unwrap().remove(0);
    let other = json!({"ref": "bot/app", "sha": "2".repeat(40), "repo": {"full_name": "acme/fleet"}});
    let merged = json!({"state": "closed", "merged_at": "2026-01-01T00:00:00Z"});
    for change in [json!({"head": other}), merged, json!({"state": "closed"})] {
        let close = PullRequestEdit { is_closed: true, ..PullRequestEdit::default() };
        let api = recorded([(200, item(5, change.clone()))]);
        let error = now(github(&api).edit(&current, &close)).unwrap_err();
        assert!(matches!(error, ForgeError::Refused { status: 409, .. }), "{error} {change}");
    }
    // A text does not follow from the head.
    let text = PullRequestEdit { title: Some("N".to_owned()), ..PullRequestEdit::default() };
    let moved = || item(5, json!({"head": other}));
    assert!(now(github(&recorded([(200, moved()), (200, moved())])).edit(&current, &text)).is_ok());
}

#[test]
fn labels_reviewers_and_assignees_are_separate_calls_of_which_each_may_be_refused() {
    let unknown = json!({"message": "Could not resolve to a node"});
    let asked = NewPullRequest { reviewers: vec!["ann".to_owned()], ..new() };
    let api = recorded([(201, item(7, json!({}))), (200, json!([])), (201, json!({})), (422, unknown)]);
    let opened = now(github(&api).open(&asked)).unwrap();
    assert!(opened.is_new && opened.pull_request.number == 7);
    assert_eq!(opened.refused, ["reviewer \"ann\" is refused: Could not resolve to a node"]);
    assert_eq!(
        calls(&api),
        [
            "Post repos/acme/fleet/pulls",
            "Post repos/acme/fleet/issues/7/labels",
            "Post repos/acme/fleet/issues/7/assignees",
            "Post repos/acme/fleet/pulls/7/requested_reviewers",
        ]
    );
    let requests = api.requests.lock();
    assert_eq!(requests[3].body, Some(json!({"reviewers": ["ann"], "team_reviewers": []})));
    let costs: Vec<Cost> = requests.iter().map(|request| request.cost).collect();
    assert_eq!(costs, [Cost::Create, Cost::Essential, Cost::Essential, Cost::Create]);
}

/// The others were refused with it.
#[test]
fn a_reviewer_that_github_refuses_keeps_no_other_away() {
    let reason = "Reviews may only be requested from collaborators.";
    let refused = || (422, json!({"message": reason}));
    let asked = NewPullRequest { labels: Vec::new(), assignees: Vec::new(), ..new() };
    let one = |users: &[&str], teams: &[&str]| json!({"reviewers": users, "team_reviewers": teams});
    let api = recorded([(201, item(7, json!({}))), refused(), refused(), (201, item(7, json!({})))]);
    let opened = now(github(&api).open(&asked)).unwrap();
    assert_eq!(opened.refused, [format!("reviewer \"ann\" is refused: {reason}")]);
    let sent: Vec<_> = api.requests.lock()[1..].iter().map(|sent| sent.body.clone().unwrap()).collect();
    assert_eq!(sent, [one(&["ann"], &["web"]), one(&["ann"], &[]), one(&[], &["web"])]);

    // In a later round too; a failure that may pass is an error there.
    let api = recorded([(200, json!([item(5, json!({}))])), (200, state(json!({})))]);
    let current =
        now(github(&api).find(&"bot/app".parse().unwrap(), &"main".parse().unwrap())).unwrap().remove(0);
    let edit = PullRequestEdit {
        title: Some("New".to_owned()),
        added_reviewers: asked.reviewers,
        is_text_recent: true,
        ..PullRequestEdit::default()
    };
    for (last, is_edited) in [((201, item(5, json!({}))), true), ((502, json!({})), false)] {
        let api = recorded([refused(), refused(), last, (200, item(5, json!({})))]);
        let edited = now(github(&api).edit(&current, &edit)).ok().map(|edited| edited.refused);
        assert_eq!(edited, is_edited.then(|| opened.refused.clone()));
        assert_eq!(calls(&api).len(), if is_edited { 4 } else { 3 });
    }
}

#[test]
fn a_pull_request_that_exists_already_is_found() {
    let exists = json!({"message": "Validation Failed", "errors": [{"message": "A pull request already exists for acme:bot/app."}]});
    let plain = NewPullRequest { labels: Vec::new(), assignees: Vec::new(), ..new() };
    let api = recorded([(422, exists), (200, json!([item(5, json!({}))])), (200, state(json!({})))]);
    let opened = now(github(&api).open(&plain)).unwrap();
    assert!(!opened.is_new && opened.pull_request.number == 5);
    // Drafts may not be available; the pull request opens without.
    let no_draft = json!({"message": "Draft pull requests are not supported in this repository."});
    let draft = NewPullRequest { is_draft: true, reviewers: Vec::new(), ..plain };
    let api = recorded([(422, no_draft), (201, item(6, json!({})))]);
    let opened = now(github(&api).open(&draft)).unwrap();
    assert!(
        opened.is_new
            && opened.refused[0].ends_with("Draft pull requests are not supported in this repository.")
    );
    assert_eq!(api.requests.lock()[1].body.as_ref().unwrap()["draft"], false);
}

#[test]
fn a_change_sends_only_what_changes_and_closing_goes_on_at_a_low_limit() {
    let api = recorded([(200, json!([item(5, json!({}))])), (200, state(json!({})))]);
    let current =
        now(github(&api).find(&"bot/app".parse().unwrap(), &"main".parse().unwrap())).unwrap().remove(0);
    let edit = PullRequestEdit {
        body: Some("closed: nothing is left".to_owned()),
        removed_labels: vec!["x".to_owned()],
        is_closed: true,
        ..PullRequestEdit::default()
    };
    let api = recorded([
        (200, item(5, json!({}))),
        (200, item(5, json!({"state": "closed"}))),
        (404, json!({"message": "Label does not exist"})),
    ]);
    let changed = now(github(&api).edit(&current, &edit)).unwrap().pull_request;
    assert_eq!((changed.state, changed.labels.len()), (PullRequestState::Closed, 0));
    let requests = api.requests.lock();
    assert_eq!(requests[1].body, Some(json!({"body": "closed: nothing is left", "state": "closed"})));
    let costs: Vec<_> = requests.iter().map(|request| (request.method, request.cost)).collect();
    let wanted = [
        (Method::Get, Cost::EssentialRead),
        (Method::Patch, Cost::Essential),
        (Method::Delete, Cost::Essential),
    ];
    assert_eq!(costs, wanted);
    assert_eq!(requests[2].path.last().unwrap(), "x");
    drop(requests);
    // A person has changed the text meanwhile.
    for change in [json!({"title": "P"}), json!({"body": "P"})] {
        let api = recorded([(200, item(5, change))]);
        let error = now(github(&api).edit(&current, &edit)).unwrap_err();
        assert!(matches!(error, ForgeError::Refused { status: 409, .. }), "{error}");
    }
}

#[test]
fn a_merge_is_bound_to_the_head_and_waits_for_what_is_required() {
    use MergeAnswer::{Merged, NothingRequired, Scheduled};
    let api = recorded([(200, json!([item(5, json!({}))])), (200, state(json!({})))]);
    let current =
        now(github(&api).find(&"bot/app".parse().unwrap(), &"main".parse().unwrap())).unwrap().remove(0);
    let merge = |time| Merge { time, method: Some(MergeMethod::Squash), head_commit: HEAD.parse().unwrap() };
    let no_rule = || json!({"baseRef": {"branchProtectionRule": null, "rules": {"nodes": []}}, "mergeStateStatus": "CLEAN"});
    // A queue without required checks would merge at once.
    let mut queue_alone = no_rule();
    queue_alone["isMergeQueueEnabled"] = true.into();
    queue_alone["baseRef"]["rules"]["nodes"] = json!([{"type": "MERGE_QUEUE"}]);
    let done = || (200, json!({"data": {}}));
    for (time, responses, expected, last) in [
        (
            MergeTime::Immediately,
            vec![(200, json!({"merged": true}))],
            Merged,
            "Put repos/acme/fleet/pulls/5/merge",
        ),
        (MergeTime::WhenReady, vec![(200, state(json!({}))), done()], Scheduled, "Post "),
        (
            MergeTime::WhenReady,
            vec![(200, state(json!({"isMergeQueueEnabled": true}))), done()],
            Scheduled,
            "Post ",
        ),
        (MergeTime::WhenReady, vec![(200, state(json!({"isInMergeQueue": true})))], Scheduled, "Post "),
        (MergeTime::WhenReady, vec![(200, state(no_rule()))], NothingRequired, "Post "),
        (MergeTime::WhenReady, vec![(200, state(queue_alone))], NothingRequired, "Post "),
        (
            MergeTime::WhenReady,
            vec![(200, state(json!({"mergeStateStatus": "CLEAN"}))), (200, json!({"merged": true}))],
            Merged,
            "Put repos/acme/fleet/pulls/5/merge",
        ),
    ] {
        let api = recorded(responses);
        assert_eq!(now(github(&api).merge(&current, &merge(time))).unwrap(), expected);
        assert_eq!(calls(&api).last().unwrap(), last);
        if let Some(Value::String(sha)) =
            api.requests.lock().last().unwrap().body.as_ref().map(|body| body["sha"].clone())
        {
            assert_eq!(sha, HEAD);
        }
        assert!(api.responses.lock().is_empty());
    }
    for (responses, is_final) in [
        (vec![(200, state(json!({"headRefOid": "2"})))], false),
        (
            vec![
                (200, state(json!({}))),
                (200, json!({"errors": [{"message": "Auto merge is not allowed"}]})),
            ],
            true,
        ),
    ] {
        let answer = now(github(&recorded(responses)).merge(&current, &merge(MergeTime::WhenReady))).unwrap();
        assert_eq!(matches!(answer, MergeAnswer::Refused { .. }), is_final, "{answer:?}");
    }
    for (status, is_final) in [(405, false), (409, false), (422, true)] {
        let api = recorded([(status, json!({"message": "no"}))]);
        let answer = now(github(&api).merge(&current, &merge(MergeTime::Immediately))).unwrap();
        assert_eq!(matches!(answer, MergeAnswer::Refused { .. }), is_final, "{answer:?}");
    }
}

/// Auto-merge was refused, and not asked for again in ten minutes.
#[test]
fn a_state_that_github_still_computes_is_asked_for_again() {
    let api = recorded([(200, json!([item(5, json!({}))])), (200, state(json!({})))]);
    let current =
        now(github(&api).find(&"bot/app".parse().unwrap(), &"main".parse().unwrap())).unwrap().remove(0);
    let merge = Merge { time: MergeTime::WhenReady, method: None, head_commit: HEAD.parse().unwrap() };
    for has_queue in [false, true] {
        let computing = json!({"mergeStateStatus": "UNKNOWN", "isMergeQueueEnabled": has_queue});
        let api = recorded([(200, state(computing))]);
        let answer = now(github(&api).merge(&current, &merge)).unwrap();
        assert!(matches!(answer, MergeAnswer::NotYet { .. }), "{answer:?}");
    }
}

/// GitHub refuses to put one into the queue whose checks have not passed.
#[test]
fn a_pull_request_that_is_not_ready_waits_in_front_of_the_merge_queue() {
    let api = recorded([(200, json!([item(5, json!({}))])), (200, state(json!({})))]);
    let current =
        now(github(&api).find(&"bot/app".parse().unwrap(), &"main".parse().unwrap())).unwrap().remove(0);
    let method = Some(MergeMethod::Squash);
    let merge = Merge { time: MergeTime::WhenReady, method, head_commit: HEAD.parse().unwrap() };
    let queue = |status: &str| (200, state(json!({"isMergeQueueEnabled": true, "mergeStateStatus": status})));
    let (auto_merge, enqueue) = ("enablePullRequestAutoMerge", "enqueuePullRequest");
    let done = || (200, json!({"data": {}}));
    let refused = || (200, json!({"errors": [{"message": "Auto merge is not allowed for this repository"}]}));
    for (responses, sent) in [
        (vec![queue("BLOCKED"), done()], vec![auto_merge]),
        (vec![queue("CLEAN"), done()], vec![enqueue]),
        (vec![queue("BLOCKED"), refused(), done()], vec![auto_merge, enqueue]),
    ] {
        let api = recorded(responses);
        assert_eq!(now(github(&api).merge(&current, &merge)).unwrap(), MergeAnswer::Scheduled);
        let requests = api.requests.lock();
        for (request, name) in requests[1..].iter().zip(&sent) {
            let body = request.body.as_ref().unwrap();
            assert!(body["query"].as_str().unwrap().contains(name), "{body}");
            assert_eq!(body["variables"]["input"]["expectedHeadOid"], HEAD);
            assert_eq!(body["variables"]["input"]["mergeMethod"], Value::Null, "the queue has one");
        }
        assert_eq!(requests.len(), sent.len() + 1);
    }
}

#[test]
fn the_mark_of_an_incomplete_pull_request_is_removed_with_the_last_part() {
    let marked = || NewPullRequest { completed_body: Some("done".to_owned()), ..new() };
    let labels = || NewPullRequest { reviewers: Vec::new(), assignees: Vec::new(), ..marked() };
    // The answer to labels has no text.
    let ok = || (200, json!([]));
    let opened = || (201, item(7, json!({})));
    let whole = || (201, item(7, json!({})));
    let read = || (200, item(7, json!({})));
    let invalid = || (422, json!({"message": "Validation Failed"}));
    let done = || Some(json!({"body": "done"}));
    let reviewed = || Some(json!({"reviewers": ["ann"], "team_reviewers": ["web"]}));
    for (name, asked, responses, last, missing) in [
        ("each part is added", marked(), vec![opened(), ok(), whole(), whole(), ok()], done(), 0),
        ("labels alone", labels(), vec![opened(), ok(), read(), (200, json!({}))], done(), 0),
        (
            "labels alone, and a text that a person wrote meanwhile",
            labels(),
            vec![opened(), ok(), (200, item(7, json!({"body": "Wait."})))],
            None,
            0,
        ),
        (
            "labels alone, and a text that cannot be read",
            labels(),
            vec![opened(), ok(), (502, json!({}))],
            None,
            1,
        ),
        (
            "an assignee without access is told",
            marked(),
            vec![
                opened(),
                ok(),
                (201, json!({"body": null, "assignees": [{"login": "Eve"}]})),
                whole(),
                ok(),
            ],
            done(),
            1,
        ),
        (
            "an unknown reviewer stays away",
            marked(),
            vec![opened(), ok(), whole(), invalid(), invalid(), whole(), ok()],
            done(),
            1,
        ),
        (
            "after a failure that may pass the mark stays",
            marked(),
            vec![opened(), (502, json!({})), whole(), whole()],
            reviewed(),
            1,
        ),
        (
            "so does it without the permission for labels, which may be given later",
            marked(),
            vec![opened(), (403, json!({"message": "Resource not accessible"})), whole(), whole()],
            reviewed(),
            1,
        ),
        (
            "the text that a person wrote meanwhile stays",
            marked(),
            vec![opened(), ok(), whole(), (201, json!({"body": "Wait."}))],
            reviewed(),
            0,
        ),
        ("the last call fails", labels(), vec![opened(), ok(), read(), (502, json!({}))], done(), 1),
    ] {
        let (calls, api) = (responses.len(), recorded(responses));
        let opened = now(github(&api).open(&asked)).unwrap();
        assert!(opened.is_new, "{name}");
        assert_eq!(opened.refused.len(), missing, "{name}: {:?}", opened.refused);
        let requests = api.requests.lock();
        assert_eq!(requests.len(), calls, "{name}");
        assert_eq!(requests.last().unwrap().body, last, "{name}");
    }
    // The next round adds what is missing, and then removes the mark.
    let api = recorded([(200, json!([item(5, json!({}))])), (200, state(json!({})))]);
    let current =
        now(github(&api).find(&"bot/app".parse().unwrap(), &"main".parse().unwrap())).unwrap().remove(0);
    let edit = PullRequestEdit {
        body: Some("done".to_owned()),
        added_labels: vec!["images".to_owned()],
        added_reviewers: vec!["ann".to_owned()],
        added_assignees: vec!["bob".to_owned()],
        ..PullRequestEdit::default()
    };
    let found = (200, item(5, json!({})));
    let api = recorded([found, ok(), ok(), invalid(), (200, item(5, json!({})))]);
    now(github(&api).edit(&current, &edit)).unwrap();
    assert_eq!(
        calls(&api),
        [
            "Get repos/acme/fleet/pulls/5",
            "Post repos/acme/fleet/issues/5/labels",
            "Post repos/acme/fleet/issues/5/assignees",
            "Post repos/acme/fleet/pulls/5/requested_reviewers",
            "Patch repos/acme/fleet/pulls/5",
        ]
    );
}

/// No auto-merge was ever cancelled.
#[test]
fn auto_merge_is_disabled_only_where_it_is_enabled() {
    let api = recorded([(200, json!([item(5, json!({}))])), (200, state(json!({})))]);
    let current =
        now(github(&api).find(&"bot/app".parse().unwrap(), &"main".parse().unwrap())).unwrap().remove(0);
    let enabled = || (200, state(json!({"autoMergeRequest": {"enabledAt": "2026-01-01T00:00:00Z"}})));
    let refused = || (200, json!({"errors": [{"message": "must have push access"}]}));
    for (responses, is_sent, is_done) in [
        (vec![(200, state(json!({})))], false, true),
        (vec![enabled(), (200, json!({"data": {}}))], true, true),
        (vec![enabled(), refused()], true, false),
        (vec![enabled(), (401, json!({}))], true, false),
    ] {
        let api = recorded(responses);
        assert_eq!(now(github(&api).cancel_merge(&current)).is_ok(), is_done);
        let requests = api.requests.lock();
        assert_eq!(requests.len(), if is_sent { 2 } else { 1 });
        if let Some(request) = requests.get(1) {
            let body = request.body.as_ref().unwrap();
            assert!(body["query"].as_str().unwrap().contains("disablePullRequestAutoMerge"), "{body}");
            assert_eq!(body["variables"]["input"], json!({"pullRequestId": "PR_1"}));
        }
    }
}
