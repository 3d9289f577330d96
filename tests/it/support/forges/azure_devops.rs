//! The API of Azure DevOps in front of a hub.
//! The repository is `fleet` of the project `Web Shop` of `acme`.

use serde_json::{Value, json};

use super::hub::{Call, Hub, OTHER, Pull, PullState, Refusal, Style, USER, add, answer};
use crate::support::http_front::Reply;

/// The id of the known user, who has opened all pull requests.
pub(crate) const USER_ID: &str = "d6245f20-2af8-44f4-9451-8107cb2767db";

const USERS: [(&str, &str); 2] = [(USER, USER_ID), (OTHER, "0b1d4a1e-52c7-4d7e-8f0c-3f6f1c6b8a90")];

const REPOSITORY_ID: &str = "3411ebc1-d5aa-464f-9615-0b527bc66719";
const BUILD: &str = "0609b952-1397-4640-95ec-e00a01b2c241";

/// The characters after which a listing cuts bodies.
const CUT: usize = 400;
const MAX_BODY: usize = 4_000;

pub(crate) fn respond(hub: &Hub, call: &Call) -> Reply {
    if call.query("api-version") != Some("7.1") {
        return failure(400, "No api-version was supplied for the request");
    }
    let path: Vec<_> = call.path.iter().map(String::as_str).collect();
    let ["acme", "Web Shop", "_apis", "git", rest @ ..] = path.as_slice() else { return not_found() };
    match (call.method.as_str(), rest) {
        ("GET", ["policy", "configurations"]) => {
            let is_here = call.query("repositoryId") == Some(REPOSITORY_ID);
            let build = json!({
                "id": 1, "isEnabled": true, "isBlocking": true, "isDeleted": false,
                "type": {"id": BUILD, "displayName": "Build"}, "settings": {},
            });
            let all = if is_here && hub.is_check_required() { vec![build] } else { Vec::new() };
            answer(200, &json!({"count": all.len(), "value": all}))
        }
        ("GET", ["repositories", "fleet", "pullrequests"]) => list(hub, call),
        ("POST", ["repositories", "fleet", "pullrequests"]) => open(hub, call),
        (method, ["repositories", "fleet", "pullrequests", number, rest @ ..]) => {
            let Some(pull) = number.parse().ok().and_then(|number| hub.pull(number)) else {
                return not_found();
            };
            match (method, rest) {
                ("GET", []) => answer(200, &without_labels(document(hub, &pull))),
                ("PATCH", []) => edit(hub, call, &pull),
                ("POST", ["labels"]) => {
                    let name = call.text("/name").unwrap_or_default();
                    hub.change(pull.number, |pull| add(&mut pull.labels, [name.clone()]));
                    answer(200, &json!({"id": REPOSITORY_ID, "name": name, "active": true}))
                }
                ("DELETE", ["labels", name]) => {
                    hub.change(pull.number, |pull| pull.labels.retain(|label| label != name));
                    Reply::status(200)
                }
                ("PUT", ["reviewers", id]) => {
                    let Some((name, _)) = USERS.iter().find(|(_, known)| known == id) else {
                        return failure(404, "TF400813: the identity is not known");
                    };
                    hub.change(pull.number, |pull| add(&mut pull.reviewers, [(*name).to_owned()]));
                    answer(200, &json!({"id": id, "vote": 0}))
                }
                _ => not_found(),
            }
        }
        _ => not_found(),
    }
}

fn failure(status: u16, text: &str) -> Reply {
    answer(status, &json!({"$id": "1", "message": text, "typeKey": "GitException"}))
}

fn not_found() -> Reply {
    failure(404, "TF401180: The requested pull request was not found")
}

fn status(pull: &Pull) -> &'static str {
    match pull.state {
        PullState::Open => "active",
        PullState::Closed => "abandoned",
        PullState::Merged => "completed",
    }
}

fn list(hub: &Hub, call: &Call) -> Reply {
    let is_branch = |name: &str, branch: &str| {
        call.query(name).is_none_or(|wanted| wanted == format!("refs/heads/{branch}"))
    };
    let is_wanted = |pull: &Pull| {
        ["all", status(pull)].contains(&call.query("searchCriteria.status").unwrap_or("active"))
            && is_branch("searchCriteria.sourceRefName", &pull.head)
            && is_branch("searchCriteria.targetRefName", &pull.base)
    };
    let number = |name: &str, default: usize| call.query(name).map_or(default, |text| text.parse().unwrap());
    let (found, _) = hub.page(is_wanted, number("$skip", 0), number("$top", 100));
    let value: Vec<_> = found
        .iter()
        .map(|pull| {
            let mut document = document(hub, pull);
            document["description"] = json!(pull.body.chars().take(CUT).collect::<String>());
            document
        })
        .collect();
    answer(200, &json!({"count": value.len(), "value": value}))
}

