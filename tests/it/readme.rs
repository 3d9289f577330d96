//! `README.md`: its manifests are applied, and its commands run.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::Api;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::api_server::{Cluster, apply, documents};
use crate::support::bare_repository::BareRepository;
use crate::support::built_program::HELM;
use crate::support::content::file;
use crate::support::git_host::{GitHost, Settings};
use crate::support::program::{Run, run};
use crate::support::registry::Registry;

const PAGE: &str = include_str!("../../README.md");

/// The image of the manifests, without a tag.
const IMAGE: &str = "ghcr.io/stefanprodan/podinfo";

/// The fenced block of a language, counted from 0.
fn block(language: &str, number: usize) -> &'static str {
    let begin = format!("```{language}\n");
    let (_, rest) = PAGE.match_indices(&begin).nth(number).map(|(at, _)| PAGE.split_at(at)).unwrap();
    rest[begin.len()..].split("```").next().unwrap()
}

/// The manifests of Flux's kinds.
fn fleet() -> &'static str {
    block("yaml", 0)
}

/// The manifest with the markers.
fn deployment() -> &'static str {
    block("yaml", 1)
}

/// The commands of a block, with continued lines joined.
fn commands(language: &str, number: usize) -> Vec<String> {
    block(language, number).replace("\\\n ", "").lines().map(str::to_owned).collect()
}

/// A directory with the two files of the quick starts.
/// It also has a folder for `PATH` with programs.
struct Place(TempDir);

impl Place {
    fn new(fleet: &str, deployment: &str) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for directory in ["apps", "bin", "home"] {
            fs::create_dir(place.path().join(directory)).unwrap();
        }
        fs::write(place.path().join("fleet.yaml"), fleet).unwrap();
        fs::write(place.path().join("apps/podinfo.yaml"), deployment).unwrap();
        place.program("tagboat", Path::new(env!("CARGO_BIN_EXE_tagboat")));
        place
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Puts a program into `PATH`.
    fn program(&self, name: &str, file: &Path) {
        symlink(file, self.path().join("bin").join(name)).unwrap();
    }

    /// A shell that runs a line here, with nothing of the caller's environment but `PATH`.
    fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        let path = std::env::var("PATH").unwrap();
        command.env_clear().env("PATH", format!("{}:{path}", self.path().join("bin").display()));
        command.env("HOME", self.path().join("home")).env("TMPDIR", self.path()).env("LC_ALL", "C");
        command.current_dir(self.path()).args(["-c", line]);
        command
    }

    fn run(&self, line: &str) -> Run {
        run(&mut self.shell(line))
    }
}

#[test]
fn the_two_commands_of_a_new_machine_come_first() {
    let makefile = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Makefile")).unwrap();
    let found = commands("sh", 0);
    assert_eq!(found.len(), 2, "{found:?}");
    for (line, target) in found.iter().zip(["demo", "test"]) {
        assert!(line.starts_with(&format!("make {target} ")), "{line}");
        assert!(makefile.contains(&format!("\n{target}: ##")), "{target}");
    }
}

#[tokio::test]
async fn the_api_server_takes_the_manifests() {
    let cluster = Cluster::new().await;
    let objects: Vec<Value> = [documents(fleet()), documents(deployment())].concat();
    let kinds: Vec<&str> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        ["ImageRepository", "ImagePolicy", "GitRepository", "ImageUpdateAutomation", "Deployment"]
    );
    for object in &objects {
        let applied = apply(&cluster.client(), object, true).await;
        assert!(applied.is_ok(), "{object}: {applied:?}");
    }
}

