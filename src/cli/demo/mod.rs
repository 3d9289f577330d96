//! `tagboat demo`: the main job on an embedded sample, from a pushed image to a pushed commit.

mod pushing;
mod registry;
mod sample;
mod shelf;

use std::path::{Path, PathBuf};

use clap::Args;

use super::Failure;
use super::run::arguments::RunArguments;
use super::run::{self, Ended};
use super::terminal::{Palette, coloured, print};
use crate::error::chain;
use crate::git::Git;
use crate::printable::printable;
use pushing::push;
use registry::DemoRegistry;

/// Show the main job on a small sample fleet
///
/// Serves a small registry and makes a git repository with a sample in it, pushes a new tag, and shows it travel from
/// the registry through the policy into a commit. Then a tag that floats moves, and its digest goes the same way. All of
/// it stays on this machine.
#[derive(Debug, Args)]
pub(super) struct DemoArguments {
    /// Where to unpack it: a directory that is empty or does not exist [default: a new temporary one]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub(super) fn run(arguments: &DemoArguments) -> Result<(), Failure> {
    // Without git nothing is to be unpacked: a second try would find the directory full.
    Git::in_directory(Path::new(".")).call("version").run().map_err(|error| Failure::new(chain(&error)))?;
    let directory = prepare(arguments.directory.as_deref())?;
    let registry = DemoRegistry::start()
        .map_err(|error| Failure::new(format!("cannot serve a registry on 127.0.0.1: {error}")))?;
    let address = registry.address();
    sample::unpack(&directory, &address)?;
    push(&address, "acme/web", "2.4.1", "web 2.4.1")?;
    print(&format!(
        "A registry is at {address}, and a fleet of YAML files in a bare git repository, {remote}.\n\
         They stand for your servers'. The objects in {manifests}/, of the kinds that Flux has, say which\n\
         images the fleet is to have. Somebody pushes acme/web:2.4.1 to the registry:\n\n\
         $ cd {directory}\n",
        remote = sample::REMOTE,
        manifests = sample::MANIFESTS,
        directory = printable(&directory.to_string_lossy())
    ))?;
    run_once(&directory, None)?;
    let remote = Git::in_directory(&directory.join(sample::REMOTE));
    show(&remote, &["--oneline", "--unified=0", sample::BRANCH, "--", "apps/web"])?;
    push(&address, "acme/shop", "stable", "shop, second build")?;
    print(
        "\nOnly marked values changed. Somebody pushes another image as acme/shop:stable, and its digest follows:\n\n",
    )?;
    run_once(&directory, Some(&["->", "pushed"]))?;
    print("\nWhen nothing is new, a run costs a few requests at the registry and one look at git:\n\n")?;
    run_once(&directory, None)?;
    print(&format!(
        "\nThe sample stays in {} until you delete it; its registry ends now.\n\
         Try it on your own: tagboat run PATH… --dry-run\n",
        printable(&directory.to_string_lossy())
    ))?;
    Ok(())
}

/// Carries out the sample's automation, as the command line that is shown would in `directory`; of what it prints only
/// the lines with one of the `words`, if there are some.
fn run_once(directory: &Path, words: Option<&[&str]>) -> Result<(), Failure> {
    let (manifests, state) = (sample::MANIFESTS, "state");
    let filter: String = words.iter().copied().flatten().map(|word| format!(" -e '{word}'")).collect();
    let filter = if filter.is_empty() { filter } else { format!(" | grep{filter}") };
    print(&format!("$ tagboat run {manifests} --state {state}{filter}\n"))?;
    let Ended { text, done } =
        run::reconcile(&RunArguments::with_state(directory.join(manifests), directory.join(state)));
    let is_shown = |line: &&str| words.is_none_or(|words| words.iter().any(|word| line.contains(word)));
    let lines: String = text.split_inclusive('\n').filter(is_shown).collect();
    Failure::after(print(&lines), done)
}

/// Shows what `git show` says about the remote.
fn show(remote: &Git, arguments: &[&str]) -> Result<(), Failure> {
    print(&format!("\n$ git -C {} show {}\n", sample::REMOTE, arguments.join(" ")))?;
    let said = remote.call("show").arguments(arguments).run().map_err(|error| Failure::new(chain(&error)))?;
    print(&coloured(&String::from_utf8_lossy(&said), Palette::for_output()))?;
    Ok(())
}

/// Gives an empty directory to unpack into, by its whole name.
fn prepare(wanted: Option<&Path>) -> Result<PathBuf, Failure> {
    let Some(wanted) = wanted else {
        let made = tempfile::Builder::new().prefix("tagboat-demo-").tempdir();
        let made =
            made.map_err(|error| Failure::new(format!("cannot make a temporary directory: {error}")))?;
        return Ok(made.keep());
    };
    let refused =
        |cause: std::io::Error| Failure::new(format!("cannot unpack into {}: {cause}", wanted.display()));
    if wanted.metadata().is_ok_and(|found| !found.is_dir()) {
        return Err(Failure::new(format!(
            "{} is no directory; name one that is empty or does not exist",
            wanted.display()
        )));
    }
    std::fs::create_dir_all(wanted).map_err(refused)?;
    match std::fs::read_dir(wanted).map_err(refused)?.next() {
        None => std::fs::canonicalize(wanted).map_err(refused),
        Some(_) => Err(Failure::new(format!(
            "{} is not empty; name a directory that is empty or does not exist",
            wanted.display()
        ))),
    }
}
