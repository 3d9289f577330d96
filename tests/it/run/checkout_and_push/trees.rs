//! Contents of repositories: links, submodules, attributes, hooks, odd names, large files.

use serde_json::json;

use crate::run::scene::Scene;
use crate::support::bare_repository::BareRepository;
use crate::support::content::{Change, Content, change, file};
use crate::support::fleet::tag_line;
use crate::support::git_host::Settings;
use crate::support::program::Run;

const NONE: [&str; 0] = [];

/// Runs on a repository with these files.
/// Asserts that the commit contains exactly the expected changes.
#[track_caller]
fn changes(files: &[Change], expected: &[Change]) -> (Scene, Run) {
    let scene = Scene::with_files(files).local();
    let mut wanted = scene.repository.tree("main");
    for change in expected {
        wanted.insert(change.path.clone(), change.content.clone().unwrap());
    }
    let run = scene.run(["--output", "json"]).with_status(0);
    assert_eq!(scene.repository.tree("main"), wanted, "{run:?}");
    let commits = if expected.is_empty() { 1 } else { 2 };
    assert_eq!(scene.repository.log("main").len(), commits, "{run:?}");
    scene.repository.assert_sound();
    (scene, run)
}

/// The skipped files of the only result, as lines of `file: cause`.
fn skipped(run: &Run) -> Vec<String> {
    let json = run.json();
    let list = json["automations"][0]["skipped"].as_array().unwrap().clone();
    list.iter()
        .map(|one| format!("{}: {}", one["file"].as_str().unwrap(), one["cause"].as_str().unwrap()))
        .collect()
}

#[test]
fn an_empty_repository_is_reported() {
    let scene = Scene::empty();
    let host = scene.serve(Settings::default());
    let url = host.url("fleet.git");
    let sentence = format!(
        "default/fleet: failed to checkout source: unable to clone '{url}': the repository is empty; push a first commit to it"
    );
    for git in [
        json!({}),
        json!({"push": {"branch": "update"}}),
        json!({"checkout": {"ref": {"tag": "v1"}}, "push": {"branch": "main"}}),
    ] {
        scene.automation(json!({"git": git}));
        let run = scene.run(NONE).with_status(1);
        assert_eq!(run.only_error(), sentence, "{git}");
    }
    assert_eq!(scene.repository.git(["for-each-ref"]), b"");
}

#[test]
fn an_unborn_head_does_not_matter() {
    let scene = Scene::empty();
    scene.repository.commit("other", "Begin", &[file("app.yaml", tag_line("4.0.6"))]);
    let host = scene.serve(Settings::default());
    let run = scene.run(NONE).with_status(1);
    assert!(
        run.only_error().ends_with("couldn't find remote ref \"refs/heads/main\"; its branches are other"),
        "{run:?}"
    );
    scene.source(json!({"url": host.url("fleet.git"), "ref": {"branch": "other"}}));
    scene.run(NONE).with_status(0);
    assert_eq!(scene.tag("other"), "5.0.3");
    assert_eq!(scene.repository.id("main"), None);
}

#[test]
fn the_executable_bit_stays() {
    let (old, new) = (tag_line("4.0.6"), tag_line("5.0.3"));
    changes(
        &[change("run.yaml", Content::Executable(old.clone().into())), file("plain.yaml", old)],
        &[change("run.yaml", Content::Executable(new.clone().into())), file("plain.yaml", new)],
    );
}

#[test]
fn a_link_is_read_through_and_its_target_edited_once() {
    let link = |path: &str, target: &str| change(path, Content::Link(target.into()));
    let (_, run) = changes(
        &[
            file("base/app.yaml", tag_line("4.0.6")),
            // A file with the name of the target would not be read by itself.
            file("base/values.txt", tag_line("4.0.6")),
            link("a.yaml", "base/app.yaml"),
            link("b.yaml", "a.yaml"),
            link("deep/down/c.yaml", "../../base/app.yaml"),
            link("values.yaml", "base/values.txt"),
            link("all.yaml", "base"),
            link("loop.yaml", "loop.yaml"),
            link("one.yaml", "two.yaml"),
            link("two.yaml", "one.yaml"),
            link("out.yaml", "../../etc/hostname"),
            link("absolute.yaml", "/etc/hostname"),
            link("gone.yaml", "gone/nothing"),
            link("git.yaml", ".git/config"),
        ],
        &[file("base/app.yaml", tag_line("5.0.3")), file("base/values.txt", tag_line("5.0.3"))],
    );
    assert_eq!(
        skipped(&run),
        [
            "absolute.yaml: the link leads out of the directory",
            "all.yaml: the link's target is a directory",
            "git.yaml: it leads into .git",
            "gone.yaml: the link's target does not exist",
            "loop.yaml: the link leads back to itself",
            "one.yaml: the link leads back to itself",
            "out.yaml: the link leads out of the directory",
            "two.yaml: the link leads back to itself",
        ]
    );
}

