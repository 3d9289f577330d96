//! The life of a pull request, which is the same on each forge.

use tagboat::forge::{
    Forge, Listing, Merge, MergeAnswer, MergeMethod, MergeTime, NewPullRequest, PullRequest, PullRequestEdit,
    PullRequestState,
};

use crate::support::forges::hub::{Call, Hub, OTHER, USER, add};
use crate::support::http_front::Reply;

/// A pull request to be opened from a branch.
pub(super) fn new(head: &str) -> NewPullRequest {
    NewPullRequest {
        head: head.parse().unwrap(),
        base: "main".parse().unwrap(),
        title: format!("Update {head}"),
        body: "A table.\n\n[//]: # (tagboat 1)".to_owned(),
        is_draft: false,
        labels: Vec::new(),
        reviewers: Vec::new(),
        assignees: Vec::new(),
        completed_body: None,
    }
}

pub(super) fn merge(time: MergeTime, method: Option<MergeMethod>, head: &str) -> Merge {
    Merge { time, method, head_commit: head.parse().unwrap() }
}

/// Answers as `respond` does, and sets parts of each new pull request.
pub(super) fn beside_another(respond: impl Fn(&Hub, &Call) -> Reply) -> impl Fn(&Hub, &Call) -> Reply {
    move |hub, call| {
        let before = hub.pulls().len();
        let reply = respond(hub, call);
        for pull in &hub.pulls()[before..] {
            hub.change(pull.number, |pull| {
                add(&mut pull.labels, ["bot".to_owned()]);
                add(&mut pull.reviewers, [OTHER.to_owned()]);
                add(&mut pull.assignees, [OTHER.to_owned()]);
            });
        }
        reply
    }
}

/// Opens one beside another user, whose labels, reviewers and assignees stay beside ours.
///
/// `reviewer` is the name of the user `USER` at this forge.
pub(super) async fn open_beside_another(forge: &impl Forge, hub: &Hub, reviewer: &str) {
    hub.branch("tagboat/web");
    let asked = NewPullRequest {
        labels: vec!["images".to_owned()],
        reviewers: vec![reviewer.to_owned()],
        assignees: vec![USER.to_owned()],
        completed_body: Some("Completed.".to_owned()),
        ..new("tagboat/web")
    };
    forge.open(&asked).await.unwrap();
    let pull = hub.pulls().remove(0);
    let has = |list: &[String], name: &str| list.iter().any(|one| one == name);
    assert!(has(&pull.labels, "bot") && has(&pull.assignees, OTHER), "{pull:?}");
    assert!(has(&pull.reviewers, OTHER) && has(&pull.reviewers, USER), "{pull:?}");
}

/// Opens a pull request, and has it scheduled, which is refused without a required check.
///
/// The first schedule is cancelled.
pub(super) async fn schedule_once_a_check_is_required(forge: &impl Forge, hub: &Hub) -> PullRequest {
    let tip = hub.branch("tagboat/web");
    let opened = forge.open(&new("tagboat/web")).await.unwrap().pull_request;
    let later = merge(MergeTime::WhenReady, Some(MergeMethod::Squash), &tip);
    assert_eq!(forge.merge(&opened, &later).await, Ok(MergeAnswer::NothingRequired));
    assert!(hub.pulls()[0].scheduled.is_none());
    hub.require_check();
    assert_eq!(forge.merge(&opened, &later).await, Ok(MergeAnswer::Scheduled));
    for _ in 0..2 {
        assert_eq!(forge.cancel_merge(&opened).await, Ok(()));
        assert!(hub.pulls()[0].scheduled.is_none());
    }
    assert_eq!(forge.merge(&opened, &later).await, Ok(MergeAnswer::Scheduled));
    opened
}

