//! Tests `tagboat lint` on the cases in `testdata/lint`.
//!
//! The directory `in` of a case is linted; `arguments` (one per line) replaces that path, and `out` is the
//! expected output.
//!
//! `TAGBOAT_REGENERATE=1` writes `out`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::support::program::{Run, run, run_with_input, tagboat};

fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/lint");
    let mut cases: Vec<PathBuf> = fs::read_dir(root).unwrap().map(|item| item.unwrap().path()).collect();
    cases.sort();
    assert!(!cases.is_empty());
    cases
}

fn lint(case: &Path, more: &[&str]) -> Run {
    let arguments = fs::read_to_string(case.join("arguments")).unwrap_or_else(|_| ".".to_owned());
    run(tagboat().current_dir(case.join("in")).arg("lint").args(arguments.lines()).args(more))
}

#[test]
fn every_case_has_its_golden_output() {
    let mut wrong = Vec::new();
    for case in cases() {
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        let run = lint(&case, &[]);
        let path = case.join("out");
        if std::env::var_os("TAGBOAT_REGENERATE").is_some() {
            fs::write(&path, &run.output).unwrap();
        }
        let wanted = fs::read_to_string(&path).unwrap_or_else(|_| "no file `out`".to_owned());
        if run.output != wanted {
            wrong.push(format!("{name}: wanted\n{wanted}\nfound\n{}{}", run.output, run.errors));
        }
        let status = i32::from(!wanted.is_empty());
        if run.status != Some(status) {
            wrong.push(format!("{name}: exit status {:?}: {}", run.status, run.errors));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Correct files, for which there must be no finding.
#[test]
fn correct_files_have_no_finding() {
    let clean: Vec<PathBuf> =
        cases().into_iter().filter(|case| case.to_string_lossy().contains("/clean-")).collect();
    assert!(clean.len() > 5);
    for case in clean {
        let run = lint(&case, &[]).with_status(0);
        assert_eq!(run.output, "", "{}", case.display());
        assert!(run.errors.starts_with("nothing found; "), "{run:?}");
    }
}

#[test]
fn every_rule_has_a_case_and_an_entry_in_the_manual() {
    let manual = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/lint.md")).unwrap();
    let found: BTreeSet<String> = cases()
        .iter()
        .flat_map(|case| lint(case, &["--output", "json"]).json().as_array().unwrap().clone())
        .map(|finding| finding["rule"].as_str().unwrap().to_owned())
        .collect();
    for rule in tagboat::lint::Rule::ALL {
        assert!(found.contains(rule.name()), "no case has {}", rule.name());
        assert!(manual.contains(&format!("\n## {}\n", rule.name())), "docs/lint.md lacks {}", rule.name());
    }
}

/// The text and the JSON have the same findings.
/// The text is for people and problem matchers, the JSON for programs.
#[test]
fn both_outputs_say_the_same() {
    for case in cases() {
        let lines: Vec<String> = lint(&case, &["--output", "json"])
            .json()
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| {
                let text = |member: &str| entry[member].as_str().unwrap().replace('\n', "\\n");
                let (file, rule, message) = (text("file"), text("rule"), text("message"));
                format!("{file}:{}:{}: {rule}: {message}", entry["line"], entry["column"])
            })
            .collect();
        let text = lint(&case, &[]);
        assert_eq!(lines, text.output.lines().collect::<Vec<_>>(), "{}", case.display());
    }
}

#[test]
fn standard_input_is_a_file_like_any_other() {
    let source = "kind: ImagePolicy\napiVersion: image.toolkit.fluxcd.io/v1\nmetadata: {name: a}\n\
                  spec: {imageRepositoryRef: {name: a}, policy: {semver: {rang: 1.x}}}\n";
    let run = run_with_input(tagboat().args(["lint", "-", "--output", "json"]), source).with_status(1);
    assert_eq!(
        run.json(),
        json!([
            {
                "file": "-", "line": 3, "column": 18, "rule": "unmarked-policy",
                "message": "no marker names ImagePolicy a",
            },
            {
                "file": "-", "line": 4, "column": 48, "rule": "missing-field",
                "message": "ImagePolicy a lacks `spec.policy.semver.range`, which is required",
            },
            {
                "file": "-", "line": 4, "column": 57, "rule": "unknown-field",
                "message": "ImagePolicy has no field `spec.policy.semver.rang`; did you mean `range`?",
            },
        ])
    );
    assert_eq!(run.errors, "3 findings; 1 file read\n");
}

#[test]
fn wrong_usage_is_not_a_finding() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.yaml"), "image: x # {\"$imagepolicy\": \"a:b\"}\n").unwrap();
    let lint = |arguments: &[&str]| run(tagboat().current_dir(directory.path()).arg("lint").args(arguments));
    let absent = lint(&["a.yaml", "b.yaml", "a.yaml/c"]).with_status(2);
    assert_eq!(absent.output, "");
    assert_eq!(absent.only_error(), "error: there is no file or directory b.yaml, a.yaml/c");
    lint(&[]).with_status(2);
    lint(&[".", "--output", "xml"]).with_status(2);
    let found = lint(&["a.yaml", ".", "./a.yaml"]).with_status(1);
    assert_eq!(found.output.lines().count(), 1, "a file is looked at once: {found:?}");
    assert!(found.errors.contains("hint: there is no ImagePolicy in the files"), "{found:?}");
}

#[test]
fn an_unreadable_file_is_a_finding() {
    let directory = tempfile::tempdir().unwrap();
    let huge = format!("# {}\nkind: x # image.toolkit.fluxcd.io\n", "x".repeat(17 * 1024 * 1024));
    fs::write(directory.path().join("huge.yaml"), &huge).unwrap();
    fs::write(directory.path().join("other.yaml"), huge.replace("fluxcd", "example")).unwrap();
    fs::write(directory.path().join("bytes.yaml"), b"a: \xff # {\"$imagepolicy\": \"a:b\"}\n").unwrap();
    fs::write(directory.path().join("foreign.yaml"), b"a: \xff\n").unwrap();
    std::os::unix::fs::symlink("nowhere.yaml", directory.path().join("link.yaml")).unwrap();
    let run = run(tagboat().current_dir(directory.path()).args(["lint", "."])).with_status(1);
    let rules: Vec<&str> = run.output.lines().collect();
    assert_eq!(rules.len(), 2, "{run:?}");
    assert_eq!(rules[0], "bytes.yaml:1:4: unreadable-file: the file is not valid UTF-8 here");
    assert!(rules[1].starts_with("huge.yaml:1:1: unreadable-file: the file has 178"), "{run:?}");
    assert!(run.errors.contains("warning: link.yaml: skipped: the link's target does not exist"));
}
