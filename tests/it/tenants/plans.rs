//! Tests of repositories of a few kilobytes that expand to huge plans.
//! There are also git objects that are too large for memory.
//!
//! Each is reconciled by `tagboat run`, and by the controller beside a victim.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

use git2::{ObjectType, Oid, Repository, Signature, Time};
use serde_json::json;
use tagboat::git::encode_entry;

use super::measures::MemorySampler;
use super::scene::Scene;
use crate::controller::scene::Kind;
use crate::support::bare_repository::BareRepository;
use crate::support::content::file;
use crate::support::fleet::{IMAGE, tag_line};
use crate::support::git_host::Settings;
use crate::support::program::Run;
use crate::support::remote_fleet::{RemoteFleet, only_outcome};

/// The most anonymous memory of the program and its children, in bytes.
const MEMORY: u64 = 512 << 20;

/// The files of a large update: more than the limit of a template's data allowed.
const LARGE_UPDATE: usize = 20_000;

/// A tree of files, or of directories, with these names and objects.
fn tree<'n>(objects: &Repository, mode: &str, entries: impl Iterator<Item = (&'n str, Oid)>) -> Oid {
    let mut bytes = Vec::new();
    entries.for_each(|(name, id)| encode_entry(mode.as_bytes(), name.as_bytes(), id.as_bytes(), &mut bytes));
    objects.odb().unwrap().write(ObjectType::Tree, &bytes).unwrap()
}

/// Moves `main` to a commit of a tree that is made by hand.
fn commit_by_hand(repository: &BareRepository, message: &str, make: impl FnOnce(&Repository) -> Oid) -> Oid {
    let objects = Repository::open_bare(repository.path()).unwrap();
    let root = make(&objects);
    let author = Signature::new("Mallory", "mallory@example.com", &Time::new(1_767_323_045, 0)).unwrap();
    let root = objects.find_tree(root).unwrap();
    let commit = objects.commit(None, &author, &author, message, &root, &[]).unwrap();
    repository.move_branch("main", &commit.to_string());
    commit
}

/// One content under many names.
fn many_names(objects: &Repository, content: &str, count: usize) -> Oid {
    let content = objects.blob(content.as_bytes()).unwrap();
    let names: Vec<String> = (0..count).map(|number| format!("f{number:05}.yaml")).collect();
    tree(objects, "100644", names.iter().map(|name| (name.as_str(), content)))
}

/// Files in one directory that all differ and all need a change.
fn many_edits(objects: &Repository, count: usize) -> Oid {
    let name = |number: usize| format!("f{number:05}.yaml");
    let files: Vec<(String, Oid)> = (0..count)
        .map(|number| {
            let content = format!("# {number}\n{}", tag_line("4.0.6"));
            (name(number), objects.blob(content.as_bytes()).unwrap())
        })
        .collect();
    tree(objects, "100644", files.iter().map(|(name, id)| (name.as_str(), *id)))
}

/// Files without a marker in directories that all differ.
fn many_files(objects: &Repository) -> Oid {
    let content = objects.blob(b"a: 1\n").unwrap();
    let directories: Vec<(String, Oid)> = (0..50)
        .map(|directory| {
            let name = |file: usize| format!("file-{directory:02}-{file:04}-with-a-name-of-some-length.yaml");
            let names: Vec<String> = (0..4_000).map(name).collect();
            let names = names.iter().map(|name| (name.as_str(), content));
            (format!("directory-{directory:02}"), tree(objects, "100644", names))
        })
        .collect();
    tree(objects, "40000", directories.iter().map(|(name, id)| (name.as_str(), *id)))
}

fn fleet() -> RemoteFleet {
    let fleet = RemoteFleet::of_files(&[file("readme.md", "")], Settings::default());
    fleet.write_small_manifests("branch: main", "");
    fleet
}

/// Runs, and returns the peak of anonymous memory in bytes.
fn run_measured(fleet: &RemoteFleet) -> (Run, u64) {
    let mut command = fleet.command();
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let memory = MemorySampler::start(child.id());
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let run = Run { status: output.status.code(), output: text(output.stdout), errors: text(output.stderr) };
    println!("the peak of anonymous memory was {} MiB", memory.peak() >> 20);
    (run, memory.peak())
}

#[test]
fn a_million_changes_end_with_one_sentence() {
    let fleet = fleet();
    let content = format!("- {}", tag_line("4.0.6")).repeat(9_000);
    commit_by_hand(&fleet.repository, "By hand", |objects| many_names(objects, &content, 120));
    let tip = fleet.tip();
    let (run, peak) = run_measured(&fleet);
    assert_eq!(
        only_outcome(&run)["message"],
        "failed to apply policies: there are more than 100000 values to change, the limit of one plan; set update.path \
         to a smaller directory"
    );
    assert_eq!((run.status, fleet.tip()), (Some(1), tip));
    assert!(peak < MEMORY, "{}", peak >> 20);
}

