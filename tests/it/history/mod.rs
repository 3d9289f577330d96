//! `tagboat history` on real repositories.

mod live;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::bare_repository::BareRepository;
use crate::support::content::{Change, Content, change, file, removed};
use crate::support::git_program::{git, output};
use crate::support::program::{Run, run, tagboat};

/// A directory with repositories.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A bare repository with a commit for each list of changes.
    fn repository(&self, commits: &[&[Change]]) -> BareRepository {
        let repository = BareRepository::empty(&self.path("fleet.git"));
        repository.commits("main", commits.iter().map(|changes| ("Change", *changes)));
        repository
    }

    fn clone(&self, name: &str, options: &[&str]) -> PathBuf {
        let from = format!("file://{}", self.path("fleet.git").display());
        let arguments = [&["clone", "--quiet"], options, &[from.as_str(), name]].concat();
        output(git(self.0.path()).args(["-c", "protocol.file.allow=always"]).args(arguments), b"");
        self.path(name)
    }
}

/// A document with a marker for each value, all of one policy.
fn deployment(name: &str, values: &[&str]) -> String {
    let value = |(index, value): (usize, &&str)| {
        format!("  - image{index}: {value} # {{\"$imagepolicy\": \"apps:{name}:tag\"}}\n")
    };
    let values: String = values.iter().enumerate().map(value).collect();
    format!("kind: Deployment\nmetadata:\n  name: {name}\n  namespace: prod\nspec:\n{values}")
}

fn history(path: &Path, arguments: &[&str]) -> Run {
    run(tagboat().env_clear().env("HOME", "/nonexistent").arg("history").arg(path).args(arguments))
}

/// The rows of a document: object, place, old and new value, and a note.
fn rows(run: &Run) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let row = |change: &Value| {
        let place = format!("{}:{}", text(&change["file"]), change["line"]);
        let back = if change["back"] == true { " back" } else { "" };
        format!(
            "{} {place} {} > {}{back}",
            text(&change["object"]["name"]),
            text(&change["old"]),
            text(&change["new"])
        )
    };
    run.json()["changes"].as_array().unwrap().iter().map(row).collect()
}

#[track_caller]
fn listed(path: &Path, arguments: &[&str]) -> Vec<String> {
    let run = history(path, &[arguments, &["-o", "json"]].concat()).with_status(0);
    let rows = rows(&run);
    let is_note = run.errors.starts_with("note: no ") && run.errors.lines().count() == 1;
    assert!(if rows.is_empty() { is_note } else { run.errors.is_empty() }, "{}", run.errors);
    rows
}

/// A misspelled filter looked like a value without changes.
#[test]
fn a_filter_that_no_marker_has_is_named() {
    let place = Place::new();
    let repository = place.repository(&[
        &[file("a.yaml", deployment("a", &["v1"])), file("README.md", "v1")],
        &[file("a.yaml", deployment("a", &["v2"]))],
    ]);
    for (arguments, expected) in [
        (&["--policy", "apps:typo"][..], "no marker of the policy apps:typo was found in any commit"),
        (&["--file", "typo.yaml"], "no marker in typo.yaml was found in any commit"),
        (&["--file", "README.md"], "no marker in README.md was found in any commit"),
        (
            &["--policy", "apps:a", "--object", "Deployment/prod/b", "--file", "./a.yaml"],
            "no marker of the policy apps:a of the object Deployment/prod/b in a.yaml was found in any commit",
        ),
        (&["--object", "Deployment/b"], "no marker of the object Deployment/b was found in any commit"),
        (&["--policy", "apps:a", "--since", "2036-01-01"], "no change of a marked value was found"),
    ] {
        let run = history(repository.path(), arguments).with_status(0);
        assert_eq!((run.errors, run.output.as_str()), (format!("note: {expected}\n"), ""), "{arguments:?}");
    }
}