/// Opens, finds, edits and closes a pull request of a branch that has one commit.
pub(super) async fn open_edit_close(forge: &impl Forge, head: &str) -> PullRequest {
    let new = NewPullRequest { is_draft: true, ..new(head) };
    assert_eq!(forge.find(&new.head, &new.base).await, Ok(Vec::new()));
    let opened = forge.open(&new).await.unwrap();
    assert!(opened.is_new && opened.refused.is_empty(), "{opened:?}");
    let first = opened.pull_request;
    assert_eq!((first.title.as_str(), first.body.as_str()), (new.title.as_str(), new.body.as_str()));
    assert!(first.is_draft && first.state == PullRequestState::Open, "{first:?}");

    let again = forge.open(&NewPullRequest { title: "Another".to_owned(), ..new.clone() }).await.unwrap();
    assert_eq!((again.is_new, again.pull_request.number), (false, first.number));
    assert_eq!(again.pull_request.title, new.title, "the text of one that exists stays");

    let listed = forge.open_pull_requests(&mut Listing::all()).await.unwrap();
    let found = listed.iter().find(|one| one.head == new.head).unwrap();
    assert_eq!((found.number, &found.body, found.is_draft), (first.number, &new.body, true));

    let body = format!("{}\n\n[//]: # (tagboat 2)", "A long line. ".repeat(200));
    let edit = PullRequestEdit {
        title: Some("New".to_owned()),
        body: Some(body.clone()),
        ..PullRequestEdit::default()
    };
    let edited = forge.edit(found, &edit).await.unwrap().pull_request;
    assert_eq!((edited.title.as_str(), &edited.body, edited.is_draft), ("New", &body, true));
    let listed = forge.open_pull_requests(&mut Listing::all()).await.unwrap();
    let found = listed.iter().find(|one| one.head == new.head).unwrap();
    assert_eq!((found.title.as_str(), &found.body), ("New", &body), "the whole body is listed");

    let close = PullRequestEdit {
        body: Some("Nothing is left.".to_owned()),
        is_closed: true,
        ..PullRequestEdit::default()
    };
    let closed = forge.edit(found, &close).await.unwrap().pull_request;
    assert_eq!(closed.state, PullRequestState::Closed);
    assert!(
        forge.open_pull_requests(&mut Listing::all()).await.unwrap().iter().all(|one| one.head != new.head)
    );
    let found = forge.find(&new.head, &new.base).await.unwrap();
    let found: Vec<_> = found.iter().map(|one| (one.number, one.state, one.body.as_str())).collect();
    assert_eq!(found, [(first.number, PullRequestState::Closed, "Nothing is left.")]);

    // One that was closed is not in the way of another.
    let second = forge.open(&NewPullRequest { is_draft: false, ..new.clone() }).await.unwrap();
    assert!(second.is_new && second.pull_request.number > first.number);
    let found = forge.find(&new.head, &new.base).await.unwrap();
    let found: Vec<_> = found.iter().map(|one| (one.number, one.state)).collect();
    let second = second.pull_request;
    assert_eq!(
        found,
        [(second.number, PullRequestState::Open), (first.number, PullRequestState::Closed)],
        "the newest first"
    );
    second
}

/// Merges at once by each method.
/// `branch` makes a branch on top of `main`, and returns its tip.
pub(super) async fn merge_immediately(forge: &impl Forge, branch: impl AsyncFn(&str) -> String) {
    let methods = [None, Some(MergeMethod::Commit), Some(MergeMethod::Squash), Some(MergeMethod::Rebase)];
    for (count, method) in methods.into_iter().enumerate() {
        let head = format!("tagboat/merge-{count}");
        let tip = branch(&head).await;
        let opened = forge.open(&new(&head)).await.unwrap().pull_request;
        let other = merge(MergeTime::Immediately, method, &"1".repeat(40));
        let answer = forge.merge(&opened, &other).await.unwrap();
        assert!(matches!(answer, MergeAnswer::NotYet { .. }), "another head: {answer:?}");
        let now = merge(MergeTime::Immediately, method, &tip);
        assert_eq!(answered(forge, &opened, &now).await, MergeAnswer::Merged, "{method:?}");
        let found = forge.find(&opened.head, &opened.base).await.unwrap();
        assert_eq!(found[0].state, PullRequestState::Merged);
        assert_eq!(forge.merge(&opened, &now).await, Ok(MergeAnswer::Merged), "again");
    }
}

/// Asks for a merge until the answer is final.
/// Forges test for conflicts in the background.
pub(super) async fn answered(forge: &impl Forge, current: &PullRequest, merge: &Merge) -> MergeAnswer {
    let mut answer = MergeAnswer::NothingRequired;
    crate::support::eventually::eventually("an answer to a merge", async || {
        answer = forge.merge(current, merge).await.unwrap();
        !matches!(answer, MergeAnswer::NotYet { .. })
    })
    .await;
    answer
}
