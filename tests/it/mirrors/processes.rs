//! Several processes on one mirror, at the same time or one after a killed one.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::local_remote::files_below;
use crate::support::bare_repository::BareRepository;
use crate::support::content::file;
use crate::support::fleet::{podinfo, tag_line};
use crate::support::git_host::{Fault, GitHost, Operation, Settings};
use crate::support::manifests::automation;
use crate::support::program::{run, tagboat};

/// A fleet on a host, and the manifests and the state of `tagboat run`.
struct Setting {
    root: TempDir,
    remote: BareRepository,
    host: GitHost,
}

impl Setting {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let served = root.path().join("served");
        let remote =
            BareRepository::with_files(&served.join("fleet.git"), &[file("app.yaml", tag_line("4.0.6"))]);
        let host = GitHost::start(&served, Settings::default());
        let repository = format!(
            "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\n\
             metadata: {{name: fleet, namespace: default}}\n\
             spec: {{interval: 1m, url: {:?}, ref: {{branch: main}}}}\n",
            host.url("fleet.git")
        );
        let fields = "  git:\n    commit: {author: {email: bot@example.com}}\n    push: {branch: main}\n  \
                      update: {strategy: Setters, path: ./}\n";
        let manifests = [podinfo(), repository, automation("default", "fleet", fields)].concat();
        fs::write(root.path().join("manifests.yaml"), manifests).unwrap();
        Self { root, remote, host }
    }

    fn mirrors(&self) -> PathBuf {
        self.root.path().join("state/mirrors")
    }

    fn command(&self) -> Command {
        let mut command = tagboat();
        command.arg("run").arg(self.root.path().join("manifests.yaml"));
        command.arg("--state").arg(self.root.path().join("state"));
        command
    }

    #[track_caller]
    fn assert_one_commit(&self) {
        assert_eq!(self.remote.log("main").len(), 2);
        assert_eq!(self.remote.file("main", "app.yaml"), tag_line("5.0.3").into_bytes());
        self.remote.assert_sound();
    }
}

#[test]
fn two_processes_on_one_state_wait_for_each_other() {
    let setting = Setting::new();
    setting.host.always(Operation::Fetch, Fault::Delay(Duration::from_millis(400)));
    let start = || setting.command().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for child in [start(), start()] {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    setting.assert_one_commit();
    // The status has the push, whichever process wrote it last.
    let status = setting.root.path().join("state/objects/ImageUpdateAutomation/default/fleet.json");
    let object: serde_json::Value = serde_json::from_slice(&fs::read(status).unwrap()).unwrap();
    assert_eq!(object["status"]["lastPushCommit"], setting.remote.id("main").unwrap().as_str(), "{object:#}");
}

#[test]
fn the_next_run_recovers_from_a_kill_during_the_fetch() {
    // The first request of this kind is the listing, the second is the fetch.
    for requests in [1, 2] {
        let setting = Setting::new();
        setting.host.always(Operation::Fetch, Fault::Delay(Duration::from_secs(2)));
        let mut child = setting.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let patience = Instant::now() + Duration::from_secs(60);
        while setting.host.requests_for(Operation::Fetch).len() < requests {
            assert!(Instant::now() < patience && child.try_wait().unwrap().is_none());
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        setting.host.heal();
        // The git process of the killed program may still run.
        run(&mut setting.command()).with_status(0);
        setting.assert_one_commit();
        run(&mut setting.command()).with_status(0);
        let strangers: Vec<_> = files_below(&setting.mirrors())
            .into_iter()
            .map(|(path, _)| path)
            .filter(|path| path.extension().is_some_and(|extension| extension == "lock"))
            .collect();
        assert_eq!(strangers, Vec::<PathBuf>::new());
    }
}