#[test]
fn each_change_of_a_value_is_a_line() {
    let place = Place::new();
    let repository = place.repository(&[
        &[file("a.yaml", deployment("a", &["v1"])), file("README.md", "v1")],
        &[file("a.yaml", deployment("a", &["v2"]))],
        &[file("README.md", "v2"), file("b.yaml", "a: b\n")],
        &[file("a.yaml", deployment("a", &["v1"])), file("b.yml", deployment("b", &["w1"]))],
        &[removed("b.yml")],
    ]);
    let ids: Vec<String> = repository.log("main").iter().map(|commit| commit.id[..7].to_owned()).collect();
    let run = history(repository.path(), &[]).with_status(0);
    let time = "2026-01-02T03:04:05Z";
    let expected = [
        format!("{time} {} Tester  Deployment/prod/b  b.yml:6  w1 (removed: apps:b:tag)", ids[0]),
        format!("{time} {} Tester  Deployment/prod/a  a.yaml:6  v2 -> v1 (back)", ids[1]),
        format!("{time} {} Tester  Deployment/prod/b  b.yml:6  w1 (added: apps:b:tag)", ids[1]),
        format!("{time} {} Tester  Deployment/prod/a  a.yaml:6  v1 -> v2", ids[3]),
        format!("{time} {} Tester  Deployment/prod/a  a.yaml:6  v1 (added: apps:a:tag)", ids[4]),
    ];
    assert_eq!(
        (run.output.lines().collect::<Vec<_>>(), run.errors.as_str()),
        (expected.iter().map(String::as_str).collect(), "")
    );
}

#[test]
fn the_document_has_every_member() {
    let place = Place::new();
    let repository = place.repository(&[
        &[file("old.yaml", deployment("a", &["v1"]))],
        &[removed("old.yaml"), file("new.yaml", deployment("a", &["v2"]))],
    ]);
    let log = repository.log("main");
    let object = json!({"apiVersion": "", "kind": "Deployment", "namespace": "prod", "name": "a"});
    let time = "2026-01-02T03:04:05Z";
    let expected = json!({
        "schema": "tagboat.dev/history/v1",
        "head": log[0].id,
        "changes": [
            {
                "time": time, "commit": log[0].id, "author": "Tester", "kind": "changed", "object": object,
                "setter": "apps:a:tag", "file": "new.yaml", "line": 6, "previousFile": "old.yaml",
                "old": "v1", "new": "v2", "back": false,
            },
            {
                "time": time, "commit": log[1].id, "author": "Tester", "kind": "added", "object": object,
                "setter": "apps:a:tag", "file": "old.yaml", "line": 6, "new": "v1", "back": false,
            },
        ],
        "unreadable": [],
        "end": {"reason": "root", "commit": log[1].id, "time": time},
    });
    let found = history(repository.path(), &["-o", "json"]).with_status(0).json();
    assert_eq!(found, expected);
    // The members and their types are those of the schema.
    let schema = run(tagboat().args(["schema", "history"])).with_status(0).json();
    for (object, schema) in [(&found, &schema), (&found["changes"][0], &schema["$defs"]["ListedChange"])] {
        for member in object.as_object().unwrap().keys() {
            assert!(schema["properties"].get(member).is_some(), "{member}");
        }
    }
}