#[test]
fn a_submodule_stays_and_is_not_entered() {
    let commit = "0123456789012345678901234567890123456789";
    let modules = "[submodule \"x\"]\n\tpath = sub\n\turl = file:///etc\n";
    let (scene, _) = changes(
        &[
            file("app.yaml", tag_line("4.0.6")),
            change("sub", Content::Submodule(commit.to_owned())),
            change("sub.yaml", Content::Submodule(commit.to_owned())),
            change("into.yaml", Content::Link(b"sub/app.yaml".to_vec())),
            file(".gitmodules", modules),
        ],
        &[file("app.yaml", tag_line("5.0.3"))],
    );
    scene.automation(json!({"update": {"path": "sub/deeper"}}));
    let run = scene.run(NONE).with_status(1);
    let words =
        "failed to apply policies: walking path for files: lstat sub/deeper: no such file or directory";
    assert_eq!(run.only_error(), format!("default/fleet: {words}"));
    scene.automation(json!({"update": {"path": "sub"}}));
    assert!(scene.run(NONE).with_status(0).output.contains("repository up-to-date"));
}

#[test]
fn only_files_below_the_update_path_are_read() {
    for (path, inside) in [
        ("apps", true),
        ("./apps", true),
        ("/apps/", true),
        ("apps/../apps/.", true),
        ("linked", true),
        ("apps/app.yaml", true),
        ("other", false),
        ("apps/README.md", false),
    ] {
        let scene = Scene::with_files(&[
            file("apps/app.yaml", tag_line("4.0.6")),
            file("apps/README.md", "x"),
            file("other/x.yaml", "a: 1\n"),
            file("app.yaml", tag_line("4.0.6")),
            change("linked", Content::Link(b"apps".to_vec())),
        ])
        .local();
        scene.automation(json!({"update": {"path": path}}));
        scene.run(NONE).with_status(0);
        let wanted = if inside { tag_line("5.0.3") } else { tag_line("4.0.6") };
        assert_eq!(scene.repository.file("main", "apps/app.yaml"), wanted.as_bytes(), "{path}");
        assert_eq!(scene.tag("main"), "4.0.6", "{path}");
        scene.repository.assert_sound();
    }
}

#[test]
fn an_update_path_that_leads_nowhere_or_out_is_an_error() {
    let scene = Scene::with_files(&[
        file("app.yaml", tag_line("4.0.6")),
        change("out", Content::Link(b"../..".to_vec())),
        change("loop", Content::Link(b"loop".to_vec())),
    ])
    .local();
    for (path, sentence) in [
        ("apps", "failed to apply policies: walking path for files: lstat apps: no such file or directory"),
        (
            "app.yaml/deeper",
            "failed to apply policies: walking path for files: lstat app.yaml/deeper: no such file or directory",
        ),
        ("../fleet.git", "the path \"../fleet.git\" leads out of the directory"),
        (
            "apps/../..",
            "failed to apply policies: walking path for files: lstat apps/../..: no such file or directory",
        ),
        ("out", "the path \"out\" leads out of the directory"),
        (
            "loop",
            "failed to apply policies: the path \"loop\" cannot be followed: the link leads back to itself",
        ),
    ] {
        scene.automation(json!({"update": {"path": path}}));
        let run = scene.run(NONE).with_status(1);
        assert_eq!(run.only_error(), format!("default/fleet: {sentence}"), "{path}");
    }
    assert_eq!(scene.repository.log("main").len(), 1);
}

#[test]
fn any_bytes_may_be_in_names_and_files() {
    let crlf = |tag: &str| format!("a: 1\r\n{}", tag_line(tag).replace('\n', "\r\n"));
    let marked = |tag: &str| [b"\xef\xbb\xbf".as_slice(), tag_line(tag).as_bytes()].concat();
    let files = |tag: &str| {
        [
            file(b"caf\xe9/\xff.yaml".to_vec(), tag_line(tag)),
            file("новый.yaml", tag_line(tag)),
            file("sp ace \"quoted\" \\ tab\t.yaml", tag_line(tag)),
            file("line\nbreak.yaml", tag_line(tag)),
            file("-option.yaml", tag_line(tag)),
            file("crlf.yaml", crlf(tag)),
            file("bom.yaml", marked(tag)),
            file("no-end.yaml", tag_line(tag).trim_end()),
        ]
    };
    let mut before = files("4.0.6").to_vec();
    before.push(file("latin.yaml", b"caf\xe9: 1\n".to_vec()));
    changes(&before, &files("5.0.3"));
}

#[test]
fn a_repository_of_sha_256_is_an_error() {
    let scene = Scene::of(BareRepository::empty_sha256);
    scene.repository.commit("main", "Begin", &[file("app.yaml", tag_line("4.0.6"))]);
    let tip = scene.repository.id("main");
    let host = scene.serve(Settings::default());
    for url in [host.url("fleet.git"), scene.repository.path().display().to_string()] {
        scene.source(json!({"url": url}));
        let run = scene.run(NONE).with_status(1);
        assert_eq!(
            run.only_error(),
            format!(
                "default/fleet: failed to checkout source: unable to list '{url}': it is a SHA-256 repository, and tagboat \
                 works with SHA-1 repositories only"
            )
        );
    }
    assert_eq!(scene.repository.id("main"), tip);
}

