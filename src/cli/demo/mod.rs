//! `tagboat demo`: the main job on an embedded sample.
//! It goes from a pushed image to a pushed commit.

mod registry;
mod sample;

use std::path::{Path, PathBuf};

use clap::Args;

use super::Failure;
use super::run::arguments::RunArguments;
use super::run::{self, RunOutput};
use super::terminal::{Palette, coloured, print};
use crate::error::chain;
use crate::git::Git;
use crate::printable::printable;
use registry::DemoRegistry;

/// Run the main job on a small sample fleet
///
/// Serves a small registry, creates a git repository with a sample, pushes an image with a new tag, and reconciles: the
/// policy selects the tag, and a commit updates the files. Then an image is pushed to a floating tag, and its digest is
/// committed in the same way. Everything stays on this machine.
#[derive(Debug, Args)]
pub(super) struct DemoArguments {
    /// The directory of the sample, which must be empty or not exist [default: a new temporary one]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub(super) fn run(arguments: &DemoArguments) -> Result<(), Failure> {
    // Git is checked before anything is unpacked: a second try needs an empty directory.
    Git::in_directory(Path::new(".")).call("version").run().map_err(|error| Failure::new(chain(&error)))?;
    let directory = prepare(arguments.directory.as_deref())?;
    let registry = DemoRegistry::start()
        .map_err(|error| Failure::new(format!("cannot serve a registry on 127.0.0.1: {error}")))?;
    let address = registry.address();
    sample::unpack(&directory, &registry)?;
    registry.push("acme/web", "2.4.1", "web 2.4.1");
    print(&format!(
        "A registry is at {address}, and a bare git repository with a fleet of YAML files is {remote}.\n\
         They take the place of your servers. Flux's objects in {manifests}/ select the images of the fleet.\n\
         An image acme/web:2.4.1 is pushed to the registry:\n\n\
         $ cd {directory}\n",
        remote = sample::REMOTE,
        manifests = sample::MANIFESTS,
        directory = printable(&directory.to_string_lossy())
    ))?;
    run_once(&directory, None)?;
    let remote = Git::in_directory(&directory.join(sample::REMOTE));
    show(&remote, &["--oneline", "--unified=0", sample::BRANCH, "--", "apps/web"])?;
    registry.push("acme/shop", "stable", "shop, second build");
    print(
        "\nOnly marked values changed. Another image is pushed as acme/shop:stable, and its digest is committed:\n\n",
    )?;
    run_once(&directory, Some(&["->", "pushed"]))?;
    print("\nIf nothing is new, a run costs a few requests to the registry and one git ls-remote:\n\n")?;
    run_once(&directory, None)?;
    print(&format!(
        "\nThe sample stays in {} until you delete it; its registry stops now.\n\
         Try it on your repository: tagboat run PATH… --dry-run\n",
        printable(&directory.to_string_lossy())
    ))?;
    Ok(())
}

/// Reconciles the sample's automation, as the printed command line does in `directory`.
///
/// If there are `words`, only lines with one of them are printed.
fn run_once(directory: &Path, words: Option<&[&str]>) -> Result<(), Failure> {
    let (manifests, state) = (sample::MANIFESTS, "state");
    let filter: String = words.iter().copied().flatten().map(|word| format!(" -e '{word}'")).collect();
    let filter = if filter.is_empty() { filter } else { format!(" | grep{filter}") };
    print(&format!("$ tagboat run {manifests} --state {state}{filter}\n"))?;
    let RunOutput { text, done } =
        run::reconcile(&RunArguments::with_state(directory.join(manifests), directory.join(state)));
    let is_shown = |line: &&str| words.is_none_or(|words| words.iter().any(|word| line.contains(word)));
    let lines: String = text.split_inclusive('\n').filter(is_shown).collect();
    Failure::after(print(&lines), done)
}

/// Prints the output of `git show` for the remote.
fn show(remote: &Git, arguments: &[&str]) -> Result<(), Failure> {
    print(&format!("\n$ git -C {} show {}\n", sample::REMOTE, arguments.join(" ")))?;
    let output =
        remote.call("show").arguments(arguments).run().map_err(|error| Failure::new(chain(&error)))?;
    print(&coloured(&String::from_utf8_lossy(&output), Palette::for_output()))?;
    Ok(())
}

/// Creates an empty directory for the sample, and returns its absolute path.
fn prepare(requested: Option<&Path>) -> Result<PathBuf, Failure> {
    let Some(requested) = requested else {
        let made = tempfile::Builder::new().prefix("tagboat-demo-").tempdir();
        let made =
            made.map_err(|error| Failure::new(format!("cannot make a temporary directory: {error}")))?;
        return Ok(made.keep());
    };
    let refused =
        |cause: std::io::Error| Failure::new(format!("cannot unpack into {}: {cause}", requested.display()));
    if requested.metadata().is_ok_and(|found| !found.is_dir()) {
        return Err(Failure::new(format!(
            "{} is not a directory; name one that is empty or does not exist",
            requested.display()
        )));
    }
    std::fs::create_dir_all(requested).map_err(refused)?;
    match std::fs::read_dir(requested).map_err(refused)?.next() {
        None => std::fs::canonicalize(requested).map_err(refused),
        Some(_) => Err(Failure::new(format!(
            "{} is not empty; name a directory that is empty or does not exist",
            requested.display()
        ))),
    }
}
