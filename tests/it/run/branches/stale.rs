//! A stale push branch: the stories in which Flux never writes a marker.

use serde_json::json;

use super::{Automation, BRANCH, actions, beyond, commit, content, delivery, fleet, run, tip, write};
use crate::support::content::file;
use crate::support::fleet::{IMAGE, tag_line};
use crate::support::git_host::Settings;
use crate::support::manifests::{policy, policy_with_status};
use crate::support::remote_fleet::{RemoteFleet, git_repository};

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
fn merge(fleet: &RemoteFleet, way: &str) {
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

/// The branch was deleted once people edited the file.
#[test]
fn a_merged_branch_stays_when_people_edit_its_file_on_the_base() {
    let lines = |head: &str, tag: &str, below: &str| {
        format!("{head}b: 1\nc: 1\nd: 1\n{}{below}e: 1\nf: 1\ng: 1\n", tag_line(tag))
    };
    for way in ["merge", "squash", "fast-forward"] {
        for is_state_lost in [false, true] {
            let files = [file("app.yaml", lines("a: 1\n", "4.0.6", "x: 1\n"))];
            let fleet = RemoteFleet::of_files(&files, Settings::default());
            write(&fleet, &[Automation::new(json!({}))], "5.0.3");
            run(&fleet);
            merge(&fleet, way);
            assert_eq!(actions(&run(&fleet)), [format!("{BRANCH}: left")], "{way}");
            let merged = tip(&fleet, BRANCH);
            // Another line, one beside the image, and another value of the image itself.
            for (head, tag, below) in
                [("a: 2\n", "5.0.3", "x: 1\n"), ("a: 2\n", "5.0.3", "x: 2\n"), ("", "5.0.4", "")]
            {
                commit(&fleet, "main", &[file("app.yaml", lines(head, tag, below))]);
                write(&fleet, &[Automation::new(json!({}))], tag);
                if is_state_lost {
                    super::lose_state(&fleet);
                }
                assert_eq!(
                    run(&fleet)[0]["reason"],
                    "nothing-left",
                    "{way} {is_state_lost} {head}{tag}{below}"
                );
                assert_eq!(tip(&fleet, BRANCH), merged, "{way}");
            }
        }
    }
}

/// The branch stayed and proposed the image that was not wanted any more.
#[test]
fn a_branch_whose_image_is_the_base_again_is_deleted() {
    for is_state_lost in [false, true] {
        let fleet = fleet(json!({}));
        run(&fleet);
        let before = tip(&fleet, BRANCH);
        write(&fleet, &[Automation::new(json!({}))], "4.0.6");
        if is_state_lost {
            super::lose_state(&fleet);
        }
        let dry = super::report(&crate::support::program::run(fleet.command().arg("--dry-run")));
        let would = format!("would delete branch '{BRANCH}'");
        assert_eq!((&dry["outcome"], &dry["message"]), (&json!("dry-run"), &json!(would)), "{dry:#}");
        assert_eq!(actions(&dry["branches"]), [format!("{BRANCH}: deleted")]);
        assert_eq!(tip(&fleet, BRANCH), before);
        let branches = run(&fleet);
        assert_eq!(actions(&branches), [format!("{BRANCH}: deleted")], "{is_state_lost}");
        assert_eq!(branches[0]["message"], format!("deleted branch '{BRANCH}'"));
        assert_eq!(tip(&fleet, BRANCH), None);
        assert_eq!(delivery(&fleet).unwrap(), "True Current no branch differs from 'main'");
        let pushes = super::pushes(&fleet);
        assert_eq!(actions(&run(&fleet)), Vec::<String>::new());
        assert_eq!(super::pushes(&fleet), pushes);
        // The next image has the branch again.
        write(&fleet, &[Automation::new(json!({}))], "5.0.4");
        assert_eq!(actions(&run(&fleet)), [format!("{BRANCH}: created")]);
        fleet.assert_sound();
    }
}

#[test]
fn a_stale_branch_with_a_commit_of_others_stays() {
    for is_state_lost in [false, true] {
        let fleet = fleet(json!({}));
        run(&fleet);
        let review = commit(&fleet, BRANCH, &[file("notes.md", "words\n")]);
        write(&fleet, &[Automation::new(json!({}))], "4.0.6");
        if is_state_lost {
            super::lose_state(&fleet);
        }
        let branch = run(&fleet)[0].clone();
        assert_eq!((&branch["action"], &branch["reason"]), (&json!("left"), &json!("edited-by-others")));
        assert_eq!(tip(&fleet, BRANCH).unwrap(), review);
        let condition = delivery(&fleet).unwrap();
        let expected =
            format!("False EditedByOthers branch '{BRANCH}' has commit {} of others", &review[..7]);
        assert!(condition.starts_with(&expected), "{condition}");
    }
}

/// One that was made by a person has no commit of its own.
#[test]
fn a_branch_that_changes_nothing_is_never_deleted() {
    let fleet = fleet(json!({}));
    write(&fleet, &[Automation::new(json!({}))], "4.0.6");
    fleet.repository.git(["branch", BRANCH, "main"]);
    for change in ["a: 1\n", "a: 2\n"] {
        assert_eq!(run(&fleet)[0]["reason"], "nothing-left", "{change}");
        assert!(tip(&fleet, BRANCH).is_some());
        commit(&fleet, "main", &[file("other.yaml", change)]);
    }
}

/// The base has the old value again, which a merge of the branch would replace.
#[test]
fn a_branch_whose_merge_was_reverted_is_deleted_once_its_image_is_not_wanted() {
    for way in ["merge", "squash"] {
        let fleet = fleet(json!({}));
        run(&fleet);
        merge(&fleet, way);
        assert_eq!(actions(&run(&fleet)), [format!("{BRANCH}: left")], "{way}");
        commit(&fleet, "main", &[file("app.yaml", tag_line("4.0.6"))]);
        write(&fleet, &[Automation::new(json!({}))], "4.0.6");
        assert_eq!(actions(&run(&fleet)), [format!("{BRANCH}: deleted")], "{way}");
    }
}

#[test]
fn of_two_branches_only_the_one_whose_image_is_the_base_again_is_deleted() {
    let by_policy = || [Automation::new(json!({"push-branch": "x/{{ .Policy.Name }}"}))];
    let fleet = fleet(json!({}));
    let manifests = |web: &str, podinfo: &str| {
        let mut text = policy("default", "web", IMAGE, web) + &policy("default", "podinfo", IMAGE, podinfo);
        text += &git_repository(&fleet.host.url("fleet.git"), "");
        text.extend(by_policy().iter().map(Automation::manifest));
        fleet.write_manifests(&text);
    };
    let web = |tag: &str| tag_line(tag).replace("default:podinfo", "default:web");
    commit(&fleet, "main", &[file("web.yaml", web("1.0.0"))]);
    manifests("2.0.0", "5.0.3");
    assert_eq!(actions(&run(&fleet)), ["x/podinfo: created", "x/web: created"]);
    let kept = tip(&fleet, "x/podinfo");
    manifests("1.0.0", "5.0.3");
    assert_eq!(actions(&run(&fleet)), ["x/podinfo: kept", "x/web: deleted"]);
    assert_eq!((tip(&fleet, "x/podinfo"), tip(&fleet, "x/web")), (kept, None));
}

/// The change of the other policy may be on the branch.
#[test]
fn a_stale_branch_stays_while_a_policy_has_no_image() {
    let fleet = fleet(json!({}));
    run(&fleet);
    let with = |status: &str| {
        let mut text = policy("default", "podinfo", IMAGE, "4.0.6");
        text += &policy_with_status("default", "web", "app: web", status);
        text += &git_repository(&fleet.host.url("fleet.git"), "");
        text += &Automation::new(json!({})).manifest();
        fleet.write_manifests(&text);
    };
    with("");
    let without_image = fleet.run().with_status(0).json();
    assert_eq!(without_image["automations"][0]["branches"][0]["reason"], "nothing-left");
    assert!(tip(&fleet, BRANCH).is_some());
    with("latestRef: {name: reg.io/web, tag: 1.0.0}");
    assert_eq!(actions(&run(&fleet)), [format!("{BRANCH}: deleted")]);
}
