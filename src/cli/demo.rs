//! `tagboat demo`: the main job on an embedded sample.

use std::path::{Path, PathBuf};

use clap::Args;

use super::Failure;
use super::diff;
use super::terminal::{Palette, print};
use super::update::{self, OutputFormat, UpdateArguments};
use crate::git::{Git, GitError};
use crate::sentence::chain;

/// Show the main job on a small sample fleet
///
/// Unpacks the sample into a git repository, updates it, and shows the report and the diff.
#[derive(Debug, Args)]
pub(super) struct DemoArguments {
    /// Where to unpack it: a directory that is empty or does not exist [default: a new temporary one]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

macro_rules! sample {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_bytes!(concat!("../../demo/", $path)))),*]
    };
}

/// The sample's files and their bytes.
const SAMPLE: &[(&str, &[u8])] = sample![
    "automation/automation.yaml",
    "automation/policies.yaml",
    "apps/web/deployment.yaml",
    "apps/api/kustomization.yaml",
    "apps/shop/values.yaml",
    "apps/worker/worker.yaml",
    "apps/legacy/cronjob.yaml",
    "apps/charts/template.yaml",
];

pub(super) fn run(arguments: &DemoArguments) -> Result<(), Failure> {
    // Without git nothing is to be unpacked: a second try would find the directory full.
    Git::in_directory(Path::new(".")).call("version").run().map_err(|error| Failure::new(chain(&error)))?;
    let directory = prepare(arguments.directory.as_deref())?;
    unpack(&directory)?;
    let git = Git::in_directory(&directory);
    make_repository(&git).map_err(|error| Failure::new(chain(&error)))?;
    let manifests = directory.join("automation");
    print(&format!(
        "A sample fleet is in {0}, a git repository: its manifests in automation/, its files in apps/.\n\n\
         $ tagboat update {0} --policies {1}\n\n",
        directory.display(),
        manifests.display()
    ))?;
    update::run(&UpdateArguments {
        directory: directory.clone(),
        policies: vec![manifests],
        automation: None,
        latest: Vec::new(),
        dry_run: false,
        strict: false,
        output: OutputFormat::Text,
    })?;
    print(&format!("\n$ git -C {} diff --unified=0\n\n", directory.display()))?;
    let changes =
        git.call("diff").argument("--unified=0").run().map_err(|error| Failure::new(chain(&error)))?;
    print(&diff::coloured(&String::from_utf8_lossy(&changes), Palette::for_output()))?;
    print(
        "\nOnly marked values changed. Try it on your own: tagboat update DIR --policies PATH --dry-run\n",
    )?;
    Ok(())
}

/// Gives an empty directory to unpack into.
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
        None => Ok(wanted.to_owned()),
        Some(_) => Err(Failure::new(format!(
            "{} is not empty; name a directory that is, or that does not exist",
            wanted.display()
        ))),
    }
}

fn unpack(directory: &Path) -> Result<(), Failure> {
    for (path, content) in SAMPLE {
        let path = directory.join(path);
        let parent = path.parent().unwrap_or(directory);
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&path, content))
            .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))?;
    }
    Ok(())
}

fn make_repository(git: &Git) -> Result<(), GitError> {
    git.call("init").arguments(["--quiet", "--initial-branch=main"]).run()?;
    git.call("add").argument("--all").run()?;
    git.call("commit")
        .setting("user.name", "demo")
        .setting("user.email", "demo@example.com")
        .arguments(["--quiet", "--message", "A sample fleet"])
        .run()?;
    Ok(())
}
