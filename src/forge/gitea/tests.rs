//! Requests for pull requests at Gitea and Forgejo, and the reading of responses.

use super::reading::bare_title;
use super::requests::title;
use super::*;
use crate::forge::exchange::ApiResponse;
use crate::forge::script::{Script, endpoint, run};

const HEAD: &str = "1111111111111111111111111111111111111111";

fn document(number: u64, head: &str, state: &str) -> Value {
    json!({
        "number": number, "html_url": format!("https://forge.example/team/fleet/pulls/{number}"),
        "state": state, "merged": false, "draft": false, "title": "Update web", "body": "text",
        "labels": [{"id": 7, "name": "images"}], "content_version": 3,
        "head": {"label": head, "ref": head, "sha": HEAD, "repo_id": 1},
        "base": {"label": "main", "ref": "main", "repo_id": 1},
    })
}

fn gitea(script: &Script) -> Gitea<&Script> {
    let repository = GiteaRepository { owner: "team".to_owned(), name: "fleet".to_owned() };
    Gitea::new(script, endpoint(), repository)
}

fn new() -> NewPullRequest {
    NewPullRequest {
        head: "tagboat/web".parse().unwrap(),
        base: "main".parse().unwrap(),
        title: "Update web".to_owned(),
        body: "text".to_owned(),
        is_draft: false,
        labels: Vec::new(),
        reviewers: Vec::new(),
        assignees: Vec::new(),
        completed_body: None,
    }
}

fn when_ready() -> Merge {
    Merge {
        time: MergeTime::WhenReady,
        method: Some(MergeMethod::Squash),
        head_commit: HEAD.parse().unwrap(),
    }
}

/// A commit that a person made after the merge counted as merged.
///
/// Forgejo tells the tip that the branch has now.
#[test]
fn the_head_of_a_merged_pull_request_is_known_from_lists_with_versions_only() {
    let mut merged = document(1, "tagboat/web", "closed");
    merged["merged"] = json!(true);
    let listed = |entry: &Value| pull_requests(&json!([entry])).unwrap()[0].head_commit;
    let head = HEAD.parse().ok();
    assert_eq!((listed(&merged), own_pull_request(&merged).unwrap().head_commit), (head, None));
    merged.as_object_mut().unwrap().remove("content_version");
    assert_eq!(listed(&merged), None);
    // One that was closed is compared with the tip only to leave the branch alone.
    merged["merged"] = json!(false);
    assert_eq!(listed(&merged), head);
}

/// A pull request that was reopened without its branch counted as refused for ever.
#[test]
fn the_branch_of_a_pull_request_is_known_to_be_deleted() {
    for (head, lacks_branch) in
        [("tagboat/web", false), ("refs/pull/1/head", true), ("refs/pull/2/head", false)]
    {
        let mut entry = document(1, "tagboat/web", "open");
        entry["head"]["ref"] = json!(head);
        let read = own_pull_request(&entry).unwrap();
        assert_eq!((read.head.as_str(), read.lacks_branch), ("tagboat/web", lacks_branch), "{head}");
    }
}

#[test]
fn heads_elsewhere_are_left_out() {
    let changed = |pointer: &str, value: Value| {
        let mut entry = document(1, "tagboat/web", "open");
        *entry.pointer_mut(pointer).unwrap() = value;
        pull_request(&entry)
    };
    assert!(changed("/number", json!(1)).unwrap().is_some());
    for (pointer, value) in [
        ("/head/repo_id", json!(2)),
        ("/head/repo_id", json!(-1)),
        ("/head/label", json!("")),
        ("/head/label", json!("a..b")),
    ] {
        assert_eq!(changed(pointer, value.clone()), Ok(None), "{pointer} {value}");
    }
    for (pointer, value) in [
        ("/number", json!(null)),
        ("/number", json!(-1)),
        ("/base/repo_id", json!(null)),
        ("/state", json!("odd")),
        ("/html_url", json!("javascript:alert(1)")),
    ] {
        assert!(changed(pointer, value.clone()).is_err(), "{pointer} {value}");
    }
}

#[test]
fn a_draft_is_a_title_with_a_prefix() {
    for (title, draft, wanted) in [
        ("WIP: Update", Some(json!(true)), ("Update", true)),
        ("[WIP] Update", None, ("Update", true)),
        ("wip:Update", None, ("Update", true)),
        ("Update", Some(json!(true)), ("Update", true)),
        ("Update", None, ("Update", false)),
        ("WIP: Update", Some(json!(false)), ("WIP: Update", false)),
    ] {
        let (bare, is_draft) = bare_title(title, draft.as_ref());
        assert_eq!((bare.as_str(), is_draft), wanted, "{title} {draft:?}");
    }
    assert_eq!(title("Update", true), "WIP: Update");
}

