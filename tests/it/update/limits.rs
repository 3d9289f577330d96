//! Limits of one file, and the absence of limits on large repositories.

use std::process::Command;

use serde_json::Value;

use crate::support::fleet::{Fleet, podinfo, tag_line};
use crate::support::manifests::{marker, policy};
use crate::support::program::{Run, run};

/// The most markers and near misses in one file, see docs/limits.md.
const MARKERS: usize = 10_000;

/// The longest name of an object.
const NAME: usize = 1024;

/// Runs `tagboat update` within this memory, in MiB.
fn update_within(mebibytes: usize, fleet: &Fleet, more: &[&str]) -> Run {
    let script = format!("ulimit -c 0; ulimit -v {}; exec \"$@\"", mebibytes * 1024);
    let mut command = Command::new("bash");
    command.args(["-c", &script, "bash", env!("CARGO_BIN_EXE_tagboat"), "update"]);
    run(command.arg(fleet.directory()).arg("--policies").arg(fleet.manifests()).args(more))
}

/// Numbered lines with the same marker in each.
fn marked_lines(count: usize) -> String {
    (0..count).map(|line| tag_line("4.0.6").replacen("tag", &format!("tag{line}"), 1)).collect()
}

/// Numbered lines with a comment that is almost a marker in each.
fn near_misses(count: usize) -> String {
    (0..count)
        .map(|line| format!("miss{line}: 1 # see {{\"$imagepolicy\": \"default:podinfo\"}}\n"))
        .collect()
}

/// Each marker carries its object's name: without a bound this file would fill 8 GiB.
#[test]
fn a_huge_name_beside_many_markers_keeps_memory_and_output_small() {
    for part in ["name", "namespace"] {
        let huge = "n".repeat(4 * 1024 * 1024);
        let text = format!("kind: Pod\nmetadata:\n  {part}: {huge}\n{}", marked_lines(1000));
        let fleet = Fleet::new([("app.yaml", &text)], &podinfo());
        let ended = update_within(512, &fleet, &["--output", "json"]).with_status(0);
        assert!(ended.output.len() < 1024 * 1024, "{part}: {} bytes", ended.output.len());
        let outcome = ended.json();
        assert_eq!(outcome["markers"].as_array().unwrap().len(), 1000);
        assert_eq!(outcome["markers"][999]["object"], "Pod//", "{part}");
        assert_eq!(fleet.text("app.yaml"), text.replace("4.0.6", "5.0.3"));
    }
}

#[test]
fn each_part_of_an_object_s_name_has_its_bound() {
    let keys = ["apiVersion", "kind", "metadata: {name", "metadata: {namespace"];
    for (key, member) in keys.into_iter().zip(["apiVersion", "kind", "name", "namespace"]) {
        // The limit counts bytes: the second character has two.
        for (value, is_kept) in [
            ("n".repeat(NAME), true),
            ("n".repeat(NAME + 1), false),
            ("\u{e9}".repeat(NAME / 2), true),
            ("\u{e9}".repeat(NAME / 2 + 1), false),
        ] {
            let close = if key.contains('{') { "}" } else { "" };
            let text = format!("{key}: {value}{close}\n{}", tag_line("4.0.6"));
            let fleet = Fleet::new([("app.yaml", &text)], &podinfo());
            let outcome = fleet.update(["--output", "json"]).with_status(0).json();
            let found = outcome["changes"]["app.yaml"]["objects"][0][member].as_str().unwrap();
            assert_eq!(found, if is_kept { value.as_str() } else { "" }, "{member}");
        }
    }
}

fn entries<'v>(outcome: &'v Value, member: &str, file: &str) -> Vec<&'v Value> {
    outcome[member].as_array().unwrap().iter().filter(|entry| entry["file"] == file).collect()
}

/// Markers and near misses of a file count together.
///
/// Each row has their numbers, and the line of the error if they are too many. The other file is updated in
/// any case.
#[test]
fn markers_and_near_misses_count_together() {
    for (markers, misses, line) in [
        (1, MARKERS - 1, None),
        (1, MARKERS, Some(MARKERS + 1)),
        (MARKERS, 0, None),
        (MARKERS + 1, 0, Some(MARKERS + 1)),
        (MARKERS / 2, MARKERS / 2 + 9, Some(MARKERS + 1)),
    ] {
        let text = format!("{}{}", marked_lines(markers), near_misses(misses));
        let fleet = Fleet::new([("a.yaml", &text), ("b.yaml", &tag_line("4.0.6"))], &podinfo());
        let outcome = fleet.update(["--output", "json"]).with_status(0).json();
        assert_eq!(fleet.text("b.yaml"), tag_line("5.0.3"));
        let unparsable = entries(&outcome, "unparsable", "a.yaml");
        if let Some(line) = line {
            assert_eq!(unparsable.len(), 1, "{markers} and {misses}");
            assert_eq!(unparsable[0]["line"], line, "{markers} and {misses}");
            assert_eq!(unparsable[0]["cause"], "more than 10000 markers and near misses");
            assert_eq!(outcome["nearMisses"], serde_json::json!([]));
            assert_eq!(outcome["markers"].as_array().unwrap().len(), 1);
            assert_eq!(fleet.text("a.yaml"), text, "{markers} and {misses}");
        } else {
            assert_eq!(unparsable, [&Value::Null; 0], "{markers} and {misses}");
            assert_eq!(entries(&outcome, "nearMisses", "a.yaml").len(), misses);
            assert_eq!(entries(&outcome, "markers", "a.yaml").len(), markers);
            assert_eq!(fleet.text("a.yaml"), text.replace("4.0.6", "5.0.3"));
        }
    }
}

