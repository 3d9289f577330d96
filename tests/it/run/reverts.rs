//! Values that others took back, which are written again or not.

use std::fs;

use serde_json::{Value, json};

use super::scene::Scene;
use super::waiting::{annotated, condition, report};
use crate::support::content::{file, removed};
use crate::support::fleet::tag_line;
use crate::support::git_host::{Operation, Settings};
use crate::support::ssh_host::SshHost;

/// A scene with a setting, in which the first image was pushed.
pub(super) fn pushed(mode: &str) -> Scene {
    let scene = Scene::new().local();
    annotated(&scene, &json!({"tagboat.dev/on-revert": mode}));
    assert_eq!(run(&scene)["outcome"], "pushed");
    assert_eq!(scene.tag("main"), "5.0.3");
    scene
}

/// The report of a run with the state.
#[track_caller]
pub(super) fn run(scene: &Scene) -> Value {
    report(&scene.run_with_state(["--output", "json"]).with_status(0))
}

pub(super) fn revert(scene: &Scene) -> String {
    scene.repository.commit("main", "Take it back", &[file("app.yaml", tag_line("4.0.6"))])
}

/// Removes all that only a mirror has.
fn lose_mirror(scene: &Scene) {
    let mirrors = scene.state().join("mirrors");
    assert!(mirrors.is_dir());
    fs::remove_dir_all(mirrors).unwrap();
}

fn held(scene: &Scene) -> String {
    condition(scene, "RevertHeld").unwrap()
}

#[test]
fn a_revert_holds_until_the_policy_selects_another_image() {
    let scene = pushed("hold");
    assert_eq!(held(&scene), "False NothingHeld no image is held");
    let from = scene.repository.id("main").unwrap();
    let to = revert(&scene);
    for round in 0..4 {
        if round == 2 {
            lose_mirror(&scene);
        }
        let report = run(&scene);
        assert_eq!(report["outcome"], "unchanged", "{report:#}");
        let expected = json!([{
            "policy": "default/podinfo", "image": "ghcr.io/stefanprodan/podinfo:5.0.3", "value": "4.0.6",
            "file": "app.yaml", "line": 1, "between": [from, to], "author": "Tester", "mode": "hold",
        }]);
        assert_eq!(report["held"], expected, "round {round}");
        assert_eq!(report["markers"][0]["outcome"], "held");
        let message = held(&scene);
        assert!(
            message.starts_with("True TakenBack tagboat.dev/on-revert is hold and keeps out "),
            "{message}"
        );
        assert!(message.contains("app.yaml:1 has \"4.0.6\" of podinfo; a hold ends when "), "{message}");
        assert_eq!(scene.tag("main"), "4.0.6");
        // Others go on with other files.
        scene.repository.commit("main", "Other", &[file("note.txt", round.to_string())]);
    }
    scene.latest("6.0.0");
    assert_eq!(run(&scene)["outcome"], "pushed");
    assert_eq!(scene.tag("main"), "6.0.0");
    assert_eq!(held(&scene), "False NothingHeld no image is held");
}

/// A run that waited dropped the hold.
///
/// The image of the last run was then written over the revert.
#[test]
fn a_hold_stays_while_another_image_waits_and_is_withdrawn() {
    let scene = pushed("hold");
    revert(&scene);
    assert_eq!(run(&scene)["outcome"], "unchanged");
    let before = held(&scene);
    let closed = "[{name: long, kind: deny, from: 2020-01-01T00:00, until: 2200-01-01T00:00}]";
    annotated(&scene, &json!({"tagboat.dev/on-revert": "hold", "tagboat.dev/windows": closed}));
    scene.latest("6.0.0");
    assert_eq!(run(&scene)["outcome"], "waiting");
    assert!(held(&scene).starts_with("True TakenBack "), "{}", held(&scene));
    scene.latest("5.0.3");
    annotated(&scene, &json!({"tagboat.dev/on-revert": "hold"}));
    assert_eq!(run(&scene)["outcome"], "unchanged");
    assert_eq!((scene.tag("main").as_str(), held(&scene)), ("4.0.6", before));
}