#[test]
fn an_edit_keeps_the_draft_and_names_the_version() {
    let mut current = own_pull_request(&document(1, "tagboat/web", "open")).unwrap();
    let edit = PullRequestEdit {
        title: Some("New".to_owned()),
        body: Some("text".to_owned()),
        is_closed: true,
        ..PullRequestEdit::default()
    };
    let wanted = json!({"title": "New", "body": "text", "content_version": 3, "state": "closed"});
    assert_eq!(edit_body(&current, &edit), Some(wanted));
    (current.is_draft, current.version) = (true, None);
    let wanted = json!({"title": "WIP: New", "body": "text", "state": "closed"});
    assert_eq!(edit_body(&current, &edit), Some(wanted));
    assert_eq!(edit_body(&current, &PullRequestEdit::default()), None);
}

#[test]
fn text_that_a_person_wrote_meanwhile_stays() {
    let current = own_pull_request(&document(1, "tagboat/web", "open")).unwrap();
    let edit = PullRequestEdit { title: Some("New".to_owned()), ..PullRequestEdit::default() };
    for member in ["body", "title"] {
        let mut changed = document(1, "tagboat/web", "open");
        changed[member] = json!("A person's");
        let script = Script::new([(200, changed)]);
        let error = run(gitea(&script).edit(&current, &edit)).unwrap_err();
        assert!(matches!(error, ForgeError::Refused { status: 409, .. }), "{error}");
    }
}

/// Forgejo has no versions of a text, and the completed body overwrote it.
#[test]
fn text_that_a_person_wrote_during_the_opening_stays_without_versions() {
    let without_version = |body: &str| {
        let mut document = document(1, "tagboat/web", "open");
        document["body"] = json!(body);
        document.as_object_mut().unwrap().remove("content_version");
        document
    };
    let asked = NewPullRequest { completed_body: Some("done".to_owned()), ..new() };
    let script = Script::new([(201, without_version("text")), (200, without_version("Wait."))]);
    assert!(run(gitea(&script).open(&asked)).unwrap().refused.is_empty());
    assert_eq!(script.requests().len(), 2);
    let same = || (200, without_version("text"));
    let script = Script::new([(201, without_version("text")), same(), same()]);
    assert_eq!(run(gitea(&script).open(&asked)).unwrap().pull_request.body, "done");
    assert_eq!(script.requests()[2].1, json!({"body": "done"}));
    script.assert_essential();
}

#[test]
fn one_that_exists_already_is_found() {
    let script = Script::new([
        (409, json!({"message": "pull request already exists for these targets"})),
        (200, json!([document(4, "other", "open"), document(2, "tagboat/web", "open")])),
        (200, json!([])),
    ]);
    let opened = run(gitea(&script).open(&new())).unwrap();
    assert_eq!((opened.pull_request.number, opened.is_new), (2, false));

    let script = Script::new([(422, json!({"message": "no such branch"})), (200, json!([]))]);
    let error = run(gitea(&script).open(&new())).unwrap_err();
    assert_eq!(error.to_string(), "forge.example refuses to open a pull request: no such branch");
}

#[test]
fn missing_labels_are_created() {
    let label = |name: &str| json!({"id": 1, "name": name});
    let script = Script::new([
        (201, document(1, "tagboat/web", "open")),
        (200, json!([label("images")])),
        (201, label("fleet")),
        (200, json!([label("images"), label("fleet")])),
    ]);
    let new = NewPullRequest { labels: vec!["images".to_owned(), "fleet".to_owned()], ..new() };
    let opened = run(gitea(&script).open(&new)).unwrap();
    assert_eq!(opened.pull_request.labels, ["images", "fleet"]);
    script.assert_essential();
    let sent = script.requests();
    assert_eq!(sent[1].1, json!({"labels": ["images", "fleet"]}));
    assert_eq!(
        sent[2],
        ("Post repos/team/fleet/labels".to_owned(), json!({"name": "fleet", "color": LABEL_COLOR}))
    );
    assert_eq!(sent[3].1, json!({"labels": ["fleet"]}));
}