fn open(hub: &Hub, call: &Call) -> Reply {
    let member = |pointer: &str| call.text(pointer).unwrap_or_default();
    let branch = |pointer: &str| member(pointer).trim_start_matches("refs/heads/").to_owned();
    if member("/description").chars().count() > MAX_BODY {
        return failure(400, "the description has more than 4000 characters");
    }
    let (head, base) = (branch("/sourceRefName"), branch("/targetRefName"));
    match hub.open(&head, &base, &member("/title"), &member("/description")) {
        Ok(pull) => {
            let labels = call.body["labels"].as_array().cloned().unwrap_or_default();
            let pull = hub.change(pull.number, |pull| {
                pull.is_draft = call.body["isDraft"] == true;
                pull.labels = labels.iter().map(|label| label["name"].as_str().unwrap().to_owned()).collect();
            });
            answer(201, &document(hub, &pull))
        }
        Err(Refusal::Exists) => failure(409, "TF401179: An active pull request already exists"),
        Err(refusal) => failure(400, &format!("{refusal:?}")),
    }
}

fn edit(hub: &Hub, call: &Call, pull: &Pull) -> Reply {
    let style = match call.text("/completionOptions/mergeStrategy").as_deref() {
        Some("squash") => Style::Squash,
        Some("rebase") => Style::Rebase,
        _ => Style::Commit,
    };
    if call.body["status"] == "completed" {
        return match hub.merge(pull.number, call.text("/lastMergeSourceCommit/commitId").as_deref(), style) {
            Ok(merged) => answer(200, &document(hub, &merged)),
            Err(Refusal::OtherHead) => failure(409, "TF401192: the source branch has changed"),
            Err(refusal) => failure(409, &format!("{refusal:?}")),
        };
    }
    if let Some(setter) = call.text("/autoCompleteSetBy/id") {
        if setter == "00000000-0000-0000-0000-000000000000" {
            let waiting = hub.change(pull.number, |pull| pull.scheduled = None);
            return answer(200, &document(hub, &waiting));
        }
        if setter != USER_ID {
            return failure(403, "TF401027: auto-complete is set in your own name only");
        }
        let scheduled = hub.change(pull.number, |pull| pull.scheduled = Some(style));
        return answer(200, &document(hub, &scheduled));
    }
    let changed = hub.change(pull.number, |pull| {
        pull.title = call.text("/title").unwrap_or_else(|| pull.title.clone());
        pull.body = call.text("/description").unwrap_or_else(|| pull.body.clone());
        match call.text("/status").as_deref() {
            Some("abandoned") => pull.state = PullState::Closed,
            Some("active") => pull.state = PullState::Open,
            _ => {}
        }
    });
    answer(200, &without_labels(document(hub, &changed)))
}

fn id(name: &str) -> &'static str {
    USERS.iter().find(|(known, _)| *known == name).expect("a known user").1
}

/// The document of one pull request, which has no labels beside those of a list.
fn without_labels(mut document: Value) -> Value {
    document.as_object_mut().unwrap().remove("labels");
    document
}

fn document(hub: &Hub, pull: &Pull) -> Value {
    let labels: Vec<_> = pull.labels.iter().map(|name| json!({"name": name, "active": true})).collect();
    let reviewers: Vec<_> = pull.reviewers.iter().map(|name| json!({"id": id(name), "vote": 0})).collect();
    let mut document = json!({
        "pullRequestId": pull.number, "codeReviewId": pull.number, "status": status(pull),
        "title": pull.title, "description": pull.body, "isDraft": pull.is_draft,
        "sourceRefName": format!("refs/heads/{}", pull.head), "targetRefName": format!("refs/heads/{}", pull.base),
        "mergeStatus": "succeeded", "createdBy": {"id": USER_ID, "displayName": USER},
        "lastMergeSourceCommit": {"commitId": hub.tip(pull)}, "labels": labels, "reviewers": reviewers,
        "repository": {"id": REPOSITORY_ID, "name": "fleet", "project": {"id": USER_ID, "name": "Web Shop"}},
    });
    if pull.scheduled.is_some() {
        document["autoCompleteSetBy"] = json!({"id": USER_ID});
    }
    if pull.is_from_fork {
        document["forkSource"] = json!({"name": format!("refs/heads/{}", pull.head)});
    }
    document
}