#[test]
fn options_restrict_the_list() {
    let place = Place::new();
    let repository = place.repository(&[
        &[file("x/a.yaml", deployment("a", &["v1"])), file("y/b.yaml", deployment("b", &["w1"]))],
        &[file("x/a.yaml", deployment("a", &["v2"])), file("y/b.yaml", deployment("b", &["w2"]))],
        &[file("x/a.yaml", deployment("a", &["v1"]))],
    ]);
    let path = repository.path();
    let back = "a x/a.yaml:6 v2 > v1 back";
    let a = [back, "a x/a.yaml:6 v1 > v2", "a x/a.yaml:6 - > v1"];
    let b = ["b y/b.yaml:6 w1 > w2", "b y/b.yaml:6 - > w1"];
    for (arguments, expected) in [
        (&["--policy", "apps:a"][..], &a[..]),
        (&["--policy", "apps:b"], &b),
        (&["--policy", "apps:c"], &[]),
        (&["--object", "Deployment/prod/b"], &b),
        (&["--object", "Deployment/a"], &a),
        (&["--object", "StatefulSet/a"], &[]),
        (&["--file", "x/a.yaml"], &a),
        (&["--file", "./y/"], &b),
        (&["--file", "x/a"], &[]),
        // A limit does not hide that a value is back.
        (&["--limit", "1"], &[back]),
        (&["--limit", "2"], &[back, a[1]]),
        (&["--limit", "2", "--policy", "apps:b"], &b),
        (&["--since", "2026-01-02"], &[a[0], a[1], b[0], a[2], b[1]]),
        (&["--since", "2026-01-02T03:04:06Z"], &[]),
    ] {
        assert_eq!(listed(path, arguments), expected, "{arguments:?}");
    }
    let end = |arguments: &[&str]| history(path, arguments).with_status(0).json()["end"]["reason"].clone();
    assert_eq!(end(&["-o", "json", "--limit", "1"]), "limit");
    let wrong = [
        &["--policy", "a"][..],
        &["--object", "a"],
        &["--since", "soon"],
        &["--limit", "-1"],
        &["--file", "../a.yaml"],
        &["--file", "/a.yaml"],
    ];
    for arguments in wrong {
        history(path, arguments).with_status(2);
    }
}

#[test]
fn a_path_in_a_work_tree_restricts_the_list() {
    let place = Place::new();
    place.repository(&[&[
        file("x/a.yaml", deployment("a", &["v1"])),
        file("y/b.yaml", deployment("b", &["w1"])),
    ]]);
    let clone = place.clone("clone", &[]);
    let (a, b) = ("a x/a.yaml:6 - > v1", "b y/b.yaml:6 - > w1");
    for (path, expected) in
        [("", &[a, b][..]), ("x", &[a]), ("y/b.yaml", &[b]), (".git", &[a, b]), (".git/refs", &[a, b])]
    {
        assert_eq!(listed(&clone.join(path), &[]), expected, "{path}");
    }
    // Of a path and a file, the smaller one counts.
    assert_eq!(listed(&clone.join("x"), &["--file", "x/a.yaml"]), [a]);
    assert_eq!(listed(&clone.join("y/b.yaml"), &["--file", "y"]), [b]);
    let apart = history(&clone.join("x"), &["--file", "y"]).with_status(2);
    assert_eq!(
        apart.only_error(),
        "error: --file y is not in x, to which PATH restricts the list: give one of both"
    );
    let here = run(tagboat().current_dir(clone.join("x")).args(["history", "-o", "json"])).with_status(0);
    assert_eq!(rows(&here), [a]);
    // A linked work tree has the history of its own HEAD.
    output(git(&clone).args(["worktree", "add", "--quiet", "../linked"]), b"");
    assert_eq!(listed(&place.path("linked/y"), &[]), [b]);
}

#[test]
fn moved_markers_and_files_are_no_changes() {
    let place = Place::new();
    let twice = deployment("a", &["v1", "v1"]);
    let repository = place.repository(&[
        &[file("a.yaml", deployment("a", &["v1"]))],
        &[removed("a.yaml"), file("dir/a.yaml", format!("# moved\n{}", deployment("a", &["v1"])))],
        &[file("dir/a.yaml", twice)],
        &[file("dir/a.yaml", deployment("a", &["v2", "v2"]))],
        &[removed("dir/a.yaml"), file("b.yaml", deployment("a", &["v1", "v2"]))],
        &[file("b.yaml", deployment("a", &["v2"]))],
        &[change("b.yaml", Content::Executable(deployment("a", &["v2"]).into()))],
        &[change("c.yaml", Content::Link(b"b.yaml".to_vec()))],
    ]);
    assert_eq!(
        listed(repository.path(), &[]),
        [
            "a b.yaml:6 v1 > -",
            "a b.yaml:6 v2 > v1 back",
            "a dir/a.yaml:6 v1 > v2",
            "a dir/a.yaml:7 v1 > v2",
            "a dir/a.yaml:7 - > v1",
            "a a.yaml:6 - > v1",
        ]
    );
}

