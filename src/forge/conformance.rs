//! Compares our requests with those of public Go clients, which `make oracle` records.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::script::{endpoint, run};
use super::{
    ApiRequest, ApiResponse, Bitbucket, BitbucketDataCenter, BitbucketRepository, DataCenterRepository,
    Forge, ForgeError, Gitlab, GitlabProject, Listing, Merge, MergeMethod, MergeTime, NewPullRequest,
    PullRequestEdit, Transport, bitbucket, bitbucket_data_center, gitlab,
};
use crate::net::percent;

/// Answers each request by a function, and records it.
// Marked again for the inventory of shared maps, which reads each file by itself.
#[cfg(test)]
struct Echo<F> {
    answer: F,
    requests: Mutex<Vec<ApiRequest>>,
}

impl<F: Fn(&ApiRequest) -> Value + Send + Sync> Transport for &Echo<F> {
    async fn send(&self, request: ApiRequest) -> Result<ApiResponse, ForgeError> {
        let body = (self.answer)(&request);
        self.requests.lock().push(request);
        Ok(ApiResponse::new(200, Vec::new(), body))
    }
}

/// The names of the parameters and of the members, by method and path.
type Table = BTreeMap<String, [BTreeSet<String>; 2]>;

fn echo<F: Fn(&ApiRequest) -> Value + Send + Sync>(answer: F) -> Echo<F> {
    Echo { answer, requests: Mutex::default() }
}

/// Collects the names of all members that are not empty, as the recorder does.
fn members(prefix: &str, value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(all) => {
            for (name, below) in all {
                let dot = if prefix.is_empty() { "" } else { "." };
                members(&format!("{prefix}{dot}{name}"), below, found);
            }
        }
        Value::Array(all) => all.iter().for_each(|below| members(prefix, below, found)),
        Value::Null => {}
        value if *value == json!("") || *value == json!(0) || *value == json!(false) => {}
        _ => {
            found.insert(prefix.to_owned());
        }
    }
}

/// Returns the table of our requests.
fn ours(requests: &[ApiRequest]) -> Table {
    let mut table = Table::new();
    for request in requests {
        let segment = |part: &String| match part.parse::<u64>() {
            Ok(_) => "{number}".to_owned(),
            Err(_) => percent::encode(part.as_bytes()),
        };
        let path: Vec<_> = request.path.iter().map(segment).collect();
        let key = format!("{:?} {}", request.method, path.join("/"))
            .replace("branches/tagboat%2Fweb", "branches/main");
        let [query, body] = table.entry(key.to_uppercase()).or_default();
        query.extend(request.query.iter().map(|(name, _)| (*name).to_owned()));
        members("", request.body.as_ref().unwrap_or(&Value::Null), body);
    }
    table
}

