//! Requests for pull requests at GitLab, and the reading of responses.

use super::reading::{bare_title, merge_request};
use super::*;
use crate::forge::PullRequestState;
use crate::forge::exchange::ApiResponse;
use crate::forge::pull_request::MergeMethod;
use crate::forge::script::{Script, endpoint, run};
use serde_json::json;

pub(in crate::forge) const HEAD: &str = "1111111111111111111111111111111111111111";

pub(in crate::forge) fn document(number: u64, state: &str) -> Value {
    json!({
        "iid": number, "web_url": format!("https://forge.example/a/b/-/merge_requests/{number}"),
        "state": state, "draft": false, "title": "Update web", "description": "text",
        "source_branch": "tagboat/web", "target_branch": "main", "sha": HEAD, "labels": ["images"],
        "source_project_id": 5, "target_project_id": 5, "merge_when_pipeline_succeeds": false,
    })
}

fn gitlab(script: &Script) -> Gitlab<&Script> {
    Gitlab::new(script, endpoint(), GitlabProject { path: "a/b/fleet".to_owned() })
}

fn new() -> NewPullRequest {
    NewPullRequest {
        head: "tagboat/web".parse().unwrap(),
        base: "main".parse().unwrap(),
        title: "Update web".to_owned(),
        body: "text".to_owned(),
        is_draft: true,
        labels: vec!["images".to_owned(), "fleet".to_owned()],
        reviewers: vec!["ann".to_owned(), "team/ops".to_owned(), "ghost".to_owned()],
        assignees: Vec::new(),
        completed_body: None,
    }
}

fn merge(time: MergeTime, method: Option<MergeMethod>) -> Merge {
    Merge { time, method, head_commit: HEAD.parse().unwrap() }
}

#[test]
fn a_merge_request_is_opened_with_ids() {
    let mut opened = document(7, "opened");
    opened["reviewers"] = json!([{"id": 3}]);
    let script = Script::new([(200, json!([{"id": 3}])), (200, json!([])), (201, opened)]);
    let opened = run(gitlab(&script).open(&new())).unwrap();
    assert_eq!((opened.pull_request.number, opened.is_new, opened.refused.len()), (7, true, 2));
    script.assert_essential();
    let sent = script.requests();
    assert_eq!(sent[0].0, "Get users?username=ann");
    let wanted = json!({
        "source_branch": "tagboat/web", "target_branch": "main", "title": "Draft: Update web",
        "description": "text", "labels": "images,fleet", "reviewer_ids": [3],
    });
    assert_eq!(sent[2], ("Post projects/a%2Fb%2Ffleet/merge_requests".to_owned(), wanted));
}

#[test]
fn one_that_exists_already_is_found() {
    let new = NewPullRequest { reviewers: Vec::new(), ..new() };
    let conflict = json!({"message": ["Another open merge request already exists: !7"]});
    let script = Script::new([
        (409, conflict),
        (200, json!([document(9, "closed"), document(7, "opened")])),
        (200, json!([])),
    ]);
    let opened = run(gitlab(&script).open(&new)).unwrap();
    assert_eq!((opened.pull_request.number, opened.is_new), (7, false));
    script.assert_essential();
}

#[test]
fn merge_requests_of_forks_are_left_out() {
    let mut fork = document(1, "opened");
    fork["source_project_id"] = json!(6);
    assert_eq!(merge_request(&fork), Ok(None));
    fork["source_project_id"] = json!(null);
    assert_eq!(merge_request(&fork), Ok(None), "a fork that was deleted");
    for (name, value) in [("iid", json!(null)), ("state", json!("x")), ("web_url", json!("x"))] {
        let mut odd = document(1, "opened");
        odd[name] = value;
        assert!(merge_request(&odd).is_err(), "{name}");
    }
}

#[test]
fn a_draft_loses_its_prefix() {
    for title in ["Draft: Update", "[Draft] Update", "(draft) Update", "WIP: Update", "Update"] {
        assert_eq!(bare_title(title, true), "Update");
    }
    assert_eq!(bare_title("Draft: Update", false), "Draft: Update");
}

