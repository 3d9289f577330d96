//! The API of Bitbucket Data Center in front of a hub.
//! The repository is `fleet` of the project `OPS`, and the context path `/code`.

use serde_json::{Value, json};

use super::hub::{Call, Hub, OTHER, Pull, PullState, Refusal, Style, USER, add, answer};
use crate::support::http_front::Reply;

pub(crate) fn respond(hub: &Hub, call: &Call) -> Reply {
    let path: Vec<_> = call.path.iter().map(String::as_str).collect();
    let ["code", "rest", "api", "latest", "projects", "OPS", "repos", "fleet", rest @ ..] = path.as_slice()
    else {
        return not_found();
    };
    match (call.method.as_str(), rest) {
        ("GET", ["settings", "pull-requests"]) => {
            let builds = json!({"enabled": hub.is_check_required(), "count": "1"});
            let approvers = json!({"enabled": false, "count": "0"});
            answer(200, &json!({"requiredSuccessfulBuilds": builds, "requiredApprovers": approvers}))
        }
        ("GET", ["pull-requests"]) => list(hub, call),
        ("POST", ["pull-requests"]) => open(hub, call),
        (method, ["pull-requests", number, rest @ ..]) => {
            let Some(pull) = number.parse().ok().and_then(|number| hub.pull(number)) else {
                return not_found();
            };
            let is_current = call.query("version") == Some(&pull.version.to_string());
            match (method, rest) {
                ("GET", []) => answer(200, &document(hub, &pull)),
                ("GET", ["merge"]) => answer(200, &json!({"canMerge": true, "vetoes": []})),
                ("GET", ["auto-merge"]) => match pull.scheduled {
                    Some(_) => answer(200, &json!({"createdDate": 1, "fromHash": hub.tip(&pull)})),
                    None => failure(404, "no auto-merge was asked for"),
                },
                ("DELETE", ["auto-merge"]) => match pull.scheduled {
                    Some(_) => {
                        hub.change(pull.number, |pull| pull.scheduled = None);
                        answer(204, &json!(null))
                    }
                    None => failure(404, "no auto-merge was asked for"),
                },
                ("PUT", []) => edit(hub, call, &pull),
                ("POST", ["decline" | "merge"]) if !is_current => out_of_date(),
                ("POST", ["decline"]) => {
                    let declined = hub.change(pull.number, |pull| pull.state = PullState::Closed);
                    answer(200, &document(hub, &declined))
                }
                ("POST", ["merge"]) => merge(hub, call, &pull),
                ("POST", ["participants"]) => {
                    let name = call.text("/user/name").unwrap_or_default();
                    if ![USER, OTHER].contains(&name.as_str()) || call.body["role"] != "REVIEWER" {
                        return failure(404, "the user does not exist");
                    }
                    hub.change(pull.number, |pull| add(&mut pull.reviewers, [name.clone()]));
                    answer(200, &json!({"user": {"name": name}, "role": "REVIEWER"}))
                }
                _ => not_found(),
            }
        }
        _ => not_found(),
    }
}

fn failure(status: u16, text: &str) -> Reply {
    answer(status, &json!({"errors": [{"context": null, "message": text, "exceptionName": null}]}))
}

fn not_found() -> Reply {
    failure(404, "there is no such resource")
}

fn out_of_date() -> Reply {
    failure(409, "you are attempting to modify a pull request based on out-of-date information")
}

fn state(pull: &Pull) -> &'static str {
    match pull.state {
        PullState::Open => "OPEN",
        PullState::Closed => "DECLINED",
        PullState::Merged => "MERGED",
    }
}

