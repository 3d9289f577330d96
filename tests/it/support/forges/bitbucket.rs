//! The API of Bitbucket Cloud in front of a hub, for the repository `team/fleet`.

use serde_json::{Value, json};

use super::hub::{Call, Hub, OTHER, Pull, PullState, Refusal, Style, USER, answer};
use crate::support::http_front::Reply;

const USERS: [(&str, &str); 2] =
    [(USER, "{504c3b62-8120-4f0c-a7bc-87800b9d6f70}"), (OTHER, "{6b1d7f0a-1c02-4a7b-9a35-1de4b84e8d11}")];

pub(crate) fn respond(hub: &Hub, call: &Call) -> Reply {
    let path: Vec<_> = call.path.iter().map(String::as_str).collect();
    match (call.method.as_str(), path.as_slice()) {
        ("GET", ["2.0", "workspaces", "team", "members"]) => {
            let member = |(name, id): &(&str, &str)| json!({"user": {"uuid": id, "nickname": name, "account_id": "5:1"}});
            answer(200, &json!({"values": USERS.iter().map(member).collect::<Vec<_>>()}))
        }
        (method, ["2.0", "repositories", "team", "fleet", rest @ ..]) => match (method, rest) {
            ("GET", ["refs", "branches", name]) => match hub.repository.id(&format!("refs/heads/{name}")) {
                Some(tip) => answer(200, &json!({"name": name, "target": {"hash": tip}})),
                None => not_found(),
            },
            ("GET", ["pullrequests"]) => list(hub, call),
            ("POST", ["pullrequests"]) => open(hub, call),
            (method, ["pullrequests", number, rest @ ..]) => {
                let Some(pull) = number.parse().ok().and_then(|number| hub.pull(number)) else {
                    return not_found();
                };
                match (method, rest) {
                    ("GET", []) => answer(200, &document(hub, &pull)),
                    ("PUT", []) => edit(hub, call, &pull),
                    ("POST", ["decline"]) => {
                        let declined = hub.change(pull.number, |pull| pull.state = PullState::Closed);
                        answer(200, &document(hub, &declined))
                    }
                    ("POST", ["merge"]) => merge(hub, call, &pull),
                    _ => not_found(),
                }
            }
            _ => not_found(),
        },
        _ => not_found(),
    }
}

fn failure(status: u16, text: &str) -> Reply {
    answer(status, &json!({"type": "error", "error": {"message": text}}))
}

fn not_found() -> Reply {
    failure(404, "Resource not found")
}

fn state(pull: &Pull) -> &'static str {
    match pull.state {
        PullState::Open => "OPEN",
        PullState::Closed => "DECLINED",
        PullState::Merged => "MERGED",
    }
}

fn list(hub: &Hub, call: &Call) -> Reply {
    let states: Vec<_> =
        call.query.iter().filter(|(name, _)| name == "state").map(|(_, value)| value.as_str()).collect();
    let is_wanted = |pull: &Pull| {
        let wanted =
            format!("source.branch.name=\"{}\" AND destination.branch.name=\"{}\"", pull.head, pull.base);
        states.contains(&state(pull)) && call.query("q").is_none_or(|filter| filter == wanted)
    };
    let size = call.query("pagelen").map_or(10, |size| size.parse().unwrap());
    assert!(size <= 50, "Bitbucket refuses larger pages");
    let page = call.query("page").map_or(1, |page| page.parse::<usize>().unwrap());
    let (first, next) = hub.page(is_wanted, 0, size);
    let (found, next) =
        if page == 1 { (first, next) } else { hub.page(is_wanted, first.len() * (page - 1), size) };
    let mut body = json!({"values": found.iter().map(|pull| document(hub, pull)).collect::<Vec<_>>()});
    if next.is_some() {
        body["next"] = json!(format!("https://api.bitbucket.org/2.0/x?page={}", page + 1));
    }
    answer(200, &body)
}

fn open(hub: &Hub, call: &Call) -> Reply {
    let member = |pointer: &str| call.text(pointer).unwrap_or_default();
    let (head, base) = (member("/source/branch/name"), member("/destination/branch/name"));
    match hub.open(&head, &base, &member("/title"), &member("/description")) {
        Ok(pull) => {
            let pull = hub.change(pull.number, |pull| pull.is_draft = call.body["draft"] == true);
            answer(201, &document(hub, &pull))
        }
        Err(refusal) => failure(400, &format!("{refusal:?}")),
    }
}

fn edit(hub: &Hub, call: &Call, pull: &Pull) -> Reply {
    let Some(title) = call.text("/title") else { return failure(400, "title is required") };
    let reviewers = call.body["reviewers"].as_array().cloned().unwrap_or_default();
    let known = |one: &Value| USERS.iter().find(|(_, id)| one["uuid"] == *id);
    if let Some(unknown) = reviewers.iter().find(|one| known(one).is_none()) {
        return failure(400, &format!("{} is not a valid user", unknown["uuid"]));
    }
    let changed = hub.change(pull.number, |pull| {
        pull.title = title;
        pull.body = call.text("/description").unwrap_or_default();
        pull.is_draft = call.body["draft"] == true;
        pull.reviewers = reviewers.iter().filter_map(known).map(|(name, _)| (*name).to_owned()).collect();
    });
    answer(200, &document(hub, &changed))
}

fn merge(hub: &Hub, call: &Call, pull: &Pull) -> Reply {
    let style = match call.text("/merge_strategy").as_deref() {
        Some("squash") => Style::Squash,
        Some("rebase_fast_forward") => Style::Rebase,
        Some("merge_commit") | None => Style::Commit,
        Some(other) => return failure(400, &format!("{other} is not a strategy")),
    };
    match hub.merge(pull.number, None, style) {
        Ok(merged) => answer(200, &document(hub, &merged)),
        Err(Refusal::Conflict) => failure(409, "The merge has conflicts"),
        Err(refusal) => failure(400, &format!("{refusal:?}")),
    }
}

fn document(hub: &Hub, pull: &Pull) -> Value {
    let found = USERS.iter().filter(|(name, _)| pull.reviewers.iter().any(|one| one == name));
    let reviewers: Vec<_> = found.map(|(name, id)| json!({"uuid": id, "nickname": name})).collect();
    let source = if pull.is_from_fork { "other/fleet" } else { "team/fleet" };
    json!({
        "type": "pullrequest", "id": pull.number, "title": pull.title, "description": pull.body,
        "summary": {"raw": pull.body}, "state": state(pull), "draft": pull.is_draft, "reviewers": reviewers,
        "source": {
            "branch": {"name": pull.head}, "repository": {"full_name": source},
            "commit": {"hash": hub.tip(pull).map(|tip| tip[..12].to_owned())},
        },
        "destination": {"branch": {"name": pull.base}, "repository": {"full_name": "team/fleet"}},
        "links": {"html": {"href": format!("https://bitbucket.org/team/fleet/pull-requests/{}", pull.number)}},
    })
}
