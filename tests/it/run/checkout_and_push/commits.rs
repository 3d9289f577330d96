//! Author, committer, time and content of the commit.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::run::scene::Scene;

const NONE: [&str; 0] = [];

#[test]
fn author_and_committer_are_as_configured_without_characters_that_end_a_field() {
    for (author, wanted) in [
        (json!({"name": "Flux", "email": "flux@example.com"}), "Flux <flux@example.com>"),
        (json!({"name": null, "email": "flux@example.com"}), " <flux@example.com>"),
        (json!({"name": "", "email": ""}), " <>"),
        (json!({"name": "A <b>\nc", "email": "<a@example.com>"}), "A bc <a@example.com>"),
        (json!({"name": "  Zoë  Ünal ", "email": "z ë@example.com"}), "  Zoë  Ünal  <z ë@example.com>"),
    ] {
        let scene = Scene::new().local();
        scene.automation(json!({"git": {"commit": {"author": author}}}));
        scene.run(NONE).with_status(0);
        let commit = scene.repository.git(["cat-file", "commit", "main"]);
        let commit = String::from_utf8(commit).unwrap();
        let line = |name: &str| {
            let line = commit.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
            line.unwrap_or_else(|| panic!("{commit}")).to_owned()
        };
        let (by, committed) = (line("author"), line("committer"));
        assert_eq!(by, committed);
        let [zone, second, person] = *by.rsplitn(3, ' ').collect::<Vec<_>>() else { panic!("{by}") };
        assert_eq!(person, wanted);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        assert!(now - second.parse::<u64>().unwrap() < 60, "{by}");
        assert_eq!(zone, "+0000", "no time zone is set here");
        scene.repository.assert_sound();
    }
}

#[test]
fn the_time_zone_is_that_of_the_process() {
    let scene = Scene::new().local();
    let run = crate::support::program::run(scene.command().env("TZ", "Asia/Kolkata"));
    run.with_status(0);
    let zone = scene.repository.git(["log", "-1", "--format=%ai", "main"]);
    assert!(zone.ends_with(b" +0530\n"), "{}", zone.escape_ascii());
}

#[test]
fn the_default_message_is_committed_verbatim() {
    let scene = Scene::new().local();
    scene.run(NONE).with_status(0);
    let commit = scene.repository.git(["cat-file", "commit", "main"]);
    assert!(commit.ends_with(b"\n\nUpdate from image update automation"), "{}", commit.escape_ascii());
}

#[test]
fn nothing_but_the_values_changes() {
    let scene = Scene::with_files(&[
        crate::support::content::file("app.yaml", crate::support::fleet::tag_line("4.0.6")),
        crate::support::content::file("other.yaml", "a: 1\n"),
    ])
    .local();
    let before = scene.repository.tree("main");
    scene.run(NONE).with_status(0);
    let mut after = scene.repository.tree("main");
    let line = crate::support::fleet::tag_line("5.0.3").into_bytes();
    let changed = after.insert(b"app.yaml".to_vec(), before[b"app.yaml".as_slice()].clone());
    assert_eq!(changed, Some(crate::support::content::Content::File(line)));
    assert_eq!(after, before);
}