fn list(hub: &Hub, call: &Call) -> Reply {
    let is_wanted = |pull: &Pull| {
        ["ALL", state(pull)].contains(&call.query("state").unwrap_or("OPEN"))
            && call.query("at").is_none_or(|at| at == format!("refs/heads/{}", pull.head))
    };
    assert!(
        call.query("at").is_none() || call.query("direction") == Some("OUTGOING"),
        "by default it is the base"
    );
    let number = |name: &str, default: usize| call.query(name).map_or(default, |text| text.parse().unwrap());
    let (found, next) = hub.page(is_wanted, number("start", 0), number("limit", 25));
    let values: Vec<_> = found.iter().map(|pull| document(hub, pull)).collect();
    answer(200, &json!({"values": values, "isLastPage": next.is_none(), "nextPageStart": next}))
}

fn open(hub: &Hub, call: &Call) -> Reply {
    let member = |pointer: &str| call.text(pointer).unwrap_or_default();
    let branch = |pointer: &str| member(pointer).trim_start_matches("refs/heads/").to_owned();
    let (head, base) = (branch("/fromRef/id"), branch("/toRef/id"));
    match hub.open(&head, &base, &member("/title"), &member("/description")) {
        Ok(pull) => {
            let pull = hub.change(pull.number, |pull| pull.is_draft = call.body["draft"] == true);
            answer(201, &document(hub, &pull))
        }
        Err(Refusal::Exists) => failure(409, "only one pull request may be open for two branches"),
        Err(refusal) => failure(409, &format!("{refusal:?}")),
    }
}

fn edit(hub: &Hub, call: &Call, pull: &Pull) -> Reply {
    if call.body["version"] != json!(pull.version) {
        return out_of_date();
    }
    // As the server does: parts that are missing are removed.
    let changed = hub.change(pull.number, |pull| {
        pull.title = call.text("/title").unwrap_or_default();
        pull.body = call.text("/description").unwrap_or_default();
        pull.is_draft = call.body["draft"] == true;
        let reviewers = call.body["reviewers"].as_array().cloned().unwrap_or_default();
        pull.reviewers =
            reviewers.iter().map(|one| one["user"]["name"].as_str().unwrap().to_owned()).collect();
    });
    answer(200, &document(hub, &changed))
}

fn merge(hub: &Hub, call: &Call, pull: &Pull) -> Reply {
    let style = match call.text("/strategyId").as_deref() {
        Some("squash") => Style::Squash,
        Some("rebase-ff-only") => Style::Rebase,
        Some("no-ff") | None => Style::Commit,
        Some(other) => return failure(400, &format!("{other} is not enabled")),
    };
    match hub.merge(pull.number, None, style) {
        Ok(merged) => answer(200, &document(hub, &merged)),
        Err(Refusal::CheckMissing) if call.body["autoMerge"] == true => {
            let waiting = hub.change(pull.number, |pull| pull.scheduled = Some(style));
            answer(202, &document(hub, &waiting))
        }
        Err(refusal) => failure(409, &format!("{refusal:?}")),
    }
}

fn document(hub: &Hub, pull: &Pull) -> Value {
    let reviewers: Vec<_> =
        pull.reviewers.iter().map(|name| json!({"user": {"name": name}, "role": "REVIEWER"})).collect();
    let page =
        format!("https://bitbucket.example/code/projects/OPS/repos/fleet/pull-requests/{}", pull.number);
    let reference = |branch: &str, tip: Option<String>, repository: u64| {
        json!({
            "id": format!("refs/heads/{branch}"), "displayId": branch, "latestCommit": tip,
            "repository": {"id": repository, "slug": "fleet", "project": {"key": "OPS"}},
        })
    };
    let base = hub.repository.id(&format!("refs/heads/{}", pull.base));
    json!({
        "id": pull.number, "version": pull.version, "title": pull.title, "description": pull.body,
        "state": state(pull), "open": pull.state == PullState::Open, "draft": pull.is_draft,
        "fromRef": reference(&pull.head, hub.tip(pull), if pull.is_from_fork { 9 } else { 4 }),
        "toRef": reference(&pull.base, base, 4), "reviewers": reviewers, "links": {"self": [{"href": page}]},
    })
}
