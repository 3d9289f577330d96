//! Pull requests on a test server with the API of Bitbucket Cloud.

use tagboat::forge::{
    Bitbucket, BitbucketRepository, Forge, Listing, MergeAnswer, MergeTime, NewPullRequest, PullRequestEdit,
};

use super::life::{beside_another, merge, merge_immediately, new, open_beside_another, open_edit_close};
use crate::support::forges::bitbucket::respond;
use crate::support::forges::hub::{AUTHORIZATION, Hub, USER};
use crate::support::forges::wire::Wire;
use crate::support::http_front::Front;

fn forge(front: &Front) -> Bitbucket<Wire> {
    let wire = Wire::new(&front.url("/2.0"), AUTHORIZATION);
    let repository = BitbucketRepository { workspace: "team".to_owned(), slug: "fleet".to_owned() };
    Bitbucket::new(wire, Wire::endpoint(), repository)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_lives() {
    let hub = Hub::new();
    let front = hub.serve(respond);
    hub.branch("tagboat/web");
    open_edit_close(&forge(&front), "tagboat/web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pull_requests_are_merged_by_each_method() {
    let hub = Hub::new();
    let front = hub.serve(respond);
    merge_immediately(&forge(&front), async |name| hub.branch(name)).await;
    let parents: Vec<_> = hub.repository.log("main").iter().map(|commit| commit.parents.len()).collect();
    assert_eq!(
        parents.iter().filter(|count| **count == 2).count(),
        2,
        "the default, and `commit`: {parents:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_keeps_the_reviewers() {
    let hub = Hub::new();
    let front = hub.serve(respond);
    hub.branch("tagboat/web");
    let forge = forge(&front);
    let asked = NewPullRequest {
        reviewers: vec![USER.to_owned(), "ghost".to_owned()],
        labels: vec!["images".to_owned()],
        assignees: vec![USER.to_owned()],
        ..new("tagboat/web")
    };
    let opened = forge.open(&asked).await.unwrap();
    assert!(opened.is_new);
    assert_eq!(opened.refused.len(), 3, "{:?}", opened.refused);
    assert_eq!(hub.pulls()[0].reviewers, [USER]);
    let edit = PullRequestEdit { title: Some("New".to_owned()), ..PullRequestEdit::default() };
    forge.edit(&opened.pull_request, &edit).await.unwrap();
    let pull = &hub.pulls()[0];
    assert_eq!((pull.title.as_str(), &pull.body, pull.reviewers.len()), ("New", &asked.body, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_between_lookup_and_merge_is_not_merged() {
    let hub = Hub::new();
    let front = hub.serve(respond);
    let tip = hub.branch("tagboat/web");
    let forge = forge(&front);
    let opened = forge.open(&new("tagboat/web")).await.unwrap().pull_request;
    let main = hub.repository.id("main");
    hub.repository.commit("tagboat/web", "A person's", &[crate::support::content::file("x", "y\n")]);
    let answer = forge.merge(&opened, &merge(MergeTime::Immediately, None, &tip)).await.unwrap();
    assert!(matches!(answer, MergeAnswer::NotYet { .. }), "{answer:?}");
    assert_eq!(hub.repository.id("main"), main);
    let later = forge.merge(&opened, &merge(MergeTime::WhenReady, None, &tip)).await.unwrap();
    assert!(matches!(later, MergeAnswer::Refused { .. }), "{later:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pull_requests_of_forks_are_ignored_over_all_pages() {
    let hub = Hub::new();
    let front = hub.serve(respond);
    hub.limit_pages(2);
    for name in ["a", "b", "c", "d", "e"] {
        hub.branch(name);
        hub.open(name, "main", name, "").unwrap();
    }
    hub.open_from_fork("a");
    let listed = forge(&front).open_pull_requests(&mut Listing::all()).await.unwrap();
    assert_eq!(listed.iter().map(|one| one.number).collect::<Vec<_>>(), [5, 4, 3, 2, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_reviewers_and_assignees_that_others_set_meanwhile_stay() {
    let hub = Hub::new();
    let front = hub.serve(beside_another(respond));
    open_beside_another(&forge(&front), &hub, USER).await;
}