/// A hold was lost with a file that could not be parsed in one run.
#[test]
fn a_file_that_cannot_be_parsed_loses_no_hold() {
    let broken = |tag: &str| file("app.yaml", format!("{}a: [\n", tag_line(tag)));
    for mode in ["hold", "pause"] {
        let scene = pushed(mode);
        revert(&scene);
        assert_eq!(run(&scene)["outcome"], "unchanged");
        scene.repository.commit("main", "Break", &[broken("4.0.6")]);
        assert_eq!(run(&scene)["outcome"], "unchanged");
        assert!(held(&scene).starts_with("True TakenBack "), "{}", held(&scene));
        revert(&scene);
        assert_eq!(
            (run(&scene)["outcome"].as_str(), scene.tag("main").as_str()),
            (Some("unchanged"), "4.0.6")
        );
        // It is mended and reverted at once.
        let scene = pushed(mode);
        scene.repository.commit("main", "Break", &[broken("5.0.3")]);
        assert_eq!(run(&scene)["outcome"], "unchanged");
        revert(&scene);
        assert_eq!(run(&scene)["held"][0]["value"], "4.0.6");
        assert_eq!(scene.tag("main"), "4.0.6");
    }
}

#[test]
fn a_pause_lasts_until_the_wanted_value_is_there_or_the_annotation_changes() {
    let scene = pushed("pause");
    revert(&scene);
    assert_eq!(run(&scene)["held"][0]["mode"], "pause");
    scene.latest("6.0.0");
    let report = run(&scene);
    assert_eq!(report["held"][0]["image"], "ghcr.io/stefanprodan/podinfo:6.0.0", "{report:#}");
    // The former image is not the wanted one.
    scene.repository.commit("main", "Back again", &[file("app.yaml", tag_line("5.0.3"))]);
    assert_eq!(run(&scene)["held"][0]["value"], "5.0.3");
    scene.repository.commit("main", "Accept", &[file("app.yaml", tag_line("6.0.0"))]);
    assert_eq!(run(&scene).get("held"), None);
    scene.latest("7.0.0");
    assert_eq!(run(&scene)["outcome"], "pushed");
    revert(&scene);
    assert_eq!(run(&scene)["outcome"], "unchanged");
    annotated(&scene, &json!({}));
    assert_eq!(run(&scene)["outcome"], "pushed");
    assert_eq!((scene.tag("main").as_str(), condition(&scene, "RevertHeld")), ("7.0.0", None));
}

#[test]
fn a_squash_is_a_revert_if_it_loses_the_value() {
    for (kept, expected) in [(true, "5.0.3"), (false, "4.0.6")] {
        let scene = Scene::new().local();
        let begin = scene.repository.id("main").unwrap();
        annotated(&scene, &json!({"tagboat.dev/on-revert": "hold"}));
        assert_eq!(run(&scene)["outcome"], "pushed");
        scene.repository.move_branch("main", &begin);
        let squashed = [file("note.txt", "squashed\n"), file("app.yaml", tag_line(expected))];
        let changes = if kept { &squashed[..] } else { &squashed[..1] };
        scene.repository.commit("main", "Squash", changes);
        let report = run(&scene);
        assert_eq!(
            (report.get("held").is_none(), scene.tag("main").as_str()),
            (kept, expected),
            "{report:#}"
        );
    }
}

