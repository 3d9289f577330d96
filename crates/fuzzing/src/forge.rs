//! Any bytes as the responses of the API of each forge.

use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use serde_json::Value;
use tagboat::forge::github::{Github, GithubRepository};
use tagboat::forge::{
    ApiRequest, ApiResponse, AzureDevops, AzureRepository, Bitbucket, BitbucketDataCenter,
    BitbucketRepository, DataCenterRepository, Endpoint, Forge, ForgeError, Gitea, GiteaRepository, Gitlab,
    GitlabProject, Listing, Merge, MergeAnswer, MergeTime, NewPullRequest, PullRequest, PullRequestEdit,
    PullRequestState, Transport,
};
use tagboat::printable::is_unprintable;

/// The maximum number of requests of one operation.
const MAX_REQUESTS: usize = 5_000;

/// Answers requests by the lines of an input: a status, a space, and a body.
struct Lines<'i> {
    rest: Mutex<Vec<&'i [u8]>>,
    requests: Mutex<usize>,
}

impl Transport for &Lines<'_> {
    async fn send(&self, request: ApiRequest) -> Result<ApiResponse, ForgeError> {
        let mut requests = self.requests.lock().expect("no thread panics with it");
        *requests += 1;
        assert!(*requests < MAX_REQUESTS, "{request:?}");
        assert!(request.path.iter().all(|part| !matches!(part.as_str(), "" | "." | "..")), "{request:?}");
        let line = self.rest.lock().expect("no thread panics with it").pop();
        let parsed = line.and_then(|line| {
            let (status, body) = line.split_at_checked(3)?;
            let status = std::str::from_utf8(status).ok()?.parse().ok()?;
            let body =
                if body.trim_ascii().is_empty() { Value::Null } else { serde_json::from_slice(body).ok()? };
            Some(ApiResponse::new(status, Vec::new(), body))
        });
        // As a transport does for a body that is no JSON.
        parsed.ok_or_else(|| ForgeError::Unavailable {
            host: "forge".to_owned(),
            detail: "no answer".to_owned(),
        })
    }
}

/// Reads any bytes as responses to each operation of each forge.
///
/// Accepted pull requests have an address that can be followed; sentences are bounded and printable; each operation ends.
pub fn forge(input: &[u8]) {
    let endpoint =
        || Endpoint { host: "forge".to_owned(), login: "Secret apps/forge".to_owned(), has_given_url: false };
    let text = str::to_owned;
    for operation in 0..7 {
        let lines = || {
            let mut rest: Vec<_> = input.split(|byte| *byte == b'\n').collect();
            rest.reverse();
            Lines { rest: Mutex::new(rest), requests: Mutex::new(0) }
        };
        let (both, github) = (lines(), GithubRepository { owner: text("acme"), name: text("fleet") });
        let owner = text("Secret apps/forge");
        use_one(&Github::new((&both, &both), github, text("forge"), owner), operation);
        let gitea = GiteaRepository { owner: text("team"), name: text("fleet") };
        use_one(&Gitea::new(&lines(), endpoint(), gitea), operation);
        use_one(&Gitlab::new(&lines(), endpoint(), GitlabProject { path: text("team/fleet") }), operation);
        let bitbucket = BitbucketRepository { workspace: text("team"), slug: text("fleet") };
        use_one(&Bitbucket::new(&lines(), endpoint(), bitbucket), operation);
        let data_center = DataCenterRepository { project: text("OPS"), slug: text("fleet") };
        use_one(&BitbucketDataCenter::new(&lines(), endpoint(), data_center), operation);
        let azure =
            AzureRepository { organization: text("acme"), project: text("shop"), name: text("fleet") };
        use_one(&AzureDevops::new(&lines(), endpoint(), azure), operation);
    }
}

/// Runs one of the operations, and checks its result.
fn use_one(forge: &impl Forge, operation: u8) {
    let new = new();
    match operation {
        0 => check(run(forge.open_pull_requests(&mut Listing::all()))),
        1 => check(run(forge.find(&new.head, &new.base))),
        2 => check(run(forge.open(&new)).map(|opened| {
            opened.refused.iter().for_each(|sentence| check_sentence(sentence));
            vec![opened.pull_request]
        })),
        3 => check(run(forge.edit(&current(&new), &edit())).map(|edited| {
            edited.refused.iter().for_each(|sentence| check_sentence(sentence));
            vec![edited.pull_request]
        })),
        6 => check(run(forge.merge_queue(&new.base)).map(|_| Vec::new())),
        _ => {
            let time = if operation == 4 { MergeTime::WhenReady } else { MergeTime::Immediately };
            let head_commit = "1111111111111111111111111111111111111111".parse().expect("a valid id");
            let merge = Merge { time, method: None, head_commit };
            check(run(forge.merge(&current(&new), &merge)).map(|answer| {
                if let MergeAnswer::NotYet { reason } | MergeAnswer::Refused { reason } = answer {
                    check_sentence(&reason);
                }
                Vec::new()
            }));
        }
    }
}

fn check(result: Result<Vec<PullRequest>, ForgeError>) {
    match result {
        Ok(found) => {
            for one in found {
                let is_page = one.url.starts_with("https://") || one.url.starts_with("http://");
                assert!(is_page && one.url.len() < 8_192 && !one.url.contains(is_unprintable), "{one:?}");
            }
        }
        Err(error) => check_sentence(&error.to_string()),
    }
}

fn check_sentence(sentence: &str) {
    assert!(sentence.len() < 8_192 && !sentence.contains(is_unprintable), "{sentence:?}");
}

/// Runs a future that never waits.
fn run<V>(future: impl Future<Output = V>) -> V {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing here waits"),
    }
}

fn new() -> NewPullRequest {
    NewPullRequest {
        head: "tagboat/web".parse().expect("a valid name"),
        base: "main".parse().expect("a valid name"),
        title: "Update".to_owned(),
        body: "text".to_owned(),
        is_draft: true,
        labels: vec!["images".to_owned()],
        reviewers: vec!["ann".to_owned(), "d6245f20-2af8-44f4-9451-8107cb2767db".to_owned()],
        assignees: vec!["ann".to_owned()],
        completed_body: None,
    }
}

fn edit() -> PullRequestEdit {
    PullRequestEdit {
        title: Some("New".to_owned()),
        body: Some("text".to_owned()),
        added_labels: vec!["a".to_owned()],
        removed_labels: vec!["b".to_owned()],
        added_reviewers: Vec::new(),
        added_assignees: Vec::new(),
        is_closed: true,
        is_text_recent: false,
        judged: None,
    }
}

fn current(new: &NewPullRequest) -> PullRequest {
    PullRequest {
        number: 7,
        url: "https://forge.example/7".to_owned(),
        state: PullRequestState::Open,
        head: new.head.clone(),
        head_commit: None,
        lacks_branch: false,
        base: new.base.clone(),
        title: new.title.clone(),
        body: new.body.clone(),
        is_draft: false,
        labels: Vec::new(),
        is_in_merge_queue: false,
        has_auto_merge: false,
        version: Some(1),
    }
}
