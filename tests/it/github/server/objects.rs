//! Blobs, trees and commits of the API, made by git and signed by gpg.

use std::path::PathBuf;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::bare_repository::BareRepository;
use crate::support::git_program::{git, harden, output};
use crate::support::program::{installed, run};

/// The repository, and the key that signs.
pub(super) struct Objects {
    repository: BareRepository,
    home: PathBuf,
    key: String,
}

/// A status and a body.
type Answer = (u16, Value);

impl Objects {
    pub(super) fn new(repository: BareRepository, home: PathBuf, key: String) -> Self {
        Self { repository, home, key }
    }

    pub(super) fn blob(&self, body: &Value) -> Answer {
        let content = body["content"].as_str().unwrap_or_default();
        let content = match body["encoding"].as_str() {
            Some("base64") => STANDARD.decode(content).unwrap(),
            _ => content.as_bytes().to_vec(),
        };
        let sha = self.write("blob", &content);
        (201, json!({"sha": sha, "url": format!("https://api.github.com/blobs/{sha}")}))
    }

    pub(super) fn tree(&self, body: &Value) -> Answer {
        let index = tempfile::NamedTempFile::new().unwrap();
        let with_index = |arguments: &[&str]| {
            let mut command = git(self.repository.path());
            command.env("GIT_INDEX_FILE", index.path().with_extension("index")).args(arguments);
            command
        };
        if let Some(base) = body["base_tree"].as_str() {
            let read = run(&mut with_index(&["read-tree", base]));
            if read.status != Some(0) {
                return (404, json!({"message": "Not Found", "status": "404"}));
            }
        }
        for entry in body["tree"].as_array().unwrap() {
            let sha = match (entry["sha"].as_str(), entry["content"].as_str()) {
                (Some(sha), None) => sha.to_owned(),
                (None, Some(content)) => self.write("blob", content.as_bytes()),
                other => panic!("an entry has either an id or a content: {other:?}"),
            };
            let (mode, path) = (entry["mode"].as_str().unwrap(), entry["path"].as_str().unwrap());
            let entry = format!("{mode},{sha},{path}");
            output(&mut with_index(&["update-index", "--add", "--cacheinfo", &entry]), b"");
        }
        let sha = text(output(&mut with_index(&["write-tree"]), b""));
        let _ = std::fs::remove_file(index.path().with_extension("index"));
        let listed = String::from_utf8(self.repository.git(["ls-tree", &sha])).unwrap();
        let entries = listed.lines().map(|line| {
            let (head, path) = line.split_once('\t').unwrap();
            let [mode, kind, sha] = *head.split(' ').collect::<Vec<_>>() else { panic!("{line}") };
            json!({"path": path, "mode": mode, "type": kind, "sha": sha})
        });
        let entries: Vec<Value> = entries.collect();
        (
            201,
            json!({"sha": sha, "url": "https://api.github.com/trees/1", "tree": entries, "truncated": false}),
        )
    }

    pub(super) fn commit(&self, body: &Value, is_app: bool) -> Answer {
        let (tree, message) = (body["tree"].as_str().unwrap(), body["message"].as_str().unwrap());
        let parents: Vec<&str> =
            body["parents"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
        for (id, kind) in parents.iter().map(|id| (*id, "commit")).chain([(tree, "tree")]) {
            let found =
                run(git(self.repository.path()).args(["cat-file", "-e", &format!("{id}^{{{kind}}}")]));
            if found.status != Some(0) {
                let message = format!("{kind} SHA does not exist or is not a {kind} object");
                return (
                    422,
                    json!({"message": message, "documentation_url": "https://docs.github.com", "errors": []}),
                );
            }
        }
        let parent_lines: String = parents.iter().map(|id| format!("parent {id}\n")).collect();
        let (author, committer) = match is_app {
            true => ("tagboat[bot] <1+tagboat[bot]@users.noreply.github.com>", "GitHub <noreply@github.com>"),
            false => ("Ann <ann@example.com>", "Ann <ann@example.com>"),
        };
        // GitHub's clock, which differs from ours.
        let time = "1800000000 +0000";
        let payload = format!(
            "tree {tree}\n{parent_lines}author {author} {time}\ncommitter {committer} {time}\n\n{message}"
        );
        let is_signed = is_app && body["author"].is_null() && body["committer"].is_null();
        let signature = is_signed.then(|| self.sign(&payload));
        let content = match &signature {
            Some(signature) => {
                let (headers, message) = payload.split_once("\n\n").unwrap();
                format!("{headers}\ngpgsig {}\n\n{message}", signature.replace('\n', "\n "))
            }
            None => payload.clone(),
        };
        let sha = self.write("commit", content.as_bytes());
        let person = json!({"date": "2027-01-15T08:00:00Z", "name": "x", "email": "x@example.com"});
        let url = "https://api.github.com/commits/1";
        let parents: Vec<Value> =
            parents.iter().map(|id| json!({"sha": id, "url": url, "html_url": url})).collect();
        let verification = json!({
            "verified": is_signed,
            "reason": if is_signed { "valid" } else { "unsigned" },
            "payload": is_signed.then_some(&payload),
            "signature": signature,
            "verified_at": is_signed.then_some("2027-01-15T08:00:00Z"),
        });
        let answer = json!({
            "sha": sha, "node_id": "C_1", "url": url, "html_url": url, "author": person, "committer": person,
            "tree": {"sha": tree, "url": url}, "message": message, "parents": parents, "verification": verification,
        });
        (201, answer)
    }

    fn sign(&self, payload: &str) -> String {
        let mut command = Command::new(installed("gpg"));
        harden(&mut command).env("GNUPGHOME", &self.home);
        command.args(["--quiet", "--batch", "--armor", "--detach-sign", "--local-user", &self.key]);
        String::from_utf8(output(&mut command, payload.as_bytes())).unwrap()
    }

    fn write(&self, kind: &str, content: &[u8]) -> String {
        text(output(git(self.repository.path()).args(["hash-object", "-w", "-t", kind, "--stdin"]), content))
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap().trim_end().to_owned()
}