#[test]
fn a_merge_is_one_change_and_its_branch_is_not_listed() {
    let place = Place::new();
    let repository = place.repository(&[&[file("a.yaml", deployment("a", &["v1"]))]]);
    let base = repository.id("main").unwrap();
    repository.move_branch("work", &base);
    repository.commit("work", "One", &[file("a.yaml", deployment("a", &["v2"]))]);
    repository.commit("work", "Two", &[file("a.yaml", deployment("a", &["v3"]))]);
    repository.commit("main", "Other", &[file("b.yaml", deployment("b", &["w1"]))]);
    let clone = place.clone("clone", &[]);
    output(git(&clone).args(["merge", "--quiet", "--no-ff", "-m", "Merge", "origin/work"]), b"");
    assert_eq!(listed(&clone, &[]), ["a a.yaml:6 v1 > v3", "b b.yaml:6 - > w1", "a a.yaml:6 - > v1"]);
}

#[test]
fn a_shallow_clone_says_where_its_history_ends() {
    let place = Place::new();
    let repository = place.repository(&[
        &[file("a.yaml", deployment("a", &["v1"]))],
        &[file("a.yaml", deployment("a", &["v2"]))],
        &[file("a.yaml", deployment("a", &["v3"]))],
    ]);
    let log = repository.log("main");
    let clone = place.clone("shallow", &["--depth=2"]);
    let found = history(&clone, &[]).with_status(0);
    let (first, last) = found.output.split_once('\n').unwrap();
    assert!(first.ends_with("  v2 -> v3"), "{found:?}");
    let id = &log[1].id[..7];
    assert_eq!(
        last.trim_end(),
        format!(
            "The history ends at commit {id} of 2026-01-02T03:04:05Z, because the clone is shallow; git fetch --unshallow \
             completes it."
        )
    );
    // The list was cut by the option, though the walk went on to find out which values are back.
    for (arguments, reason) in [(["--limit", "1"], "limit"), (["--since", "2030-01-01"], "since")] {
        let run = history(&clone, &[&arguments[..], &["-o", "json"]].concat()).with_status(0);
        assert_eq!(run.json()["end"], json!({"reason": reason}), "{arguments:?}");
    }
    output(git(&clone).args(["worktree", "add", "--quiet", "../linked"]), b"");
    for path in [clone.clone(), place.path("linked")] {
        let end = history(&path, &["-o", "json"]).with_status(0).json()["end"].clone();
        assert_eq!(end, json!({"reason": "shallow", "commit": log[1].id, "time": "2026-01-02T03:04:05Z"}));
    }
    output(git(&clone).args(["-c", "protocol.file.allow=always", "fetch", "--quiet", "--unshallow"]), b"");
    assert_eq!(listed(&clone, &[]).len(), 3);
}

/// The changes whose files were missing were lost, with the exit status of a success.
#[test]
fn a_partial_clone_says_where_objects_are_missing() {
    let place = Place::new();
    let repository = place.repository(&[
        &[file("a.yaml", deployment("a", &["v1"]))],
        &[file("README.md", "no marker")],
        &[file("a.yaml", deployment("a", &["v2"]))],
        &[file("a.yaml", deployment("a", &["v3"]))],
    ]);
    output(git(repository.path()).args(["config", "uploadpack.allowFilter", "true"]), b"");
    let log = repository.log("main");
    for (filter, depth) in [("blob:none", 0), ("tree:0", 0), ("blob:limit=1g", 4)] {
        let name = filter.replace([':', '='], "-");
        let clone = place.clone(&name, &[&format!("--filter={filter}")]);
        let run = history(&clone, &["-o", "json"]).with_status(i32::from(depth == 0));
        if depth == 4 {
            assert_eq!((rows(&run).len(), run.errors.as_str()), (3, ""), "nothing is missing");
            continue;
        }
        assert_eq!((rows(&run).len(), &run.json()["end"]), (0, &Value::Null), "{filter}");
        let sentence = format!(
            "error: cannot compare commit {} with its parent, because the clone is partial and lacks some of their files; git \
             fetch --refetch --no-filter completes it",
            log[0].id
        );
        assert_eq!(run.only_error(), sentence, "{filter}");
        let fetch = ["-c", "protocol.file.allow=always", "fetch", "--quiet", "--refetch", "--no-filter"];
        output(git(&clone).args(fetch), b"");
        assert_eq!(listed(&clone, &[]).len(), 3, "{filter}");
    }
}

