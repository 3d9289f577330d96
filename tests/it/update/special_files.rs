//! Paths of the command line that are neither a file nor a directory.

use std::ffi::OsStr;
use std::fs;
use std::process::Command;

use crate::support::fleet::podinfo;
use crate::support::program::{Run, run};

/// Runs the program, with a timeout.
fn run_for_a_while(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Run {
    run(Command::new("timeout").args(["60", env!("CARGO_BIN_EXE_tagboat")]).args(arguments))
}

/// Reading a named pipe blocked for ever.
#[test]
fn a_named_pipe_is_refused_wherever_a_file_is_read() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name).display().to_string();
    for directory in ["state", "apps"] {
        fs::create_dir(at(directory)).unwrap();
    }
    for pipe in ["pipe", "state/lock"] {
        assert!(Command::new("mkfifo").arg(at(pipe)).status().unwrap().success());
    }
    fs::write(at("policies.yaml"), podinfo()).unwrap();
    let (pipe, policies) = (at("pipe"), at("policies.yaml"));
    for (arguments, begin) in [
        (vec!["run", &pipe], format!("error: {pipe}: cannot read the manifests there: ")),
        (
            vec!["update", &at("apps"), "--policies", &pipe],
            format!("error: {pipe}: cannot read the manifests there: "),
        ),
        (vec!["render", "--template", &pipe], format!("error: cannot read the template {pipe}: ")),
        (
            vec!["render", "--template", "preset:summary", "--from", &pipe],
            format!("error: cannot read the result {pipe}: "),
        ),
        (
            vec!["explain", "policy", "default/podinfo", "--policies", &policies, "--tags", &pipe],
            format!("error: cannot read the tags from {pipe}: "),
        ),
        (
            vec!["run", &policies, "--state", &at("state")],
            format!("error: cannot lock the state in {}: lock: ", at("state")),
        ),
    ] {
        let run = run_for_a_while(&arguments).with_status(1);
        assert_eq!(run.only_error(), format!("{begin}it is a named pipe, not a regular file"));
    }
    let run = run_for_a_while(["lint", &pipe]).with_status(1);
    let finding = "unreadable-file: cannot be read: it is a named pipe, not a regular file\n";
    assert!(run.output.ends_with(finding), "{run:?}");
}

#[test]
fn a_named_pipe_is_refused_as_a_directory() {
    let place = tempfile::tempdir().unwrap();
    let pipe = place.path().join("pipe").display().to_string();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for command in ["crds", "rbac"] {
        let run = run_for_a_while([command, "--write", &pipe]).with_status(1);
        assert_eq!(run.only_error(), format!("error: --write {pipe}: it is not a directory"));
    }
}

/// A shell passes the output of a command as an open pipe.
#[test]
fn a_pipe_of_the_shell_is_read() {
    let script = "exec \"$0\" lint <(printf 'a: 1\\n')";
    let mut command = Command::new("bash");
    let run = run(command.args(["-c", script, env!("CARGO_BIN_EXE_tagboat")])).with_status(0);
    assert!(run.errors.starts_with("nothing found; "), "{run:?}");
}