/// After a kill, the text said so, and no later run added an assignee.
#[test]
fn the_text_that_says_that_all_parts_are_there_comes_last() {
    let open = || document(1, "tagboat/web", "open");
    let assigned = json!({"assignees": ["eve", "ann"]});
    let mut before = open();
    before["assignees"] = json!([{"login": "eve"}]);
    let new = NewPullRequest {
        labels: vec!["images".to_owned()],
        reviewers: vec!["bob".to_owned()],
        assignees: vec!["ann".to_owned()],
        completed_body: Some("done".to_owned()),
        ..new()
    };
    let label = (200, json!([{"id": 1, "name": "images"}]));
    let answers = |status, last: Vec<(u16, Value)>| {
        let first = [(201, open()), label.clone(), (201, json!([])), (200, before.clone()), (status, open())];
        Script::new(first.into_iter().chain(last))
    };
    let script = answers(201, vec![(201, open())]);
    let opened = run(gitea(&script).open(&new)).unwrap();
    assert_eq!((opened.pull_request.body.as_str(), opened.refused), ("done", vec![]));
    script.assert_essential();
    let sent = script.requests();
    let edit = |body| ("Patch repos/team/fleet/pulls/1".to_owned(), body);
    let text = json!({"body": "done", "content_version": 3});
    assert_eq!(sent[sent.len() - 2..], [edit(assigned), edit(text)]);
    // A failure that may pass leaves the text as it is.
    let failed = || (500, json!(null));
    let script = answers(500, vec![failed(), failed()]);
    let opened = run(gitea(&script).open(&new)).unwrap();
    assert_eq!((opened.pull_request.body.as_str(), opened.refused.len()), ("text", 1));
    // A server that works without the user fails because of the user, whatever it says.
    let script = answers(500, vec![failed(), (201, open()), (201, open())]);
    let opened = run(gitea(&script).open(&new)).unwrap();
    let refused =
        "assignee \"ann\" is refused: the server cannot assign it, as one without access to the repository";
    assert_eq!((opened.pull_request.body.as_str(), opened.refused), ("done", vec![refused.to_owned()]));
}

#[test]
fn find_searches_closed_ones_too() {
    let script = Script::new([
        (200, document(1, "tagboat/web", "closed")),
        (200, json!([document(9, "tagboat/web", "open"), document(8, "other", "open")])),
        (200, json!([document(1, "tagboat/web", "closed")])),
        (200, json!([])),
    ]);
    let (head, base) = ("tagboat/web".parse().unwrap(), "main".parse().unwrap());
    let found = run(gitea(&script).find(&head, &base)).unwrap();
    assert_eq!(found.iter().map(|one| one.number).collect::<Vec<_>>(), [9, 1]);
    script.assert_essential();
    assert_eq!(script.requests()[0].0, "Get repos/team/fleet/pulls/main/tagboat%2Fweb");
    let script = Script::new([(404, json!({}))]);
    assert_eq!(run(gitea(&script).find(&head, &base)), Ok(Vec::new()));
}

#[test]
fn closed_ones_of_many_heads_are_listed_once() {
    let script = Script::new([
        (200, document(1, "a", "closed")),
        (200, document(2, "b", "closed")),
        (404, json!({})),
        (200, json!([document(4, "b", "closed"), document(3, "c", "open"), document(1, "a", "closed")])),
        (200, json!([document(2, "b", "closed")])),
        (200, json!([])),
    ]);
    let heads = ["a", "b", "new"].map(|name| name.parse().unwrap()).into();
    let found = run(gitea(&script).find_many(&heads, &"main".parse().unwrap())).unwrap().unwrap();
    let numbers = |of: &Vec<PullRequest>| of.iter().map(|one| one.number).collect::<Vec<_>>();
    let found: Vec<_> = found.iter().map(|(head, of)| (head.as_str(), numbers(of))).collect();
    assert_eq!(found, [("a", vec![1]), ("b", vec![4, 2]), ("new", vec![])]);

    let script = Script::new([(404, json!({})), (404, json!({})), (404, json!({}))]);
    assert!(run(gitea(&script).find_many(&heads, &"main".parse().unwrap())).is_ok());
}

#[test]
fn a_page_loop_is_an_error() {
    let page = json!([document(2, "a", "open")]);
    let script = Script::new([(200, page.clone()), (200, page)]);
    let error = run(gitea(&script).open_pull_requests(&mut Listing::all())).unwrap_err();
    assert!(error.to_string().contains("repeats"), "{error}");
}

#[test]
fn closing_goes_on_when_little_is_left_of_a_limit() {
    let current = own_pull_request(&document(1, "tagboat/web", "open")).unwrap();
    let removed_labels = vec!["images".to_owned()];
    let edit = PullRequestEdit { removed_labels, is_closed: true, ..PullRequestEdit::default() };
    let open = || (200, document(1, "tagboat/web", "open"));
    let script =
        Script::new([open(), open(), (204, json!(null)), (201, document(1, "tagboat/web", "closed"))]);
    assert_eq!(
        run(gitea(&script).edit(&current, &edit)).unwrap().pull_request.state,
        PullRequestState::Closed
    );
    script.assert_essential();
}