#[test]
fn trains_are_asked_for_only_with_auto_merge() {
    let mut scheduled = document(2, "opened");
    scheduled["merge_when_pipeline_succeeds"] = json!(true);
    let script = Script::new([
        (200, json!([scheduled, document(1, "opened")])),
        (200, json!([])),
        (200, json!([{"merge_request": {"iid": 2}}])),
    ]);
    let found = run(gitlab(&script).open_pull_requests(&mut Listing::all())).unwrap();
    assert_eq!(found.iter().map(|one| one.is_in_merge_queue).collect::<Vec<_>>(), [true, false]);
    let script = Script::new([(200, json!([document(1, "opened")])), (200, json!([]))]);
    assert!(!run(gitlab(&script).open_pull_requests(&mut Listing::all())).unwrap()[0].is_in_merge_queue);
}

#[test]
fn an_edit_has_only_the_members_that_change() {
    let current = PullRequest { is_draft: true, ..own_merge_request(&document(1, "opened")).unwrap() };
    let edit = PullRequestEdit {
        title: Some("New".to_owned()),
        body: Some("text".to_owned()),
        added_labels: vec!["a".to_owned(), "b".to_owned()],
        removed_labels: vec!["c".to_owned()],
        added_reviewers: Vec::new(),
        added_assignees: Vec::new(),
        is_closed: true,
        is_text_recent: false,
        judged: None,
    };
    let wanted = json!({
        "title": "Draft: New", "description": "text", "add_labels": "a,b", "remove_labels": "c",
        "state_event": "close",
    });
    assert_eq!(Value::Object(edit_body(&current, &edit)), wanted);
    assert!(edit_body(&current, &PullRequestEdit::default()).is_empty());
}

/// They were asked only at the opening.
#[test]
fn users_are_added_beside_those_of_others() {
    let current = own_merge_request(&document(1, "opened")).unwrap();
    let mut now = document(1, "opened");
    (now["reviewers"], now["assignees"]) = (json!([{"id": 5}]), json!([{"id": 3}]));
    let names = |name: &str| vec![name.to_owned()];
    let edit = PullRequestEdit {
        added_reviewers: names("ann"),
        added_assignees: names("ann"),
        ..PullRequestEdit::default()
    };
    let user = || (200, json!([{"id": 3}]));
    let script = Script::new([(200, now.clone()), user(), user(), (200, now.clone())]);
    assert!(run(gitlab(&script).edit(&current, &edit)).unwrap().refused.is_empty());
    let sent = script.requests();
    let expected =
        ("Put projects/a%2Fb%2Ffleet/merge_requests/1".to_owned(), json!({"reviewer_ids": [5, 3]}));
    assert_eq!(sent.last(), Some(&expected));
    // One that is unknown stays away.
    let unknown = || (200, json!([]));
    let script = Script::new([(200, now.clone()), unknown(), unknown(), (200, now)]);
    let refused = run(gitlab(&script).edit(&current, &edit)).unwrap().refused;
    assert_eq!(refused.len(), 2, "{refused:?}");
}

#[test]
fn text_that_a_person_wrote_meanwhile_stays() {
    let current = own_merge_request(&document(1, "opened")).unwrap();
    for (member, text) in [("description", "A person's"), ("title", "A person's")] {
        let mut changed = document(1, "opened");
        changed[member] = json!(text);
        let edit = PullRequestEdit { is_closed: true, ..PullRequestEdit::default() };
        let script = Script::new([(200, changed.clone())]);
        let error = run(gitlab(&script).edit(&current, &edit)).unwrap_err();
        assert!(matches!(error, ForgeError::Refused { status: 409, .. }), "{error}");
        // Labels do not depend on the text.
        let edit = PullRequestEdit { added_labels: vec!["a".to_owned()], ..PullRequestEdit::default() };
        let script = Script::new([(200, changed)]);
        run(gitlab(&script).edit(&current, &edit)).unwrap();
    }
}

#[test]
fn closing_goes_on_when_little_is_left_of_a_limit() {
    let current = own_merge_request(&document(1, "opened")).unwrap();
    let edit = PullRequestEdit { is_closed: true, ..PullRequestEdit::default() };
    let script = Script::new([(200, document(1, "opened")), (200, document(1, "closed"))]);
    assert_eq!(
        run(gitlab(&script).edit(&current, &edit)).unwrap().pull_request.state,
        PullRequestState::Closed
    );
    script.assert_essential();
}

