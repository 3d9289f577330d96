//! A stale push branch: the stories in which Flux never writes a marker.

use serde_json::json;

use super::{Automation, BRANCH, actions, beyond, commit, content, fleet, run, tip, write};
use crate::support::content::file;
use crate::support::fleet::tag_line;

#[test]
fn a_marker_that_is_added_on_the_base_is_written() {
    let fleet = fleet(json!({}));
    run(&fleet);
    commit(&fleet, "main", &[file("new.yaml", tag_line("4.0.6"))]);
    assert_eq!(actions(&run(&fleet)), [format!("{BRANCH}: rebuilt")]);
    let own = beyond(&fleet, BRANCH);
    assert_eq!((own.len(), &own[0].parents), (1, &vec![fleet.tip()]));
    for path in ["app.yaml", "new.yaml"] {
        assert_eq!(content(&fleet, BRANCH, path), tag_line("5.0.3"), "{path}");
    }
}

/// Merges the branch into main as a forge does.
fn merge(fleet: &crate::support::remote_fleet::RemoteFleet, way: &str) {
    let git = |arguments: &[&str]| {
        let printed = fleet
            .repository
            .git(["-c", "user.name=Ann", "-c", "user.email=ann@example.com"].iter().chain(arguments));
        String::from_utf8(printed).unwrap().trim().to_owned()
    };
    let tree = format!("refs/heads/{BRANCH}^{{tree}}");
    let branch = format!("refs/heads/{BRANCH}");
    let merged = match way {
        "merge" => git(&["commit-tree", "-p", "main", "-p", &branch, "-m", "Merge", &tree]),
        "squash" => git(&["commit-tree", "-p", "main", "-m", "Squashed", &tree]),
        _ => tip(fleet, BRANCH).unwrap(),
    };
    fleet.repository.move_branch("main", &merged);
}

#[test]
fn a_branch_that_was_merged_and_not_deleted_serves_the_next_image() {
    for way in ["merge", "squash", "fast-forward"] {
        for is_state_lost in [false, true] {
            let fleet = fleet(json!({}));
            run(&fleet);
            merge(&fleet, way);
            let merged = tip(&fleet, BRANCH);
            assert_eq!(actions(&run(&fleet)), [format!("{BRANCH}: left")], "{way}");
            assert_eq!(tip(&fleet, BRANCH), merged, "{way}");
            commit(&fleet, "main", &[file("new.yaml", tag_line("5.0.3"))]);
            write(&fleet, &[Automation::new(json!({}))], "5.0.4");
            if is_state_lost {
                super::lose_state(&fleet);
            }
            assert_eq!(actions(&run(&fleet)), [format!("{BRANCH}: rebuilt")], "{way} {is_state_lost}");
            let own = beyond(&fleet, BRANCH);
            assert_eq!((own.len(), &own[0].parents), (1, &vec![fleet.tip()]), "{way}");
            for path in ["app.yaml", "new.yaml"] {
                assert_eq!(content(&fleet, BRANCH, path), tag_line("5.0.4"), "{way} {path}");
            }
            fleet.assert_sound();
        }
    }
}
