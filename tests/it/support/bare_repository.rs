//! Bare repositories, as on a server, which tests make and inspect without a work tree.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::content::{Change, Content};
use super::git_program::{SECOND, git, output};
use super::program::run;

/// A bare repository on disk. Its first branch is `main`.
#[derive(Debug, Clone)]
pub(crate) struct BareRepository {
    path: PathBuf,
}

/// A commit as `log` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoggedCommit {
    pub(crate) id: String,
    pub(crate) parents: Vec<String>,
    /// `Name <address>`.
    pub(crate) author: String,
    pub(crate) committer: String,
    pub(crate) message: String,
}

impl BareRepository {
    /// An existing repository.
    pub(crate) fn existing(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// A repository without commits, which accepts pushes over HTTP.
    pub(crate) fn empty(path: &Path) -> Self {
        Self::init(path, "sha1")
    }

    /// A repository without commits, with ids of SHA-256.
    pub(crate) fn empty_sha256(path: &Path) -> Self {
        Self::init(path, "sha256")
    }

    /// A repository with one commit on `main`.
    pub(crate) fn with_files(path: &Path, files: &[Change]) -> Self {
        let repository = Self::empty(path);
        repository.commit("main", "Begin", files);
        repository
    }

    fn init(path: &Path, format: &str) -> Self {
        fs::create_dir_all(path).expect("the directory can be made");
        let format = format!("--object-format={format}");
        output(git(path).args(["init", "--quiet", "--bare", "--template=", "-b", "main", &format]), b"");
        let repository = Self::existing(path);
        // No background work after a push: a test reads the files, and then removes them.
        let settings = "[http]\n\treceivepack = true\n[receive]\n\tautogc = false\n";
        let mut file = fs::OpenOptions::new().append(true).open(path.join("config")).expect("git wrote it");
        file.write_all(settings.as_bytes()).expect("the configuration can be written");
        repository
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Sets a line of the repository's configuration.
    pub(crate) fn configure(&self, name: &str, value: &str) {
        self.git(["config", name, value]);
    }

    /// Puts a shell script in place as a hook, such as `pre-receive` or `update`.
    pub(crate) fn hook(&self, name: &str, script: &str) {
        let hooks = self.path.join("hooks");
        fs::create_dir_all(&hooks).expect("the directory can be made");
        // Written as another file and renamed: a program that is open for writing cannot be started.
        let (beside, place) = (hooks.join("new"), hooks.join(name));
        fs::write(&beside, format!("#!/bin/sh\n{script}\n")).expect("a hook can be written");
        fs::set_permissions(&beside, fs::Permissions::from_mode(0o755)).expect("a hook can be run");
        fs::rename(beside, place).expect("a hook can be moved");
    }

    /// Commits changes on top of a branch, and returns the commit's id.
    /// The branch need not exist.
    pub(crate) fn commit(&self, branch: &str, message: &str, changes: &[Change]) -> String {
        self.commits(branch, [(message, changes)])
    }

    /// Adds several commits with one process; returns the id of the last.
    #[track_caller]
    pub(crate) fn commits<'a>(
        &self,
        branch: &str,
        commits: impl IntoIterator<Item = (&'a str, &'a [Change])>,
    ) -> String {
        let reference = format!("refs/heads/{branch}");
        self.import(&reference, self.id(&reference), commits)
    }

    /// Commits as a person beside others who push.
    /// After a lost race it commits again on the new tip.
    pub(crate) fn commit_beside_others(&self, branch: &str, message: &str, changes: &[Change]) -> String {
        let reference = format!("refs/heads/{branch}");
        loop {
            let parent = self.id(&reference).expect("the branch is there");
            let own = "refs/person/next";
            self.git(["update-ref", own, &parent]);
            let commit = self.import(own, Some(parent.clone()), [(message, changes)]);
            let moved = run(git(&self.path).args(["update-ref", &reference, &commit, &parent]));
            if moved.status == Some(0) {
                self.git(["update-ref", "-d", own]);
                return commit;
            }
        }
    }

    /// Makes commits on top of a commit, and moves the reference to the last one.
    /// Returns the id of the last commit.
    #[track_caller]
    fn import<'a>(
        &self,
        reference: &str,
        mut parent: Option<String>,
        commits: impl IntoIterator<Item = (&'a str, &'a [Change])>,
    ) -> String {
        let mut stream = Vec::new();
        for (message, changes) in commits {
            stream.extend(
                format!("commit {reference}\ncommitter Tester <tester@example.com> {SECOND}\n").bytes(),
            );
            // With the line break that `git commit` adds.
            data(&mut stream, format!("{message}\n").as_bytes());
            if let Some(parent) = parent.take() {
                stream.extend(format!("from {parent}\n").bytes());
            }
            for change in changes {
                write_change(&mut stream, change);
            }
            stream.push(b'\n');
        }
        output(git(&self.path).args(["fast-import", "--quiet", "--date-format=raw"]), &stream);
        self.id(reference).expect("a commit was made")
    }

    /// Moves a branch to any commit, also backwards.
    pub(crate) fn move_branch(&self, branch: &str, commit: &str) {
        self.git(["update-ref", &format!("refs/heads/{branch}"), commit]);
    }

    pub(crate) fn delete_branch(&self, branch: &str) {
        self.git(["update-ref", "-d", &format!("refs/heads/{branch}")]);
    }

    pub(crate) fn tag(&self, name: &str, commit: &str) {
        self.git(["tag", name, commit]);
    }

    pub(crate) fn annotated_tag(&self, name: &str, commit: &str) {
        self.git(["tag", "--annotate", "--message", name, name, commit]);
    }

