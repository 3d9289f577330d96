//! Reports on standard output, errors on standard error, colour on a terminal only.

use std::path::Path;
use std::process::{Command, Stdio};

use tagboat::printable::is_unprintable;

use crate::support::fleet::{Fleet, podinfo, tag_line};
use crate::support::manifests::{automation, marker, policy_with_status};
use crate::support::program::{Run, run, tagboat};

#[test]
fn the_text_has_the_shape_of_the_founding_document() {
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/update/seed-example");
    let mut command = tagboat();
    command.current_dir(case).args(["update", "in", "--policies", "manifests", "--dry-run"]);
    let block = "Automation: default/test-update-auto

- File: foo-deployment.yaml
  - Object: Deployment/default/foo
    Changes:
    - 2.2.2 -> 5.0.3

- File: podinfo-deployment.yaml
  - Object: Deployment/default/infopod
    Changes:
    - v1.0 -> 5.0.3
  - Object: Deployment/default/podinfo
    Changes:
    - ghcr.io/stefanprodan/podinfo:4.0.6 -> ghcr.io/stefanprodan/podinfo:5.0.3
    - bar -> ghcr.io/stefanprodan/podinfo
    - 4.0.6 -> 5.0.3
";
    let run = run(&mut command).with_status(0);
    assert!(run.output.contains(block), "{}", run.output);
    assert_eq!(run.errors, "");
}

/// A policy without an image is the likeliest reason for an update without changes.
#[test]
fn selected_policies_without_an_image_are_listed() {
    let label = |value: &str| format!("team: {value}");
    let manifests = [
        policy_with_status("default", "web", &label("x"), "latestRef: {name: ab, tag: v1}"),
        policy_with_status("default", "new", &label("x"), ""),
        policy_with_status("default", "bad", &label("x"), "latestRef: {name: UPPER, tag: v1}"),
        policy_with_status("default", "left-out", &label("y"), "latestRef: {name: ab, tag: v1}"),
    ]
    .concat();
    let fields = "  policySelector: {matchLabels: {team: x}}\n";
    let block = "Policies:\n- bad: no latest image that can be used\n- new: no latest image that can be used\n- web: ab:v1\n\n";
    let text = format!("{manifests}{}", automation("default", "fleet", fields));
    let run = Fleet::new([("app.yaml", "a: 1\n")], &text).update([""; 0]).with_status(0);
    assert!(run.output.starts_with(block), "{}", run.output);
    // Without an automation every policy is used, and shown with its namespace.
    let run = Fleet::new([("app.yaml", "a: 1\n")], &manifests).update([""; 0]).with_status(0);
    assert!(
        run.output.contains("\n- default/left-out: ab:v1\n- default/new: no latest image that can be used\n"),
        "{run:?}"
    );
}

/// Creates a fleet with a marker for each kind of warning.
/// It also has a near miss, a broken file and a dangling link.
fn fleet_with_warnings(manifests: &str) -> Fleet {
    let lines = [
        tag_line("4.0.6"),
        format!("a: 1 {}\n", marker("default:nope")),
        format!("b: 1 {}\n", marker("default:podinfo:version")),
        format!("c: {{}} {}\n", marker("default:podinfo")),
        "d: 1 # see {\"$imagepolicy\": \"default:podinfo\"}\n".to_owned(),
    ];
    let broken = format!("a: [ {}\n", marker("default:podinfo"));
    let fleet = Fleet::new([("app.yaml", &lines.concat()), ("broken.yaml", &broken)], manifests);
    std::os::unix::fs::symlink("nowhere.yaml", fleet.directory().join("link.yaml")).unwrap();
    fleet
}

#[test]
fn each_warning_is_printed_with_its_location() {
    let run = fleet_with_warnings(&podinfo()).update([""; 0]).with_status(0);
    let (_, warnings) = run.output.split_once("\nWarnings:\n").unwrap();
    let places: Vec<&str> = warnings.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(places.len(), 6, "{warnings}");
    for (line, place) in places.iter().zip([
        "app.yaml:2: ",
        "app.yaml:3: ",
        "app.yaml:4: ",
        "app.yaml:5: ",
        "broken.yaml:",
        "link.yaml: ",
    ]) {
        assert!(line.starts_with(&format!("- {place}")), "{line}");
    }
    assert_eq!(run.errors, "");
}

#[test]
fn a_warning_quotes_its_marker_as_lint_does() {
    let run = fleet_with_warnings(&podinfo()).update([""; 0]).with_status(0);
    for line in [
        "\n- app.yaml:2: marker `default:nope`: there is no such ImagePolicy\n",
        "\n- app.yaml:3: marker `default:podinfo:version`: images have no such field; it must be one of tag, ",
    ] {
        assert!(run.output.contains(line), "{run:?}");
    }
}

