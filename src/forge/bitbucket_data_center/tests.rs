//! Requests for pull requests at Bitbucket Data Center, and the reading of responses.

use super::reading::pull_request;
use super::*;
use crate::forge::pull_request::MergeMethod;
use crate::forge::script::{Script, endpoint, run};
use serde_json::json;

pub(in crate::forge) const HEAD: &str = "1111111111111111111111111111111111111111";

pub(in crate::forge) fn document(number: u64, state: &str, version: u64) -> Value {
    let page = format!("https://forge.example/projects/OPS/repos/fleet/pull-requests/{number}");
    json!({
        "id": number, "version": version, "state": state, "title": "Update web", "description": "text",
        "draft": false, "links": {"self": [{"href": page}]},
        "fromRef": {"id": "refs/heads/tagboat/web", "latestCommit": HEAD, "repository": {"id": 4}},
        "toRef": {"id": "refs/heads/main", "repository": {"id": 4}},
        "reviewers": [{"user": {"name": "ann"}}],
    })
}

fn forge(script: &Script) -> BitbucketDataCenter<&Script> {
    let repository = DataCenterRepository { project: "OPS".to_owned(), slug: "fleet".to_owned() };
    BitbucketDataCenter::new(script, endpoint(), repository)
}

fn new() -> NewPullRequest {
    NewPullRequest {
        head: "tagboat/web".parse().unwrap(),
        base: "main".parse().unwrap(),
        title: "Update web".to_owned(),
        body: "text".to_owned(),
        is_draft: true,
        labels: Vec::new(),
        reviewers: vec!["ann".to_owned(), "ghost".to_owned()],
        assignees: Vec::new(),
        completed_body: None,
    }
}

#[test]
fn an_unknown_reviewer_leaves_the_pull_request() {
    let script = Script::new([
        (201, document(2, "OPEN", 0)),
        (200, json!({})),
        (409, json!({"errors": [{"message": "ghost is not a user"}]})),
        (200, document(2, "OPEN", 1)),
    ]);
    let opened = run(forge(&script).open(&new())).unwrap();
    assert_eq!(opened.pull_request.version, Some(1));
    script.assert_essential();
    assert_eq!(
        opened.refused,
        ["reviewer \"ghost\" is refused: ghost is not a user", "this version of Bitbucket has no drafts",]
    );
    let sent = script.requests();
    assert_eq!(sent[0].0, "Post projects/OPS/repos/fleet/pull-requests");
    assert_eq!(sent[0].1["fromRef"]["id"], "refs/heads/tagboat/web");
}

#[test]
fn one_that_exists_already_is_found() {
    let page = json!({"isLastPage": true, "values": [document(2, "OPEN", 0)]});
    let script = Script::new([(409, json!({"errors": [{"message": "only one"}]})), (200, page)]);
    let opened = run(forge(&script).open(&new())).unwrap();
    assert_eq!((opened.pull_request.number, opened.is_new), (2, false));
    let query = "state=ALL&direction=OUTGOING&at=refs/heads/tagboat/web";
    assert!(script.requests()[1].0.contains(query), "{:?}", script.requests());
}

#[test]
fn each_change_names_a_version() {
    let current = own_pull_request(&document(2, "OPEN", 5)).unwrap();
    let script = Script::new([
        (200, document(2, "OPEN", 6)),
        (200, document(2, "OPEN", 7)),
        (200, document(2, "DECLINED", 8)),
    ]);
    let edit =
        PullRequestEdit { body: Some("why".to_owned()), is_closed: true, ..PullRequestEdit::default() };
    let closed = run(forge(&script).edit(&current, &edit)).unwrap().pull_request;
    assert_eq!((closed.state, closed.version), (PullRequestState::Closed, Some(8)));
    script.assert_essential();
    let sent = script.requests();
    let wanted = json!({
        "version": 5, "title": "Update web", "description": "why", "reviewers": [{"user": {"name": "ann"}}],
    });
    assert_eq!(sent[1].1, wanted, "the version that the caller knows");
    assert_eq!(sent[2].0, "Post projects/OPS/repos/fleet/pull-requests/2/decline?version=7");
}

#[test]
fn pull_requests_of_forks_are_left_out() {
    let mut fork = document(1, "OPEN", 0);
    fork["fromRef"]["repository"]["id"] = json!(9);
    assert_eq!(pull_request(&fork), Ok(None));
    fork["version"] = json!(null);
    fork["fromRef"]["repository"]["id"] = json!(4);
    assert!(pull_request(&fork).is_err());
}

