//! The API of GitLab in front of a hub, for the project `team/apps/fleet`.

use serde_json::{Value, json};

use super::hub::{Call, Hub, OTHER, Pull, PullState, Refusal, Style, USER, add, answer};
use crate::support::http_front::Reply;

pub(crate) const PROJECT: &str = "team/apps/fleet";
const USERS: [(&str, u64); 2] = [(USER, 31), (OTHER, 32)];

pub(crate) fn respond(hub: &Hub, call: &Call) -> Reply {
    let path: Vec<_> = call.path.iter().map(String::as_str).collect();
    let ["api", "v4", rest @ ..] = path.as_slice() else { return not_found() };
    match (call.method.as_str(), rest) {
        ("GET", ["users"]) => {
            let known = USERS.iter().filter(|(name, _)| call.query("username") == Some(name));
            answer(200, &known.map(|(name, id)| json!({"id": id, "username": name})).collect())
        }
        ("GET", ["projects", PROJECT]) => answer(
            200,
            &json!({
                "path_with_namespace": PROJECT, "merge_method": "rebase_merge", "squash_option": "default_off",
                "only_allow_merge_if_pipeline_succeeds": hub.is_check_required(), "merge_trains_enabled": false,
            }),
        ),
        (method, ["projects", PROJECT, "merge_requests", rest @ ..]) => match (method, rest) {
            ("GET", []) => list(hub, call),
            ("POST", []) => open(hub, call),
            (method, [number, rest @ ..]) => {
                let Some(pull) = number.parse().ok().and_then(|number| hub.pull(number)) else {
                    return not_found();
                };
                match (method, rest) {
                    ("GET", []) => answer(200, &document(hub, &pull)),
                    ("PUT", []) => edit(hub, call, &pull),
                    ("PUT", ["merge"]) => merge(hub, call, &pull),
                    ("POST", ["cancel_merge_when_pipeline_succeeds"]) => match pull.scheduled {
                        Some(_) => {
                            let waiting = hub.change(pull.number, |pull| pull.scheduled = None);
                            answer(201, &document(hub, &waiting))
                        }
                        None => answer(406, &json!({"message": "406 Not Acceptable"})),
                    },
                    ("GET", ["approvals"]) => answer(200, &json!({"approvals_required": 0})),
                    _ => not_found(),
                }
            }
            _ => not_found(),
        },
        _ => not_found(),
    }
}

fn not_found() -> Reply {
    answer(404, &json!({"message": "404 Not Found"}))
}

fn list(hub: &Hub, call: &Call) -> Reply {
    let is_wanted = |pull: &Pull| {
        let state = match pull.state {
            PullState::Open => "opened",
            PullState::Closed => "closed",
            PullState::Merged => "merged",
        };
        ["all", state].contains(&call.query("state").unwrap_or("all"))
            && call.query("source_branch").is_none_or(|head| head == pull.head)
            && call.query("target_branch").is_none_or(|base| base == pull.base)
    };
    let size = call.query("per_page").map_or(20, |size| size.parse().unwrap());
    let page = call.query("page").map_or(1, |page| page.parse::<usize>().unwrap());
    // The limit of a test counts for the place of pages, too.
    let (first, next) = hub.page(is_wanted, 0, size);
    let (found, next) =
        if page == 1 { (first, next) } else { hub.page(is_wanted, first.len() * (page - 1), size) };
    let documents: Vec<_> = found.iter().map(|pull| document(hub, pull)).collect();
    let next = next.map_or(String::new(), |_| (page + 1).to_string());
    answer(200, &Value::Array(documents)).with("X-Next-Page", &next)
}

