//! The real Gitea, on loopback.
//! There is one for all tests, and a repository for each.
//!
//! ```text
//! let repository = GiteaRepository::new("life").await;   // with a branch `main`
//! repository.branch("tagboat/web").await;                // one commit on top of `main`
//! let forge = repository.forge();                        // the client under test
//! repository.call("POST", "branch_protections", json!({"rule_name": "main"})).await;
//! ```

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::panic::catch_unwind;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::built_program::GITEA;
use super::forges::description::Description;
use super::forges::wire::Wire;
use super::process_reaper::ProcessReaper;

/// The user who owns all repositories.
pub(crate) const OWNER: &str = "bot";
/// Another user, who may read them.
pub(crate) const OTHER: &str = "ann";

/// The settings of the server.
/// It refuses to run as root without the third line.
const SETTINGS: &str = "RUN_MODE = prod
WORK_PATH = @DIRECTORY@
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = @PORT@
ROOT_URL = http://127.0.0.1:@PORT@/
@STATIC@
OFFLINE_MODE = true
DISABLE_SSH = true
[database]
DB_TYPE = sqlite3
PATH = @DIRECTORY@/gitea.db
[security]
INSTALL_LOCK = true
PASSWORD_HASH_ALGO = pbkdf2
[repository]
ROOT = @DIRECTORY@/repositories
[git]
HOME_PATH = @DIRECTORY@/home
[indexer]
ISSUE_INDEXER_TYPE = db
[actions]
ENABLED = false
[packages]
ENABLED = false
[cron]
ENABLED = false
[api]
MAX_RESPONSE_ITEMS = @PAGE@
[log]
LEVEL = Warn
";

/// The entries of a page.
///
/// There are few in tests, which read several pages, and as many as usual in benchmarks.
const PAGE: &str = if matches!(env!("CARGO_CRATE_NAME").as_bytes(), b"it") { "10" } else { "50" };

/// The running server.
struct Server {
    port: u16,
    /// The tokens of the two users.
    owner_token: String,
    other_token: String,
    _reaper: ProcessReaper,
}

impl Server {
    fn shared() -> &'static Self {
        static SHARED: OnceLock<Option<Server>> = OnceLock::new();
        // The first test reports the failed start; the others do not try it again.
        let shared = SHARED.get_or_init(|| catch_unwind(Self::start).ok());
        shared.as_ref().expect("Gitea starts: see the test that failed first")
    }

    fn start() -> Self {
        let started = (0..3).find_map(|_| Self::try_start());
        started.expect("of three free ports one stays free until Gitea takes it")
    }

    fn try_start() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap().keep();
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let program = GITEA.file();
        // Built without its texts and templates, which are in a directory beside it.
        let built = fs::canonicalize(&program).unwrap().with_file_name("gitea-static");
        let texts =
            if built.is_dir() { format!("STATIC_ROOT_PATH = {}", built.display()) } else { String::new() };
        let settings = SETTINGS
            .replace("@DIRECTORY@", directory.to_str().unwrap())
            .replace("@PORT@", &port.to_string())
            .replace("@PAGE@", PAGE)
            .replace("@STATIC@", &texts);
        fs::create_dir(directory.join("home")).unwrap();
        fs::write(directory.join("app.ini"), settings).unwrap();
        let run = |arguments: &[&str]| run(&mut command(&program, &directory), arguments);
        run(&["migrate"]);
        let user = |name: &str, more: &[&str]| {
            let mail = format!("{name}@example.com");
            let fixed = [
                "admin",
                "user",
                "create",
                "--username",
                name,
                "--password",
                "correct-horse-9",
                "--email",
                &mail,
                "--must-change-password=false",
                "--access-token",
                "--access-token-scopes",
                "all",
            ];
            token(&run(&[fixed.as_slice(), more].concat()))
        };
        let (owner_token, other_token) = (user(OWNER, &["--admin"]), user(OTHER, &[]));
        let mut serve = command(&program, &directory);
        serve.arg("web");
        let reaper = ProcessReaper::start_with(&serve, &directory).unwrap();
        let begin = Instant::now();
        while !answers(port) {
            let output = reaper.output();
            if output.contains("address already in use") {
                return None;
            }
            assert!(begin.elapsed() < Duration::from_secs(90), "Gitea does not start: {output}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(Self { port, owner_token, other_token, _reaper: reaper })
    }
}

fn command(program: &Path, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", directory).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("USER", std::env::var_os("USER").unwrap_or_else(|| "root".into()));
    command.current_dir(directory).arg("--config").arg(directory.join("app.ini"));
    command
}