#[test]
fn a_force_push_a_move_and_a_copy_are_reverts() {
    let scene = Scene::with_files(&[file("app.yaml", tag_line("4.0.6")), file("other.yaml", "a: b\n")]);
    let begin = scene.repository.id("main").unwrap();
    let scene = scene.local();
    annotated(&scene, &json!({"tagboat.dev/on-revert": "hold"}));
    assert_eq!(run(&scene)["outcome"], "pushed");
    scene.repository.move_branch("main", &begin);
    for _ in 0..2 {
        // The commit that is compared is on no branch any more.
        lose_mirror(&scene);
        let report = run(&scene);
        assert_eq!(report["held"][0]["between"][1], json!(begin), "{report:#}");
        assert_eq!(scene.repository.id("main").unwrap(), begin);
    }
    let copy = [file("copy.yaml", tag_line("4.0.6")), file("new.yaml", tag_line("4.0.5"))];
    scene.repository.commit("main", "A copy, and a new marker", &copy);
    assert_eq!(run(&scene)["outcome"], "pushed");
    let text = |path: &str| String::from_utf8(scene.repository.file("main", path)).unwrap();
    assert_eq!([text("copy.yaml"), text("new.yaml")], [tag_line("4.0.6"), tag_line("5.0.3")]);
    let moved = [removed("app.yaml"), file("apps/app.yaml", tag_line("4.0.6"))];
    scene.repository.commit("main", "Move it", &moved);
    let files = |report: &Value| -> Vec<String> {
        let held = report["held"].as_array().unwrap().iter();
        held.map(|one| one["file"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(files(&run(&scene)), ["apps/app.yaml", "copy.yaml"]);
}

/// The commits and the author of the move or of the copy were named.
#[test]
fn a_held_marker_that_moves_or_is_copied_keeps_the_commits_of_the_revert() {
    let named = |tag: &str, name: &str| file("app.yaml", format!("- {name}: x\n  {}", tag_line(tag)));
    let scene = pushed("hold");
    scene.repository.commit("main", "A list", &[named("5.0.3", "name")]);
    assert_eq!(run(&scene)["outcome"], "unchanged");
    let from = scene.repository.id("main").unwrap();
    let to = scene.repository.commit("main", "Take it back", &[named("4.0.6", "name")]);
    let between = json!([from, to]);
    let held = |count: usize| {
        let report = run(&scene);
        let held = report["held"].as_array().unwrap();
        assert_eq!(held.len(), count, "{report:#}");
        for held in held {
            assert_eq!((&held["between"], &held["author"]), (&between, &json!("Tester")), "{report:#}");
        }
    };
    held(1);
    scene.repository.commit("main", "Restructure", &[named("4.0.6", "key")]);
    held(1);
    let moved = [removed("app.yaml"), file("apps/app.yaml", tag_line("4.0.6"))];
    scene.repository.commit("main", "Move it", &moved);
    held(1);
    scene.repository.commit("main", "Copy it", &[file("apps/a.yaml", tag_line("4.0.6"))]);
    held(2);
    held(2);
}

#[test]
fn a_baseline_that_the_server_has_not_any_more_holds_what_differs() {
    let scene = pushed("hold");
    let begin = scene.repository.id("main~1").unwrap();
    scene.repository.move_branch("main", &begin);
    scene.repository.git(["reflog", "expire", "--expire=now", "--all"]);
    scene.repository.git(["gc", "--prune=now", "--quiet"]);
    lose_mirror(&scene);
    let report = run(&scene);
    assert_eq!(
        (report["outcome"].as_str(), &report["held"][0]["between"]),
        (Some("unchanged"), &Value::Null)
    );
    let message = held(&scene);
    assert!(
        message.contains(
            " of the last run cannot be compared, so that values that differ count as taken back: "
        ),
        "{message}"
    );
    scene.latest("6.0.0");
    assert_eq!(run(&scene)["outcome"], "pushed");
}

#[test]
fn by_default_a_revert_is_overwritten_with_a_warning() {
    for mode in [json!({}), json!({"tagboat.dev/on-revert": "overwrite"})] {
        let scene = Scene::new().local();
        annotated(&scene, &mode);
        assert_eq!(run(&scene)["outcome"], "pushed");
        let since = scene.repository.id("main").unwrap();
        revert(&scene);
        let run = scene.run_with_state(["--output", "json"]).with_status(0);
        assert_eq!(report(&run)["outcome"], "pushed");
        let warning = format!(
            "warning: default/fleet: app.yaml:1: the value \"4.0.6\", which others set after commit {since}, is overwritten"
        );
        assert!(run.errors.contains(&warning), "{run:?}");
        assert_eq!(condition(&scene, "RevertHeld"), None);
    }
}

#[test]
fn an_image_that_a_person_names_is_written_and_without_a_state_nothing_is_held() {
    let scene = pushed("hold");
    revert(&scene);
    assert_eq!(run(&scene)["outcome"], "unchanged");
    let latest = "default/podinfo=ghcr.io/stefanprodan/podinfo:5.0.3";
    let run = scene.run_with_state(["--output", "json", "--latest", latest]).with_status(0);
    assert_eq!(report(&run)["outcome"], "pushed", "{run:?}");
    revert(&scene);
    let run = scene.run(["--output", "json"]).with_status(0);
    assert_eq!(report(&run)["outcome"], "pushed");
    let warning = "without --state no earlier run is known, so tagboat.dev/on-revert holds nothing";
    assert!(run.errors.contains(warning), "{run:?}");
}

#[test]
fn a_push_branch_is_compared_with_what_was_left_on_it_until_it_is_deleted() {
    let scene = Scene::new().local();
    scene.automation_with(json!({
        "metadata": {"annotations": {"tagboat.dev/on-revert": "hold"}},
        "spec": {"git": {"push": {"branch": "auto"}}},
    }));
    assert_eq!(run(&scene)["outcome"], "pushed");
    for lost in [false, true] {
        scene.repository.commit("auto", "Take it back", &[file("app.yaml", tag_line("4.0.6"))]);
        if lost {
            lose_mirror(&scene);
        }
        let report = run(&scene);
        assert_eq!((report["outcome"].as_str(), scene.tag("auto").as_str()), (Some("unchanged"), "4.0.6"));
        assert_eq!(run(&scene)["held"][0]["value"], "4.0.6");
        scene.repository.delete_branch("auto");
        assert_eq!(run(&scene)["outcome"], "pushed");
        assert_eq!(scene.tag("auto"), "5.0.3");
    }
    // Another branch begins anew.
    scene.repository.commit("next", "Begin", &[file("app.yaml", tag_line("4.0.6"))]);
    scene.automation_with(json!({
        "metadata": {"annotations": {"tagboat.dev/on-revert": "hold"}},
        "spec": {"git": {"push": {"branch": "next"}}},
    }));
    let report = run(&scene);
    assert_eq!(
        (report["outcome"].as_str(), scene.tag("next").as_str()),
        (Some("pushed"), "5.0.3"),
        "{report:#}"
    );
}

/// A lost mirror ended the hold, and the revert was overwritten.
#[test]
fn a_revert_on_a_push_branch_that_the_automation_never_pushed_holds_after_a_lost_mirror() {
    for mode in ["hold", "pause"] {
        let scene = Scene::new().local();
        // Another cluster has pushed the wanted values.
        scene.repository.commit("auto", "Begin", &[file("app.yaml", tag_line("5.0.3"))]);
        scene.automation_with(json!({
            "metadata": {"annotations": {"tagboat.dev/on-revert": mode}},
            "spec": {"git": {"push": {"branch": "auto"}}},
        }));
        assert_eq!(run(&scene)["outcome"], "unchanged");
        assert!(scene.status()["lastPushCommit"].is_null());
        scene.repository.commit("auto", "Take it back", &[file("app.yaml", tag_line("4.0.6"))]);
        for loses in [true, false, true] {
            if loses {
                lose_mirror(&scene);
            }
            let report = run(&scene);
            assert_eq!(
                (&report["outcome"], &report["held"][0]["value"]),
                (&json!("unchanged"), &json!("4.0.6"))
            );
            assert_eq!(scene.tag("auto"), "4.0.6");
        }
        let message = held(&scene);
        let expected = "; the commit of the last run cannot be compared, so that values that differ count as taken back: \
                        neither the push journal nor the status names it; ";
        assert!(message.contains(expected), "{message}");
        scene.latest("6.0.0");
        let expected = if mode == "hold" { "6.0.0" } else { "4.0.6" };
        run(&scene);
        assert_eq!(scene.tag("auto"), expected);
        // Without the status nothing is known of an earlier run.
        lose_mirror(&scene);
        fs::remove_dir_all(scene.state().join("objects")).unwrap();
        assert_eq!(run(&scene).get("held"), None);
        assert_eq!(scene.tag("auto"), "6.0.0");
    }
}

/// All values that were the same as the paused one were paused for ever.
#[test]
fn a_value_that_nobody_took_back_is_written_beside_a_paused_one_that_is_the_same() {
    let scene = Scene::new().local();
    annotated(&scene, &json!({"tagboat.dev/on-revert": "pause"}));
    let both = |a: &str, b: &str| {
        let (a, b) = (tag_line(a).replace("tag: ", "a: "), tag_line(b).replace("tag: ", "b: "));
        a + &b
    };
    let set = |a: &str, b: &str| scene.repository.commit("main", "Edit", &[file("app.yaml", both(a, b))]);
    let content = || String::from_utf8(scene.repository.file("main", "app.yaml")).unwrap();
    set("4.0.6", "4.0.6");
    assert_eq!(run(&scene)["outcome"], "pushed");
    set("5.0.3", "4.0.6");
    assert_eq!(run(&scene)["held"][0]["line"], 2);
    set("5.0.3", "5.0.3");
    for tag in ["6.0.0", "7.0.0"] {
        scene.latest(tag);
        let report = run(&scene);
        assert_eq!(
            (&report["outcome"], &report["held"][0]["line"]),
            (&json!("pushed"), &json!(2)),
            "{report:#}"
        );
        assert_eq!(content(), both(tag, "5.0.3"));
    }
    set("7.0.0", "7.0.0");
    assert_eq!(run(&scene).get("held"), None);
}

/// It counted as one that moved out of the broken file.
#[test]
fn a_new_marker_is_written_beside_a_file_that_cannot_be_parsed() {
    let scene = pushed("hold");
    let broken = file("app.yaml", format!("{}a: [\n", tag_line("5.0.3")));
    scene.repository.commit("main", "Break", &[broken, file("new.yaml", tag_line("0.0.0"))]);
    let report = run(&scene);
    assert_eq!((&report["outcome"], report.get("held")), (&json!("pushed"), None), "{report:#}");
    assert_eq!(scene.repository.file("main", "new.yaml"), tag_line("5.0.3").into_bytes());
}

#[test]
fn with_delivery_by_branch_the_base_is_compared() {
    let scene = Scene::new();
    let _host = scene.serve(Settings::default());
    annotated(&scene, &json!({"tagboat.dev/on-revert": "hold", "tagboat.dev/delivery": "branch"}));
    let report = run(&scene);
    let branch = report["branches"][0]["branch"].as_str().unwrap().to_owned();
    scene.repository.move_branch("main", &scene.repository.id(&branch).unwrap());
    scene.repository.delete_branch(&branch);
    assert_eq!(run(&scene)["outcome"], "unchanged");
    revert(&scene);
    for _ in 0..2 {
        let report = run(&scene);
        assert_eq!(report["held"][0]["value"], "4.0.6", "{report:#}");
        assert_eq!(scene.repository.id(&branch), None);
    }
    scene.latest("6.0.0");
    run(&scene);
    assert_eq!(scene.tag(&branch), "6.0.0");
}

#[test]
fn a_push_whose_status_was_lost_is_the_baseline() {
    let scene = Scene::new().local();
    annotated(&scene, &json!({"tagboat.dev/on-revert": "hold"}));
    assert_eq!(run(&scene)["outcome"], "pushed");
    let place = scene.state().join("objects/ImageUpdateAutomation/default/fleet.json");
    let before = fs::read(&place).unwrap();
    scene.latest("6.0.0");
    assert_eq!(run(&scene)["outcome"], "pushed");
    // The process was killed between its push and its status.
    fs::write(&place, before).unwrap();
    revert(&scene);
    let report = run(&scene);
    assert_eq!(report["held"][0]["image"], "ghcr.io/stefanprodan/podinfo:6.0.0", "{report:#}");
    assert_eq!(scene.tag("main"), "4.0.6");
    assert_eq!(run(&scene)["held"][0]["value"], "4.0.6");
}

/// Returns how often runs list or fetch, each after a change.
fn listings(mode: &str) -> [usize; 4] {
    let scene = Scene::new();
    let host = scene.serve(Settings::default());
    annotated(&scene, &json!({"tagboat.dev/on-revert": mode}));
    assert_eq!(run(&scene)["outcome"], "pushed");
    let count = |change: &dyn Fn()| {
        change();
        let before = host.requests_for(Operation::ListForFetch).len();
        run(&scene);
        host.requests_for(Operation::ListForFetch).len() - before
    };
    let take_back = |note: &str| {
        let files = [file("app.yaml", tag_line("4.0.6")), file("note.txt", note)];
        scene.repository.commit("main", "Take it back", &files);
    };
    [
        count(&|| {}),
        count(&|| drop(scene.repository.commit("main", "Other", &[file("note.txt", "0")]))),
        count(&|| take_back("1")),
        count(&|| {
            take_back("2");
            lose_mirror(&scene);
        }),
    ]
}

#[test]
fn a_run_costs_what_it_costs_without_the_setting_and_a_decision_at_most_one_fetch() {
    let [nothing, no_decision, kept, lost] = listings("overwrite");
    for mode in ["hold", "pause"] {
        assert_eq!(listings(mode), [nothing, no_decision, kept, lost + 1], "{mode}");
    }
}

/// The mirror had the commit without its history, so that it could not be pushed.
#[test]
fn a_commit_that_was_removed_is_made_again_in_the_same_second() {
    let scene = Scene::new().local();
    let before = scene.repository.id("main").unwrap();
    assert_eq!(run(&scene)["outcome"], "pushed");
    let pushed = scene.repository.id("main").unwrap();
    annotated(&scene, &json!({"tagboat.dev/on-revert": "hold"}));
    scene.repository.move_branch("main", &before);
    lose_mirror(&scene);
    assert_eq!(run(&scene)["held"][0]["between"][0], json!(pushed));
    annotated(&scene, &json!({}));
    assert_eq!(run(&scene)["outcome"], "pushed");
    assert_eq!(scene.tag("main"), "5.0.3");
}

#[test]
fn two_automations_that_want_different_images_write_once_each() {
    for mode in ["hold", "pause"] {
        let scene = Scene::new().local();
        annotated(&scene, &json!({"tagboat.dev/on-revert": mode}));
        let other = Scene::new();
        other.source(json!({"url": scene.repository.path()}));
        annotated(&other, &json!({"tagboat.dev/on-revert": mode}));
        other.latest("5.0.2");
        assert_eq!(run(&scene)["outcome"], "pushed");
        assert_eq!(run(&other)["outcome"], "pushed");
        let tip = scene.repository.id("main");
        for _ in 0..3 {
            assert_eq!(run(&scene)["held"][0]["value"], "5.0.2");
            assert_eq!(run(&other).get("held"), None);
        }
        assert_eq!(scene.repository.id("main"), tip);
    }
}

/// The commit of the last run is fetched by its id.
#[test]
fn a_revert_over_ssh_holds_after_a_lost_mirror_and_a_force_push() {
    let host = SshHost::start();
    for mode in ["hold", "pause"] {
        let scene = Scene::new();
        scene.source(json!({"url": host.url(scene.repository.path()), "secretRef": {"name": "login"}}));
        let login = json!({"identity": host.key().private(), "known_hosts": host.known_hosts()});
        scene.secret("login", json!({"stringData": login}));
        annotated(&scene, &json!({"tagboat.dev/on-revert": mode}));
        let before = scene.repository.id("main").unwrap();
        assert_eq!(run(&scene)["outcome"], "pushed");
        let pushed = scene.repository.id("main").unwrap();
        revert(&scene);
        lose_mirror(&scene);
        let report = run(&scene);
        assert_eq!((&report["outcome"], &report["held"][0]["value"]), (&json!("unchanged"), &json!("4.0.6")));
        assert_eq!(report["held"][0]["between"][0], pushed, "{report:#}");
        // Our commit is on no branch any more.
        scene.repository.git(["update-ref", "refs/heads/main", &before]);
        lose_mirror(&scene);
        assert_eq!(run(&scene)["held"][0]["mode"], mode);
        assert_eq!(scene.tag("main"), "4.0.6");
        scene.latest("6.0.0");
        let written = run(&scene);
        assert_eq!(written["outcome"], if mode == "hold" { "pushed" } else { "unchanged" }, "{written:#}");
    }
}
