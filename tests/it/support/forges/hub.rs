//! The state of a test server: pull requests beside a bare repository with real merges.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tempfile::TempDir;

use super::wire::Exchange;
use crate::support::bare_repository::BareRepository;
use crate::support::content::file;
use crate::support::git_host::request::Request;
use crate::support::git_host::{Access, GitHost, Settings};
use crate::support::git_program::git;
use crate::support::http_front::{Front, Reply};
use crate::support::program::run;

/// The header `Authorization` that a hub wants.
pub(crate) const AUTHORIZATION: &str = "Bearer test-token";

/// The token, and the user whose password for git it is.
pub(crate) const TOKEN: &str = "test-token";
pub(crate) const GIT_USER: &str = "bot";

/// The login of Azure DevOps, which takes its tokens as passwords, with the same token.
const AZURE_AUTHORIZATION: &str = "Basic OnRlc3QtdG9rZW4=";

/// The known users, with ids in the form of each forge.
pub(crate) const USER: &str = "ann";
pub(crate) const OTHER: &str = "bob";

/// A server's repository and pull requests.
pub(crate) struct Hub {
    pub(crate) repository: BareRepository,
    state: Mutex<State>,
    directory: TempDir,
}

#[derive(Default)]
struct State {
    pulls: Vec<Pull>,
    is_check_required: bool,
    is_check_passed: bool,
    /// The numbers in the merge queue, if there is one.
    queue: Option<Vec<u64>>,
    /// The tips of which it is known if they can be merged.
    computed: BTreeSet<String>,
    page_size: Option<usize>,
    exchanges: Vec<Exchange>,
}

/// A pull request of a hub.
#[derive(Debug, Clone)]
pub(crate) struct Pull {
    pub(crate) number: u64,
    pub(crate) title: String,
    pub(crate) body: String,
    pub(crate) head: String,
    pub(crate) base: String,
    pub(crate) state: PullState,
    pub(crate) is_draft: bool,
    pub(crate) is_from_fork: bool,
    pub(crate) labels: Vec<String>,
    pub(crate) reviewers: Vec<String>,
    pub(crate) assignees: Vec<String>,
    pub(crate) version: u64,
    /// The style of the merge that is scheduled.
    pub(crate) scheduled: Option<Style>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PullState {
    Open,
    Closed,
    Merged,
}

/// A way to merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Commit,
    Squash,
    Rebase,
}

/// The reason for which a hub refuses something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Exists,
    NoBranch,
    NoChange,
    NotOpen,
    OtherHead,
    Conflict,
    CheckMissing,
}

/// A request, taken apart.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) method: String,
    /// The segments of the path, decoded.
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Call {
    pub(crate) fn of(request: &Request) -> Self {
        let segments = request.path.split('/').filter(|part| !part.is_empty());
        let decoded = |part: &str| String::from_utf8(tagboat::net::percent::decode(part).unwrap()).unwrap();
        Self {
            method: request.method.clone(),
            path: segments.map(decoded).collect(),
            query: url::form_urlencoded::parse(request.query.as_bytes()).into_owned().collect(),
            body: serde_json::from_slice(&request.body).unwrap_or_default(),
        }
    }

    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self, pointer: &str) -> Option<String> {
        Some(self.body.pointer(pointer)?.as_str()?.to_owned())
    }
}

/// Adds names to a list that lacks them.
pub(crate) fn add(list: &mut Vec<String>, names: impl IntoIterator<Item = String>) {
    for name in names {
        if !list.contains(&name) {
            list.push(name);
        }
    }
}

/// A JSON answer.
pub(crate) fn answer(status: u16, body: &Value) -> Reply {
    Reply::body(status, body.to_string()).with("Content-Type", "application/json")
}

impl Hub {
    /// A hub whose repository has a branch `main`.
    pub(crate) fn new() -> Arc<Self> {
        let directory = tempfile::tempdir().unwrap();
        let repository =
            BareRepository::with_files(&directory.path().join("fleet.git"), &[file("app.yaml", "tag: 1\n")]);
        Arc::new(Self { repository, state: Mutex::default(), directory })
    }

    /// Serves an API in front of this hub.
    pub(crate) fn serve(
        self: &Arc<Self>,
        respond: impl Fn(&Self, &Call) -> Reply + Send + Sync + 'static,
    ) -> Front {
        let hub = Arc::clone(self);
        Front::alone(move |request| hub.reply(request, &respond))
    }

