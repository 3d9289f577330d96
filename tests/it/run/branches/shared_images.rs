//! Shared branches with the commit of an automation without a part or an image.

use serde_json::{Value, json};

use super::shared::{
    AWAITS_TWO, BOTH, both_are, change_two, check, delivery, line, of_two_files, run, run_one, shared, write,
};
use super::{Automation, actions, pushes, tip};
use crate::support::manifests::policy_with_status;
use crate::support::program::run as run_program;
use crate::support::remote_fleet::{RemoteFleet, git_repository};

/// A fleet whose shared branch has the commit of `two` only.
fn of_two_only() -> RemoteFleet {
    let fleet = shared();
    write(&fleet, "1.0.0", "2.0.0");
    assert_eq!(run(&fleet), both_are("rebuilt"));
    check(&fleet, "1.0.0", "2.0.0", &BOTH[..1]);
    fleet
}

/// Removes the image of the policy of `two`.
fn remove_image_of_two(fleet: &RemoteFleet, tag: &str) {
    let text = std::fs::read_to_string(fleet.root().join("manifests/manifests.yaml")).unwrap();
    let status = format!("status: {{latestRef: {{name: reg.io/two, tag: {tag:?}}}}}");
    assert!(text.contains(&status), "{text}");
    fleet.write_manifests(&text.replace(&status, "status: {}"));
}

/// The branch was deleted, and with it the pull request that people had opened.
#[test]
fn a_branch_with_the_commit_of_an_absent_automation_is_not_deleted() {
    for case in ["suspended", "deleted", "failing", "moved"] {
        let fleet = of_two_only();
        let before = (tip(&fleet, "images"), pushes(&fleet));
        match case {
            "suspended" => change_two(&fleet, |object| object["spec"]["suspend"] = json!(true)),
            "failing" => {
                change_two(&fleet, |object| object["spec"]["update"]["path"] = json!("./missing"));
                // The failure is reported first.
                fleet.run().with_status(1);
            }
            "moved" => change_two(&fleet, |object| {
                object["metadata"]["annotations"].as_object_mut().unwrap().remove("tagboat.dev/delivery");
                object["spec"]["git"]["push"] = json!({"branch": "others"});
            }),
            _ => {
                let text = std::fs::read_to_string(fleet.root().join("manifests/manifests.yaml")).unwrap();
                fleet.write_manifests(text.rsplit_once("---\n").unwrap().0);
            }
        }
        super::commit(&fleet, "main", &[crate::support::content::file("other.yaml", "a: b\n")]);
        // A run without the failing one would await it.
        let left = match case {
            "failing" => fleet.run().with_status(1).json()["automations"][0]["branches"][0].clone(),
            _ => run_one(&fleet, "one"),
        };
        assert_eq!((&left["action"], &left["reason"]), (&json!("left"), &json!("nothing-left")), "{case}");
        assert_eq!((tip(&fleet, "images"), pushes(&fleet)), before, "{case}");
        write(&fleet, "1.0.0", "1.0.0");
        assert_eq!(run(&fleet), both_are("deleted"), "{case}");
        fleet.assert_sound();
    }
}

/// The condition of one named the commit of the other, as if it waited.
#[test]
fn an_automation_without_a_part_in_a_branch_is_not_told_of_the_commit_of_an_absent_one() {
    for is_state_lost in [false, true] {
        let fleet = of_two_only();
        let before = tip(&fleet, "images");
        super::commit(&fleet, "main", &[crate::support::content::file("other.yaml", "a: b\n")]);
        if is_state_lost {
            // Without the journal, only commits of its own author can be told apart.
            super::lose_state(&fleet);
            let place = fleet.root().join("manifests/manifests.yaml");
            fleet.write_manifests(&std::fs::read_to_string(place).unwrap().replace("First", "Second"));
        }
        let left = run_one(&fleet, "one");
        assert_eq!((&left["action"], &left["reason"]), (&json!("left"), &json!("nothing-left")), "{left:#}");
        assert_eq!(delivery(&fleet, "one"), "True Current no branch differs from 'main'");
        assert_eq!(tip(&fleet, "images"), before);
        // One with a change is told.
        write(&fleet, "3.0.0", "2.0.0");
        if !is_state_lost {
            is_awaited(&run_one(&fleet, "one"));
        }
        assert_eq!(tip(&fleet, "images"), before);
        assert_eq!(run(&fleet), both_are("rebuilt"));
        check(&fleet, "3.0.0", "2.0.0", &BOTH);
        fleet.assert_sound();
    }
}

#[track_caller]
fn is_awaited(left: &Value) {
    assert_eq!((&left["action"], &left["reason"]), (&json!("left"), &json!("edited-by-others")), "{left:#}");
    assert!(left["message"].as_str().unwrap().contains(AWAITS_TWO), "{left:#}");
}

