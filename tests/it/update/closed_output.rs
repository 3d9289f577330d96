//! Tests with a standard output that is closed or full.
//! It is no failure by itself, and no failure is hidden by it.

use std::fs::{self, File, OpenOptions};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::fleet::{Fleet, podinfo, tag_line};
use crate::support::manifests::{automation, marker};
use crate::support::program::{Run, run, tagboat};
use crate::support::unwritable::Unwritable;

/// Runs the program with this standard output, whose reader has ended before the program starts.
fn run_into(output: impl Into<Stdio>, command: &mut Command) -> Run {
    let child = command.stdout(output).stderr(Stdio::piped()).spawn().expect("the program starts");
    let ended = child.wait_with_output().expect("the program ends");
    let errors = String::from_utf8(ended.stderr).expect("errors are UTF-8");
    Run { status: ended.status.code(), output: String::new(), errors }
}

/// A pipe whose reader has ended.
fn pipe_without_reader() -> std::io::PipeWriter {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer
}

/// A device without space.
fn full_device() -> File {
    OpenOptions::new().write(true).open("/dev/full").unwrap()
}

fn update_of(directory: &Path, manifests: &Path, more: &[&str]) -> Command {
    let mut command = tagboat();
    command.arg("update").arg(directory).arg("--policies").arg(manifests).args(more);
    command
}

#[test]
fn a_closed_output_is_not_a_failure() {
    for output in ["text", "json"] {
        let fleet = Fleet::small();
        let mut command = update_of(&fleet.directory(), &fleet.manifests(), &["--output", output]);
        let ended = run_into(pipe_without_reader(), &mut command).with_status(0);
        assert_eq!(ended.errors, "", "{output}");
        assert_eq!(fleet.text("app.yaml"), tag_line("5.0.3"));
    }
}

#[test]
fn a_closed_output_of_a_dry_run_is_not_a_failure() {
    let fleet = Fleet::small();
    let mut command = update_of(&fleet.directory(), &fleet.manifests(), &["--dry-run"]);
    assert_eq!(run_into(pipe_without_reader(), &mut command).with_status(0).errors, "");
    assert_eq!(fleet.text("app.yaml"), tag_line("4.0.6"));
}

/// As a supervisor starts programs with output discarded.
#[test]
fn an_update_works_without_standard_output() {
    let fleet = Fleet::small();
    let mut command = Command::new("bash");
    command.args(["-c", "exec \"$@\" >&-", "bash", env!("CARGO_BIN_EXE_tagboat"), "update"]);
    let ended = run(command.arg(fleet.directory()).arg("--policies").arg(fleet.manifests())).with_status(0);
    assert_eq!(ended.errors, "");
    assert_eq!(fleet.text("app.yaml"), tag_line("5.0.3"));
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let fleet = Fleet::small();
    let mut command = update_of(&fleet.directory(), &fleet.manifests(), &[]);
    let ended = run_into(full_device(), &mut command).with_status(1);
    assert!(ended.only_error().starts_with("error: cannot write to standard output: "), "{ended:?}");
    assert_eq!(fleet.text("app.yaml"), tag_line("5.0.3"), "the work was done before");
}

#[test]
fn help_that_cannot_be_written_is_a_failure() {
    for argument in ["--help", "--version"] {
        let ended = run_into(full_device(), tagboat().arg(argument)).with_status(1);
        assert!(ended.only_error().starts_with("error: cannot write to standard output: "), "{ended:?}");
        let ended = run_into(pipe_without_reader(), tagboat().arg(argument)).with_status(0);
        assert_eq!(ended.errors, "");
    }
}

/// Runs a failing update with an output that is read, closed or full.
/// Asserts that the exit status and standard error are the same, but a full output is reported in addition.
#[track_caller]
fn fails_alike(command: &dyn Fn(&str) -> Command, status: i32, words: &str) {
    for form in ["text", "json"] {
        let wanted = run(&mut command(form)).with_status(status);
        assert!(wanted.only_error().contains(words), "{wanted:?}");
        let unread = run_into(pipe_without_reader(), &mut command(form)).with_status(status);
        assert_eq!(unread.errors, wanted.errors, "{form}");
        let full = run_into(full_device(), &mut command(form)).with_status(status);
        let more = full.errors.strip_suffix(&wanted.errors).expect("the error is reported");
        assert!(more.is_empty() || more.starts_with("error: cannot write to standard output: "), "{full:?}");
    }
}

#[test]
fn a_strict_run_fails_alike_with_a_closed_output() {
    for manifests in [podinfo(), format!("{}{}", podinfo(), automation("default", "fleet", ""))] {
        let text = format!("a: 1 {}\n", marker("default:nope"));
        let fleet = Fleet::new([("app.yaml", &text)], &manifests);
        let command =
            |form: &str| update_of(&fleet.directory(), &fleet.manifests(), &["--strict", "--output", form]);
        fails_alike(&command, 1, "--strict allows neither unresolved markers (1)");
    }
}

#[test]
fn a_missing_directory_fails_alike_with_a_closed_output() {
    let fleet = Fleet::small();
    let missing = fleet.root().join("nowhere");
    fails_alike(&|form| update_of(&missing, &fleet.manifests(), &["--output", form]), 1, "nowhere");
}

#[test]
fn a_missing_manifest_fails_alike_with_a_closed_output() {
    let fleet = Fleet::small();
    let missing = fleet.root().join("nowhere.yaml");
    fails_alike(&|form| update_of(&fleet.directory(), &missing, &["--output", form]), 1, "nowhere.yaml");
}

#[test]
fn usage_errors_fail_alike_with_a_closed_output() {
    let fleet = Fleet::small();
    let command = |form: &str| {
        update_of(&fleet.directory(), &fleet.manifests(), &["--automation", "nope", "--output", form])
    };
    fails_alike(&command, 2, "--automation nope");
}

#[test]
fn an_unwritable_file_fails_alike_with_a_closed_output() {
    let files = [("a.yaml", tag_line("4.0.6")), ("b.yaml", tag_line("4.0.6"))];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let fleet = Fleet::new(files, &podinfo());
    let guard = Unwritable::make(fleet.directory().join("b.yaml"));
    let command = |form: &str| {
        fs::write(fleet.directory().join("a.yaml"), tag_line("4.0.6")).unwrap();
        update_of(&fleet.directory(), &fleet.manifests(), &["--output", form])
    };
    fails_alike(&command, 1, "cannot write b.yaml; it is unchanged");
    drop(guard);
    assert_eq!(fleet.text("a.yaml"), tag_line("5.0.3"));
    assert_eq!(fleet.text("b.yaml"), tag_line("4.0.6"));
}

#[test]
fn the_other_commands_take_a_closed_output_for_an_end() {
    for arguments in
        [&["crds"][..], &["schema"], &["completions", "bash"], &["--help"], &["update", "--help"]]
    {
        let ended = run_into(pipe_without_reader(), tagboat().args(arguments)).with_status(0);
        assert_eq!(ended.errors, "", "{arguments:?}");
    }
}
