//! Tests that `hack/testbin/build` builds once per machine, and atomically.
//! The real script runs with modules that are built quickly.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::support::program::{Run, run};

/// A checkout with the build script and a module `registry`.
/// A few lines of shell build the module.
struct Checkout {
    root: TempDir,
}

impl Checkout {
    fn new(recipe: &str) -> Self {
        let checkout = Self { root: tempfile::tempdir().unwrap() };
        let module = checkout.path("hack/testbin/registry");
        fs::create_dir_all(&module).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("hack/testbin/build");
        fs::copy(script, checkout.path("hack/testbin/build")).unwrap();
        for file in ["go.mod", "go.sum"] {
            fs::write(module.join(file), file).unwrap();
        }
        fs::write(module.join("recipe"), recipe).unwrap();
        fs::create_dir(checkout.path("bin")).unwrap();
        checkout.program("bin/go", "exit 1");
        checkout
    }

    fn path(&self, below: &str) -> PathBuf {
        self.root.path().join(below)
    }

    fn program(&self, below: &str, script: &str) {
        fs::write(self.path(below), format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(self.path(below), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.path("hack/testbin/build"));
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        command.arg("registry").env_clear().env("PATH", path).env("HOME", self.root.path());
        command.env("TAGBOAT_TESTBIN_CACHE", self.path("cache")).env("BUILT", self.path("built"));
        command.stdin(Stdio::null());
        command
    }

    fn build(&self) -> Run {
        run(&mut self.command())
    }

    /// The number of times that the recipe ran.
    fn builds(&self) -> usize {
        fs::read_to_string(self.path("built")).unwrap_or_default().lines().count()
    }

    /// The number of cache folders with programs.
    fn folders(&self) -> usize {
        let items = fs::read_dir(self.path("cache")).unwrap().map(|item| item.unwrap());
        let names = items.map(|item| item.file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("registry-") && !name.contains('.')).count()
    }
}

/// Recipe of a program that prints its version.
const GOOD: &str = r#"echo built >>"$BUILT"
printf '#!/bin/sh\necho 1.0\n' >"$1/registry"
chmod +x "$1/registry"
"#;

#[test]
fn a_build_is_kept_until_the_recipe_changes() {
    let checkout = Checkout::new(GOOD);
    for _ in 0..3 {
        checkout.build().with_status(0);
        let version =
            run(Command::new(checkout.path("target/testbin/registry")).arg("--version")).with_status(0);
        assert_eq!(version.output, "1.0\n");
    }
    assert_eq!(checkout.builds(), 1);
    for file in ["go.mod", "go.sum", "recipe"] {
        let file = checkout.path("hack/testbin/registry").join(file);
        fs::write(&file, fs::read_to_string(&file).unwrap() + "# more\n").unwrap();
        checkout.build().with_status(0);
    }
    assert_eq!((checkout.builds(), checkout.folders()), (4, 4));
    // The links point to the new programs, and no other file is left beside them.
    let link = fs::read_link(checkout.path("target/testbin/registry")).unwrap();
    assert!(link.starts_with(checkout.path("cache")), "{}", link.display());
    assert_eq!(fs::read_dir(checkout.path("target/testbin")).unwrap().count(), 1);
}

#[test]
fn existing_programs_need_no_go() {
    let checkout = Checkout::new(GOOD);
    checkout.build().with_status(0);
    fs::remove_file(checkout.path("bin/go")).unwrap();
    fs::remove_dir_all(checkout.path("target")).unwrap();
    checkout.build().with_status(0);
    assert!(checkout.path("target/testbin/registry").exists());
}

#[test]
fn concurrent_requests_build_once() {
    let checkout = Checkout::new(&format!("sleep 1\n{GOOD}"));
    let mut others: Vec<_> =
        (0..3).map(|_| checkout.command().stderr(Stdio::null()).spawn().unwrap()).collect();
    checkout.build().with_status(0);
    for other in &mut others {
        assert!(other.wait().unwrap().success());
    }
    assert_eq!((checkout.builds(), checkout.folders()), (1, 1));
}

#[test]
fn a_failed_build_leaves_no_program() {
    let half = format!("{GOOD}[ -e \"$HOME/whole\" ] || {{ touch \"$1/half\"; exit 7; }}\n");
    let checkout = Checkout::new(&half);
    let failed = checkout.build();
    assert_ne!(failed.status, Some(0), "{failed:?}");
    assert_eq!(checkout.folders(), 0);
    assert!(!checkout.path("target/testbin/registry").exists());
    fs::write(checkout.path("whole"), "").unwrap();
    checkout.build().with_status(0);
    assert_eq!(checkout.folders(), 1);
    let program = fs::canonicalize(checkout.path("target/testbin/registry")).unwrap();
    assert!(!program.with_file_name("half").exists());
}

#[test]
fn a_program_that_does_not_start_is_not_used() {
    let checkout = Checkout::new("echo nonsense >\"$1/registry\"\nchmod +x \"$1/registry\"\n");
    let failed = checkout.build().with_status(1);
    assert!(failed.errors.contains("registry was built, but does not start"), "{failed:?}");
    assert_eq!(checkout.folders(), 0);
}

#[test]
fn programs_that_the_environment_names_are_not_built() {
    let checkout = Checkout::new(GOOD);
    run(checkout.command().env("TEST_ASSET_REGISTRY", "/bin/true")).with_status(0);
    checkout.program("bin/registry", "exit 0");
    run(checkout.command().env("KUBEBUILDER_ASSETS", checkout.path("bin"))).with_status(0);
    assert_eq!(checkout.builds(), 0);
    // A variable that names a missing file is no substitute.
    run(checkout.command().env("TEST_ASSET_REGISTRY", "/nowhere")).with_status(0);
    assert_eq!(checkout.builds(), 1);
}

#[test]
fn an_unknown_module_is_named() {
    let checkout = Checkout::new(GOOD);
    let failed = run(checkout.command().arg("regsitry")).with_status(1);
    assert_eq!(
        failed.only_error(),
        "testbin: there is no module regsitry; those there are: kubernetes registry packaging gitea"
    );
    assert_eq!(checkout.builds(), 0);
}