/// From 16,000 changes on, no template could be rendered.
#[test]
fn a_large_update_is_committed_with_any_message_that_is_short() {
    let fleet = fleet();
    commit_by_hand(&fleet.repository, "By hand", |objects| many_edits(objects, LARGE_UPDATE));
    let (run, peak) = run_measured(&fleet);
    assert_eq!(run.status, Some(0), "{}", only_outcome(&run)["message"]);
    let before = fleet.own_commits();
    assert_eq!((before.len(), before[0].message.trim()), (1, "Update from image update automation"));
    let template = "{{ range .Updated.Images }}{{ . }} {{ end }}{{ len .Changed.Changes }}";
    let message = format!("messageTemplate: {template:?}, author");
    let manifests = fs::read_to_string(fleet.root().join("manifests/manifests.yaml")).unwrap();
    fleet.write_manifests(&manifests.replace("author", &message));
    let run = fleet.run_with_tag("9.9.9");
    assert_eq!(run.status, Some(0), "{}", only_outcome(&run)["message"]);
    let image = format!("{IMAGE}:9.9.9 1");
    assert_eq!(fleet.own_commits()[0].message.trim(), image);
    let text = fleet.repository.file("main", "f19999.yaml");
    assert_eq!(String::from_utf8(text).unwrap(), format!("# 19999\n{}", tag_line("9.9.9")));
    assert!(peak < MEMORY, "{}", peak >> 20);
}

#[test]
fn a_tree_of_many_files_is_not_held_in_memory() {
    let fleet = fleet();
    commit_by_hand(&fleet.repository, "By hand", many_files);
    let (run, peak) = run_measured(&fleet);
    assert_eq!(
        (run.status, &only_outcome(&run)["outcome"]),
        (Some(0), &json!("unchanged")),
        "{}",
        run.errors
    );
    assert_eq!(only_outcome(&run)["filesRead"], 200_000);
    // The entries alone used 90 MiB.
    assert!(peak < 64 << 20, "{}", peak >> 20);
}

#[test]
fn an_object_that_is_too_large_is_named_and_not_fetched_again() {
    let fleet = fleet();
    let commit = commit_by_hand(&fleet.repository, &"x".repeat(2 << 20), |objects| {
        let content = objects.blob(tag_line("4.0.6").as_bytes()).unwrap();
        tree(objects, "100644", [("app.yaml", content)].into_iter())
    });
    let mut mirrors = Vec::new();
    for _ in 0..2 {
        let (run, _) = run_measured(&fleet);
        let folder = fs::read_dir(fleet.state().join("mirrors")).unwrap().next().unwrap().unwrap().path();
        mirrors.push(fs::metadata(folder.join("repository.git")).unwrap().ino());
        let outcome = only_outcome(&run);
        let message = outcome["message"].as_str().unwrap();
        let expected = format!("failed to checkout source: commit {commit} has ");
        assert!(message.starts_with(&expected), "{message}");
        assert!(
            message.ends_with(
                " bytes, more than the limit of 1048576; replace it with a commit that has a shorter message"
            ),
            "{message}"
        );
    }
    // It is no corruption, for which the mirror would be made anew.
    assert_eq!(mirrors[0], mirrors[1]);
}

/// Huge plans end with the messages of their own objects beside a victim.
///
/// The repositories have very many markers with a warning, a very long message, and one content that is no
/// YAML under many names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn huge_plans_end_on_their_own_objects_beside_a_victim() {
    let scene = Scene::start().await;
    let attacker = &scene.attacker;
    let repository = |name: &str| attacker.repository(name, &[file("readme.md", "")]);
    commit_by_hand(&repository("markers"), "By hand", |objects| {
        let line = format!("- a: b # {{\"$imagepolicy\": \"{}:none\"}}\n", attacker.namespace());
        many_names(objects, &line.repeat(9_000), 120)
    });
    commit_by_hand(&repository("message"), &"x".repeat(2 << 20), many_files);
    commit_by_hand(&repository("broken"), "By hand", |objects| {
        many_names(objects, &format!("{}a: [ {}", "- a\n".repeat(100_000), tag_line("1")), 20_000)
    });
    scene
        .assert_healthy_while(async {
            for name in ["markers", "message", "broken"] {
                attacker.create_source(name, &json!({})).await;
                attacker.create_automation(name, &json!({})).await;
            }
            scene.victim_is_reconciled().await;
        })
        .await;
    let sentence = attacker.ready_message(Kind::Automation, "message").await;
    assert!(sentence.contains("more than the limit of 1048576"), "{sentence}");
    let sentence = attacker.ready_message(Kind::Automation, "broken").await;
    assert_eq!(sentence, "repository up-to-date");
    let sentence = attacker.ready_message(Kind::Automation, "markers").await;
    assert!(sentence.contains("memory, the limit of one plan"), "{sentence}");
    scene.assert_memory_below(MEMORY);
}
