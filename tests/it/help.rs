//! Compares the command line's help, and the schema of its output, with committed files.
//!
//! `TAGBOAT_REGENERATE=1` writes the files.

use std::fs;
use std::path::Path;

use crate::support::program::{run, tagboat};

/// The beginning of the manual, before the help of each command.
const MANUAL: &str = "\
# Commands and options

This page is made from `tagboat --help` and the `--help` of each command. The flags of `tagboat controller` stand in
[controller-flags.md](controller-flags.md) with their defaults.

Every command exits with 0 when it is done, with 1 when something failed, and with 2 when it was used wrongly; the help
of a command says what counts as a failure.
";

/// Compares a text with a committed file.
fn check(path: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("TAGBOAT_REGENERATE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, found).unwrap();
    }
    let wanted = fs::read_to_string(&path).unwrap_or_default();
    assert!(wanted == found, "{} is stale; TAGBOAT_REGENERATE=1 writes it anew\n{found}", path.display());
}

/// Adds all subcommands of a command.
/// Each has the name of the page and the arguments that print it.
fn add_pages(command: &clap::Command, above: &[String], pages: &mut Vec<(String, Vec<String>)>) {
    for subcommand in command.get_subcommands() {
        let path = [above, &[subcommand.get_name().to_owned()]].concat();
        pages.push((format!("tagboat-{}", path.join("-")), [&path[..], &["--help".to_owned()]].concat()));
        add_pages(subcommand, &path, pages);
    }
}

#[test]
fn every_help_text_is_the_committed_one() {
    let mut pages = vec![("tagboat".to_owned(), vec!["--help".to_owned()])];
    add_pages(&tagboat::cli::command(), &[], &mut pages);
    assert!(pages.iter().any(|(page, _)| page == "tagboat-update"));
    let mut manual = MANUAL.to_owned();
    for (page, arguments) in pages {
        let command = [&["tagboat".to_owned()], arguments.split_last().unwrap().1].concat().join(" ");
        let run = run(tagboat().args(arguments)).with_status(0);
        assert_eq!(run.errors, "");
        check(&format!("testdata/cli/{page}.txt"), &run.output);
        manual.push_str(&format!("\n## `{command}`\n\n```text\n{}\n```\n", run.output.trim_end()));
    }
    check("docs/cli.md", &manual);
}

#[test]
fn the_schemas_are_the_committed_ones() {
    for name in ["outcome", "history", "explain-policy", "explain-automation"] {
        let run = run(tagboat().args(["schema", name])).with_status(0);
        check(&format!("docs/{name}.schema.json"), &run.output);
    }
}

#[test]
fn the_page_of_flags_is_the_committed_one() {
    check("docs/controller-flags.md", &tagboat::cli::flags_page());
}

#[test]
fn completions_know_every_subcommand() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = run(tagboat().args(["completions", shell])).with_status(0);
        for command in tagboat::cli::command().get_subcommands() {
            assert!(run.output.contains(command.get_name()), "{shell}: {}", command.get_name());
        }
    }
}
