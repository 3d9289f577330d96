//! The API of GitHub in front of a hub, for the repository `acme/fleet`.

use serde_json::{Value, json};

use super::hub::{Call, Hub, OTHER, Pull, PullState, Refusal, Style, USER, add, answer};
use crate::support::http_front::Reply;

pub(crate) fn respond(hub: &Hub, call: &Call) -> Reply {
    let path: Vec<_> = call.path.iter().map(String::as_str).collect();
    // As on GitHub Enterprise Server, or on a host of its own.
    let path = match path.as_slice() {
        ["api", "v3", below @ ..] | ["api", below @ ..] => below,
        below => below,
    };
    match (call.method.as_str(), path) {
        ("POST", ["graphql"]) => graphql(hub, call),
        ("GET", ["repos", "acme", "fleet", "pulls"]) => list(hub, call),
        ("POST", ["repos", "acme", "fleet", "pulls"]) => open(hub, call),
        (method, ["repos", "acme", "fleet", kind @ ("pulls" | "issues"), number, rest @ ..]) => {
            let Some(pull) = number.parse().ok().and_then(|number| hub.pull(number)) else {
                return failure(404, "Not Found");
            };
            match (method, *kind, rest) {
                ("GET", "pulls", []) => answer(200, &document(hub, &pull)),
                ("PATCH", "pulls", []) => edit(hub, call, &pull),
                ("PUT", "pulls", ["merge"]) => merge(hub, call, &pull),
                ("POST", "pulls", ["requested_reviewers"]) => review(hub, call, &pull),
                ("POST", "issues", ["labels"]) => {
                    let names = texts(&call.body["labels"]);
                    let labelled = hub.change(pull.number, |pull| add(&mut pull.labels, names));
                    answer(200, &labels(&labelled))
                }
                ("POST", "issues", ["assignees"]) => {
                    // Unknown ones are dropped.
                    let known = texts(&call.body["assignees"]).into_iter().filter(|name| is_known(name));
                    let assigned = hub.change(pull.number, |pull| add(&mut pull.assignees, known));
                    answer(201, &document(hub, &assigned))
                }
                ("DELETE", "issues", ["labels", name]) => {
                    if !pull.labels.iter().any(|label| label == name) {
                        return failure(404, "Label does not exist");
                    }
                    let left = hub.change(pull.number, |pull| pull.labels.retain(|label| label != name));
                    answer(200, &labels(&left))
                }
                _ => failure(404, "Not Found"),
            }
        }
        _ => failure(404, "Not Found"),
    }
}

fn is_known(name: &str) -> bool {
    [USER, OTHER].contains(&name)
}

fn failure(status: u16, message: &str) -> Reply {
    answer(status, &json!({"message": message, "documentation_url": "https://docs.github.com/rest"}))
}

fn invalid(message: &str) -> Reply {
    let error = json!({"resource": "PullRequest", "code": "custom", "message": message});
    answer(422, &json!({"message": "Validation Failed", "errors": [error]}))
}

fn texts(list: &Value) -> Vec<String> {
    let all = list.as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().map(|one| one.as_str().unwrap().to_owned()).collect()
}

fn list(hub: &Hub, call: &Call) -> Reply {
    let is_wanted = |pull: &Pull| {
        let state = call.query("state").unwrap_or("open");
        (state == "all" || (state == "open") == (pull.state == PullState::Open))
            && call.query("head").is_none_or(|head| head == format!("acme:{}", pull.head))
            && call.query("base").is_none_or(|base| base == pull.base)
    };
    let mut found: Vec<_> = hub.pulls().into_iter().filter(is_wanted).collect();
    if call.query("direction") == Some("desc") {
        found.reverse();
    }
    let number = |name: &str, default: usize| call.query(name).map_or(default, |text| text.parse().unwrap());
    let (size, page) = (number("per_page", 30).min(100), number("page", 1));
    let found = found.iter().skip((page - 1) * size).take(size);
    answer(200, &found.map(|pull| document(hub, pull)).collect())
}

fn open(hub: &Hub, call: &Call) -> Reply {
    let member = |name: &str| call.text(&format!("/{name}")).unwrap_or_default();
    let (head, base) = (member("head"), member("base"));
    match hub.open(&head, &base, &member("title"), &member("body")) {
        Ok(pull) => {
            let opened = hub.change(pull.number, |pull| pull.is_draft = call.body["draft"] == true);
            answer(201, &document(hub, &opened))
        }
        Err(Refusal::Exists) => invalid(&format!("A pull request already exists for acme:{head}.")),
        Err(Refusal::NoChange) => invalid(&format!("No commits between {base} and {head}")),
        Err(refusal) => invalid(&format!("{refusal:?}")),
    }
}

fn edit(hub: &Hub, call: &Call, pull: &Pull) -> Reply {
    let changed = hub.change(pull.number, |pull| {
        pull.title = call.text("/title").unwrap_or_else(|| pull.title.clone());
        pull.body = call.text("/body").unwrap_or_else(|| pull.body.clone());
        match call.text("/state").as_deref() {
            Some("closed") => pull.state = PullState::Closed,
            Some("open") => pull.state = PullState::Open,
            _ => {}
        }
    });
    answer(200, &document(hub, &changed))
}