    /// Serves an API at the origin of git, where the repository has a path.
    pub(crate) fn serve_with_git(
        self: &Arc<Self>,
        path: &str,
        respond: impl Fn(&Self, &Call) -> Reply + Send + Sync + 'static,
    ) -> (Front, GitHost) {
        let place = self.directory.path().join("served").join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        symlink(self.repository.path(), &place).unwrap();
        let settings = Settings { access: Access::basic(GIT_USER, TOKEN), tls: None };
        let host = GitHost::start(&self.directory.path().join("served"), settings);
        let hub = Arc::clone(self);
        let front = Front::before(host.port(), move |request| {
            let is_git = ["/info/refs", "/git-upload-pack", "/git-receive-pack"];
            if is_git.iter().any(|end| request.path.ends_with(end)) {
                return Reply::Forward;
            }
            hub.reply(request, &respond)
        });
        (front, host)
    }

    fn reply(&self, request: &Request, respond: &impl Fn(&Self, &Call) -> Reply) -> Reply {
        if ![Some(AUTHORIZATION), Some(AZURE_AUTHORIZATION)].contains(&request.authorization()) {
            return answer(401, &serde_json::json!({"message": "401 Unauthorized"}));
        }
        let call = Call::of(request);
        let reply = respond(self, &call);
        if let Reply::Answer { status, body, .. } = &reply {
            let response = serde_json::from_slice(body).unwrap_or_default();
            let Call { method, path, query, body } = call;
            let body = (!body.is_null()).then_some(body);
            let exchange =
                Exchange { method: method.to_lowercase(), path, query, body, status: *status, response };
            self.state.lock().unwrap().exchanges.push(exchange);
        }
        reply
    }

