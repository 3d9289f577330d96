//! Requests for pull requests at Bitbucket Cloud, and the reading of responses.

use super::reading::pull_request;
use super::*;
use crate::forge::exchange::ApiResponse;
use crate::forge::pull_request::MergeMethod;
use crate::forge::script::{Script, endpoint, run};
use serde_json::json;

pub(in crate::forge) const HEAD: &str = "1111111111111111111111111111111111111111";

pub(in crate::forge) fn document(number: u64, state: &str) -> Value {
    json!({
        "id": number, "state": state, "title": "Update web", "description": "text", "draft": false,
        "links": {"html": {"href": format!("https://bitbucket.org/team/fleet/pull-requests/{number}")}},
        "source": {
            "branch": {"name": "tagboat/web"}, "commit": {"hash": &HEAD[..12]},
            "repository": {"full_name": "team/fleet"},
        },
        "destination": {"branch": {"name": "main"}, "repository": {"full_name": "team/fleet"}},
        "reviewers": [{"uuid": "{r}"}],
    })
}

fn page(entries: &[Value]) -> Value {
    json!({ "values": entries })
}

fn bitbucket(script: &Script) -> Bitbucket<&Script> {
    let repository = BitbucketRepository { workspace: "team".to_owned(), slug: "fleet".to_owned() };
    Bitbucket::new(script, endpoint(), repository)
}

fn new() -> NewPullRequest {
    NewPullRequest {
        head: "tagboat/web".parse().unwrap(),
        base: "main".parse().unwrap(),
        title: "Update web".to_owned(),
        body: "text".to_owned(),
        is_draft: true,
        labels: Vec::new(),
        reviewers: vec!["{a}".to_owned(), "ann".to_owned(), "ghost".to_owned()],
        assignees: Vec::new(),
        completed_body: None,
    }
}

#[test]
fn an_open_one_is_never_opened_again() {
    let script = Script::new([(200, page(&[document(3, "OPEN")]))]);
    let opened = run(bitbucket(&script).open(&new())).unwrap();
    assert_eq!((opened.pull_request.number, opened.is_new), (3, false));
    let filter = r#"q=source.branch.name="tagboat/web" AND destination.branch.name="main""#;
    assert!(script.requests()[0].0.contains(filter), "{:?}", script.requests());
}

#[test]
fn reviewers_are_added_by_id_one_by_one_if_refused() {
    let members = json!({"values": [{"user": {"uuid": "{b}", "nickname": "ann"}}]});
    let refusal = || (400, json!({"error": {"message": "{b} is no reviewer"}}));
    let accepted = || (200, document(3, "OPEN"));
    let begin = [(200, page(&[])), (201, document(3, "OPEN")), accepted(), (200, members)];
    let updates = [refusal(), accepted(), refusal(), accepted()];
    let script = Script::new(begin.into_iter().chain(updates));
    let opened = run(bitbucket(&script).open(&new())).unwrap();
    assert!(opened.is_new);
    script.assert_essential();
    assert_eq!(
        opened.refused,
        [
            "reviewer \"ghost\" is refused: no member has this name",
            "reviewer \"ann\" is refused: {b} is no reviewer",
        ]
    );
    let sent = script.requests();
    assert_eq!(sent[1].1["draft"], json!(true));
    // The one that is there stays.
    assert_eq!(sent[4].1["reviewers"], json!([{"uuid": "{r}"}, {"uuid": "{a}"}, {"uuid": "{b}"}]));
    assert_eq!(sent[7].1["reviewers"], json!([{"uuid": "{r}"}, {"uuid": "{a}"}]));
}

#[test]
fn pull_requests_of_forks_are_left_out() {
    let mut fork = document(1, "OPEN");
    fork["source"]["repository"] = json!({"full_name": "other/fleet"});
    assert_eq!(pull_request(&fork), Ok(None));
    fork["source"]["repository"] = json!(null);
    assert_eq!(pull_request(&fork), Ok(None), "a fork that was deleted");
    let mut odd = document(1, "OPEN");
    odd["state"] = json!("ODD");
    assert!(pull_request(&odd).is_err());
}

