//! Requests for pull requests at Azure DevOps, and the reading of responses.

use super::reading::POLICIES;
use super::*;
use crate::forge::PullRequestState;
use crate::forge::exchange::ApiResponse;
use crate::forge::pull_request::MergeMethod;
use crate::forge::script::{Script, endpoint, run};

const HEAD: &str = "1111111111111111111111111111111111111111";
const ANN: &str = "d6245f20-2af8-44f4-9451-8107cb2767db";

fn repository() -> AzureRepository {
    AzureRepository {
        organization: "acme".to_owned(),
        project: "Web Shop".to_owned(),
        name: "fleet".to_owned(),
    }
}

fn document(number: u64, status: &str) -> Value {
    json!({
        "pullRequestId": number, "status": status, "title": "Update web", "description": "text",
        "sourceRefName": "refs/heads/tagboat/web", "targetRefName": "refs/heads/main",
        "lastMergeSourceCommit": {"commitId": HEAD}, "isDraft": false, "createdBy": {"id": ANN},
        "repository": {"id": "3411ebc1-d5aa-464f-9615-0b527bc66719"},
    })
}

fn azure(script: &Script) -> AzureDevops<&Script> {
    AzureDevops::new(script, endpoint(), repository())
}

fn new() -> NewPullRequest {
    NewPullRequest {
        head: "tagboat/web".parse().unwrap(),
        base: "main".parse().unwrap(),
        title: "Update web".to_owned(),
        body: "text".to_owned(),
        is_draft: true,
        labels: vec!["images".to_owned()],
        reviewers: vec![ANN.to_owned(), "ann@example.com".to_owned()],
        assignees: vec![ANN.to_owned()],
        completed_body: None,
    }
}

#[test]
fn all_forms_of_urls_are_read() {
    let read = |host: &str, path: &str| {
        AzureRepository::of_git_url(host, &path.split('/').collect::<Vec<_>>())
            .map(|found| format!("{} {} {}", found.organization, found.project, found.name))
    };
    for (host, path, wanted) in [
        ("dev.azure.com", "acme/Web Shop/_git/fleet", "acme Web Shop fleet"),
        ("dev.azure.com", "acme/_git/fleet", "acme fleet fleet"),
        ("Acme.visualstudio.com", "shop/_git/fleet", "acme shop fleet"),
        ("acme.visualstudio.com", "DefaultCollection/shop/_git/fleet", "acme shop fleet"),
        ("acme.visualstudio.com", "_git/fleet", "acme fleet fleet"),
        ("acme.visualstudio.com", "DefaultCollection/_git/fleet", "acme fleet fleet"),
        ("ssh.dev.azure.com", "v3/acme/shop/fleet", "acme shop fleet"),
        ("vs-ssh.visualstudio.com", "v3/acme/shop/fleet", "acme shop fleet"),
    ] {
        assert_eq!(read(host, path).as_deref(), Some(wanted), "{host} {path}");
    }
    for (host, path) in [
        ("dev.azure.com", "acme/shop/fleet"),
        ("dev.azure.com", "/shop/_git/fleet"),
        ("dev.azure.com", "acme/shop/_git/fleet/more"),
        ("ssh.dev.azure.com", "v2/acme/shop/fleet"),
        ("azure.example", "acme/shop/_git/fleet"),
    ] {
        assert_eq!(read(host, path), None, "{host} {path}");
    }
}

#[test]
fn a_pull_request_is_opened_with_labels_and_ids() {
    let script = Script::new([(201, document(7, "active")), (200, json!({}))]);
    let opened = run(azure(&script).open(&new())).unwrap();
    assert_eq!(opened.pull_request.url, "https://dev.azure.com/acme/Web%20Shop/_git/fleet/pullrequest/7");
    assert_eq!(opened.pull_request.labels, ["images"]);
    script.assert_essential();
    assert_eq!(opened.refused.len(), 2, "{:?}", opened.refused);
    let sent = script.requests();
    let path = "Web%20Shop/_apis/git/repositories/fleet/pullrequests";
    assert_eq!(sent[0].0, format!("Post {path}?api-version=7.1"));
    assert_eq!(sent[0].1["labels"], json!([{"name": "images"}]));
    assert_eq!(sent[1], (format!("Put {path}/7/reviewers/{ANN}?api-version=7.1"), json!({"vote": 0})));
}