fn run(command: &mut Command, arguments: &[&str]) -> String {
    let output = command.args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// The token in the output of the command that creates a user: 40 hexadecimal digits.
fn token(output: &str) -> String {
    let is_token = |word: &&str| word.len() == 40 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    output.split_whitespace().find(is_token).unwrap_or_else(|| panic!("a token: {output}")).to_owned()
}

/// Returns true if the API answers at a port.
fn answers(port: u16) -> bool {
    let ask = || {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"GET /api/v1/version HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        stream.take(4096).read_to_string(&mut answer)?;
        std::io::Result::Ok(answer.contains("\"version\""))
    };
    ask().unwrap_or(false)
}

/// A repository of a test's own.
pub(crate) struct GiteaRepository {
    pub(crate) name: String,
    /// Sends requests of the owner, checked by the description of the API.
    pub(crate) wire: Wire,
}

impl GiteaRepository {
    /// Makes a repository with one commit on `main`.
    pub(crate) async fn new(name: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("{name}-{}", COUNT.fetch_add(1, Ordering::SeqCst));
        let server = Server::shared();
        let description = Description::read("gitea-1.26.4.json").with_status("merge", 201);
        let base = base(server.port);
        let wire = Wire::new(&base, &format!("token {}", server.owner_token)).checked_by(description);
        let body = json!({"name": name, "auto_init": true, "default_branch": "main"});
        wire.call("POST", "user/repos", body).await;
        Self { name, wire }
    }

    /// The client of this repository.
    pub(crate) fn forge(&self) -> tagboat::forge::Gitea<Wire> {
        let place = tagboat::forge::GiteaRepository { owner: OWNER.to_owned(), name: self.name.clone() };
        tagboat::forge::Gitea::new(self.wire.clone(), Wire::endpoint(), place)
    }

    /// The port of the server.
    pub(crate) fn port(&self) -> u16 {
        Server::shared().port
    }

    /// The URL for git.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/{OWNER}/{}.git", Server::shared().port, self.name)
    }

    /// The token of the owner.
    pub(crate) fn token() -> &'static str {
        &Server::shared().owner_token
    }

    /// The token of the other user.
    pub(crate) fn other_token() -> &'static str {
        &Server::shared().other_token
    }

    /// Commits a file to a branch, as a person does; returns the id.
    pub(crate) async fn write(&self, branch: &str, path: &str, text: &str) -> String {
        let (content, message) = (STANDARD.encode(text), "By hand");
        let mut body = json!({"content": content, "message": message, "branch": branch});
        let path_of = format!("repos/{OWNER}/{}/contents/{path}?ref={branch}", self.name);
        let (status, found) = self.wire.send("GET", &path_of, None).await;
        let method = if status == 200 {
            body["sha"] = found["sha"].clone();
            "PUT"
        } else {
            "POST"
        };
        let done = self.call(method, &format!("contents/{path}"), body).await;
        done["commit"]["sha"].as_str().unwrap().to_owned()
    }

    /// The content of a file on a branch.
    pub(crate) async fn read(&self, branch: &str, path: &str) -> String {
        let found = self.call("GET", &format!("contents/{path}?ref={branch}"), json!(null)).await;
        String::from_utf8(STANDARD.decode(found["content"].as_str().unwrap()).unwrap()).unwrap()
    }

    /// The tip of a branch, if it exists.
    pub(crate) async fn tip(&self, branch: &str) -> Option<String> {
        let path = format!("repos/{OWNER}/{}/branches/{}", self.name, branch.replace('/', "%2F"));
        let (status, found) = self.wire.send("GET", &path, None).await;
        // Gitea answers so while a branch is being deleted.
        let is_vanishing =
            status == 500 && found["message"].as_str().is_some_and(|text| text.contains("does not exist"));
        assert!(status == 200 || status == 404 || is_vanishing, "{status} {found}");
        found["commit"]["id"].as_str().map(str::to_owned)
    }

    /// Sends a request below the repository, and returns the status too.
    pub(crate) async fn try_call(&self, method: &str, below: &str, body: Value) -> (u16, Value) {
        self.wire.send(method, &format!("repos/{OWNER}/{}/{below}", self.name), Some(&body)).await
    }

    /// Sends a request below the repository; it must succeed.
    pub(crate) async fn call(&self, method: &str, below: &str, body: Value) -> Value {
        self.wire.call(method, &format!("repos/{OWNER}/{}/{below}", self.name), body).await
    }

    /// All pull requests, the oldest first.
    pub(crate) async fn pulls(&self) -> Vec<Value> {
        let mut all = Vec::new();
        for page in 1.. {
            let path = format!("pulls?state=all&sort=oldest&limit=50&page={page}");
            let found = self.call("GET", &path, json!(null)).await;
            let found = found.as_array().unwrap();
            if found.is_empty() {
                break;
            }
            all.extend(found.iter().cloned());
        }
        all
    }

    /// Makes a branch with one commit on top of `main`; returns its id.
    pub(crate) async fn branch(&self, name: &str) -> String {
        self.commit("main", name, &format!("{name}.yaml")).await
    }

    /// Commits a new file to a branch, or to a new one.
    /// Returns the id of the commit.
    pub(crate) async fn commit(&self, from: &str, to: &str, path: &str) -> String {
        self.call("POST", &format!("contents/{path}"), new_file(from, to)).await["commit"]["sha"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Opens a pull request from a branch of the same name in a fork.
    pub(crate) async fn open_from_fork(&self, branch: &str) -> u64 {
        let server = Server::shared();
        let wire = Wire::new(&base(server.port), &format!("token {}", server.other_token));
        wire.call("POST", &format!("repos/{OWNER}/{}/forks", self.name), json!({})).await;
        let path = format!("repos/{OTHER}/{}/contents/fork.yaml", self.name);
        // The fork has all branches.
        wire.call("POST", &path, new_file(branch, branch)).await;
        let body = json!({"head": format!("{OTHER}:{branch}"), "base": "main", "title": "From elsewhere"});
        let opened = wire.call("POST", &format!("repos/{OWNER}/{}/pulls", self.name), body).await;
        opened["number"].as_u64().unwrap()
    }
}

fn base(port: u16) -> String {
    format!("http://127.0.0.1:{port}/api/v1")
}

fn new_file(from: &str, to: &str) -> Value {
    let content = STANDARD.encode("tag: 2\n");
    let mut body = json!({"content": content, "message": "Update", "branch": from});
    if to != from {
        body["new_branch"] = json!(to);
    }
    body
}
