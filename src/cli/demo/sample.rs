//! Embedded sample, and the repository that is created from it.

use std::path::Path;

use super::registry::DemoRegistry;
use crate::cli::Failure;
use crate::error::chain;
use crate::git::{Git, GitError};

/// The bare repository, in the place of a git server.
pub(super) const REMOTE: &str = "fleet.git";

/// Its branch.
pub(super) const BRANCH: &str = "main";

/// The directory of the manifests.
pub(super) const MANIFESTS: &str = "manifests";

/// Placeholder in the GitRepository of the sample for the path of [`REMOTE`].
const REMOTE_PLACEHOLDER: &str = "https://git.example.com/fleet.git";

/// Placeholder in images for the address of the registry.
const REGISTRY_PLACEHOLDER: &str = "registry.example.com";

/// The initial images of the registry: repository, tag and content.
const IMAGES: [(&str, &str, &str); 5] = [
    ("acme/web", "2.3.0", "web 2.3.0"),
    ("acme/web", "2.4.0-rc.1", "web 2.4.0-rc.1"),
    ("acme/api", "v1.9", "api 1.9"),
    ("acme/api", "1.10", "api 1.10"),
    ("acme/shop", "stable", "shop, first build"),
];

macro_rules! sample {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../demo/", $path)))),*]
    };
}

/// The manifests.
const OBJECTS: &[(&str, &str)] = sample![
    "manifests/automation.yaml",
    "manifests/images.yaml",
    "manifests/policies.yaml",
    "manifests/repository.yaml",
];

/// The files of the repository.
const FLEET: &[(&str, &str)] = sample![
    "apps/web/web.yaml",
    "apps/api/kustomization.yaml",
    "apps/shop/values.yaml",
    "apps/charts/template.yaml",
];

/// Puts images into the registry, unpacks the manifests and makes the repository.
pub(super) fn unpack(directory: &Path, registry: &DemoRegistry) -> Result<(), Failure> {
    for (repository, tag, content) in IMAGES {
        registry.push(repository, tag, content);
    }
    let remote = directory.join(REMOTE);
    // A JSON string is YAML, with any characters in the path.
    let url = serde_json::to_string(&remote).map_err(|_| {
        Failure::new(format!("the name of {} is not UTF-8; name another directory", directory.display()))
    })?;
    let address = registry.address();
    let settled = |text: &str| text.replace(REMOTE_PLACEHOLDER, &url).replace(REGISTRY_PLACEHOLDER, &address);
    write(directory, OBJECTS, settled)?;
    let refused =
        |cause| Failure::new(format!("cannot make a directory in {}: {cause}", directory.display()));
    let work = tempfile::tempdir_in(directory).map_err(refused)?;
    write(work.path(), FLEET, settled)?;
    make_repository(work.path(), &remote).map_err(|error| Failure::new(chain(&error)))
}

fn write(directory: &Path, files: &[(&str, &str)], settled: impl Fn(&str) -> String) -> Result<(), Failure> {
    for (path, content) in files {
        let path = directory.join(path);
        let parent = path.parent().unwrap_or(directory);
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&path, settled(content)))
            .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))?;
    }
    Ok(())
}

/// Commits the files in `work` and pushes them to a new bare repository.
fn make_repository(work: &Path, remote: &Path) -> Result<(), GitError> {
    let branch = format!("--initial-branch={BRANCH}");
    let git = Git::in_directory(work);
    git.call("init").arguments(["--quiet", "--bare", "--template=", &branch, "--"]).argument(remote).run()?;
    git.call("init").arguments(["--quiet", "--template=", &branch]).run()?;
    git.call("add").argument("--all").run()?;
    git.call("commit")
        .setting("user.name", "demo")
        .setting("user.email", "demo@example.com")
        .arguments(["--quiet", "--message", "A sample fleet"])
        .run()?;
    git.call("push")
        .setting("protocol.file.allow", "always")
        .arguments(["--quiet", "--"])
        .argument(remote)
        .argument(format!("{BRANCH}:{BRANCH}"))
        .run()?;
    Ok(())
}