#[test]
fn a_version_that_cannot_be_read_is_named_once() {
    let place = Place::new();
    let broken = format!("a: [\n{}", deployment("a", &["v2"]));
    let repository = place.repository(&[
        &[file("a.yaml", deployment("a", &["v1"]))],
        &[file("a.yaml", broken.as_str())],
        &[file("b.yaml", deployment("b", &["w1"]))],
        &[file("a.yaml", deployment("a", &["v3"]))],
        &[file("a.yaml", deployment("a", &["v4"]))],
        &[file("c.yaml", "a: [ # no marker\n")],
    ]);
    let id = repository.log("main")[4].id.clone();
    let run = history(repository.path(), &["-o", "json"]).with_status(0);
    assert_eq!(rows(&run), ["a a.yaml:6 v3 > v4", "b b.yaml:6 - > w1", "a a.yaml:6 - > v1"]);
    let warning = run.only_error();
    assert!(
        warning.starts_with("warning: a.yaml:") && warning.contains(&format!("in commit {}", &id[..7])),
        "{warning}"
    );
    let unreadable = run.json()["unreadable"].clone();
    assert_eq!((&unreadable[0]["commit"], &unreadable[0]["file"]), (&json!(id), &json!("a.yaml")));
}

#[test]
fn a_damaged_object_does_not_end_the_walk() {
    let place = Place::new();
    let repository = place.repository(&[
        &[file("a.yaml", deployment("a", &["v1"])), file("b.yaml", deployment("b", &["w1"]))],
        &[file("a.yaml", deployment("a", &["v2"]))],
        &[file("b.yaml", deployment("b", &["w2"]))],
        &[file("a.yaml", deployment("a", &["v3"]))],
    ]);
    let clone = place.clone("clone", &["--bare"]);
    // Each object is a file, so that one of them can be damaged.
    let mut pack = fs::read_dir(clone.join("objects/pack")).unwrap().map(|entry| entry.unwrap().path());
    let pack = pack.find(|path| path.extension().is_some_and(|extension| extension == "pack")).unwrap();
    let bytes = fs::read(&pack).unwrap();
    fs::remove_dir_all(clone.join("objects/pack")).unwrap();
    output(git(&clone).args(["unpack-objects", "-q"]), &bytes);
    let object = |expression: &str| {
        let id = repository.id(expression).unwrap();
        clone.join("objects").join(&id[..2]).join(&id[2..])
    };
    fs::remove_file(object("main~2:a.yaml")).unwrap();
    let run = history(&clone, &["-o", "json"]).with_status(0);
    assert_eq!(rows(&run), ["b b.yaml:6 w1 > w2", "a a.yaml:6 - > v1", "b b.yaml:6 - > w1"]);
    assert!(run.only_error().starts_with("warning: a.yaml:1 in commit "), "{run:?}");
    // Without a commit there is no way on, and the newer changes are listed.
    fs::remove_file(object("main~3")).unwrap();
    let run = history(&clone, &["-o", "json"]).with_status(1);
    assert_eq!(rows(&run), ["b b.yaml:6 w1 > w2"]);
    assert!(run.errors.contains("error: cannot read commit "), "{run:?}");
    assert_eq!(run.json()["end"], Value::Null);
}