#[test]
fn a_body_that_a_listing_cuts_is_read_whole() {
    let mut cut = document(7, "active");
    cut["description"] = json!("é".repeat(CUT));
    let mut whole = document(7, "active");
    whole["description"] = json!("é".repeat(900));
    let page = json!({"count": 2, "value": [cut, document(6, "active")]});
    let script = Script::new([(200, page), (200, whole)]);
    let found = run(azure(&script).open_pull_requests(&mut Listing::all())).unwrap();
    assert_eq!(found.iter().map(|one| one.body.chars().count()).collect::<Vec<_>>(), [900, 4]);
}

#[test]
fn labels_stay_although_one_pull_request_alone_is_read_without_them() {
    let mut cut = document(7, "active");
    (cut["description"], cut["labels"]) = (json!("é".repeat(CUT)), json!([{"name": "tagboat/rebuild"}]));
    let mut whole = document(7, "active");
    whole["description"] = json!("é".repeat(900));
    let script = Script::new([(200, json!({ "value": [cut] })), (200, whole.clone())]);
    let found = run(azure(&script).open_pull_requests(&mut Listing::all())).unwrap();
    assert_eq!(found[0].labels, ["tagboat/rebuild"]);
    let edit = PullRequestEdit { added_labels: vec!["a".to_owned()], ..PullRequestEdit::default() };
    let script = Script::new([(200, json!({})), (200, whole)]);
    let edited = run(azure(&script).edit(&found[0], &edit)).unwrap().pull_request;
    assert_eq!(edited.labels, ["tagboat/rebuild", "a"]);
}

#[test]
fn a_long_body_of_a_stranger_is_read_once() {
    let long = |number: u64, head: &str, end: &str| {
        let mut document = document(number, "active");
        document["sourceRefName"] = json!(format!("refs/heads/{head}"));
        document["description"] = json!("é".repeat(CUT) + end);
        document
    };
    // One of a head that is wanted, one with a mark, and one of a person.
    let all = [("tagboat/web", ""), ("tagboat/old", "mark"), ("fix", "")];
    let answers = || {
        let whole = (1..).zip(all).map(|(number, (head, end))| long(number, head, end));
        let cut = (1..).zip(all).map(|(number, (head, _))| long(number, head, ""));
        [json!({ "value": cut.collect::<Vec<_>>() })].into_iter().chain(whole).collect::<Vec<_>>()
    };
    let listing =
        || Listing::of(["tagboat/web".parse().unwrap()].into(), |body: &str| body.ends_with("mark"));
    let numbers = |script: &Script, listing: &mut Listing| {
        let found = run(azure(script).open_pull_requests(listing)).unwrap();
        (found.iter().map(|one| one.number).collect::<Vec<_>>(), script.requests().len() - 1)
    };
    let mut first = listing();
    let script = Script::new(answers().into_iter().map(|body| (200, body)));
    assert_eq!(numbers(&script, &mut first), (vec![2, 1], 3));
    let mut second = Listing { strangers: first.left_out, ..listing() };
    let script = Script::new(answers().into_iter().take(3).map(|body| (200, body)));
    assert_eq!(numbers(&script, &mut second), (vec![2, 1], 2));
    assert_eq!(second.left_out, [3].into());
}

#[test]
fn one_that_exists_already_is_found() {
    let page = json!({"value": [document(8, "abandoned"), document(7, "active")]});
    let script = Script::new([(409, json!({"message": "TF401179: already exists"})), (200, page)]);
    let opened = run(azure(&script).open(&new())).unwrap();
    assert_eq!((opened.pull_request.number, opened.is_new), (7, false));
}