#[test]
fn an_edit_keeps_the_reviewers() {
    let current = own_pull_request(&document(1, "OPEN")).unwrap();
    let script =
        Script::new([(200, document(1, "OPEN")), (200, document(1, "OPEN")), (200, document(1, "DECLINED"))]);
    let edit =
        PullRequestEdit { body: Some("why".to_owned()), is_closed: true, ..PullRequestEdit::default() };
    let closed = run(bitbucket(&script).edit(&current, &edit)).unwrap().pull_request;
    assert_eq!(closed.state, PullRequestState::Closed);
    script.assert_essential();
    let wanted = json!({"title": "Update web", "description": "why", "reviewers": [{"uuid": "{r}"}]});
    assert_eq!(script.requests()[1].1, wanted);
    assert_eq!(script.requests()[2].0, "Post repositories/team/fleet/pullrequests/1/decline");
}

/// A declined one cannot be reopened.
#[test]
fn one_with_a_commit_since_git_looked_is_not_declined() {
    let current = own_pull_request(&document(1, "OPEN")).unwrap();
    let close = PullRequestEdit { is_closed: true, judged: HEAD.parse().ok(), ..PullRequestEdit::default() };
    let tip = |id: &str| (200, json!({"target": {"hash": id}}));
    let other = format!("{}2222222222222222222222222222", &HEAD[..12]);
    let script = Script::new([(200, document(1, "OPEN")), tip(&other)]);
    let error = run(bitbucket(&script).edit(&current, &close)).unwrap_err();
    assert!(matches!(error, ForgeError::Refused { status: 409, .. }), "{error}");
    for branch in [tip(HEAD), (404, json!({"error": {"message": "no such branch"}}))] {
        let script = Script::new([(200, document(1, "OPEN")), branch, (200, document(1, "DECLINED"))]);
        let closed = run(bitbucket(&script).edit(&current, &close)).unwrap().pull_request;
        assert_eq!(closed.state, PullRequestState::Closed);
        assert_eq!(script.requests()[1].0, "Get repositories/team/fleet/refs/branches/tagboat%2Fweb");
        script.assert_essential();
    }
}

#[test]
fn text_that_a_person_wrote_meanwhile_stays() {
    let current = own_pull_request(&document(1, "OPEN")).unwrap();
    let edit =
        PullRequestEdit { body: Some("why".to_owned()), is_closed: true, ..PullRequestEdit::default() };
    for member in ["description", "title"] {
        let mut changed = document(1, "OPEN");
        changed[member] = json!("A person's");
        let script = Script::new([(200, changed)]);
        let error = run(bitbucket(&script).edit(&current, &edit)).unwrap_err();
        assert!(matches!(error, ForgeError::Refused { status: 409, .. }), "{error}");
    }
}

#[test]
fn a_merge_is_bound_to_the_tip_of_the_branch() {
    let current = own_pull_request(&document(1, "OPEN")).unwrap();
    let now = Merge {
        time: MergeTime::Immediately,
        method: Some(MergeMethod::Squash),
        head_commit: HEAD.parse().unwrap(),
    };
    let tip = |id: &str| json!({"target": {"hash": id}});
    let script = Script::new([(200, document(1, "OPEN")), (200, tip(HEAD)), (200, document(1, "MERGED"))]);
    assert_eq!(run(bitbucket(&script).merge(&current, &now)), Ok(MergeAnswer::Merged));
    assert_eq!(script.requests()[2].1, json!({"merge_strategy": "squash"}));

    let other = format!("{}2222222222222222222222222222", &HEAD[..12]);
    let script = Script::new([(200, document(1, "OPEN")), (200, tip(&other))]);
    assert!(matches!(run(bitbucket(&script).merge(&current, &now)), Ok(MergeAnswer::NotYet { .. })));

    let later = Merge { time: MergeTime::WhenReady, ..now };
    let script = Script::new([]);
    assert!(matches!(run(bitbucket(&script).merge(&current, &later)), Ok(MergeAnswer::Refused { .. })));
}

#[test]
fn answers_to_a_merge_are_told_apart() {
    let merged = ApiResponse::new(200, Vec::new(), json!({"state": "MERGED"}));
    assert_eq!(merge_answer(&merged), Some(MergeAnswer::Merged));
    let answer = |status| merge_answer(&ApiResponse::new(status, Vec::new(), json!({"state": "OPEN"})));
    for status in [200, 202, 400, 409, 555] {
        assert!(matches!(answer(status), Some(MergeAnswer::NotYet { .. })), "{status}");
    }
    assert_eq!(answer(403), None);
}

#[test]
fn a_filter_quotes_branches() {
    let (head, base) = ("a\"b".parse().unwrap(), "main".parse().unwrap());
    let wanted = r#"source.branch.name="a\"b" AND destination.branch.name="main""#;
    assert_eq!(branches_filter(&head, &base), wanted);
}