/// Of the mentions without quotes in a file, only the first are listed.
/// Such a file is not parsed at all; a few of its lines are enough for the report.
#[test]
fn of_mentions_without_quotes_only_the_first_are_listed() {
    let text = "a: 1 # {$imagepolicy: 'default:podinfo'}\n".repeat(50_000);
    let fleet = Fleet::new([("a.yaml", &text), ("b.yaml", &tag_line("4.0.6"))], &podinfo());
    let outcome = fleet.update(["--output", "json", "--strict"]).with_status(0).json();
    let lines: Vec<u64> =
        entries(&outcome, "nearMisses", "a.yaml").iter().map(|miss| miss["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, (1..=20).collect::<Vec<u64>>());
    assert_eq!(outcome["unparsable"], serde_json::json!([]));
    assert_eq!(fleet.text("b.yaml"), tag_line("5.0.3"));
}

/// Kustomize builds such files, and libraries bound the number of documents at 1,024.
#[test]
fn a_file_of_manifests_may_hold_thousands_of_objects() {
    const COUNT: usize = 2500;
    let documents: String =
        (0..COUNT).map(|at| policy("default", &format!("p{at}"), "ab", &format!("v{at}"))).collect();
    let body = |at| {
        format!(
            "metadata: {{name: p{at}, namespace: default}}\n  spec: {{imageRepositoryRef: {{name: x}}, policy: \
             {{semver: {{range: '*'}}}}}}\n  status: {{latestRef: {{name: ab, tag: v{at}}}}}\n"
        )
    };
    let version = "apiVersion: image.toolkit.fluxcd.io/v1\n";
    let items: String =
        (0..COUNT).map(|at| format!("- {version}  kind: ImagePolicy\n  {}", body(at))).collect();
    let list = format!("apiVersion: v1\nkind: List\nitems:\n{items}");
    let items: String = (0..COUNT).map(|at| format!("- {}", body(at))).collect();
    let typed_list = format!("{version}kind: ImagePolicyList\nitems:\n{items}");
    let last = COUNT - 1;
    let text = format!("tag: v0 {}\n", marker(&format!("default:p{last}:tag")));
    for (name, manifests) in [("documents", documents), ("List", list), ("ImagePolicyList", typed_list)] {
        let fleet = Fleet::new([("app.yaml", &text)], &manifests);
        let ended = fleet.update(["--output", "json"]).with_status(0);
        assert_eq!(ended.errors, "", "{name}");
        assert_eq!(ended.json()["policies"].as_object().unwrap().len(), COUNT, "{name}");
        assert_eq!(fleet.text("app.yaml"), text.replace("v0", &format!("v{last}")), "{name}");
    }
}

/// Files to update may hold as many; each marker is reported with its own object.
#[test]
fn a_file_to_update_may_hold_thousands_of_objects() {
    const COUNT: usize = 2500;
    let object = |at: usize| format!("kind: Pod\nmetadata: {{name: p{at}}}\n{}", tag_line("4.0.6"));
    let documents: String = (0..COUNT).map(|at| format!("---\n{}", object(at))).collect();
    let items: String =
        (0..COUNT).map(|at| format!("- {}\n", object(at).trim_end().replace('\n', "\n  "))).collect();
    let list = format!("kind: List\nitems:\n{items}");
    for (name, text) in [("documents", documents), ("List", list)] {
        let fleet = Fleet::new([("app.yaml", &text)], &podinfo());
        let outcome = fleet.update(["--output", "json"]).with_status(0).json();
        let objects = outcome["changes"]["app.yaml"]["objects"].as_array().unwrap().len();
        assert_eq!(objects, COUNT, "{name}");
        assert_eq!(outcome["markers"][COUNT - 1]["object"], format!("Pod//p{}", COUNT - 1), "{name}");
        assert_eq!(fleet.text("app.yaml"), text.replace("4.0.6", "5.0.3"), "{name}");
    }
}

/// Work that is quadratic in the lines would not end within a day.
#[test]
fn a_block_of_very_many_lines_is_replaced_and_shown() {
    const LINES: usize = 200_000;
    let block: String = (0..LINES).map(|line| format!("  line {line}\n")).collect();
    let head = format!("a: 1\ntag: | {}\n", marker("default:podinfo:tag"));
    let text = format!("{head}{block}b: 2\n");
    let fleet = Fleet::new([("app.yaml", &text)], &podinfo());
    let outcome = fleet.update(["--dry-run", "--output", "json"]).with_status(0).json();
    let diff = outcome["diff"].as_str().unwrap();
    let begins = |sign: char| diff.lines().skip(2).filter(|line| line.starts_with(sign)).count();
    // The line with the marker changes as well: `|` becomes `|-`.
    assert_eq!((begins('-'), begins('+'), begins(' '), begins('@')), (LINES + 1, 2, 2, 1));
    fleet.update([""; 0]).with_status(0);
    assert_eq!(fleet.text("app.yaml"), format!("{}  5.0.3\nb: 2\n", head.replace("| ", "|- ")));
}