#[test]
fn pull_requests_of_forks_are_left_out() {
    let mut fork = document(1, "active");
    fork["forkSource"] = json!({"name": "refs/heads/tagboat/web"});
    assert_eq!(repository().pull_request(&fork), Ok(None));
    let mut odd = document(1, "notSet");
    assert!(repository().pull_request(&odd).is_err());
    odd["sourceRefName"] = json!("refs/heads/a..b");
    assert_eq!(repository().pull_request(&odd), Ok(None));
}

#[test]
fn text_that_a_person_wrote_meanwhile_stays() {
    let current = repository().own_pull_request(&document(1, "active")).unwrap();
    let edit = PullRequestEdit {
        title: Some("New".to_owned()),
        added_labels: vec!["a".to_owned()],
        ..PullRequestEdit::default()
    };
    for member in ["description", "title"] {
        let mut changed = document(1, "active");
        changed[member] = json!("A person's");
        let script = Script::new([(200, changed)]);
        let error = run(azure(&script).edit(&current, &edit)).unwrap_err();
        assert!(matches!(error, ForgeError::Refused { status: 409, .. }), "{error}");
    }
    let script = Script::new([(200, document(1, "active")), (200, json!({})), (200, document(1, "active"))]);
    run(azure(&script).edit(&current, &edit)).unwrap();
    assert_eq!(script.requests()[2].1, json!({"title": "New"}));
}

/// The completed body overwrote it.
#[test]
fn text_that_a_person_wrote_during_the_opening_stays() {
    let asked = NewPullRequest {
        reviewers: vec![ANN.to_owned()],
        assignees: Vec::new(),
        completed_body: Some("complete".to_owned()),
        ..new()
    };
    let begin = || [(201, document(7, "active")), (200, json!({}))];
    let mut changed = document(7, "active");
    changed["description"] = json!("Wait.");
    let script = Script::new(begin().into_iter().chain([(200, changed)]));
    assert_eq!(run(azure(&script).open(&asked)).unwrap().pull_request.body, "Wait.");
    assert_eq!(script.requests().len(), 3);
    let same = [(200, document(7, "active")), (200, document(7, "active"))];
    let script = Script::new(begin().into_iter().chain(same));
    assert_eq!(run(azure(&script).open(&asked)).unwrap().pull_request.body, "complete");
    assert_eq!(script.requests()[3].1, json!({"description": "complete"}));
    script.assert_essential();
}

#[test]
fn a_reviewer_that_could_not_be_added_is_not_forgotten_in_a_later_round() {
    let current = repository().own_pull_request(&document(1, "active")).unwrap();
    let edit = PullRequestEdit {
        body: Some("complete".to_owned()),
        added_reviewers: vec![ANN.to_owned()],
        ..PullRequestEdit::default()
    };
    let found = || (200, document(1, "active"));
    for status in [401, 503] {
        let script = Script::new([found(), (status, json!({}))]);
        let error = run(azure(&script).edit(&current, &edit)).unwrap_err();
        assert!(!error.is_final(), "{error}");
        assert_eq!(script.requests().len(), 2, "the body still says that it is missing");
    }
    // One that is refused for good stays away.
    let script = Script::new([found(), (404, json!({"message": "unknown"})), found()]);
    let edited = run(azure(&script).edit(&current, &edit)).unwrap();
    assert_eq!(edited.refused.len(), 1, "{:?}", edited.refused);
    assert_eq!(script.requests()[2].1, json!({"description": "complete"}));
    // One that is there has perhaps voted.
    let mut reviewed = document(1, "active");
    reviewed["reviewers"] = json!([{"id": ANN.to_uppercase(), "vote": 10}]);
    let script = Script::new([(200, reviewed), found()]);
    run(azure(&script).edit(&current, &edit)).unwrap();
    assert_eq!(script.requests().len(), 2);
}

