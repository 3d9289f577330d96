//! Commits of others on a branch are never lost.

use serde_json::json;

use super::{Automation, BRANCH, actions, commit, delivery, fleet, lose_state, pushes, run, tip, write};
use crate::support::content::file;
use crate::support::fleet::tag_line;
use crate::support::git_host::Settings;
use crate::support::remote_fleet::RemoteFleet;

#[test]
fn a_reviewers_commit_is_never_lost() {
    for (words, change) in [
        ("another file", file("notes.md", "words\n")),
        ("the marked value", file("app.yaml", tag_line("5.0.2"))),
        ("the same file", file("app.yaml", format!("{}replicas: 3\n", tag_line("5.0.3")))),
    ] {
        let fleet = fleet(json!({}));
        run(&fleet);
        let review = commit(&fleet, BRANCH, &[change]);
        let count = pushes(&fleet);
        for (tag, is_state_lost) in [("5.0.4", false), ("5.0.5", true), ("5.0.5", true)] {
            write(&fleet, &[Automation::new(json!({}))], tag);
            commit(&fleet, "main", &[file("docs/readme.md", tag)]);
            if is_state_lost {
                lose_state(&fleet);
            }
            let branches = run(&fleet);
            assert_eq!(actions(&branches), [format!("{BRANCH}: left")], "{words} {tag}");
            assert_eq!(branches[0]["reason"], "edited-by-others", "{words}");
            let condition = delivery(&fleet).unwrap();
            let expected =
                format!("False EditedByOthers branch '{BRANCH}' has commit {} of others", &review[..7]);
            assert!(condition.starts_with(&expected), "{condition}");
            assert_eq!(
                (tip(&fleet, BRANCH).as_ref(), pushes(&fleet)),
                (Some(&review), count),
                "{words} {tag}"
            );
        }
        // A person who deletes the branch gets a new one.
        fleet.repository.delete_branch(BRANCH);
        assert_eq!(actions(&run(&fleet)), [format!("{BRANCH}: created")], "{words}");
        assert!(delivery(&fleet).unwrap().starts_with("True Current"));
    }
}

/// Merges main into the branch, as the button "update branch" of a forge does.
///
/// With `extra` the merge has a change of its own.
fn update_branch(fleet: &RemoteFleet, extra: Option<&str>) {
    let git = |arguments: &[&str]| {
        let printed = fleet
            .repository
            .git(["-c", "user.name=Ann", "-c", "user.email=ann@example.com"].iter().chain(arguments));
        String::from_utf8(printed).unwrap().trim().to_owned()
    };
    let branch = format!("refs/heads/{BRANCH}");
    let tree = git(&["merge-tree", "--write-tree", &branch, "refs/heads/main"]);
    let merge = git(&["commit-tree", "-p", &branch, "-p", "refs/heads/main", "-m", "Merge main", &tree]);
    fleet.repository.move_branch(BRANCH, &merge);
    if let Some(text) = extra {
        // The same commit with another tree.
        let changed = commit(fleet, BRANCH, &[file("extra.md", text)]);
        let tree = format!("{changed}^{{tree}}");
        let parent = format!("{merge}^1");
        let evil = git(&["commit-tree", "-p", &parent, "-p", "refs/heads/main", "-m", "Merge main", &tree]);
        fleet.repository.move_branch(BRANCH, &evil);
    }
}

#[test]
fn a_merge_of_the_base_is_no_change_of_others_unless_it_changes_more() {
    for is_state_lost in [false, true] {
        let fleet = fleet(json!({}));
        run(&fleet);
        commit(&fleet, "main", &[file("docs/readme.md", "words\n")]);
        update_branch(&fleet, None);
        let merged = tip(&fleet, BRANCH);
        if is_state_lost {
            lose_state(&fleet);
        }
        assert_eq!(actions(&run(&fleet)), [format!("{BRANCH}: kept")], "{is_state_lost}");
        assert_eq!(tip(&fleet, BRANCH), merged);
        write(&fleet, &[Automation::new(json!({}))], "5.0.4");
        assert_eq!(actions(&run(&fleet)), [format!("{BRANCH}: rebuilt")], "{is_state_lost}");
    }
    let fleet = fleet(json!({}));
    run(&fleet);
    commit(&fleet, "main", &[file("docs/readme.md", "words\n")]);
    update_branch(&fleet, Some("words"));
    let merged = tip(&fleet, BRANCH);
    write(&fleet, &[Automation::new(json!({}))], "5.0.4");
    assert_eq!(actions(&run(&fleet)), [format!("{BRANCH}: left")]);
    assert_eq!(tip(&fleet, BRANCH), merged);
}

/// The history of the base is longer than what is fetched at once.
#[test]
fn a_branch_on_an_old_base_is_still_ours() {
    let fleet = fleet(json!({}));
    run(&fleet);
    let contents: Vec<_> = (0..150).map(|number| [file("docs/readme.md", number.to_string())]).collect();
    fleet.repository.commits("main", contents.iter().map(|changes| ("More", changes.as_slice())));
    lose_state(&fleet);
    assert_eq!(actions(&run(&fleet)), [format!("{BRANCH}: kept")]);
    write(&fleet, &[Automation::new(json!({}))], "5.0.4");
    lose_state(&fleet);
    assert_eq!(actions(&run(&fleet)), [format!("{BRANCH}: rebuilt")]);
    fleet.assert_sound();
}

#[test]
fn two_clusters_with_the_same_names_and_other_paths_never_push_over_each_other() {
    let marked = |path: &str| file(path, tag_line("4.0.6"));
    for push_branch in [None, Some("images")] {
        let fleet =
            RemoteFleet::of_files(&[marked("one/app.yaml"), marked("two/app.yaml")], Settings::default());
        let annotations = || push_branch.map_or(json!({}), |name| json!({"push-branch": name}));
        let run_of = |path, tag| {
            write(&fleet, &[Automation { path, ..Automation::new(annotations()) }], tag);
            // Each cluster has a state of its own, and this is the one of neither.
            if fleet.state().exists() {
                lose_state(&fleet);
            }
            actions(&run(&fleet))
        };
        let (of_one, of_two) = match push_branch {
            None => ("tagboat/default-fleet-one", "tagboat/default-fleet-two"),
            Some(name) => (name, name),
        };
        assert_eq!(run_of("./one", "5.0.3"), [format!("{of_one}: created")]);
        let first = tip(&fleet, of_one);
        let expected = if push_branch.is_some() { "left" } else { "created" };
        assert_eq!(run_of("./two", "5.0.4"), [format!("{of_two}: {expected}")]);
        assert_eq!(tip(&fleet, of_one), first);
        let second = tip(&fleet, of_two);
        assert_eq!(run_of("./one", "5.0.5"), [format!("{of_one}: rebuilt")]);
        if push_branch.is_none() {
            assert_eq!(tip(&fleet, of_two), second);
        }
    }
}