fn open(hub: &Hub, call: &Call) -> Reply {
    let member = |name: &str| call.text(&format!("/{name}")).unwrap_or_default();
    let (head, base) = (member("source_branch"), member("target_branch"));
    match hub.open(&head, &base, &member("title"), &member("description")) {
        Ok(pull) => {
            let pull = hub.change(pull.number, |pull| {
                pull.labels = split(&member("labels"));
                pull.reviewers = names(&call.body["reviewer_ids"]);
                pull.assignees = names(&call.body["assignee_ids"]);
            });
            answer(201, &document(hub, &pull))
        }
        Err(Refusal::Exists) => answer(
            409,
            &json!({"message": ["Another open merge request already exists for this source branch: !1"]}),
        ),
        Err(refusal) => answer(422, &json!({"message": [format!("{refusal:?}")]})),
    }
}

fn edit(hub: &Hub, call: &Call, pull: &Pull) -> Reply {
    let changed = hub.change(pull.number, |pull| {
        pull.title = call.text("/title").unwrap_or_else(|| pull.title.clone());
        pull.body = call.text("/description").unwrap_or_else(|| pull.body.clone());
        add(&mut pull.labels, split(&call.text("/add_labels").unwrap_or_default()));
        let removed = split(&call.text("/remove_labels").unwrap_or_default());
        pull.labels.retain(|label| !removed.contains(label));
        match call.text("/state_event").as_deref() {
            Some("close") => pull.state = PullState::Closed,
            Some("reopen") => pull.state = PullState::Open,
            _ => {}
        }
    });
    answer(200, &document(hub, &changed))
}

fn merge(hub: &Hub, call: &Call, pull: &Pull) -> Reply {
    let style = if call.body["squash"] == true { Style::Squash } else { Style::Commit };
    let head = call.text("/sha");
    if is_draft(pull) {
        return answer(405, &json!({"message": "405 Method Not Allowed"}));
    }
    match hub.merge(pull.number, head.as_deref(), style) {
        Ok(merged) => answer(200, &document(hub, &merged)),
        Err(Refusal::CheckMissing) if call.body["auto_merge"] == true => {
            let waiting = hub.change(pull.number, |pull| pull.scheduled = Some(style));
            answer(200, &document(hub, &waiting))
        }
        Err(Refusal::OtherHead) => {
            answer(409, &json!({"message": "SHA does not match HEAD of source branch"}))
        }
        Err(Refusal::Conflict) => answer(422, &json!({"message": "Branch cannot be merged"})),
        Err(_) => answer(405, &json!({"message": "405 Method Not Allowed"})),
    }
}

/// The names of known users by their ids.
fn names(ids: &Value) -> Vec<String> {
    let ids = ids.as_array().map(Vec::as_slice).unwrap_or_default();
    let known = USERS.iter().filter(|(_, id)| ids.contains(&json!(id)));
    known.map(|(name, _)| (*name).to_owned()).collect()
}

fn split(labels: &str) -> Vec<String> {
    labels.split(',').filter(|label| !label.is_empty()).map(str::to_owned).collect()
}

fn is_draft(pull: &Pull) -> bool {
    pull.title.starts_with("Draft:")
}

fn document(hub: &Hub, pull: &Pull) -> Value {
    let users = |names: &[String]| -> Value {
        let found = USERS.iter().filter(|(name, _)| names.iter().any(|one| one == name));
        found.map(|(name, id)| json!({"id": id, "username": name})).collect()
    };
    json!({
        "id": 1000 + pull.number, "iid": pull.number, "project_id": 5, "title": pull.title,
        "description": pull.body, "draft": is_draft(pull), "work_in_progress": is_draft(pull),
        "state": match pull.state {
            PullState::Open => "opened",
            PullState::Closed => "closed",
            PullState::Merged => "merged",
        },
        "source_branch": pull.head, "target_branch": pull.base, "sha": hub.tip(pull), "labels": pull.labels,
        "source_project_id": if pull.is_from_fork { 6 } else { 5 }, "target_project_id": 5,
        "merge_when_pipeline_succeeds": pull.scheduled.is_some(), "reviewers": users(&pull.reviewers),
        "assignees": users(&pull.assignees),
        "web_url": format!("https://gitlab.example/{PROJECT}/-/merge_requests/{}", pull.number),
    })
}