/// Returns the table of a client's requests.
fn theirs(client: &str) -> Table {
    let text = include_str!("../../testdata/forges/go-clients.json");
    let rows: Vec<Value> = serde_json::from_str(text).unwrap();
    let names = |value: &Value| {
        value.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    let of_client = rows.iter().filter(|row| row["client"] == client);
    let row = |row: &Value| {
        let key = format!("{} {}", row["method"].as_str().unwrap(), row["path"].as_str().unwrap());
        (key.to_uppercase(), [names(&row["query"]), names(&row["members"])])
    };
    of_client.map(row).collect()
}

/// Panics unless both tables are equal, but for parts that only we send.
fn compare(client: &str, requests: &[ApiRequest], only_ours: &[(&str, &[&str])]) {
    let (mut ours, theirs) = (ours(requests), theirs(client));
    for (key, parts) in only_ours {
        let [query, body] = ours.get_mut(&key.to_uppercase()).unwrap_or_else(|| panic!("{key} is not sent"));
        for part in *parts {
            assert!(query.remove(*part) | body.remove(*part), "{key} {part} is not sent");
        }
    }
    assert_eq!(ours, theirs);
}

fn new() -> NewPullRequest {
    NewPullRequest {
        head: "tagboat/web".parse().unwrap(),
        base: "main".parse().unwrap(),
        title: "Update web".to_owned(),
        body: "text".to_owned(),
        is_draft: true,
        labels: vec!["images".to_owned()],
        reviewers: vec!["ann".to_owned()],
        assignees: vec!["ann".to_owned()],
        completed_body: None,
    }
}

/// Opens, lists, edits, closes, merges and cancels the merge.
fn use_all(forge: &impl Forge, head: &str, times: &[MergeTime]) {
    let new = new();
    let opened = run(forge.open(&new)).unwrap().pull_request;
    run(forge.open_pull_requests(&mut Listing::all())).unwrap();
    run(forge.find(&new.head, &new.base)).unwrap();
    let edit = PullRequestEdit {
        title: Some("New".to_owned()),
        body: Some("text".to_owned()),
        added_labels: vec!["a".to_owned()],
        removed_labels: vec!["b".to_owned()],
        added_reviewers: Vec::new(),
        added_assignees: Vec::new(),
        is_closed: true,
        is_text_recent: false,
        judged: None,
    };
    run(forge.edit(&opened, &edit)).unwrap();
    run(forge.edit(&opened, &PullRequestEdit::default())).unwrap();
    for time in times {
        let merge =
            Merge { time: *time, method: Some(MergeMethod::Squash), head_commit: head.parse().unwrap() };
        run(forge.merge(&opened, &merge)).unwrap();
    }
    run(forge.cancel_merge(&opened)).unwrap();
}

#[test]
fn gitlab_is_asked_as_its_own_client_asks() {
    let mut requests = Vec::new();
    for has_trains in [false, true] {
        let answer = |request: &ApiRequest| {
            let mut document = gitlab::tests::document(7, "opened");
            document["merge_when_pipeline_succeeds"] = json!(true);
            let is_first = request.query.iter().any(|(name, value)| *name == "page" && value == "1");
            match request.operation {
                "look up a user" => json!([{"id": 31}]),
                "list merge requests" if is_first => json!([document]),
                "list merge requests" | "list the merge trains" => json!([]),
                "read the project" => json!({"merge_trains_enabled": has_trains}),
                "read the approvals" => json!({"approvals_required": 1}),
                _ => document,
            }
        };
        let echo = echo(answer);
        let project = GitlabProject { path: "team/apps/fleet".to_owned() };
        let forge = Gitlab::new(&echo, endpoint(), project);
        use_all(&forge, gitlab::tests::HEAD, &[MergeTime::WhenReady]);
        requests.extend(echo.requests.into_inner());
    }
    compare("gitlab", &requests, &[]);
}

#[test]
fn bitbucket_is_asked_as_a_public_client_asks() {
    let is_open = Mutex::new(false);
    let answer = |request: &ApiRequest| {
        let mut document = bitbucket::tests::document(7, "OPEN");
        document["draft"] = json!(true);
        match request.operation {
            "list pull requests" if *is_open.lock() => json!({"values": [document]}),
            "list pull requests" => json!({"values": []}),
            "open a pull request" => {
                *is_open.lock() = true;
                document
            }
            "list the members of the workspace" => {
                json!({"values": [{"user": {"uuid": "{a}", "nickname": "ann"}}]})
            }
            "read a branch" => json!({"target": {"hash": bitbucket::tests::HEAD}}),
            _ => document,
        }
    };
    let echo = echo(answer);
    let repository = BitbucketRepository { workspace: "team".to_owned(), slug: "fleet".to_owned() };
    let forge = Bitbucket::new(&echo, endpoint(), repository);
    use_all(&forge, bitbucket::tests::HEAD, &[MergeTime::Immediately]);
    // The client leaves the size of a page to the server, and follows addresses of pages.
    let pages: &[&str] = &["pagelen", "page"];
    let only_ours =
        [("GET repositories/team/fleet/pullrequests", pages), ("GET workspaces/team/members", pages)];
    compare("bitbucket", &echo.requests.into_inner(), &only_ours);
}

#[test]
fn bitbucket_data_center_is_asked_as_a_public_client_asks() {
    let answer = |request: &ApiRequest| {
        let mut document = bitbucket_data_center::tests::document(7, "OPEN", 5);
        document["draft"] = json!(true);
        let is_first = request.query.iter().any(|(name, value)| *name == "start" && value == "0");
        match request.operation {
            "list pull requests" if is_first => json!({"values": [document], "isLastPage": true}),
            "read the settings" => json!({}),
            "test a merge" => json!({"vetoes": [{}]}),
            _ => document,
        }
    };
    let echo = echo(answer);
    let repository = DataCenterRepository { project: "OPS".to_owned(), slug: "fleet".to_owned() };
    let forge = BitbucketDataCenter::new(&echo, endpoint(), repository);
    use_all(&forge, bitbucket_data_center::tests::HEAD, &[MergeTime::WhenReady]);
    let path = "projects/OPS/repos/fleet/pull-requests";
    // The client is older than drafts and auto-merge, gives no role to a participant, and lets its caller make the body of a merge.
    // It cannot keep reviewers in an update.
    let only_ours: [(String, &[&str]); 4] = [
        (format!("POST {path}"), &["draft"]),
        (format!("PUT {path}/{{number}}"), &["draft", "reviewers.user.name"]),
        (format!("POST {path}/{{number}}/participants"), &["user.name", "role"]),
        (format!("POST {path}/{{number}}/merge"), &["autoMerge", "strategyId"]),
    ];
    let only_ours: Vec<_> = only_ours.iter().map(|(key, parts)| (key.as_str(), *parts)).collect();
    let mut requests = echo.requests.into_inner();
    requests.retain(|request| !["read the auto-merge", "cancel an auto-merge"].contains(&request.operation));
    compare("bitbucket-data-center", &requests, &only_ours);
}
