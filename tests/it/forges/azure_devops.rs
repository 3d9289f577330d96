//! Pull requests on a test server with the API of Azure DevOps.
//! Each exchange is compared with its description.

use tagboat::forge::{
    AzureDevops, AzureRepository, Forge, Listing, NewPullRequest, PullRequestEdit, PullRequestState,
};

use super::life::{
    beside_another, merge_immediately, new, open_beside_another, open_edit_close,
    schedule_once_a_check_is_required,
};
use crate::support::forges::azure_devops::{USER_ID, respond};
use crate::support::forges::description::Description;
use crate::support::forges::hub::{AUTHORIZATION, Hub};
use crate::support::forges::wire::Wire;
use crate::support::http_front::Front;

fn forge(front: &Front) -> AzureDevops<Wire> {
    let repository =
        AzureRepository::of_git_url("dev.azure.com", &["acme", "Web Shop", "_git", "fleet"]).unwrap();
    // The server creates with 201, and the description has 200 for everything.
    let description = Description::read("azure-devops-7.1.json")
        .below(&repository.organization)
        .with_status("pullrequests", 201);
    let wire = Wire::new(&front.url("/acme"), AUTHORIZATION).checked_by(description);
    AzureDevops::new(wire, Wire::endpoint(), repository)
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
async fn labels_and_reviewers_are_set() {
    let hub = Hub::new();
    let front = hub.serve(respond);
    hub.branch("tagboat/web");
    let forge = forge(&front);
    let unknown = USER_ID.replace('d', "0");
    let asked = NewPullRequest {
        labels: vec!["images".to_owned()],
        reviewers: vec![USER_ID.to_owned(), unknown, "ann".to_owned()],
        ..new("tagboat/web")
    };
    let opened = forge.open(&asked).await.unwrap();
    assert_eq!(opened.refused.len(), 2, "{:?}", opened.refused);
    assert_eq!(hub.pulls()[0].reviewers.len(), 1);
    let edit = PullRequestEdit {
        added_labels: vec!["new".to_owned()],
        removed_labels: vec!["images".to_owned()],
        ..PullRequestEdit::default()
    };
    assert_eq!(forge.edit(&opened.pull_request, &edit).await.unwrap().pull_request.labels, ["new"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn when_ready_waits_for_the_required_build() {
    let hub = Hub::new();
    let front = hub.serve(respond);
    let forge = forge(&front);
    let opened = schedule_once_a_check_is_required(&forge, &hub).await;
    assert!(forge.open_pull_requests(&mut Listing::all()).await.unwrap()[0].has_auto_merge);
    hub.pass_check();
    let found = forge.find(&opened.head, &opened.base).await.unwrap();
    assert_eq!(found[0].state, PullRequestState::Merged);
}

#[tokio::test(flavor = "multi_thread")]
async fn pull_requests_of_forks_are_ignored_over_all_pages() {
    let hub = Hub::new();
    let front = hub.serve(respond);
    for count in 0..101 {
        let name = format!("tagboat/{count}");
        hub.repository.move_branch(&name, &hub.repository.id("main").unwrap());
        // Opened without a difference, which is faster.
        hub.open_from_fork(&name);
        hub.change(count + 1, |pull| pull.is_from_fork = false);
    }
    hub.open_from_fork("tagboat/1");
    assert_eq!(forge(&front).open_pull_requests(&mut Listing::all()).await.unwrap().len(), 101);
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_reviewers_and_assignees_that_others_set_meanwhile_stay() {
    let hub = Hub::new();
    let front = hub.serve(beside_another(respond));
    open_beside_another(&forge(&front), &hub, USER_ID).await;
}