/// The branch was deleted, or made anew without the commit.
#[test]
fn the_commit_of_an_automation_whose_policy_has_lost_its_image_stays() {
    for is_wanted in [false, true] {
        let fleet = if is_wanted { shared() } else { of_two_only() };
        let before = (tip(&fleet, "images"), pushes(&fleet));
        let tag = if is_wanted { "3.0.0" } else { "1.0.0" };
        write(&fleet, tag, "2.0.0");
        remove_image_of_two(&fleet, "2.0.0");
        super::commit(&fleet, "main", &[crate::support::content::file("other.yaml", "a: b\n")]);
        for _ in 0..2 {
            let run = fleet.run().with_status(0).json();
            let left = &run["automations"][0]["branches"][0];
            match is_wanted {
                true => is_awaited(left),
                // It has no part in the branch.
                false => assert_ne!(left["reason"], "edited-by-others", "{left:#}"),
            }
            assert_eq!((tip(&fleet, "images"), pushes(&fleet)), before);
        }
        write(&fleet, tag, "3.0.0");
        assert_eq!(run(&fleet), both_are("rebuilt"));
        check(&fleet, tag, "3.0.0", if is_wanted { &BOTH } else { &BOTH[..1] });
        fleet.assert_sound();
    }
}

/// The commit was dropped, because the branches of the other are unknown without its images.
#[test]
fn a_run_of_one_automation_keeps_the_commit_of_another_whose_images_are_not_in_the_manifests() {
    let fleet = shared();
    let before = (tip(&fleet, "images"), pushes(&fleet));
    write(&fleet, "3.0.0", "2.0.0");
    remove_image_of_two(&fleet, "2.0.0");
    for _ in 0..2 {
        is_awaited(&run_one(&fleet, "one"));
        assert_eq!((tip(&fleet, "images"), pushes(&fleet)), before);
    }
    write(&fleet, "3.0.0", "2.0.0");
    assert_eq!(run(&fleet), both_are("rebuilt"));
    check(&fleet, "3.0.0", "2.0.0", &BOTH);
    fleet.assert_sound();
}

/// The branch was left alone for a commit that it does not have.
#[test]
fn a_file_that_cannot_be_parsed_delays_no_branch_without_a_commit_of_its_automation() {
    for is_state_lost in [false, true] {
        let fleet = of_two_only();
        let broken = line("one", "1.0.0") + "a: [\n";
        super::commit(&fleet, "main", &[crate::support::content::file("one.yaml", broken)]);
        write(&fleet, "1.0.0", "3.0.0");
        if is_state_lost {
            super::lose_state(&fleet);
        }
        assert_eq!(run(&fleet), both_are("rebuilt"), "{is_state_lost}");
        assert_eq!(super::content(&fleet, "images", "two.yaml"), line("two", "3.0.0"));
        fleet.assert_sound();
    }
}

/// Its branch was made anew on another base, without its commit.
#[test]
fn a_run_of_one_automation_takes_no_branch_that_the_images_of_the_state_give_to_another() {
    let fleet = of_two_files();
    fleet.repository.git(["branch", "release", "main"]);
    let mut text = git_repository(&fleet.host.url("fleet.git"), "");
    for (name, base) in [("one", "main"), ("two", "release")] {
        text += &policy_with_status("default", name, &format!("app: {name}"), "");
        let repository = json!({
            "apiVersion": "image.toolkit.fluxcd.io/v1", "kind": "ImageRepository",
            "metadata": {"namespace": "default", "name": name},
            "spec": {"image": format!("reg.io/{name}"), "interval": "1m"},
        });
        let annotations = json!({"push-branch": "images-{{ .Image.Tag }}"});
        let manifest = Automation { name, author: name, path: "./", annotations }.manifest();
        let mut object: Value = serde_json::from_str(manifest.trim_start_matches("---\n")).unwrap();
        object["spec"]["policySelector"] = json!({"matchLabels": {"app": name}});
        object["spec"]["git"]["checkout"] = json!({"ref": {"branch": base}});
        text += &format!("---\n{repository}\n---\n{object}\n");
    }
    fleet.write_manifests(&text);
    let run_of = |name: &str, tag: &str| {
        let image = format!("{name}=reg.io/{name}:{tag}");
        run_program(fleet.command().args(["--automation", name, "--latest", &image]))
    };
    run_of("one", "2.0.0").with_status(0);
    let before = tip(&fleet, "images-2.0.0");
    assert!(before.is_some());
    let expected = "automation default/one makes the branch images-2.0.0 on main, and a branch has one base";
    let refused = run_of("two", "2.0.0").with_status(1);
    assert!(refused.errors.contains(expected), "{refused:?}");
    assert_eq!(tip(&fleet, "images-2.0.0"), before);
    // Another image has another branch.
    let created = run_of("two", "3.0.0").with_status(0).json();
    assert_eq!(actions(&created["automations"][0]["branches"]), ["images-3.0.0: created"]);
    fleet.assert_sound();
}