fn review(hub: &Hub, call: &Call, pull: &Pull) -> Reply {
    let asked = [texts(&call.body["reviewers"]), texts(&call.body["team_reviewers"])].concat();
    if asked.iter().any(|name| !is_known(name)) {
        return failure(422, "Reviews may only be requested from collaborators.");
    }
    let changed = hub.change(pull.number, |pull| add(&mut pull.reviewers, asked));
    answer(201, &document(hub, &changed))
}

fn merge(hub: &Hub, call: &Call, pull: &Pull) -> Reply {
    let style = match call.text("/merge_method").as_deref() {
        Some("squash") => Style::Squash,
        Some("rebase") => Style::Rebase,
        _ => Style::Commit,
    };
    match hub.merge(pull.number, call.text("/sha").as_deref(), style) {
        Ok(merged) => answer(200, &json!({"sha": hub.tip(&merged), "merged": true, "message": "merged"})),
        Err(Refusal::OtherHead) => failure(409, "Head branch was modified. Review and try the merge again."),
        Err(refusal) => failure(405, &format!("Pull Request is not mergeable: {refusal:?}")),
    }
}

fn graphql(hub: &Hub, call: &Call) -> Reply {
    let query = call.text("/query").unwrap_or_default();
    let refused = |message: &str| answer(200, &json!({"data": null, "errors": [{"message": message}]}));
    if query.contains("mergeQueue(") {
        let node = |number: u64| json!({"pullRequest": {"number": number}});
        let entries = |numbers: Vec<u64>| numbers.into_iter().map(node).collect::<Vec<_>>();
        let queue = hub.queue().map(|numbers| json!({"entries": {"nodes": entries(numbers)}}));
        return answer(200, &json!({"data": {"repository": {"mergeQueue": queue}}}));
    }
    if query.starts_with("mutation") {
        let input = &call.body["variables"]["input"];
        let number = input["pullRequestId"].as_str().unwrap().trim_start_matches("PR_").parse().unwrap();
        if query.contains("enqueuePullRequest") {
            if hub.is_check_missing() {
                return refused("Pull request Required status check \"ci\" is expected.");
            }
            hub.enqueue(number);
            return answer(200, &json!({"data": {"enqueuePullRequest": {"mergeQueueEntry": {"id": "MQE"}}}}));
        }
        if query.contains("disablePullRequestAutoMerge") {
            hub.change(number, |pull| pull.scheduled = None);
            let done = json!({"disablePullRequestAutoMerge": {"pullRequest": {"id": "PR"}}});
            return answer(200, &json!({ "data": done }));
        }
        if !hub.is_check_missing() && hub.queue().is_none() {
            return refused("Pull request Pull request is in clean status");
        }
        let style = match input["mergeMethod"].as_str() {
            Some(_) if hub.queue().is_some() => {
                return refused("The merge strategy is set by the merge queue");
            }
            Some("SQUASH") => Style::Squash,
            Some("REBASE") => Style::Rebase,
            _ => Style::Commit,
        };
        hub.change(number, |pull| pull.scheduled = Some(style));
        return answer(200, &json!({"data": {"enablePullRequestAutoMerge": {"pullRequest": {"id": "PR"}}}}));
    }
    let number = call.body["variables"]["number"].as_u64().unwrap();
    let Some(pull) = hub.pull(number) else {
        return answer(
            200,
            &json!({"data": null, "errors": [{"type": "NOT_FOUND", "message": "Could not resolve"}]}),
        );
    };
    let (tip, queue) = (hub.tip(&pull), hub.queue());
    let rule = json!({"requiresApprovingReviews": false, "requiresStatusChecks": hub.is_check_required()});
    let status = match tip.as_deref() {
        // The first question makes GitHub compute the answer.
        Some(tip) if !hub.has_computed(tip) => "UNKNOWN",
        _ if hub.is_check_missing() => "BLOCKED",
        _ => "CLEAN",
    };
    let found = json!({
        "id": format!("PR_{number}"), "headRefOid": tip, "mergeStateStatus": status,
        "isInMergeQueue": queue.as_ref().is_some_and(|queue| queue.contains(&number)),
        "isMergeQueueEnabled": queue.is_some(),
        "autoMergeRequest": pull.scheduled.map(|_| json!({"enabledAt": "2026-01-01T00:00:00Z"})),
        "baseRef": {"branchProtectionRule": rule, "rules": {"nodes": []}},
    });
    answer(200, &json!({"data": {"repository": {"pullRequest": found}}}))
}

fn labels(pull: &Pull) -> Value {
    pull.labels.iter().map(|name| json!({"name": name})).collect()
}

fn document(hub: &Hub, pull: &Pull) -> Value {
    let owner = if pull.is_from_fork { "eve/fleet" } else { "acme/fleet" };
    json!({
        "number": pull.number, "title": pull.title, "body": pull.body, "draft": pull.is_draft,
        "html_url": format!("https://github.com/acme/fleet/pull/{}", pull.number),
        "state": if pull.state == PullState::Open { "open" } else { "closed" },
        "merged_at": (pull.state == PullState::Merged).then_some("2026-01-01T00:00:00Z"),
        "assignees": pull.assignees.iter().map(|name| json!({"login": name})).collect::<Vec<_>>(),
        "labels": labels(pull), "auto_merge": pull.scheduled.map(|_| json!({"merge_method": "merge"})),
        "head": {"ref": pull.head, "sha": hub.tip(pull), "repo": {"full_name": owner}},
        "base": {"ref": pull.base, "repo": {"full_name": "acme/fleet"}},
    })
}