    /// Every exchange so far.
    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.state.lock().unwrap().exchanges.clone()
    }

    /// Makes a branch with one commit on top of `main`; returns its id.
    pub(crate) fn branch(&self, name: &str) -> String {
        self.repository.move_branch(name, &self.repository.id("main").unwrap());
        self.repository.commit(name, &format!("Update {name}"), &[file(format!("{name}.yaml"), "tag: 2\n")])
    }

    pub(crate) fn require_check(&self) {
        self.state.lock().unwrap().is_check_required = true;
    }

    pub(crate) fn is_check_required(&self) -> bool {
        self.state.lock().unwrap().is_check_required
    }

    /// Limits the entries of a page.
    pub(crate) fn limit_pages(&self, size: usize) {
        self.state.lock().unwrap().page_size = Some(size);
    }

    /// True if a merge would lack a required check.
    pub(crate) fn is_check_missing(&self) -> bool {
        let state = self.state.lock().unwrap();
        state.is_check_required && !state.is_check_passed
    }

    /// Reports the check as passed.
    ///
    /// Pull requests that waited for it are merged, or are in the merge queue.
    pub(crate) fn pass_check(&self) {
        self.state.lock().unwrap().is_check_passed = true;
        let waiting: Vec<_> =
            self.pulls().into_iter().filter_map(|pull| Some((pull.number, pull.scheduled?))).collect();
        for (number, style) in waiting {
            if self.queue().is_none() {
                self.merge(number, None, style).unwrap();
            } else {
                self.change(number, |pull| pull.scheduled = None);
                self.enqueue(number);
            }
        }
    }

    /// Has pull requests merged by a queue.
    pub(crate) fn merge_by_queue(&self) {
        self.state.lock().unwrap().queue = Some(Vec::new());
    }

    /// The numbers in the merge queue, if there is one.
    pub(crate) fn queue(&self) -> Option<Vec<u64>> {
        self.state.lock().unwrap().queue.clone()
    }

    /// Puts a pull request into the merge queue.
    pub(crate) fn enqueue(&self, number: u64) {
        self.state.lock().unwrap().queue.as_mut().expect("a merge queue").push(number);
    }

    /// Takes a pull request out of the merge queue.
    pub(crate) fn dequeue(&self, number: u64) {
        self.state.lock().unwrap().queue.as_mut().expect("a merge queue").retain(|one| *one != number);
    }

    /// True from the second question on if a tip can be merged.
    pub(crate) fn has_computed(&self, tip: &str) -> bool {
        !self.state.lock().unwrap().computed.insert(tip.to_owned())
    }

    pub(crate) fn pulls(&self) -> Vec<Pull> {
        self.state.lock().unwrap().pulls.clone()
    }

    pub(crate) fn pull(&self, number: u64) -> Option<Pull> {
        self.pulls().into_iter().find(|pull| pull.number == number)
    }

    /// Changes a pull request, which raises its version.
    pub(crate) fn change(&self, number: u64, change: impl FnOnce(&mut Pull)) -> Pull {
        let mut state = self.state.lock().unwrap();
        let pull = state.pulls.iter_mut().find(|pull| pull.number == number).expect("a known number");
        change(pull);
        pull.version += 1;
        pull.clone()
    }

    /// The tip of a pull request's head.
    pub(crate) fn tip(&self, pull: &Pull) -> Option<String> {
        self.repository.id(&format!("refs/heads/{}", pull.head))
    }

    /// Opens a pull request, if its branches differ and none is open for them.
    pub(crate) fn open(&self, head: &str, base: &str, title: &str, body: &str) -> Result<Pull, Refusal> {
        let tips = [head, base].map(|name| self.repository.id(&format!("refs/heads/{name}")));
        let [Some(head_tip), Some(base_tip)] = tips else { return Err(Refusal::NoBranch) };
        if head_tip == base_tip {
            return Err(Refusal::NoChange);
        }
        let is_same = |pull: &Pull| {
            pull.head == head && pull.base == base && pull.state == PullState::Open && !pull.is_from_fork
        };
        if self.pulls().iter().any(is_same) {
            return Err(Refusal::Exists);
        }
        Ok(self.add(head, base, title, body, false))
    }

    /// Adds the pull request of a fork with a branch of the same name.
    pub(crate) fn open_from_fork(&self, head: &str) -> Pull {
        self.add(head, "main", "From elsewhere", "", true)
    }

    fn add(&self, head: &str, base: &str, title: &str, body: &str, is_from_fork: bool) -> Pull {
        let mut state = self.state.lock().unwrap();
        let pull = Pull {
            number: state.pulls.len() as u64 + 1,
            title: title.to_owned(),
            body: body.to_owned(),
            head: head.to_owned(),
            base: base.to_owned(),
            state: PullState::Open,
            is_draft: false,
            is_from_fork,
            labels: Vec::new(),
            reviewers: Vec::new(),
            assignees: Vec::new(),
            version: 0,
            scheduled: None,
        };
        state.pulls.push(pull.clone());
        pull
    }

    /// The newest first, and those from `start` on; also the place of the next page.
    pub(crate) fn page(
        &self,
        is_wanted: impl Fn(&Pull) -> bool,
        start: usize,
        size: usize,
    ) -> (Vec<Pull>, Option<usize>) {
        let size = self.state.lock().unwrap().page_size.map_or(size, |limit| limit.min(size));
        let all: Vec<_> = self.pulls().into_iter().rev().filter(is_wanted).collect();
        let end = all.len().min(start + size);
        (all[start.min(end)..end].to_vec(), (end < all.len()).then_some(end))
    }

    /// Merges a pull request in the repository, if its head is the expected one.
    pub(crate) fn merge(&self, number: u64, head: Option<&str>, style: Style) -> Result<Pull, Refusal> {
        let pull = self.pull(number).filter(|pull| pull.state == PullState::Open).ok_or(Refusal::NotOpen)?;
        let tip = self.tip(&pull).ok_or(Refusal::NoBranch)?;
        if head.is_some_and(|head| head != tip) {
            return Err(Refusal::OtherHead);
        }
        if self.is_check_missing() {
            return Err(Refusal::CheckMissing);
        }
        let base = self.repository.id(&format!("refs/heads/{}", pull.base)).ok_or(Refusal::NoBranch)?;
        let tree = line(self.repository.path(), &["merge-tree", "--write-tree", &base, &tip]);
        let tree = tree.ok_or(Refusal::Conflict)?;
        let common = line(self.repository.path(), &["merge-base", &base, &tip]);
        let commit = |parents: &[&str]| {
            let mut arguments = vec!["commit-tree", "-m", &pull.title, tree.as_str()];
            for parent in parents {
                arguments.extend(["-p", parent]);
            }
            line(self.repository.path(), &arguments).unwrap()
        };
        let merged = match style {
            Style::Commit => commit(&[&base, &tip]),
            Style::Squash => commit(&[&base]),
            Style::Rebase if common.as_ref() == Some(&base) => tip,
            Style::Rebase => commit(&[&base]),
        };
        self.repository.move_branch(&pull.base, &merged);
        Ok(self.change(number, |pull| (pull.state, pull.scheduled) = (PullState::Merged, None)))
    }
}

/// The first line that git prints, if it succeeds.
fn line(repository: &Path, arguments: &[&str]) -> Option<String> {
    let ran = run(git(repository).args(arguments));
    (ran.status == Some(0)).then(|| ran.output.lines().next().unwrap_or_default().to_owned())
}