#[test]
fn strict_turns_warnings_into_a_failure() {
    for manifests in [podinfo(), format!("{}{}", podinfo(), automation("default", "fleet", ""))] {
        let fleet = fleet_with_warnings(&manifests);
        let run = fleet.update(["--strict"]).with_status(1);
        let prefix = if manifests.contains("ImageUpdateAutomation") { "default/fleet: " } else { "error: " };
        assert!(run.only_error().starts_with(prefix), "{run:?}");
        for word in ["--strict", "unresolved markers (3)", "unreadable files (1)"] {
            assert!(run.only_error().contains(word), "{run:?}");
        }
        assert!(
            fleet.text("app.yaml").starts_with(&tag_line("5.0.3")),
            "what can be done is done all the same"
        );
    }
    Fleet::small().update(["--strict"]).with_status(0);
}

#[test]
fn strict_leaves_quiet_markers_alone() {
    let text = format!("{}a: 1 {}\n", tag_line("4.0.6"), marker("elsewhere:nope"));
    let manifests = format!("{}{}", podinfo(), automation("default", "fleet", ""));
    Fleet::new([("app.yaml", &text)], &manifests).update(["--strict"]).with_status(0);
}

#[test]
fn an_unreadable_file_alone_fails_a_strict_run() {
    let broken = format!("a: [ {}\n", marker("default:podinfo"));
    let fleet = Fleet::new([("broken.yaml", &broken)], &podinfo());
    fleet.update([""; 0]).with_status(0);
    fleet.update(["--strict"]).with_status(1);
}

#[test]
fn there_are_no_escape_codes_in_a_pipe() {
    let fleet = fleet_with_warnings(&podinfo());
    for arguments in [vec!["--dry-run"], vec!["--dry-run", "--output", "json"], vec!["--dry-run", "--strict"]]
    {
        let run = fleet.update(arguments);
        assert!(!run.output.contains('\u{1b}') && !run.errors.contains('\u{1b}'), "{run:?}");
    }
}

/// Runs the program on a terminal of `script`.
fn on_a_terminal(fleet: &Fleet, no_color: Option<&str>) -> Run {
    let line = format!(
        "'{}' update '{}' --policies '{}' --dry-run",
        env!("CARGO_BIN_EXE_tagboat"),
        fleet.directory().display(),
        fleet.manifests().display()
    );
    let mut command = Command::new("script");
    command
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .env_remove("NO_COLOR")
        .stdin(Stdio::null());
    if let Some(value) = no_color {
        command.env("NO_COLOR", value);
    }
    run(&mut command).with_status(0)
}

#[test]
fn colour_is_used_on_a_terminal_unless_disabled() {
    let fleet = fleet_with_warnings(&podinfo());
    assert!(on_a_terminal(&fleet, None).output.contains("\u{1b}[32m+tag: 5.0.3"));
    assert!(on_a_terminal(&fleet, Some("")).output.contains('\u{1b}'));
    assert!(!on_a_terminal(&fleet, Some("1")).output.contains('\u{1b}'));
}

/// A file's content and name must not control the terminal of the report's reader.
#[test]
fn control_characters_of_files_are_escaped() {
    let marker = marker("default:podinfo:tag");
    let text =
        format!("kind: \"\\e[31mKind\"\nmetadata: {{name: \"a\\nb\"}}\ntag: \"\\e[2J\\r4\" {marker}\n");
    let unknown = "a: 1 # {\"$imagepolicy\": \"default:\\u001b[2Jx\"}\n";
    let fleet = Fleet::new([("a\u{1b}[2J.yaml", &text), ("b.yaml", unknown)], &podinfo());
    let run = fleet.update([""; 0]).with_status(0);
    let is_tame = |c: char| c == '\n' || !c.is_control();
    assert!(run.output.chars().all(is_tame), "{:?}", run.output);
    assert!(run.output.contains("\"\\u{1b}[2J\\r4\" -> 5.0.3"), "{}", run.output);
}

/// Characters that reverse or hide text are escaped.
///
/// Formerly, U+202E in a file name or a value reversed the line of the report, and without colour a terminal
/// got the diff unescaped.
#[test]
fn characters_that_turn_or_hide_text_are_escaped() {
    let marker = marker("default:podinfo:tag");
    let text = format!(
        "kind: \"\\u202eKind\"\nmetadata: {{name: \"a\\u2066b\"}}\n# \u{202e}\ntag: \"4\\u200b\" {marker}\n"
    );
    let unknown = "a: 1 # {\"$imagepolicy\": \"default:\\u202ex\"}\n";
    let fleet = Fleet::new([("a\u{202e}.yaml", &text), ("b.yaml", unknown)], &podinfo());
    let is_tame = |c: char| c == '\n' || c == '\r' || !is_unprintable(c);
    let shown = on_a_terminal(&fleet, Some("1")).output;
    assert!(shown.contains("+++ b/a\\u{202e}.yaml") && shown.chars().all(is_tame), "{shown:?}");
    let json = fleet.update(["--dry-run", "--output", "json"]).with_status(0).json();
    assert!(json["diff"].as_str().unwrap().contains("+++ b/a\u{202e}.yaml"), "{json}");
    let run = fleet.update([""; 0]).with_status(0);
    assert!(run.output.chars().all(is_tame), "{:?}", run.output);
    for part in ["- File: a\\u{202e}.yaml", "\\u{202e}Kind", "a\\u{2066}b", "\"4\\u{200b}\" -> 5.0.3"] {
        assert!(run.output.contains(part), "{part}: {}", run.output);
    }
}
