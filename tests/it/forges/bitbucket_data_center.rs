//! Pull requests on a test server with the API of Bitbucket Data Center.

use tagboat::forge::{
    BitbucketDataCenter, DataCenterRepository, Forge, ForgeError, Listing, Merge, MergeAnswer, MergeTime,
    NewPullRequest, PullRequestEdit, PullRequestState,
};

use super::life::{
    beside_another, merge_immediately, new, open_beside_another, open_edit_close,
    schedule_once_a_check_is_required,
};
use crate::support::forges::bitbucket_data_center::respond;
use crate::support::forges::hub::{AUTHORIZATION, Hub, USER};
use crate::support::forges::wire::Wire;
use crate::support::http_front::Front;

fn forge(front: &Front) -> BitbucketDataCenter<Wire> {
    let repository = DataCenterRepository { project: "OPS".to_owned(), slug: "fleet".to_owned() };
    let base = front.url("/code/rest/api/latest");
    BitbucketDataCenter::new(Wire::new(&base, AUTHORIZATION), Wire::endpoint(), repository)
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
async fn text_that_a_person_wrote_meanwhile_stays() {
    let hub = Hub::new();
    let front = hub.serve(respond);
    hub.branch("tagboat/web");
    let forge = forge(&front);
    let asked = NewPullRequest { reviewers: vec![USER.to_owned(), "ghost".to_owned()], ..new("tagboat/web") };
    let opened = forge.open(&asked).await.unwrap();
    assert_eq!(opened.refused.len(), 1, "{:?}", opened.refused);
    let opened = opened.pull_request;
    hub.change(opened.number, |pull| pull.body = "A person's text".to_owned());
    let edit = PullRequestEdit { title: Some("New".to_owned()), ..PullRequestEdit::default() };
    let error = forge.edit(&opened, &edit).await.unwrap_err();
    assert!(matches!(error, ForgeError::Refused { status: 409, .. }), "{error}");
    let found = &forge.open_pull_requests(&mut Listing::all()).await.unwrap()[0];
    forge.edit(found, &edit).await.unwrap();
    let pull = &hub.pulls()[0];
    assert_eq!(
        (pull.title.as_str(), pull.body.as_str(), pull.reviewers.len()),
        ("New", "A person's text", 1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn when_ready_waits_for_the_required_build() {
    let hub = Hub::new();
    let front = hub.serve(respond);
    let forge = forge(&front);
    let opened = schedule_once_a_check_is_required(&forge, &hub).await;
    // Another process finds it, and writes nothing.
    let writes = || front.requests().iter().filter(|request| request.method != "GET").count();
    let before = writes();
    let (time, head_commit) = (MergeTime::WhenReady, opened.head_commit.unwrap());
    let again = Merge { time, method: None, head_commit };
    assert_eq!(forge.merge(&opened, &again).await, Ok(MergeAnswer::Scheduled));
    assert_eq!(writes(), before);
    hub.pass_check();
    let found = forge.find(&opened.head, &opened.base).await.unwrap();
    assert_eq!(found[0].state, PullRequestState::Merged);
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
