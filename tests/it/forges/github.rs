//! Pull requests on a test server with the API of GitHub.
//! Each described request is compared with its description.

use serde_json::json;
use tagboat::forge::github::{Github, GithubRepository};
use tagboat::forge::{
    Forge, Listing, MergeAnswer, MergeMethod, MergeTime, NewPullRequest, PullRequestEdit, PullRequestState,
};

use super::life::{
    answered, beside_another, merge, new, open_beside_another, open_edit_close,
    schedule_once_a_check_is_required,
};
use crate::github::server::description::Description;
use crate::support::forges::github::respond;
use crate::support::forges::hub::{AUTHORIZATION, Hub, USER, answer};
use crate::support::forges::wire::Wire;
use crate::support::http_front::Front;

fn forge(front: &Front) -> (Github<Wire>, Wire) {
    let repository = GithubRepository { owner: "acme".to_owned(), name: "fleet".to_owned() };
    let [rest, graphql] = ["/", "/graphql"].map(|path| Wire::new(&front.url(path), AUTHORIZATION));
    let (host, owner) = ("127.0.0.1".to_owned(), "Secret apps/forge".to_owned());
    (Github::new((rest.clone(), graphql), repository, host, owner), rest)
}

/// Compares the requests with the description.
/// It lacks one of them, and has a choice of bodies for another.
fn check(wire: &Wire) {
    let description = Description::load("github.json");
    for sent in wire.exchanges() {
        let path = format!("/{}", sent.path.join("/"));
        let is_undescribed = match sent.method.as_str() {
            "post" => path.ends_with("/labels"),
            method => method == "delete",
        };
        if !is_undescribed {
            let body = sent.body.unwrap_or_default();
            description.check_request(&sent.method.to_uppercase(), &path, &body).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_lives() {
    let hub = Hub::new();
    let front = hub.serve(respond);
    hub.branch("tagboat/web");
    let (forge, wire) = forge(&front);
    open_edit_close(&forge, "tagboat/web").await;
    check(&wire);
}

#[tokio::test(flavor = "multi_thread")]
async fn pull_requests_are_merged_by_each_method_at_their_head_only() {
    let hub = Hub::new();
    let front = hub.serve(respond);
    let (forge, wire) = forge(&front);
    let methods = [None, Some(MergeMethod::Commit), Some(MergeMethod::Squash), Some(MergeMethod::Rebase)];
    for (count, method) in methods.into_iter().enumerate() {
        let head = format!("tagboat/merge-{count}");
        let tip = hub.branch(&head);
        let opened = forge.open(&new(&head)).await.unwrap().pull_request;
        let other = merge(MergeTime::Immediately, method, &"1".repeat(40));
        assert!(matches!(forge.merge(&opened, &other).await, Ok(MergeAnswer::NotYet { .. })));
        let now = merge(MergeTime::Immediately, method, &tip);
        assert_eq!(answered(&forge, &opened, &now).await, MergeAnswer::Merged, "{method:?}");
        let found = forge.find(&opened.head, &opened.base).await.unwrap();
        assert_eq!(found[0].state, PullRequestState::Merged);
    }
    check(&wire);
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_reviewers_and_assignees_come_with_the_completed_body() {
    for (assignee, refused) in [(USER, 1), ("ghost", 2)] {
        let hub = Hub::new();
        let front = hub.serve(respond);
        hub.branch("tagboat/web");
        let (forge, wire) = forge(&front);
        let asked = NewPullRequest {
            labels: vec!["images".to_owned()],
            reviewers: vec![USER.to_owned(), "ghost".to_owned()],
            assignees: vec![assignee.to_owned()],
            completed_body: Some("completed".to_owned()),
            ..new("tagboat/web")
        };
        let opened = forge.open(&asked).await.unwrap();
        assert_eq!(opened.refused.len(), refused, "{:?}", opened.refused);
        let pull = hub.pulls().remove(0);
        // The known reviewer is there beside the unknown one.
        assert_eq!(pull.reviewers, [USER]);
        assert_eq!((pull.body.as_str(), pull.labels.as_slice()), ("completed", &["images".to_owned()][..]));
        assert_eq!(pull.assignees.len(), usize::from(assignee == USER));
        let listed = forge.open_pull_requests(&mut Listing::all()).await.unwrap().remove(0);
        let edit = PullRequestEdit {
            added_labels: vec!["new".to_owned()],
            removed_labels: vec!["images".to_owned()],
            ..PullRequestEdit::default()
        };
        assert_eq!(forge.edit(&listed, &edit).await.unwrap().pull_request.labels, ["new"]);
        check(&wire);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn when_ready_waits_for_the_required_check() {
    let hub = Hub::new();
    let front = hub.serve(respond);
    let (forge, _) = forge(&front);
    let opened = schedule_once_a_check_is_required(&forge, &hub).await;
    assert!(forge.open_pull_requests(&mut Listing::all()).await.unwrap()[0].has_auto_merge);
    hub.pass_check();
    let found = forge.find(&opened.head, &opened.base).await.unwrap();
    assert_eq!(found[0].state, PullRequestState::Merged);
}

/// A pull request that waits in the queue was rebuilt.
#[tokio::test(flavor = "multi_thread")]
async fn a_ruleset_tells_of_a_merge_queue_if_graphql_refuses_the_token() {
    for (kind, is_left_alone) in [("merge_queue", true), ("deletion", false)] {
        let hub = Hub::new();
        let front = hub.serve(move |hub, call| {
            let path: Vec<&str> = call.path.iter().map(String::as_str).collect();
            match path.as_slice() {
                ["graphql"] => {
                    answer(403, &json!({"message": "Resource not accessible by personal access token"}))
                }
                [.., "rules", "branches", "main"] => answer(200, &json!([{"type": kind}])),
                _ => respond(hub, call),
            }
        });
        let (forge, wire) = forge(&front);
        let found = forge.merge_queue(&"main".parse().unwrap()).await;
        assert_eq!(found.is_err(), is_left_alone, "{kind}: {found:?}");
        check(&wire);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_with_a_new_commit_of_a_person_is_not_closed() {
    let hub = Hub::new();
    let front = hub.serve(respond);
    hub.branch("tagboat/web");
    let (forge, _) = forge(&front);
    let opened = forge.open(&new("tagboat/web")).await.unwrap().pull_request;
    hub.branch("other");
    let other = hub.repository.id("refs/heads/other").unwrap();
    hub.repository.move_branch("tagboat/web", &other);
    let close = PullRequestEdit { is_closed: true, ..PullRequestEdit::default() };
    assert!(forge.edit(&opened, &close).await.is_err());
    assert_eq!(forge.find(&opened.head, &opened.base).await.unwrap()[0].state, PullRequestState::Open);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recent_text_is_changed_by_one_call_and_another_is_read_before() {
    let hub = Hub::new();
    let front = hub.serve(respond);
    hub.branch("tagboat/web");
    let (forge, wire) = forge(&front);
    let mut known = forge.open(&new("tagboat/web")).await.unwrap().pull_request;
    for (is_text_recent, methods) in [(true, &["patch"][..]), (false, &["get", "patch"])] {
        let before = wire.exchanges().len();
        let title = Some(format!("New, {is_text_recent}"));
        let edit = PullRequestEdit { title, is_text_recent, ..PullRequestEdit::default() };
        known = forge.edit(&known, &edit).await.unwrap().pull_request;
        let sent = wire.exchanges().split_off(before);
        assert_eq!(sent.iter().map(|one| one.method.as_str()).collect::<Vec<_>>(), methods);
    }
    hub.change(1, |pull| pull.title = "Wait".to_owned());
    let edit = PullRequestEdit { body: Some("New".to_owned()), ..PullRequestEdit::default() };
    assert!(forge.edit(&known, &edit).await.is_err());
    assert_eq!(hub.pulls()[0].title, "Wait");
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_reviewers_and_assignees_that_others_set_meanwhile_stay() {
    let hub = Hub::new();
    let front = hub.serve(beside_another(respond));
    open_beside_another(&forge(&front).0, &hub, USER).await;
}