#[test]
fn closing_goes_on_when_little_is_left_of_a_limit() {
    let current = repository().own_pull_request(&document(1, "active")).unwrap();
    let removed_labels = vec!["a".to_owned()];
    let edit = PullRequestEdit { removed_labels, is_closed: true, ..PullRequestEdit::default() };
    let script =
        Script::new([(200, document(1, "active")), (404, json!({})), (200, document(1, "abandoned"))]);
    assert_eq!(
        run(azure(&script).edit(&current, &edit)).unwrap().pull_request.state,
        PullRequestState::Closed
    );
    script.assert_essential();
}

#[test]
fn a_merge_needs_a_rule_unless_it_is_immediate() {
    let current = repository().own_pull_request(&document(1, "active")).unwrap();
    let later = Merge {
        time: MergeTime::WhenReady,
        method: Some(MergeMethod::Squash),
        head_commit: HEAD.parse().unwrap(),
    };
    let policy = |kind: &str, is_blocking: bool| json!({"isEnabled": true, "isBlocking": is_blocking, "type": {"id": kind}});
    let strategy = "fa4e907d-c16b-4a4c-9dfa-4916e5d171ab";
    let harmless = json!({"value": [policy(strategy, true), policy(POLICIES[2], false)]});
    let script = Script::new([(200, document(1, "active")), (200, harmless)]);
    assert_eq!(run(azure(&script).merge(&current, &later)), Ok(MergeAnswer::NothingRequired));

    let build = json!({"value": [policy(&POLICIES[2].to_uppercase(), true)]});
    let script = Script::new([(200, document(1, "active")), (200, build), (200, document(1, "active"))]);
    assert_eq!(run(azure(&script).merge(&current, &later)), Ok(MergeAnswer::Scheduled));
    let wanted = json!({
        "autoCompleteSetBy": {"id": ANN}, "completionOptions": {"mergeStrategy": "squash"},
    });
    assert_eq!(script.requests()[2].1, wanted);

    let now = Merge { time: MergeTime::Immediately, method: None, ..later };
    let script = Script::new([(200, document(1, "active")), (200, document(1, "completed"))]);
    assert_eq!(run(azure(&script).merge(&current, &now)), Ok(MergeAnswer::Merged));
    let wanted = json!({"status": "completed", "lastMergeSourceCommit": {"commitId": HEAD}});
    assert_eq!(script.requests()[1].1, wanted);
}

#[test]
fn answers_to_a_merge_are_told_apart() {
    let answer = |status, body| merge_answer(&ApiResponse::new(status, Vec::new(), body));
    let conflict = json!({"status": "active", "mergeStatus": "conflicts"});
    assert_eq!(answer(200, conflict), Some(MergeAnswer::NotYet { reason: "conflicts".to_owned() }));
    assert_eq!(answer(200, json!({"mergeStatus": "queued"})), Some(MergeAnswer::Scheduled));
    assert!(matches!(answer(409, json!({"message": "stale"})), Some(MergeAnswer::NotYet { .. })));
    assert_eq!(answer(403, json!({})), None);
}

#[test]
fn ids_have_five_groups() {
    assert!(is_id(ANN));
    for bad in ["", "ann", "d6245f20-2af8-44f4-9451-8107cb2767d", "g6245f20-2af8-44f4-9451-8107cb2767db"] {
        assert!(!is_id(bad), "{bad}");
    }
}

/// No auto-complete was ever cancelled.
#[test]
fn auto_complete_is_cancelled_by_the_id_of_no_user() {
    let current = repository().own_pull_request(&document(1, "active")).unwrap();
    for (status, is_done) in [(200, true), (403, false)] {
        let script = Script::new([(status, document(1, "active"))]);
        assert_eq!(run(azure(&script).cancel_merge(&current)).is_ok(), is_done, "{status}");
        let (line, body) = &script.requests()[0];
        assert!(line.starts_with("Patch ") && line.contains("/pullrequests/1?"), "{line}");
        let nobody = json!({"autoCompleteSetBy": {"id": "00000000-0000-0000-0000-000000000000"}});
        assert_eq!(*body, nobody);
    }
}