#[test]
fn a_merge_needs_a_rule_unless_it_is_immediate() {
    let current = own_merge_request(&document(1, "opened")).unwrap();
    let later = merge(MergeTime::WhenReady, None);
    // A train alone requires nothing.
    for project in [json!({"merge_method": "merge"}), json!({"merge_trains_enabled": true})] {
        let answers = [(200, document(1, "opened")), (200, project), (200, json!({"approvals_required": 0}))];
        let script = Script::new(answers);
        assert_eq!(run(gitlab(&script).merge(&current, &later)), Ok(MergeAnswer::NothingRequired));
    }

    let mut scheduled = document(1, "opened");
    scheduled["merge_when_pipeline_succeeds"] = json!(true);
    let script = Script::new([
        (200, document(1, "opened")),
        (200, json!({"merge_method": "merge"})),
        (200, json!({"approvals_required": 1})),
        (200, scheduled),
    ]);
    assert_eq!(run(gitlab(&script).merge(&current, &later)), Ok(MergeAnswer::Scheduled));
    let wanted = json!({"sha": HEAD, "auto_merge": true, "merge_when_pipeline_succeeds": true});
    assert_eq!(
        script.requests()[3],
        ("Put projects/a%2Fb%2Ffleet/merge_requests/1/merge".to_owned(), wanted)
    );

    let trains = json!({"only_allow_merge_if_pipeline_succeeds": true, "merge_trains_enabled": true});
    let script = Script::new([(200, document(1, "opened")), (200, trains), (202, json!([]))]);
    let squash = merge(MergeTime::WhenReady, Some(MergeMethod::Squash));
    assert_eq!(run(gitlab(&script).merge(&current, &squash)), Ok(MergeAnswer::Scheduled));
    let sent = &script.requests()[2];
    assert_eq!(sent.0, "Post projects/a%2Fb%2Ffleet/merge_trains/merge_requests/1");
    assert_eq!(sent.1["squash"], json!(true));

    let script = Script::new([
        (200, document(1, "opened")),
        (200, json!({"merge_method": "ff"})),
        (200, document(1, "merged")),
    ]);
    let now = merge(MergeTime::Immediately, Some(MergeMethod::Rebase));
    assert_eq!(run(gitlab(&script).merge(&current, &now)), Ok(MergeAnswer::Merged));
    assert_eq!(script.requests()[2].1, json!({"sha": HEAD, "squash": false}));
}

#[test]
fn the_project_decides_on_methods() {
    let refused = |project: Value, method| merge_settings(&project).refusal(Some(method)).is_some();
    assert!(refused(json!({"merge_method": "ff"}), MergeMethod::Commit));
    assert!(refused(json!({"merge_method": "merge"}), MergeMethod::Rebase));
    assert!(refused(json!({"squash_option": "never"}), MergeMethod::Squash));
    for method in [MergeMethod::Commit, MergeMethod::Squash, MergeMethod::Rebase] {
        assert!(!refused(json!({"merge_method": "rebase_merge"}), method));
    }
}

#[test]
fn answers_to_a_merge_are_told_apart() {
    let answer = |status, body| merge_answer(&ApiResponse::new(status, Vec::new(), body), false);
    let is_later = |answer| matches!(answer, Some(MergeAnswer::NotYet { .. }));
    for status in [405, 406, 409, 422] {
        assert!(is_later(answer(status, json!({"message": "x"}))), "{status}");
    }
    assert!(is_later(answer(200, document(1, "opened"))));
    assert!(matches!(answer(401, json!({})), Some(MergeAnswer::Refused { .. })));
    assert_eq!(answer(403, json!({})), None);
    assert_eq!(answer(502, json!({})), None);
}

/// No auto-merge was ever cancelled.
#[test]
fn an_auto_merge_is_cancelled_and_none_being_there_is_fine() {
    let current = own_merge_request(&document(1, "opened")).unwrap();
    for (status, is_done) in [(200, true), (201, true), (406, true), (405, true), (401, false), (404, false)]
    {
        let script = Script::new([(status, document(1, "opened"))]);
        let cancelled = run(gitlab(&script).cancel_merge(&current));
        assert_eq!(cancelled.is_ok(), is_done, "{status}");
        assert!(!cancelled.is_err_and(|error| error.is_of_every_request()), "{status}");
        let path = "Post projects/a%2Fb%2Ffleet/merge_requests/1/cancel_merge_when_pipeline_succeeds";
        assert_eq!(script.requests(), [(path.to_owned(), json!(null))]);
    }
}
