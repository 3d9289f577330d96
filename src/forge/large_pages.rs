//! Listings with pages that are too large, and reading by number, at each forge.

use serde_json::{Value, json};

use super::script::{endpoint, run};
use super::*;
use crate::forge::github::{Github, GithubRepository};

const HEAD: &str = "1111111111111111111111111111111111111111";

/// The number of pull requests.
const TOTAL: usize = 107;

/// The number of the pull request that is too large alone.
const LARGE: usize = 55;

/// Answers with pages of at most 30 entries.
struct Server<F> {
    /// Makes a page of entries, of which the first one has an index.
    page: F,
    /// Makes an entry.
    entry: fn(usize) -> Value,
}

impl<F: Fn(usize, Vec<Value>) -> Value + Send + Sync> Transport for &Server<F> {
    async fn send(&self, request: ApiRequest) -> Result<ApiResponse, ForgeError> {
        let number = |names: &[&str]| {
            let found = request.query.iter().find(|(name, _)| names.contains(name));
            found.map(|(_, value)| value.parse::<usize>().unwrap())
        };
        let Some(size) = number(&["per_page", "pagelen", "limit", "$top"]) else {
            let one: usize = request.path.last().unwrap().parse().unwrap();
            return Ok(ApiResponse::new(200, Vec::new(), (self.entry)(one - 1)));
        };
        let start = number(&["start", "$skip"]);
        let start = start.unwrap_or_else(|| (number(&["page"]).unwrap() - 1) * size);
        let entries = start.min(TOTAL)..(start + size).min(TOTAL);
        if entries.len() > 30 || entries.contains(&LARGE) {
            let (host, operation) = ("forge.example".to_owned(), request.operation);
            return Err(ForgeError::TooLarge { host, operation, limit: SizeLimit::Bytes(1) });
        }
        let body = (self.page)(start, entries.map(self.entry).collect());
        Ok(ApiResponse::new(200, Vec::new(), body))
    }
}

/// Panics unless all pull requests but the large one are listed.
fn check(name: &str, forge: &impl Forge) {
    let mut found = run(forge.open_pull_requests(&mut Listing::all())).unwrap();
    found.sort_by_key(|one| one.number);
    let numbers: Vec<_> = found.iter().map(|one| one.number).collect();
    let wanted: Vec<_> = (0..TOTAL).filter(|at| *at != LARGE).map(|at| at as u64 + 1).collect();
    assert_eq!(numbers, wanted, "{name}");
    assert_eq!(run(forge.get(8)).unwrap(), found[7], "{name}: by number");
    let heads = [found[7].head.clone()].into();
    let found = run(forge.open_pull_requests(&mut Listing::of(heads, |body| body == "text 9"))).unwrap();
    let mut numbers: Vec<_> = found.iter().map(|one| one.number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [8, 9], "{name}: by head, and by mark");
}

fn list(_: usize, entries: Vec<Value>) -> Value {
    entries.into()
}

#[test]
fn a_page_that_is_too_large_is_read_in_parts_at_each_forge() {
    let entry = |at: usize| {
        json!({
            "number": at + 1, "html_url": "https://h/1", "state": "open", "title": "T", "body": format!("text {}", at + 1),
            "head": {"ref": format!("h{at}"), "sha": HEAD, "repo": {"full_name": "acme/fleet"}},
            "base": {"ref": "main", "repo": {"full_name": "acme/fleet"}},
        })
    };
    let server = Server { page: list, entry };
    let repository = GithubRepository { owner: "acme".to_owned(), name: "fleet".to_owned() };
    check("github", &Github::new((&server, &server), repository, String::new(), String::new()));

    let entry = |at: usize| {
        json!({
            "iid": at + 1, "web_url": "https://h/1", "state": "opened", "description": format!("text {}", at + 1),
            "source_branch": format!("h{at}"), "target_branch": "main", "source_project_id": 5, "target_project_id": 5,
        })
    };
    let server = Server { page: list, entry };
    check("gitlab", &Gitlab::new(&server, endpoint(), GitlabProject { path: "a/b".to_owned() }));

    let entry = |at: usize| {
        json!({
            "number": at + 1, "html_url": "https://h/1", "state": "open", "body": format!("text {}", at + 1),
            "head": {"label": format!("h{at}"), "repo_id": 1}, "base": {"ref": "main", "repo_id": 1},
        })
    };
    let server = Server { page: list, entry };
    let repository = GiteaRepository { owner: "team".to_owned(), name: "fleet".to_owned() };
    check("gitea", &Gitea::new(&server, endpoint(), repository));

    let entry = |at: usize| {
        let side = |branch: String| json!({"branch": {"name": branch}, "repository": {"full_name": "a/b"}});
        json!({
            "id": at + 1, "links": {"html": {"href": "https://h/1"}}, "state": "OPEN",
            "description": format!("text {}", at + 1),
            "source": side(format!("h{at}")), "destination": side("main".to_owned()),
        })
    };
    let page = |start: usize, entries: Vec<Value>| match start + entries.len() {
        TOTAL => json!({ "values": entries }),
        _ => json!({"values": entries, "next": "https://h/next"}),
    };
    let server = Server { page, entry };
    let repository = BitbucketRepository { workspace: "a".to_owned(), slug: "b".to_owned() };
    check("bitbucket", &Bitbucket::new(&server, endpoint(), repository));

    let entry = |at: usize| {
        let side = |branch: String| json!({"id": format!("refs/heads/{branch}"), "repository": {"id": 1}});
        json!({
            "id": at + 1, "version": 1, "links": {"self": [{"href": "https://h/1"}]}, "state": "OPEN",
            "description": format!("text {}", at + 1),
            "fromRef": side(format!("h{at}")), "toRef": side("main".to_owned()),
        })
    };
    let page = |start: usize, entries: Vec<Value>| {
        let next = start + entries.len();
        json!({"values": entries, "isLastPage": next == TOTAL, "nextPageStart": next})
    };
    let server = Server { page, entry };
    let repository = DataCenterRepository { project: "A".to_owned(), slug: "b".to_owned() };
    check("bitbucket-data-center", &BitbucketDataCenter::new(&server, endpoint(), repository));

    let entry = |at: usize| {
        json!({
            "pullRequestId": at + 1, "status": "active", "description": format!("text {}", at + 1),
            "sourceRefName": format!("refs/heads/h{at}"), "targetRefName": "refs/heads/main",
        })
    };
    let server = Server { page: |_, entries| json!({ "value": entries }), entry };
    let repository =
        AzureRepository { organization: "a".to_owned(), project: "b".to_owned(), name: "c".to_owned() };
    check("azure-devops", &AzureDevops::new(&server, endpoint(), repository));
}
