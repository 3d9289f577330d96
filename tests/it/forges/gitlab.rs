//! Merge requests on a test server with the API of GitLab.

use serde_json::json;
use tagboat::forge::{
    Forge, Gitlab, GitlabProject, Listing, MergeAnswer, MergeMethod, MergeTime, NewPullRequest,
    PullRequestEdit, PullRequestState,
};

use super::life::{merge, merge_immediately, new, open_edit_close};
use crate::support::forges::gitlab::{PROJECT, respond};
use crate::support::forges::hub::{AUTHORIZATION, Hub, USER};
use crate::support::forges::wire::Wire;
use crate::support::http_front::Front;

fn forge(front: &Front) -> (Gitlab<Wire>, Wire) {
    let wire = Wire::new(&front.url("/api/v4"), AUTHORIZATION);
    let project = GitlabProject { path: PROJECT.to_owned() };
    (Gitlab::new(wire.clone(), Wire::endpoint(), project), wire)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_request_lives() {
    let hub = Hub::new();
    let front = hub.serve(respond);
    hub.branch("tagboat/web");
    let (forge, wire) = forge(&front);
    open_edit_close(&forge, "tagboat/web").await;
    assert_eq!(hub.pulls()[0].title, "Draft: New");
    let sent = wire.exchanges();
    assert!(sent.iter().all(|one| one.path[..2] == ["projects", PROJECT]), "the path is one segment");
}

#[tokio::test(flavor = "multi_thread")]
async fn merge_requests_are_merged_by_each_method() {
    let hub = Hub::new();
    let front = hub.serve(respond);
    merge_immediately(&forge(&front).0, async |name| hub.branch(name)).await;
    let parents: Vec<_> = hub.repository.log("main").iter().map(|commit| commit.parents.len()).collect();
    assert_eq!(parents.iter().filter(|count| **count == 2).count(), 3, "all but squash: {parents:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_and_reviewers_are_set() {
    let hub = Hub::new();
    let front = hub.serve(respond);
    hub.branch("tagboat/web");
    let forge = forge(&front).0;
    let asked = NewPullRequest {
        labels: vec!["images".to_owned(), "fleet".to_owned()],
        reviewers: vec![USER.to_owned(), "ghost".to_owned(), "team/ops".to_owned()],
        ..new("tagboat/web")
    };
    let opened = forge.open(&asked).await.unwrap();
    assert_eq!(opened.pull_request.labels, ["images", "fleet"]);
    assert_eq!(opened.refused.len(), 2, "{:?}", opened.refused);
    assert_eq!(hub.pulls()[0].reviewers, [USER]);
    let edit = PullRequestEdit {
        added_labels: vec!["new".to_owned()],
        removed_labels: vec!["images".to_owned()],
        ..PullRequestEdit::default()
    };
    assert_eq!(forge.edit(&opened.pull_request, &edit).await.unwrap().pull_request.labels, ["fleet", "new"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn merge_requests_of_forks_are_ignored_over_all_pages() {
    let hub = Hub::new();
    let front = hub.serve(respond);
    hub.limit_pages(2);
    for name in ["a", "b", "c", "d", "e"] {
        hub.branch(name);
        hub.open(name, "main", name, "").unwrap();
    }
    hub.open_from_fork("a");
    let (forge, wire) = forge(&front);
    let listed = forge.open_pull_requests(&mut Listing::all()).await.unwrap();
    assert_eq!(listed.iter().map(|one| one.number).collect::<Vec<_>>(), [5, 4, 3, 2, 1]);
    assert_eq!(wire.exchanges().len(), 3, "one for each page");
    let (head, base) = ("a".parse().unwrap(), "main".parse().unwrap());
    assert_eq!(forge.find(&head, &base).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn when_ready_waits_for_the_required_pipeline() {
    let hub = Hub::new();
    let front = hub.serve(respond);
    let tip = hub.branch("tagboat/web");
    let forge = forge(&front).0;
    let opened = forge.open(&new("tagboat/web")).await.unwrap().pull_request;
    let later = merge(MergeTime::WhenReady, Some(MergeMethod::Squash), &tip);
    assert_eq!(forge.merge(&opened, &later).await, Ok(MergeAnswer::NothingRequired));
    assert!(hub.pulls()[0].scheduled.is_none());

    hub.require_check();
    let now = merge(MergeTime::Immediately, None, &tip);
    assert!(matches!(forge.merge(&opened, &now).await, Ok(MergeAnswer::NotYet { .. })));
    assert_eq!(forge.merge(&opened, &later).await, Ok(MergeAnswer::Scheduled));
    for _ in 0..2 {
        assert_eq!(forge.cancel_merge(&opened).await, Ok(()));
        assert!(hub.pulls()[0].scheduled.is_none());
    }
    assert_eq!(forge.merge(&opened, &later).await, Ok(MergeAnswer::Scheduled));
    let listed = forge.find(&opened.head, &opened.base).await.unwrap();
    assert!(listed[0].has_auto_merge);
    hub.pass_check();
    let found = forge.find(&opened.head, &opened.base).await.unwrap();
    assert_eq!(found[0].state, PullRequestState::Merged);
    assert_eq!(hub.repository.file("main", "tagboat/web.yaml"), b"tag: 2\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_login_is_told() {
    let hub = Hub::new();
    let front = hub.serve(respond);
    let wire = Wire::new(&front.url("/api/v4"), "Bearer wrong");
    let forge = Gitlab::new(wire, Wire::endpoint(), GitlabProject { path: PROJECT.to_owned() });
    let error = forge.open_pull_requests(&mut Listing::all()).await.unwrap_err();
    assert_eq!(error.to_string(), "127.0.0.1 refuses the credentials of Secret apps/forge: 401 Unauthorized");
    let other = Wire::new(&front.url("/api/v4"), AUTHORIZATION);
    let forge = Gitlab::new(other, Wire::endpoint(), GitlabProject { path: "team/none".to_owned() });
    let error = forge.open_pull_requests(&mut Listing::all()).await.unwrap_err();
    let expected = "127.0.0.1 refuses to list merge requests: 404 Not Found: check that the repository exists, has pull requests \
        enabled, and can be read with this login (login: Secret apps/forge)";
    assert_eq!(error.to_string(), expected);
    assert_eq!(hub.pulls().len(), 0, "{}", json!(front.requests().len()));
}
