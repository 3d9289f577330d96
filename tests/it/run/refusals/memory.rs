//! Objects that would exceed git's memory.

use git2::{ObjectType, Repository};
use serde_json::json;

use super::{CHECKOUT, NONE, refused};
use crate::run::scene::Scene;
use crate::support::content::file;
use crate::support::git_host::Settings;

const MEBIBYTE: usize = 1 << 20;

/// Moves `main` to a commit like its tip, with a message of this many bytes.
fn commit_with_message(scene: &Scene, length: usize) {
    let objects = Repository::open_bare(scene.repository.path()).unwrap();
    let mut text = scene.repository.git(["cat-file", "commit", "main"]);
    text.resize(text.len() + length, b'x');
    let commit = objects.odb().unwrap().write(ObjectType::Commit, &text).unwrap();
    scene.repository.move_branch("main", &commit.to_string());
}

/// Git would read it whole, in each of three processes.
#[test]
fn a_commit_message_of_120_mebibytes() {
    let scene = Scene::new();
    commit_with_message(&scene, 120 * MEBIBYTE);
    let host = scene.serve(Settings::default());
    let url = host.url("fleet.git");
    scene.source(json!({"url": url}));
    let sentence = format!(
        "{CHECKOUT}: unable to fetch '{url}': the repository has an object larger than the 96 MiB that git may hold in \
         memory; take the commit message, directory or file of that size out of the branch: attempting to allocate …"
    );
    refused(&scene, NONE, &sentence);
}

/// A file is never read whole.
#[test]
fn a_file_of_120_mebibytes_is_not_refused() {
    let scene = Scene::new();
    scene.repository.commit("main", "A video", &[file("video.bin", vec![7; 120 * MEBIBYTE])]);
    let host = scene.serve(Settings::default());
    scene.source(json!({"url": host.url("fleet.git")}));
    scene.run(NONE).with_status(0);
    assert_eq!(scene.tag("main"), "5.0.3");
}