    /// The id of a reference or of an expression such as `main^{tree}`.
    pub(crate) fn id(&self, expression: &str) -> Option<String> {
        let found = run(git(&self.path).args(["rev-parse", "--verify", "--quiet", expression]));
        (found.status == Some(0)).then(|| found.output.trim_end().to_owned())
    }

    /// The content of a file in a commit.
    #[track_caller]
    pub(crate) fn file(&self, revision: &str, path: &str) -> Vec<u8> {
        self.git(["cat-file", "blob", &format!("{revision}:{path}")])
    }

    /// All entries of a commit's tree, by path.
    pub(crate) fn tree(&self, revision: &str) -> BTreeMap<Vec<u8>, Content> {
        let listing = self.git(["ls-tree", "-r", "-z", revision]);
        let entries: Vec<_> = listing.split(|byte| *byte == 0).filter_map(tree_entry).collect();
        let ids: String = entries
            .iter()
            .filter(|(_, kind, ..)| *kind == "blob")
            .map(|(_, _, id, _)| format!("{id}\n"))
            .collect();
        let blobs = output(self.command().args(["cat-file", "--batch"]), ids.as_bytes());
        let mut rest = blobs.as_slice();
        entries
            .iter()
            .map(|(mode, _, id, path)| (path.to_vec(), Content::of_git(mode, id, || next_blob(&mut rest))))
            .collect()
    }

    /// The history of a revision, the newest commit first.
    #[track_caller]
    pub(crate) fn log(&self, revision: &str) -> Vec<LoggedCommit> {
        let format = "--format=%H%x1f%P%x1f%an <%ae>%x1f%cn <%ce>%x1f%B%x1e";
        let printed = self.git(["log", format, revision, "--"]);
        let text = String::from_utf8(printed).expect("the tests write UTF-8");
        text.split_terminator("\x1e\n")
            .map(|commit| {
                let [id, parents, author, committer, message] = *commit.split('\x1f').collect::<Vec<_>>()
                else {
                    panic!("{commit}")
                };
                LoggedCommit {
                    id: id.to_owned(),
                    parents: parents.split_terminator(' ').map(str::to_owned).collect(),
                    author: author.to_owned(),
                    committer: committer.to_owned(),
                    message: message.to_owned(),
                }
            })
            .collect()
    }

    /// Asserts that every object exists and is sound.
    #[track_caller]
    pub(crate) fn assert_sound(&self) {
        let check =
            run(self.command().args(["fsck", "--full", "--strict", "--no-dangling", "--no-progress"]));
        // A dangling HEAD is no corruption: the branch may have been deleted, and a mirror never has one.
        let is_damage = |line: &&str| !line.starts_with("notice: ");
        let damage: Vec<&str> = check.errors.lines().filter(is_damage).collect();
        assert_eq!((check.status, check.output.as_str(), damage.as_slice()), (Some(0), "", &[][..]));
    }

    /// Runs git in the repository, and asserts success.
    #[track_caller]
    pub(crate) fn git<I>(&self, arguments: I) -> Vec<u8>
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        output(self.command().args(arguments), b"")
    }

    fn command(&self) -> Command {
        git(&self.path)
    }
}

/// Splits a line of `git ls-tree -z` into mode, kind, id and path.
fn tree_entry(line: &[u8]) -> Option<(&str, &str, &str, &[u8])> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let words = std::str::from_utf8(&line[..tab]).expect("git writes ASCII here");
    let [mode, kind, id] = *words.split(' ').collect::<Vec<_>>() else { panic!("{words}") };
    Some((mode, kind, id, &line[tab + 1..]))
}

/// Takes the next blob from the output of `git cat-file --batch`.
///
/// That is a line `ID blob SIZE`, and its bytes with a line break.
fn next_blob(rest: &mut &[u8]) -> Vec<u8> {
    let end = rest.iter().position(|byte| *byte == b'\n').expect("each blob has a head");
    let head = std::str::from_utf8(&rest[..end]).expect("git writes ASCII here");
    let size: usize =
        head.rsplit(' ').next().and_then(|size| size.parse().ok()).expect("a head ends with the size");
    let blob = rest[end + 1..=end + size].to_vec();
    *rest = &rest[end + size + 2..];
    blob
}

fn data(stream: &mut Vec<u8>, bytes: &[u8]) {
    stream.extend(format!("data {}\n", bytes.len()).bytes());
    stream.extend_from_slice(bytes);
    stream.push(b'\n');
}

fn write_change(stream: &mut Vec<u8>, change: &Change) {
    let path = quoted(&change.path);
    let Some(content) = &change.content else {
        stream.extend(b"D ");
        stream.extend(path);
        stream.push(b'\n');
        return;
    };
    let object = if let Content::Submodule(id) = content { id } else { "inline" };
    stream.extend(format!("M {} {object} ", content.mode()).bytes());
    stream.extend(path);
    stream.push(b'\n');
    match content {
        Content::File(bytes) | Content::Executable(bytes) | Content::Link(bytes) => data(stream, bytes),
        Content::Submodule(_) => {}
    }
}

/// Returns a path in quotes.
/// Every byte that could end it or begin an escape is in octal.
fn quoted(path: &[u8]) -> Vec<u8> {
    let mut bytes = vec![b'"'];
    for byte in path {
        match byte {
            b'"' | b'\\' | ..b' ' => bytes.extend(format!("\\{byte:03o}").bytes()),
            _ => bytes.push(*byte),
        }
    }
    bytes.push(b'"');
    bytes
}