/// The names of the release and of its namespace are the test's own.
#[tokio::test]
async fn a_cluster_begins_in_compare_mode() {
    let version = env!("CARGO_PKG_VERSION");
    let lines = commands("sh", 1);
    let [build, install, logs, uninstall, replace] = &lines[..] else { panic!("not five: {lines:?}") };
    let image = format!("registry.example.com/tagboat:{version}");
    assert_eq!(*build, format!("docker build --tag {image} . && docker push {image}"));
    assert!(logs.ends_with("logs deployment/tagboat --follow"), "{logs}");
    assert!(
        replace.ends_with(&format!("deployment/image-automation-controller manager={image}")),
        "{replace}"
    );

    let cluster = Cluster::new().await;
    let place = Place::new(fleet(), deployment());
    place.program("helm", &HELM.file());
    let release = format!("of-{}", cluster.namespace());
    let call = |line: &str| {
        let line = line.replace("tagboat-system", cluster.namespace());
        let line = line.replace("install tagboat ", &format!("install {release} "));
        let mut command = place.shell(&line);
        command
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("KUBECONFIG", cluster.administrators_kubeconfig());
        run(&mut command).with_status(0)
    };
    let deployments: Api<Deployment> = Api::default_namespaced(cluster.client());
    let name = format!("{release}-tagboat");
    call(install);
    let pod = deployments.get(&name).await.unwrap().spec.unwrap().template.spec.unwrap();
    assert_eq!(pod.containers[0].image, Some(image));
    assert!(pod.containers[0].args.as_ref().unwrap().contains(&"--dry-run".to_owned()), "{pod:?}");
    call(uninstall);
    assert!(deployments.get_opt(&name).await.unwrap().is_none());
}

#[test]
fn the_quick_start_of_ci_shows_a_diff_and_then_pushes_one_commit() {
    let root = tempfile::tempdir().unwrap();
    let registry = Registry::start();
    for tag in ["5.0.0", "5.0.3", "6.0.0"] {
        registry.push("podinfo", tag, "2020-01-02T03:04:05Z");
    }
    let here = format!("{}/podinfo", registry.address());
    let repository = BareRepository::with_files(
        &root.path().join("fleet.git"),
        &[file("apps/podinfo.yaml", deployment().replace(IMAGE, &here))],
    );
    let host = GitHost::start(root.path(), Settings::default());
    let url = "https://git.example.com/fleet.git";
    assert!(fleet().contains(url));
    let place = Place::new(&fleet().replace(IMAGE, &here).replace(url, &host.url("fleet.git")), "");

    let lines = commands("sh", 2);
    let [dry_run, push] = &lines[..] else { panic!("not two: {lines:?}") };
    let shown = place.run(dry_run).with_status(0);
    assert!(shown.output.contains(&format!("\n+        image: {here}:5.0.3   # {{")), "{shown:?}");
    assert_eq!(repository.log("main").len(), 1);
    let pushed = place.run(push).with_status(0);
    assert!(pushed.output.contains("\npushed commit '"), "{pushed:?}");
    let text = String::from_utf8(repository.file("main", "apps/podinfo.yaml")).unwrap();
    assert_eq!(text, deployment().replace(IMAGE, &here).replace("podinfo:5.0.0 ", "podinfo:5.0.3 "));
    assert_eq!(repository.log("main")[0].author, "tagboat <tagboat@example.com>");
    let again = place.run(push).with_status(0);
    assert!(again.output.contains("no change since last reconciliation"), "{again:?}");
    assert_eq!(repository.log("main").len(), 2);
}

#[test]
fn the_quick_start_of_a_directory_prints_what_the_page_shows() {
    let place = Place::new(fleet(), deployment());
    let (line, shown) = block("console", 1).split_once('\n').unwrap();
    let run = place.run(line.strip_prefix("$ ").unwrap()).with_status(0);
    assert_eq!(run.output, shown);
    let text = fs::read_to_string(place.path().join("apps/podinfo.yaml")).unwrap();
    assert_eq!(text, deployment().replace("podinfo:5.0.0 ", "podinfo:5.0.3 "), "one byte has changed");
    let lint = "tagboat lint fleet.yaml apps";
    assert!(PAGE.contains(lint));
    let found = place.run(lint).with_status(1);
    assert!(found.output.contains(": unknown-policy: "), "{found:?}");
    assert_eq!(found.output.lines().count(), 1, "{found:?}");
}
