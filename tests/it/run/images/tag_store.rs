//! Tests of the tag store of a state.
//! They cover files that cannot be read, and files without a repository.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::scene::{MADE, Scene};

fn tags(scene: &Scene) -> PathBuf {
    scene.fleet.state().join("tags")
}

/// A file that cannot be read is written anew, as a corrupt file is.
/// Root can read every file, so the file is a circular link here.
#[test]
fn an_unreadable_tag_file_is_replaced() {
    let scene = Scene::new();
    assert_eq!(scene.outcome_name(&[]), "pushed");
    let file = tags(&scene).join("default/web.tags");
    fs::remove_file(&file).unwrap();
    symlink("web.tags", &file).unwrap();
    scene.registry.push("app/web", "1.1.0", MADE);
    let ended = scene.run(&[]).with_status(0);
    let wanted = "warning: the tags of ImageRepository default/web are listed again, and their first-seen times are \
                  lost: remove the file, or make it readable for this user: cannot read ";
    assert!(ended.only_error().starts_with(&format!("{wanted}{}: ", file.display())), "{ended:?}");
    assert_eq!(scene.value("app"), "app/web:1.1.0");
    assert_eq!(scene.run(&[]).with_status(0).errors, "");
}

#[test]
fn a_failed_write_is_one_warning_and_not_a_failure() {
    let scene = Scene::new();
    assert_eq!(scene.outcome_name(&[]), "pushed");
    fs::remove_dir_all(tags(&scene)).unwrap();
    fs::write(tags(&scene), "").unwrap();
    scene.registry.push("app/web", "1.1.0", MADE);
    let ended = scene.run(&[]).with_status(0);
    let file = tags(&scene).join("default/web.tags");
    assert!(ended.only_error().contains(&format!("cannot read {}: ", file.display())), "{ended:?}");
    assert_eq!(scene.value("app"), "app/web:1.1.0");

    // A missing file is no error.
    fs::remove_file(tags(&scene)).unwrap();
    symlink("/proc/self/fdinfo", tags(&scene)).unwrap();
    let ended = scene.run(&[]).with_status(0);
    let wanted = "warning: cannot store the tags of ImageRepository default/web: free disk space, or make the directory \
                  writable for this user: cannot write ";
    assert!(ended.only_error().starts_with(&format!("{wanted}{}: ", file.display())), "{ended:?}");
}

#[test]
fn old_files_of_repositories_that_are_gone_are_removed() {
    let scene = Scene::new();
    assert_eq!(scene.outcome_name(&[]), "pushed");
    let directory = tags(&scene).join("default");
    let make = |name: &str, days: u64| {
        fs::copy(directory.join("web.tags"), directory.join(name)).unwrap();
        let file = File::options().write(true).open(directory.join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(days * 24 * 3600)).unwrap();
    };
    for (name, days) in [("gone.tags", 8), ("another-run.tags", 1), ("idle.tags", 30)] {
        make(name, days);
    }
    // No policy uses its tags, but it is among the manifests.
    scene.repository("idle", serde_json::json!({}));
    scene.run(&["--dry-run"]).with_status(0);
    assert!(directory.join("gone.tags").exists(), "a dry run changes nothing");
    scene.run(&[]).with_status(0);
    let mut left: Vec<String> = fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["another-run.tags", "idle.tags", "web.tags"]);
}