#[test]
fn paths_without_history_have_one_sentence() {
    let place = Place::new();
    BareRepository::empty(&place.path("fleet.git"));
    let clone = place.clone("empty", &[]);
    for path in [place.path("fleet.git"), clone] {
        let run = history(&path, &[]).with_status(0);
        assert_eq!((run.output.as_str(), run.only_error()), ("", "note: HEAD has no commits"));
        let document = history(&path, &["-o", "json"]).with_status(0).json();
        assert_eq!((&document["head"], &document["changes"]), (&Value::Null, &json!([])));
    }
    fs::create_dir(place.path("plain")).unwrap();
    let run = history(&place.path("plain"), &[]).with_status(1);
    let plain = place.path("plain");
    let sentence =
        format!("error: {} is not in a git repository; name the directory of a clone", plain.display());
    assert_eq!(run.only_error(), sentence);
    let run = history(&place.path("missing"), &[]).with_status(1);
    assert!(run.only_error().starts_with("error: cannot open "), "{run:?}");
    BareRepository::empty_sha256(&place.path("sha256.git"));
    let run = history(&place.path("sha256.git"), &[]).with_status(1);
    assert!(run.only_error().starts_with("error: cannot read the git repository of "), "{run:?}");
}

#[test]
fn text_of_a_repository_is_printed_safely() {
    let place = Place::new();
    let repository = place.repository(&[&[file(
        "a\u{1b}[31m.yaml",
        "kind: \"D\\e[31m\"\na: \"v\\e1\" # {\"$imagepolicy\": \"a:b\"}\nb: # {\"$imagepolicy\": \"a:b\"}\n",
    )]]);
    // A control sequence of one character, an override of the direction, and a delete.
    let author = "Ev\u{9b}31mil\u{202e}X\u{7f}";
    let clone = place.clone("clone", &[]);
    let author_option = format!("--author={author} <a@b.example>");
    output(git(&clone).args(["commit", "--quiet", "--amend", "--no-edit", &author_option]), b"");
    for format in ["text", "json"] {
        let run = history(&clone, &["-o", format]).with_status(0);
        let unsafe_characters = run.output.chars().filter(|c| !matches!(c, ' '..='~' | '\n'));
        assert_eq!(unsafe_characters.count(), 0, "{run:?}");
    }
    assert_eq!(history(&clone, &["-o", "json"]).json()["changes"][0]["author"], author);
    let run = history(repository.path(), &[]).with_status(0);
    assert!(!run.output.contains('\u{1b}') && run.output.contains(r#""v\u{1b}1" (added: a:b)"#), "{run:?}");
    assert!(run.output.contains(r#"  "" (added: a:b)"#), "{run:?}");
}

/// A few objects describe a practically endless tree, which took all memory.
#[test]
fn an_endless_tree_is_a_version_that_cannot_be_read() {
    let place = Place::new();
    let repository = place.repository(&[&[file("a.yaml", deployment("a", &["v1"]))]]);
    let blob = repository.id("main:a.yaml").unwrap();
    let mut entries: String = (0..10).map(|number| format!("100644 blob {blob}\t{number}.yaml\n")).collect();
    let mut tree = String::new();
    for _ in 0..8 {
        let made = output(git(repository.path()).args(["mktree"]), entries.as_bytes());
        tree = String::from_utf8(made).unwrap().trim().to_owned();
        entries = (0..10).map(|number| format!("040000 tree {tree}\t{number}\n")).collect();
    }
    let commit =
        ["-c", "user.name=A", "-c", "user.email=a@b.example", "commit-tree", "-p", "main", "-m", "x", &tree];
    let commit = String::from_utf8(output(git(repository.path()).args(commit), b"")).unwrap();
    repository.move_branch("main", commit.trim());
    let run = history(repository.path(), &["-o", "json"]).with_status(0);
    assert_eq!(rows(&run), ["a a.yaml:6 - > v1"]);
    assert!(run.only_error().ends_with("cannot be read: too many files and directories differ"), "{run:?}");
}

#[test]
fn a_closed_pipe_ends_the_command_quietly() {
    let place = Place::new();
    let versions: Vec<Vec<Change>> =
        (0..2_000).map(|version| vec![file("a.yaml", deployment("a", &[&format!("v{version}")]))]).collect();
    let versions: Vec<&[Change]> = versions.iter().map(Vec::as_slice).collect();
    let repository = place.repository(&versions);
    assert_eq!(listed(repository.path(), &[]).len(), 2_000);
    let mut command: Command = tagboat();
    let mut child = command
        .arg("history")
        .arg(repository.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(0), String::new()));
}