#[test]
fn a_merge_needs_a_rule_unless_it_is_immediate() {
    let current = own_pull_request(&document(1, "tagboat/web", "open")).unwrap();
    for rules in [
        json!({"protected": false, "enable_status_check": true}),
        json!({"protected": true, "enable_status_check": false, "required_approvals": 0}),
        json!({"protected": true}),
    ] {
        let script = Script::new([(200, document(1, "tagboat/web", "open")), (200, rules)]);
        let answer = run(gitea(&script).merge(&current, &when_ready()));
        assert_eq!(answer, Ok(MergeAnswer::NothingRequired));
    }
    let rules = json!({"protected": true, "enable_status_check": true});
    let script = Script::new([(200, document(1, "tagboat/web", "open")), (200, rules), (201, json!(null))]);
    assert_eq!(run(gitea(&script).merge(&current, &when_ready())), Ok(MergeAnswer::Scheduled));
    let body = json!({"do": "squash", "head_commit_id": HEAD, "merge_when_checks_succeed": true});
    assert_eq!(script.requests()[2], ("Post repos/team/fleet/pulls/1/merge".to_owned(), body));

    let now = Merge { time: MergeTime::Immediately, method: None, ..when_ready() };
    let script = Script::new([
        (200, document(1, "tagboat/web", "open")),
        (200, json!({"default_merge_style": "rebase-merge"})),
        (200, json!(null)),
    ]);
    assert_eq!(run(gitea(&script).merge(&current, &now)), Ok(MergeAnswer::Merged));
    assert_eq!(script.requests()[2].1, json!({"do": "rebase-merge", "head_commit_id": HEAD}));
}

/// The server took the schedule, and never merged.
#[test]
fn a_merge_method_that_the_repository_forbids_is_not_scheduled() {
    let current = own_pull_request(&document(1, "tagboat/web", "open")).unwrap();
    let rules = || (200, json!({"protected": true, "required_approvals": 1}));
    let members = ["merge_commits", "rebase", "rebase_explicit", "squash_merge", "fast_forward_only_merge"];
    for (style, forbidden) in [
        ("merge", "merge_commits"),
        ("rebase", "rebase"),
        ("rebase-merge", "rebase_explicit"),
        ("squash", "squash_merge"),
        ("fast-forward-only", "fast_forward_only_merge"),
    ] {
        for is_permitted in [true, false] {
            let mut found = document(1, "tagboat/web", "open");
            for member in members {
                let is_allowed = is_permitted || member != forbidden;
                found["base"]["repo"][format!("allow_{member}")] = json!(is_allowed);
            }
            let merge = Merge { method: None, ..when_ready() };
            let style_answer = (200, json!({"default_merge_style": style}));
            let script = Script::new([(200, found), rules(), style_answer, (201, json!(null))]);
            let answer = run(gitea(&script).merge(&current, &merge)).unwrap();
            let reason = format!("the repository does not permit the merge method {style:?}");
            let expected =
                if is_permitted { MergeAnswer::Scheduled } else { MergeAnswer::Refused { reason } };
            assert_eq!(answer, expected, "{style}");
        }
    }
}

#[test]
fn answers_to_a_merge_are_told_apart() {
    let answer = |status, text: &str| {
        let body = json!({ "message": text });
        merge_answer(&ApiResponse::new(status, Vec::new(), body))
    };
    let not_yet = |text: &str| Some(MergeAnswer::NotYet { reason: text.to_owned() });
    let unknown = "the server still checks it, or it has a conflict: Please try again later";
    assert_eq!(answer(405, "Please try again later"), not_yet(unknown));
    assert_eq!(answer(409, "head out of date"), not_yet("head out of date"));
    assert_eq!(answer(409, "x is already scheduled to auto merge"), Some(MergeAnswer::Scheduled));
    assert_eq!(answer(405, "The PR is already merged"), Some(MergeAnswer::Merged));
    // Nothing said why it was not merged.
    let blocked = |text: &str| Some(MergeAnswer::Blocked { reason: text.to_owned() });
    for text in
        ["Does not have enough approvals", "Not all required status checks successful", "x has conflicts"]
    {
        assert_eq!(answer(405, text), blocked(text));
    }
    assert!(matches!(answer(405, "User not allowed to merge PR"), Some(MergeAnswer::Refused { .. })));
    assert_eq!(answer(403, "no"), None);
    assert_eq!(answer(500, "no"), None);
}

/// No auto-merge was ever cancelled.
#[test]
fn an_auto_merge_is_cancelled_unless_a_person_has_asked_for_it() {
    let current = own_pull_request(&document(1, "tagboat/web", "open")).unwrap();
    for (status, text, is_done) in [
        (204, "", true),
        (404, "there is none", true),
        (403, "user has no permission to cancel the scheduled auto merge", true),
        (403, "token does not have at least one of required scope(s)", false),
        (423, "the repository is archived", false),
        (500, "", false),
    ] {
        let script = Script::new([(status, json!({ "message": text }))]);
        assert_eq!(run(gitea(&script).cancel_merge(&current)).is_ok(), is_done, "{status} {text}");
        assert_eq!(script.requests(), [("Delete repos/team/fleet/pulls/1/merge".to_owned(), json!(null))]);
    }
}
