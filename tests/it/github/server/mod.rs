//! A test server of GitHub: an API on a real bare repository.
//!
//! Trees and commits are real objects of the repository, made by git and signed by gpg. Requests and responses are checked
//! against the published description; a violation fails the test when the server is dropped.

pub(crate) mod description;
mod objects;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use self::description::Description;
use self::objects::Objects;
use crate::signing::GpgHome;
use crate::support::bare_repository::BareRepository;
use crate::support::git_host::GitHost;
use crate::support::git_host::request::Request;
use crate::support::http_front::{Front, Reply};

/// The path of the repository at the server.
pub(crate) const REPOSITORY: &str = "acme/fleet";

/// The prefix of the API, as on GitHub Enterprise Server.
const API: &str = "/api/v3";

/// The path of the GraphQL API there.
const GRAPHQL: &str = "/api/graphql";

/// A running server.
pub(crate) struct GithubServer {
    front: Front,
    state: Arc<State>,
    pub(crate) home: GpgHome,
    /// The fingerprint of the key with which it signs.
    pub(crate) key: String,
}

struct State {
    token: String,
    /// False if the token belongs to a person: GitHub signs for Apps only.
    is_app: Mutex<bool>,
    /// True if the payload of a signature is another one than that of the commit.
    is_garbled: Mutex<bool>,
    objects: Objects,
    description: Description,
    faults: Mutex<Vec<(&'static str, VecDeque<Reply>)>>,
    violations: Mutex<Vec<String>>,
}

impl GithubServer {
    /// Starts a server in front of a git host that serves the repository at `REPOSITORY`.
    ///
    /// Calls must have the token, which belongs to an App.
    pub(crate) fn start(repository: &BareRepository, git: &GitHost, token: &str, description: &str) -> Self {
        let home = GpgHome::new();
        let key = home.key("ed25519", "sign", "");
        let state = Arc::new(State {
            token: token.to_owned(),
            is_app: Mutex::new(true),
            is_garbled: Mutex::new(false),
            objects: Objects::new(repository.clone(), home.path().to_owned(), key.clone()),
            description: Description::load(description),
            faults: Mutex::default(),
            violations: Mutex::default(),
        });
        let answering = Arc::clone(&state);
        let front = Front::before(git.port(), move |request| answering.reply(request));
        Self { front, state, home, key }
    }

    /// The host and port.
    pub(crate) fn address(&self) -> String {
        self.front.address()
    }

    /// The URL of the repository for git.
    pub(crate) fn git_url(&self) -> String {
        self.front.url(&format!("/{REPOSITORY}.git"))
    }

    /// Makes the token that of a person.
    pub(crate) fn demote(&self) {
        *self.state.is_app.lock().unwrap() = false;
    }

    /// Makes the payload of a signature another one than that of the commit.
    pub(crate) fn garble_payload(&self) {
        *self.state.is_garbled.lock().unwrap() = true;
    }

    /// Answers the next call of a resource, such as `git/trees`, like this.
    pub(crate) fn once(&self, resource: &'static str, reply: Reply) {
        let mut faults = self.state.faults.lock().unwrap();
        match faults.iter_mut().find(|(known, _)| *known == resource) {
            Some((_, replies)) => replies.push_back(reply),
            None => faults.push((resource, VecDeque::from([reply]))),
        }
    }

    /// The calls of the GraphQL API so far.
    pub(crate) fn queries(&self) -> usize {
        self.front.requests_for(GRAPHQL).len()
    }

    /// The calls of a resource so far.
    pub(crate) fn calls(&self, resource: &str) -> usize {
        let path = format!("{API}/repos/{REPOSITORY}/{resource}");
        self.front.requests_for(&path).len()
    }
}

impl Drop for GithubServer {
    fn drop(&mut self) {
        let violations = std::mem::take(&mut *self.state.violations.lock().unwrap());
        if !std::thread::panicking() {
            assert!(violations.is_empty(), "calls violate the description: {violations:#?}");
        }
    }
}

impl State {
    fn reply(&self, request: &Request) -> Reply {
        let is_graphql = request.path == GRAPHQL;
        let Some(path) = request.path.strip_prefix(API).or(is_graphql.then_some(GRAPHQL)) else {
            return Reply::Forward;
        };
        if request.authorization() != Some(format!("Bearer {}", self.token).as_str()) {
            return answer(401, &json!({"message": "Bad credentials", "status": "401"}));
        }
        let resource = match is_graphql {
            true => "graphql",
            false => path.strip_prefix(&format!("/repos/{REPOSITORY}/")).unwrap_or_default(),
        };
        {
            let mut faults = self.faults.lock().unwrap();
            let planned = faults.iter_mut().find(|(known, _)| *known == resource);
            if let Some(reply) = planned.and_then(|(_, replies)| replies.pop_front()) {
                return reply;
            }
        }
        let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        if is_graphql {
            assert!(body["query"].as_str().unwrap().contains("viewer"), "{body}");
            let login = if *self.is_app.lock().unwrap() { "tagboat[bot]" } else { "jo" };
            return answer(200, &json!({"data": {"viewer": {"login": login}}}));
        }
        if let Err(violation) = self.description.check_request(&request.method, path, &body) {
            self.violations.lock().unwrap().push(violation);
        }
        let (status, mut response) = match (request.method.as_str(), resource) {
            ("POST", "git/blobs") => self.objects.blob(&body),
            ("POST", "git/trees") => self.objects.tree(&body),
            ("POST", "git/commits") => self.objects.commit(&body, *self.is_app.lock().unwrap()),
            _ => (404, json!({"message": "Not Found", "status": "404"})),
        };
        if *self.is_garbled.lock().unwrap() && !response["verification"].is_null() {
            response["verification"]["payload"] = "tree 1\n\nother".into();
        }
        if let Err(violation) = self.description.check_response(&request.method, path, status, &response) {
            self.violations.lock().unwrap().push(violation);
        }
        answer(status, &response)
    }
}

/// An answer in JSON, with the limits that GitHub states.
pub(crate) fn answer(status: u16, body: &Value) -> Reply {
    let reply = Reply::body(status, body.to_string()).with("Content-Type", "application/json; charset=utf-8");
    reply
        .with("X-RateLimit-Limit", "5000")
        .with("X-RateLimit-Remaining", "4900")
        .with("X-RateLimit-Reset", "600")
}
