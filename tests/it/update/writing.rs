//! Writing: changed files only, atomically, with their mode; nothing in a dry run.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use serde_json::json;

use crate::support::fleet::{Fleet, podinfo, tag_line};
use crate::support::manifests::automation;
use crate::support::program::{run, update};
use crate::support::trees;
use crate::support::unwritable::Unwritable;

#[test]
fn an_unwritable_file_is_named_and_stops_no_other() {
    let files = ["a.yaml", "b.yaml", "c.yaml"].map(|name| (name, tag_line("4.0.6")));
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let manifests = format!("{}{}", podinfo(), automation("default", "fleet", ""));
    let fleet = Fleet::new(files, &manifests);
    let guard = Unwritable::make(fleet.directory().join("b.yaml"));
    let run = fleet.update(["--output", "json"]).with_status(1);
    assert!(run.only_error().starts_with("default/fleet: cannot write b.yaml; it is unchanged: "), "{run:?}");
    let outcome = run.json();
    assert_eq!(outcome["outcome"], "failed");
    assert_eq!(outcome["errors"].as_array().unwrap().len(), 1);
    let changed: Vec<_> = outcome["changes"].as_object().unwrap().keys().collect();
    assert_eq!(changed, ["a.yaml", "c.yaml"]);
    drop(guard);
    let texts = ["a.yaml", "b.yaml", "c.yaml"].map(|name| fleet.text(name));
    assert_eq!(texts, [tag_line("5.0.3"), tag_line("4.0.6"), tag_line("5.0.3")]);
    assert_eq!(fleet.tree().len(), 3, "{:?}", fleet.tree());
}

#[test]
fn the_mode_and_the_owner_stay() {
    let fleet = Fleet::small();
    let path = fleet.directory().join("app.yaml");
    let is_root = fs::metadata(&path).unwrap().uid() == 0;
    for mode in [0o644, 0o755, 0o600, 0o664, 0o400 | 0o200, 0o4755] {
        fs::write(&path, tag_line("4.0.6")).unwrap();
        if is_root {
            std::os::unix::fs::chown(&path, Some(1234), Some(4321)).unwrap();
        }
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let before = fs::metadata(&path).unwrap();
        fleet.update([""; 0]).with_status(0);
        let after = fs::metadata(&path).unwrap();
        assert_eq!(fleet.text("app.yaml"), tag_line("5.0.3"));
        assert_eq!(after.mode(), before.mode(), "{mode:o}");
        assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
    }
}

/// Inode, modification time and bytes, some of which a rewrite would change.
fn traces(path: &Path) -> (u64, i64, i64, Vec<u8>) {
    let metadata = fs::metadata(path).unwrap();
    (metadata.ino(), metadata.mtime(), metadata.mtime_nsec(), fs::read(path).unwrap())
}

#[test]
fn a_dry_run_touches_nothing_and_prints_a_diff() {
    let fleet = Fleet::small();
    let path = fleet.directory().join("app.yaml");
    let before = (traces(&path), fs::metadata(fleet.directory()).unwrap().mtime_nsec());
    let run = fleet.update(["--dry-run"]).with_status(0);
    assert_eq!((traces(&path), fs::metadata(fleet.directory()).unwrap().mtime_nsec()), before);
    let (old, new) = (tag_line("4.0.6"), tag_line("5.0.3"));
    let diff = format!("--- a/app.yaml\n+++ b/app.yaml\n@@ -1 +1 @@\n-{old}+{new}");
    assert!(run.output.starts_with(&diff), "{}", run.output);
    let outcome = fleet.update(["--dry-run", "--output", "json"]).with_status(0).json();
    assert_eq!(outcome["outcome"], "dry-run");
    assert_eq!(outcome["diff"], json!(diff));
    assert_eq!(outcome["changes"]["app.yaml"]["objects"][0]["changes"][0]["newValue"], "5.0.3");
}

#[test]
fn a_dry_run_with_nothing_to_do_is_unchanged() {
    let fleet = Fleet::new([("app.yaml", &tag_line("5.0.3"))], &podinfo());
    let outcome = fleet.update(["--dry-run", "--output", "json"]).with_status(0).json();
    assert_eq!((&outcome["outcome"], &outcome["diff"]), (&json!("unchanged"), &json!("")));
}

#[test]
fn a_second_run_and_files_that_do_not_change_are_left_alone() {
    let texts =
        [("a.yaml", tag_line("4.0.6")), ("b.yaml", tag_line("5.0.3")), ("c.yaml", "{{ x }}\n".into())];
    let fleet = Fleet::new(texts.each_ref().map(|(name, text)| (*name, text.as_str())), &podinfo());
    let [a, b, c] = ["a.yaml", "b.yaml", "c.yaml"].map(|name| fleet.directory().join(name));
    let before = (traces(&b), traces(&c));
    fleet.update([""; 0]).with_status(0);
    assert_eq!((traces(&b), traces(&c)), before);
    let before = traces(&a);
    let outcome = fleet.update(["--output", "json"]).with_status(0).json();
    assert_eq!(outcome["outcome"], "unchanged");
    assert_eq!(traces(&a), before);
}

#[test]
fn two_runs_never_write_in_one_directory_at_once() {
    let fleet = Fleet::small();
    let holder = fs::File::open(fleet.directory()).unwrap();
    holder.lock().unwrap();
    let run = fleet.update([""; 0]).with_status(1);
    assert!(run.only_error().contains("another tagboat is writing in"), "{run:?}");
    assert_eq!(fleet.text("app.yaml"), tag_line("4.0.6"));
    fleet.update(["--dry-run"]).with_status(0);
    drop(holder);
    fleet.update([""; 0]).with_status(0);
    assert_eq!(fleet.text("app.yaml"), tag_line("5.0.3"));
}

#[test]
fn the_directory_itself_may_be_given_in_any_way() {
    for way in ["fleet", "fleet/", "./fleet", "fleet/.", "link", "link/"] {
        let fleet = Fleet::small();
        symlink("fleet", fleet.root().join("link")).unwrap();
        let mut command = crate::support::program::tagboat();
        command.current_dir(fleet.root()).args(["update", way, "--policies", "manifests/manifests.yaml"]);
        run(&mut command).with_status(0);
        assert_eq!(fleet.text("app.yaml"), tag_line("5.0.3"), "{way}");
        assert!(fs::symlink_metadata(fleet.root().join("link")).unwrap().is_symlink());
    }
    let fleet = Fleet::small();
    let mut command = crate::support::program::tagboat();
    command.current_dir(fleet.directory()).args(["update", ".", "--policies", "../manifests"]);
    run(&mut command).with_status(0);
    assert_eq!(fleet.text("app.yaml"), tag_line("5.0.3"));
}

#[test]
fn an_empty_directory_is_not_an_error() {
    let fleet = Fleet::of_tree(&trees::Tree::new(), &podinfo());
    let outcome = update(&fleet.directory(), &fleet.manifests(), ["--output", "json"]).with_status(0).json();
    assert_eq!((&outcome["outcome"], &outcome["filesRead"]), (&json!("unchanged"), &json!(0)));
}

#[test]
fn policies_among_the_files_to_update_are_only_read() {
    let fleet = Fleet::new([("apps/app.yaml", &tag_line("4.0.6")), ("policies.yaml", &podinfo())], "");
    update(&fleet.directory(), &fleet.directory().join("policies.yaml"), [""; 0]).with_status(0);
    assert_eq!(fleet.text("apps/app.yaml"), tag_line("5.0.3"));
    assert_eq!(fleet.text("policies.yaml"), podinfo());
}