#[test]
fn a_merge_needs_a_rule_unless_it_is_immediate() {
    let current = own_pull_request(&document(2, "OPEN", 5)).unwrap();
    let later = Merge {
        time: MergeTime::WhenReady,
        method: Some(MergeMethod::Rebase),
        head_commit: HEAD.parse().unwrap(),
    };
    let free = json!({"requiredApprovers": 0, "requiredSuccessfulBuilds": {"enabled": false, "count": "2"}});
    let none = || (404, json!({}));
    let script = Script::new([
        (200, document(2, "OPEN", 6)),
        none(),
        (200, free.clone()),
        (200, json!({"vetoes": []})),
    ]);
    assert_eq!(run(forge(&script).merge(&current, &later)), Ok(MergeAnswer::NothingRequired));

    let veto = json!({"vetoes": [{"summaryMessage": "a build is missing"}]});
    let script = Script::new([
        (200, document(2, "OPEN", 6)),
        none(),
        (200, free),
        (200, veto),
        (200, document(2, "OPEN", 7)),
    ]);
    assert_eq!(run(forge(&script).merge(&current, &later)), Ok(MergeAnswer::Scheduled));
    let (line, body) = &script.requests()[4];
    assert_eq!(line, "Post projects/OPS/repos/fleet/pull-requests/2/merge?version=6");
    assert_eq!(*body, json!({"autoMerge": true, "strategyId": "rebase-ff-only"}));

    let now = Merge { time: MergeTime::Immediately, method: None, ..later };
    let script = Script::new([(200, document(2, "OPEN", 6)), (200, document(2, "MERGED", 7))]);
    assert_eq!(run(forge(&script).merge(&current, &now)), Ok(MergeAnswer::Merged));
    assert_eq!(script.requests()[1].1, json!({}));
}

/// After a restart, the server was asked once more.
#[test]
fn an_auto_merge_of_the_same_commit_is_not_asked_for_again() {
    let current = own_pull_request(&document(2, "OPEN", 5)).unwrap();
    let (time, head_commit) = (MergeTime::WhenReady, HEAD.parse().unwrap());
    let merge = Merge { time, method: None, head_commit };
    let asked =
        |commit: &str| (200, json!({"createdDate": 1, "fromHash": commit, "toRefId": "refs/heads/main"}));
    let script = Script::new([(200, document(2, "OPEN", 6)), asked(HEAD)]);
    assert_eq!(run(forge(&script).merge(&current, &merge)), Ok(MergeAnswer::Scheduled));
    assert_eq!(script.requests()[1].0, "Get projects/OPS/repos/fleet/pull-requests/2/auto-merge");
    // It was for another commit, or the server had nothing to say of the commit.
    for other in [asked(&"2".repeat(40)), (200, json!({}))] {
        let script = Script::new([
            (200, document(2, "OPEN", 6)),
            other,
            (200, json!({"requiredApprovers": 1})),
            (200, document(2, "OPEN", 7)),
        ]);
        assert_eq!(run(forge(&script).merge(&current, &merge)), Ok(MergeAnswer::Scheduled));
        assert_eq!(script.requests()[3].0, "Post projects/OPS/repos/fleet/pull-requests/2/merge?version=6");
    }
    // A failure is none of these.
    let script = Script::new([(200, document(2, "OPEN", 6)), (401, json!({}))]);
    assert!(run(forge(&script).merge(&current, &merge)).is_err());
}

#[test]
fn rules_are_read_in_both_forms() {
    for settings in [
        json!({"requiredApprovers": 1}),
        json!({"requiredApprovers": {"enabled": true, "count": "2"}}),
        json!({"requiredSuccessfulBuilds": {"enable": true, "count": 1}}),
        json!({"requiredAllApprovers": true}),
    ] {
        assert!(requires_anything(&settings), "{settings}");
    }
    for settings in [
        json!({}),
        json!({"requiredApprovers": 0, "requiredAllApprovers": false}),
        json!({"requiredApprovers": {"enable": false, "count": "2"}}),
    ] {
        assert!(!requires_anything(&settings), "{settings}");
    }
}

/// No auto-merge was ever cancelled.
#[test]
fn an_auto_merge_is_cancelled_and_none_being_there_is_fine() {
    let current = own_pull_request(&document(2, "OPEN", 5)).unwrap();
    for (status, is_done) in [(200, true), (204, true), (404, true), (401, false), (409, false)] {
        let script = Script::new([(status, json!(null))]);
        assert_eq!(run(forge(&script).cancel_merge(&current)).is_ok(), is_done, "{status}");
        let path = "Delete projects/OPS/repos/fleet/pull-requests/2/auto-merge";
        assert_eq!(script.requests(), [(path.to_owned(), json!(null))]);
    }
}
