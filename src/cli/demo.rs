//! `tagboat demo`: the main job on an embedded sample, from the manifests to a pushed commit.

mod sample;

use std::path::{Path, PathBuf};

use clap::Args;

use super::Failure;
use super::diff;
use super::run::{self, GitLogin, RunArguments};
use super::size::ByteSize;
use super::terminal::{Palette, print};
use super::update::OutputFormat;
use crate::git::Git;
use crate::sentence::chain;

/// Show the main job on a small sample fleet
///
/// Makes a git repository with a sample in it, carries out an automation on it, shows the report and the commit that
/// was pushed, and carries it out once more.
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
    sample::unpack(&directory)?;
    print(&format!(
        "A fleet of YAML files is in a bare git repository, {remote}, that stands for your server's.\n\
         The objects in {manifests}/, of the kinds that Flux has, say which images it is to have.\n\n\
         $ cd {directory}\n",
        remote = sample::REMOTE,
        manifests = sample::MANIFESTS,
        directory = directory.display()
    ))?;
    run_once(&directory)?;
    let remote = Git::in_directory(&directory.join(sample::REMOTE));
    show(&remote, &["--oneline", "--shortstat", sample::BRANCH])?;
    show(&remote, &["--format=", "--unified=0", sample::BRANCH, "--", "apps/web"])?;
    print(
        "\nOnly marked values changed. A second run has nothing to do, and costs one look at the remote:\n\n",
    )?;
    run_once(&directory)?;
    print(&format!(
        "\nThe sample stays in {} until you delete it.\nTry it on your own: tagboat run PATH… --dry-run\n",
        directory.display()
    ))?;
    Ok(())
}

/// Carries out the sample's automation, as the command line that is shown would in `directory`.
fn run_once(directory: &Path) -> Result<(), Failure> {
    let (manifests, state) = (sample::MANIFESTS, "state");
    print(&format!("$ tagboat run {manifests} --state {state}\n\n"))?;
    run::run(&RunArguments {
        manifests: vec![directory.join(manifests)],
        automation: None,
        latest: Vec::new(),
        dry_run: false,
        output: OutputFormat::Text,
        state: Some(directory.join(state)),
        secret: Vec::new(),
        git_login: GitLogin::Secrets,
        mirror_max_size: ByteSize::DEFAULT_MIRROR,
    })
}

/// Shows what `git show` says about the remote.
fn show(remote: &Git, arguments: &[&str]) -> Result<(), Failure> {
    print(&format!("\n$ git -C {} show {}\n", sample::REMOTE, arguments.join(" ")))?;
    let said = remote.call("show").arguments(arguments).run().map_err(|error| Failure::new(chain(&error)))?;
    print(&diff::coloured(&String::from_utf8_lossy(&said), Palette::for_output()))?;
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
    std::fs::create_dir_all(wanted).map_err(refused)?;
    match std::fs::read_dir(wanted).map_err(refused)?.next() {
        None => std::fs::canonicalize(wanted).map_err(refused),
        Some(_) => Err(Failure::new(format!(
            "{} is not empty; name a directory that is, or that does not exist",
            wanted.display()
        ))),
    }
}
