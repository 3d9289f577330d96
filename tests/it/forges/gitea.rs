//! Pull requests on the real Gitea.
//! Each exchange is compared with the description of its API.

use serde_json::json;
use tagboat::forge::{
    Forge, ForgeError, Listing, MergeAnswer, MergeMethod, MergeTime, NewPullRequest, PullRequestEdit,
    PullRequestState,
};

use super::life::{answered, merge, merge_immediately, new, open_edit_close};
use crate::support::eventually::eventually;
use crate::support::gitea::{GiteaRepository, OTHER, OWNER};

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_lives() {
    let repository = GiteaRepository::new("life").await;
    repository.branch("tagboat/web").await;
    open_edit_close(&repository.forge(), "tagboat/web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pull_requests_are_merged_by_each_method() {
    let repository = GiteaRepository::new("methods").await;
    merge_immediately(&repository.forge(), async |name| repository.branch(name).await).await;
    let log = repository.call("GET", "commits?sha=main&stat=false", json!(null)).await;
    let parents: Vec<_> =
        log.as_array().unwrap().iter().map(|one| one["parents"].as_array().unwrap().len()).collect();
    assert_eq!(
        parents.iter().filter(|count| **count == 2).count(),
        2,
        "the default, and `commit`: {parents:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_are_created_and_removed() {
    let repository = GiteaRepository::new("labels").await;
    repository.branch("tagboat/web").await;
    repository.call("POST", "labels", json!({"name": "images", "color": "#00aa00"})).await;
    let forge = repository.forge();
    let labels = vec!["images".to_owned(), "team/ops".to_owned()];
    let opened = forge.open(&NewPullRequest { labels, ..new("tagboat/web") }).await.unwrap();
    assert!(opened.refused.is_empty(), "{opened:?}");
    let sorted = |labels: &[String]| {
        let mut labels = labels.to_vec();
        labels.sort();
        labels
    };
    assert_eq!(sorted(&opened.pull_request.labels), ["images", "team/ops"]);
    let edit = PullRequestEdit {
        added_labels: vec!["new".to_owned()],
        removed_labels: vec!["images".to_owned(), "unknown".to_owned()],
        ..PullRequestEdit::default()
    };
    let edited = forge.edit(&opened.pull_request, &edit).await.unwrap().pull_request;
    assert_eq!(sorted(&edited.labels), ["new", "team/ops"]);
    assert_eq!(
        sorted(&forge.open_pull_requests(&mut Listing::all()).await.unwrap()[0].labels),
        ["new", "team/ops"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_reviewer_leaves_the_pull_request() {
    let repository = GiteaRepository::new("reviewers").await;
    repository.branch("tagboat/web").await;
    let names = || vec![OTHER.to_owned(), "ghost".to_owned()];
    repository.call("PUT", &format!("collaborators/{OTHER}"), json!({"permission": "write"})).await;
    let asked = NewPullRequest { reviewers: names(), assignees: names(), ..new("tagboat/web") };
    let opened = repository.forge().open(&asked).await.unwrap();
    assert!(opened.is_new);
    let refused =
        ["reviewer", "assignee"].map(|part| format!("{part} \"ghost\" is refused: there is no such user"));
    assert_eq!(opened.refused, refused);
    let path = format!("pulls/{}", opened.pull_request.number);
    let document = repository.call("GET", &path, json!(null)).await;
    assert_eq!(document["requested_reviewers"][0]["login"], OTHER);
    assert_eq!(document["assignees"][0]["login"], OTHER);
}

/// The server answers 500, so the pull request was never complete and never refreshed.
#[tokio::test(flavor = "multi_thread")]
async fn an_assignee_whom_the_server_cannot_assign_leaves_the_pull_request() {
    let repository = GiteaRepository::new("assignees").await;
    repository.branch("tagboat/web").await;
    let organization = format!("{}-org", repository.name);
    repository.wire.call("POST", "orgs", json!({"username": organization})).await;
    let private = json!({"private": true});
    repository.wire.call("PATCH", &format!("repos/{OWNER}/{}", repository.name), private).await;
    let names = || vec![organization.clone(), OTHER.to_owned(), OWNER.to_owned()];
    let refused = [&organization, OTHER].map(|name| {
        format!("assignee {name:?} is refused: the server cannot assign it, as one without access to the repository")
    });
    let forge = repository.forge();
    let asked = NewPullRequest {
        assignees: names(),
        completed_body: Some("complete".to_owned()),
        ..new("tagboat/web")
    };
    let opened = forge.open(&asked).await.unwrap();
    assert_eq!(opened.refused, refused);
    let pull_request = opened.pull_request;
    assert_eq!(pull_request.body, "complete");
    let edit = PullRequestEdit {
        body: Some("edited".to_owned()),
        added_assignees: names(),
        ..PullRequestEdit::default()
    };
    let read = forge.get(pull_request.number).await.unwrap();
    let edited = forge.edit(&read, &edit).await.unwrap();
    assert_eq!((edited.pull_request.body.as_str(), edited.refused), ("edited", refused.to_vec()));
    let path = format!("pulls/{}", pull_request.number);
    let document = repository.call("GET", &path, json!(null)).await;
    assert_eq!(document["assignees"].as_array().unwrap().len(), 1, "{document:#}");
    assert_eq!(document["assignees"][0]["login"], OWNER);
}

/// A repository of a user drops all teams silently.
#[tokio::test(flavor = "multi_thread")]
async fn a_team_that_cannot_review_is_told() {
    let repository = GiteaRepository::new("teams").await;
    repository.branch("tagboat/web").await;
    repository.call("PUT", &format!("collaborators/{OTHER}"), json!({"permission": "write"})).await;
    let sentence = |team: &str| {
        format!("reviewer {team:?} is refused: it is no team of an organization that owns the repository")
    };
    for (others, head) in
        [(vec![], "tagboat/web"), (vec![OTHER], "tagboat/two"), (vec!["ghost"], "tagboat/three")]
    {
        if head != "tagboat/web" {
            repository.branch(head).await;
        }
        let mut reviewers = vec![format!("{OWNER}/ops"), "acme/ops".to_owned()];
        reviewers.extend(others.iter().map(|name| (*name).to_owned()));
        let opened = repository.forge().open(&NewPullRequest { reviewers, ..new(head) }).await.unwrap();
        let mut expected = vec![sentence("bot/ops"), sentence("acme/ops")];
        if others == ["ghost"] {
            expected.insert(0, "reviewer \"ghost\" is refused: there is no such user".to_owned());
        }
        assert_eq!(opened.refused, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_and_assignees_that_others_set_stay() {
    let repository = GiteaRepository::new("others").await;
    repository.branch("tagboat/web").await;
    repository.call("PUT", &format!("collaborators/{OTHER}"), json!({"permission": "write"})).await;
    repository.call("POST", "labels", json!({"name": "bot", "color": "#00aa00"})).await;
    let forge = repository.forge();
    let opened = forge.open(&new("tagboat/web")).await.unwrap().pull_request;
    let path = format!("pulls/{}", opened.number);
    repository.call("PATCH", &path, json!({"assignees": [OTHER]})).await;
    let labels = format!("issues/{}/labels", opened.number);
    repository.call("POST", &labels, json!({"labels": ["bot"]})).await;
    let edit = PullRequestEdit {
        added_labels: vec!["images".to_owned()],
        added_assignees: vec![OWNER.to_owned()],
        ..PullRequestEdit::default()
    };
    forge.edit(&opened, &edit).await.unwrap();
    let document = repository.call("GET", &path, json!(null)).await;
    for (list, member) in [("assignees", "login"), ("labels", "name")] {
        assert_eq!(document[list].as_array().unwrap().len(), 2, "{member} {document:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn text_that_a_person_wrote_meanwhile_stays() {
    let repository = GiteaRepository::new("race").await;
    repository.branch("tagboat/web").await;
    let forge = repository.forge();
    let opened = forge.open(&new("tagboat/web")).await.unwrap().pull_request;
    let path = format!("pulls/{}", opened.number);
    repository.call("PATCH", &path, json!({"body": "A person's text"})).await;
    let edit = PullRequestEdit { body: Some("Ours".to_owned()), ..PullRequestEdit::default() };
    let error = forge.edit(&opened, &edit).await.unwrap_err();
    assert!(matches!(error, ForgeError::Refused { status: 409, .. }), "{error}");
    let found = &forge.open_pull_requests(&mut Listing::all()).await.unwrap()[0];
    assert_eq!(found.body, "A person's text");
    assert_eq!(forge.edit(found, &edit).await.unwrap().pull_request.body, "Ours");
}

#[tokio::test(flavor = "multi_thread")]
async fn pull_requests_of_forks_are_ignored() {
    let repository = GiteaRepository::new("forks").await;
    repository.branch("tagboat/web").await;
    let foreign = repository.open_from_fork("tagboat/web").await;
    let forge = repository.forge();
    assert_eq!(forge.open_pull_requests(&mut Listing::all()).await, Ok(Vec::new()));
    let (head, base) = ("tagboat/web".parse().unwrap(), "main".parse().unwrap());
    assert_eq!(forge.find(&head, &base).await, Ok(Vec::new()));
    let opened = forge.open(&new("tagboat/web")).await.unwrap();
    assert!(opened.is_new && opened.pull_request.number > foreign);
    let found = forge.find(&head, &base).await.unwrap();
    assert_eq!(found.iter().map(|one| one.number).collect::<Vec<_>>(), [opened.pull_request.number]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_without_a_pull_request_is_refused_with_a_reason() {
    let repository = GiteaRepository::new("missing").await;
    let error = repository.forge().open(&new("tagboat/none")).await.unwrap_err();
    assert!(matches!(error, ForgeError::Forbidden { .. } | ForgeError::Refused { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn when_ready_without_a_rule_leaves_it_open() {
    let repository = GiteaRepository::new("no-rule").await;
    let tip = repository.branch("tagboat/web").await;
    let forge = repository.forge();
    let opened = forge.open(&new("tagboat/web")).await.unwrap().pull_request;
    let later = merge(MergeTime::WhenReady, None, &tip);
    assert_eq!(answered(&forge, &opened, &later).await, MergeAnswer::NothingRequired);
    // A protection that requires nothing is no rule.
    repository.call("POST", "branch_protections", json!({"rule_name": "main", "enable_push": false})).await;
    assert_eq!(answered(&forge, &opened, &later).await, MergeAnswer::NothingRequired);
    assert_eq!(forge.open_pull_requests(&mut Listing::all()).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn when_ready_merges_after_the_required_status() {
    let repository = GiteaRepository::new("status").await;
    let tip = repository.branch("tagboat/web").await;
    let rule = json!({"rule_name": "main", "enable_status_check": true, "status_check_contexts": ["ci"]});
    repository.call("POST", "branch_protections", rule).await;
    let forge = repository.forge();
    let opened = forge.open(&new("tagboat/web")).await.unwrap().pull_request;

    let now = merge(MergeTime::Immediately, None, &tip);
    let answer = answered(&forge, &opened, &now).await;
    assert!(matches!(answer, MergeAnswer::Blocked { .. }), "the status is missing: {answer:?}");
    let later = merge(MergeTime::WhenReady, Some(MergeMethod::Squash), &tip);
    assert_eq!(answered(&forge, &opened, &later).await, MergeAnswer::Scheduled);
    assert_eq!(forge.merge(&opened, &later).await, Ok(MergeAnswer::Scheduled), "again");
    for _ in 0..2 {
        assert_eq!(forge.cancel_merge(&opened).await, Ok(()));
    }
    assert_eq!(forge.merge(&opened, &later).await, Ok(MergeAnswer::Scheduled));
    assert_eq!(forge.open_pull_requests(&mut Listing::all()).await.unwrap().len(), 1);

    let status = json!({"context": "ci", "state": "success"});
    repository.call("POST", &format!("statuses/{tip}"), status).await;
    eventually("the merge", async || {
        let found = forge.find(&opened.head, &opened.base).await.unwrap();
        found[0].state == PullRequestState::Merged
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_into_a_protected_branch_is_refused() {
    let repository = GiteaRepository::new("protected").await;
    let tip = repository.branch("tagboat/web").await;
    // Only the other user may merge, and administrators have no exception.
    let rule = json!({
        "rule_name": "main", "enable_merge_whitelist": true, "merge_whitelist_usernames": [OTHER],
        "block_admin_merge_override": true,
    });
    repository.call("PUT", &format!("collaborators/{OTHER}"), json!({"permission": "write"})).await;
    repository.call("POST", "branch_protections", rule).await;
    let forge = repository.forge();
    let opened = forge.open(&new("tagboat/web")).await.unwrap().pull_request;
    let answer = answered(&forge, &opened, &merge(MergeTime::Immediately, None, &tip)).await;
    assert!(
        matches!(&answer, MergeAnswer::Refused { reason } if reason.contains("not allowed")),
        "{answer:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_is_no_final_refusal() {
    let repository = GiteaRepository::new("conflict").await;
    let tip = repository.branch("tagboat/web").await;
    // The same file with another content.
    let body = json!({"content": "YTogMQo=", "message": "Other", "branch": "main"});
    repository.call("POST", "contents/tagboat/web.yaml", body).await;
    let forge = repository.forge();
    let opened = forge.open(&new("tagboat/web")).await.unwrap().pull_request;
    eventually("the conflict", async || {
        let answer = forge.merge(&opened, &merge(MergeTime::Immediately, None, &tip)).await.unwrap();
        matches!(answer, MergeAnswer::NotYet { .. })
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_a_page_is_listed() {
    let repository = GiteaRepository::new("pages").await;
    let forge = repository.forge();
    for count in 0..13 {
        let head = format!("tagboat/web-{count}");
        repository.branch(&head).await;
        let body = json!({"head": head, "base": "main", "title": head});
        repository.call("POST", "pulls", body).await;
    }
    let listed = forge.open_pull_requests(&mut Listing::all()).await.unwrap();
    assert_eq!(listed.len(), 13);
    assert_eq!(repository.wire.exchanges().len(), 2, "two pages, and no empty one");
    let (head, base) = ("tagboat/web-0".parse().unwrap(), "main".parse().unwrap());
    assert_eq!(forge.find(&head, &base).await.unwrap().len(), 1, "on the last page");
}