/// Configuration in a repository is data only.
#[test]
fn attributes_hooks_and_configuration_in_a_repository_have_no_effect() {
    let scene = Scene::empty();
    let trap = scene.root().join("trap");
    let touch = format!("touch {}", trap.display());
    let attributes =
        "*.yaml text eol=crlf filter=evil ident working-tree-encoding=UTF-16\n*.yaml export-ignore\n";
    let configuration =
        format!("[filter \"evil\"]\n\tclean = {touch}\n\tsmudge = {touch}\n[core]\n\tfsmonitor = {touch}\n");
    let files = |tag: &str| {
        [
            file("app.yaml", format!("# $Id$\n{}", tag_line(tag))),
            file(".gitattributes", attributes),
            file(".gitconfig", configuration.clone()),
            file("config", configuration.clone()),
            change("hooks/pre-push", Content::Executable(format!("#!/bin/sh\n{touch}\n").into())),
            file("HEAD", "ref: refs/heads/main\n"),
            file(".gitignore", "*.yaml\n"),
            file(".sourceignore", "*.yaml\n"),
        ]
    };
    scene.repository.commit("main", "Begin", &files("4.0.6"));
    scene.repository.commit("wanted", "Begin", &files("5.0.3"));
    let scene = scene.local();
    scene.run_with_state(NONE).with_status(0);
    assert_eq!(scene.repository.tree("main"), scene.repository.tree("wanted"));
    assert!(!trap.exists());
}

/// The caller's own configuration has no effect either, unless it is used for the login.
#[test]
fn the_callers_configuration_and_variables_have_no_effect() {
    let scene = Scene::new().local();
    let trap = scene.root().join("trap");
    let hooks = scene.root().join("hooks");
    std::fs::create_dir(&hooks).unwrap();
    std::fs::write(
        scene.root().join("home/.gitconfig"),
        format!(
            "[core]\n\thooksPath = {}\n[user]\n\tname = Wrong\n\temail = wrong@example.com\n[url \"file:///nowhere\"]\n\tinsteadOf = /\n\
             [commit]\n\tgpgSign = true\n",
            hooks.display()
        ),
    )
    .unwrap();
    std::fs::write(hooks.join("pre-push"), format!("#!/bin/sh\ntouch {}\nexit 1\n", trap.display())).unwrap();
    let mut command = scene.command();
    command.env("GIT_DIR", "/nowhere").env("GIT_AUTHOR_NAME", "Wrong").env("GIT_TRACE", "1");
    command.env("GIT_INDEX_FILE", "/nowhere").env("GIT_OBJECT_DIRECTORY", "/nowhere");
    command
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "core.hooksPath")
        .env("GIT_CONFIG_VALUE_0", &hooks);
    let run = crate::support::program::run(&mut command).with_status(0);
    assert_eq!(run.errors, "");
    assert_eq!(scene.repository.log("main")[0].author, "Flux <flux@example.com>");
    assert!(!trap.exists());
}

#[test]
fn a_huge_file_with_a_marker_is_reported_as_too_large() {
    let mut huge = tag_line("4.0.6").into_bytes();
    huge.resize(40 * 1024 * 1024, b'#');
    let scene = Scene::with_files(&[file("app.yaml", tag_line("4.0.6")), file("huge.yaml", huge)]).local();
    let run = scene.run(["--output", "json"]).with_status(0);
    assert_eq!(scene.tag("main"), "5.0.3");
    let unparsable = run.json()["automations"][0]["unparsable"].clone();
    assert_eq!(unparsable[0]["file"], "huge.yaml", "{unparsable}");
    scene.repository.assert_sound();
}

#[test]
fn a_tree_with_entries_that_a_checkout_would_not_take_is_carried_along() {
    // Made by hand: old repositories contain names that git itself would not add.
    let scene = Scene::new();
    let blob = scene.repository.id("main:app.yaml").unwrap();
    let listing = format!("100644 blob {blob}\tapp.yaml\n100664 blob {blob}\tgroup.yaml\n");
    let mut tree = crate::support::git_program::git(scene.repository.path());
    let tree = crate::support::git_program::output(tree.args(["mktree"]), listing.as_bytes());
    let tree = String::from_utf8(tree).unwrap();
    let commit = scene.repository.git(["commit-tree", "-m", "Old modes", tree.trim_end()]);
    scene.repository.move_branch("main", String::from_utf8(commit).unwrap().trim_end());
    let scene = scene.local();
    scene.run(NONE).with_status(0);
    assert_eq!(scene.tag("main"), "5.0.3");
    assert_eq!(scene.repository.file("main", "group.yaml"), tag_line("5.0.3").as_bytes());
}
