//! The process kube-apiserver.

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::support::built_program::KUBE_APISERVER;
use crate::support::certificates::Authority;
use crate::support::process_reaper::ProcessReaper;

use super::access::{ADMIN_TOKEN, Access};
use super::audit::Audited;
use super::definitions;
use super::etcd::{Etcd, command, free_ports};

/// A running API server.
/// Its processes and files are removed when the last owner drops it, or when the tests end.
pub(crate) struct ApiServer {
    access: Access,
    directory: PathBuf,
    command: Command,
    server: Mutex<Option<ProcessReaper>>,
    /// Ends after the server, because fields are dropped in this order.
    etcd: Arc<Etcd>,
}

impl ApiServer {
    /// The server that all tests share.
    pub(crate) fn shared() -> Arc<Self> {
        static SHARED: OnceLock<Option<Arc<ApiServer>>> = OnceLock::new();
        // The first test reports the failed start; the others do not try it again.
        let shared = SHARED.get_or_init(|| catch_unwind(|| Arc::new(Self::start())).ok());
        Arc::clone(shared.as_ref().expect("the API server starts: see the test that failed first"))
    }

    /// The server with DeploymentStatus that all tests share.
    /// On the other one, the kind would turn on a feature of the controller.
    pub(crate) fn shared_with_deployments() -> Arc<Self> {
        static SHARED: OnceLock<Option<Arc<ApiServer>>> = OnceLock::new();
        let shared = SHARED.get_or_init(|| {
            catch_unwind(|| {
                let server = Self::shared().start_beside("deployments");
                server.install(&[tagboat_api::crds::rollout()]);
                Arc::new(server)
            })
            .ok()
        });
        Arc::clone(shared.as_ref().expect("the API server starts: see the test that failed first"))
    }

    /// Starts a server on free ports, and waits until it answers and has our kinds.
    pub(crate) fn start() -> Self {
        let server = (0..3).find_map(|_| {
            let etcd = Arc::new(Etcd::start());
            let directory = etcd.directory().to_owned();
            Self::start_in(&directory, etcd, "/registry")
        });
        server.expect("of three times three free ports three stay free until the servers take them")
    }

    /// Starts the server of a second cluster, on the same etcd.
    /// Its keys begin with `/NAME`, and its directory is a part of the first server's.
    pub(crate) fn start_beside(&self, name: &str) -> Self {
        let directory = self.etcd.directory().join(name);
        fs::create_dir(&directory).unwrap();
        let start = || Self::start_in(&directory, Arc::clone(&self.etcd), &format!("/{name}"));
        (0..3).find_map(|_| start()).expect("of three free ports one stays free until the server takes it")
    }

    /// Tries to start it once; `None` if another program took a port first.
    fn start_in(directory: &Path, etcd: Arc<Etcd>, prefix: &str) -> Option<Self> {
        let [port] = free_ports();
        let authority = Authority::new();
        let mut command = command(&KUBE_APISERVER.file(), directory);
        arguments(&mut command, directory, &authority);
        command.arg(format!("--etcd-servers={}", etcd.address())).arg(format!("--etcd-prefix={prefix}"));
        command.arg(format!("--secure-port={port}"));
        let access = Access::new(port, fs::read(authority.certificate_file()).unwrap());
        // kube-apiserver waits for etcd.
        let reaper = ProcessReaper::start(&command).unwrap();
        let server =
            Self { access, directory: directory.to_owned(), command, server: Mutex::new(Some(reaper)), etcd };
        if !server.wait() {
            return None;
        }
        server.install(&tagboat_api::crds::all());
        Some(server)
    }

    /// Installs definitions, and waits until their objects can be listed.
    pub(crate) fn install(&self, definitions: &[CustomResourceDefinition]) {
        definitions::apply(&self.access, definitions);
    }

    /// The address and the certificate authority.
    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    /// The directory of all its files.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Every request that it answered, in order.
    pub(crate) fn audit(&self) -> Vec<Audited> {
        let log = fs::read_to_string(self.directory.join("audit.log")).unwrap();
        // Its last line may still be written.
        let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(Audited::read).collect()
    }

    /// Begins an outage: ends the server and keeps its data.
    /// It is only for a server of a test's own.
    pub(crate) fn stop(&self) {
        *self.server.lock().unwrap() = None;
    }

    /// Ends an outage: the same port, the same data.
    pub(crate) fn resume(&self) {
        *self.server.lock().unwrap() = Some(ProcessReaper::start(&self.command).unwrap());
        assert!(self.wait(), "the port stays free during an outage: {}", self.output());
    }

    /// Makes a backup of all data. Only for a server of a test's own.
    pub(crate) fn back_up(&self) {
        self.without_etcd(Etcd::back_up);
    }

    /// Restores the data of the backup, as if nothing had been written since.
    pub(crate) fn restore(&self) {
        self.without_etcd(Etcd::restore);
    }

    /// Runs `work` during an outage.
    fn without_etcd(&self, work: impl FnOnce(&Etcd)) {
        self.stop();
        work(&self.etcd);
        self.resume();
    }

    /// The output of both processes.
    pub(crate) fn output(&self) -> String {
        let server = self.server.lock().unwrap().as_ref().map(ProcessReaper::output).unwrap_or_default();
        format!("kube-apiserver:\n{}\netcd:\n{}", last_lines(&server), last_lines(&self.etcd.output()))
    }

    /// Waits until it answers; false if a port was taken.
    fn wait(&self) -> bool {
        let begin = Instant::now();
        loop {
            if self.access.is_ready() {
                return true;
            }
            let output = self.output();
            if output.contains("address already in use") {
                return false;
            }
            assert!(begin.elapsed() < Duration::from_secs(120), "the API server does not start: {output}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The last lines of a server's output.
fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

/// Writes the files of kube-apiserver into its directory, and adds the arguments with their paths.
fn arguments(command: &mut Command, directory: &Path, authority: &Authority) {
    let file = |name: &str, text: &str| fs::write(directory.join(name), text).unwrap();
    file("tokens.csv", &format!("{ADMIN_TOKEN},admin,1,system:masters\n"));
    file("audit.yaml", AUDIT_POLICY);
    let server = authority.issue("127.0.0.1");
    let copy = |from: &Path, name: &str| fs::copy(from, directory.join(name)).map(drop).unwrap();
    copy(server.certificate_file(), "server.crt");
    copy(server.key_file(), "server.key");
    // Any key of this type can sign the tokens of service accounts.
    let (key, public) = Authority::signing_key();
    file("accounts.key", &key);
    file("accounts.pub", &public);
    command.args([
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        // Otherwise the server refuses to be known by a loopback address.
        "--endpoint-reconciler-type=none",
        "--tls-cert-file=server.crt",
        "--tls-private-key-file=server.key",
        "--token-auth-file=tokens.csv",
        "--service-account-key-file=accounts.pub",
        "--service-account-signing-key-file=accounts.key",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--authorization-mode=RBAC",
        // No controller makes the service account `default` that this plugin would wait for.
        "--disable-admission-plugins=ServiceAccount",
        "--allow-privileged=true",
        "--audit-policy-file=audit.yaml",
        "--audit-log-path=audit.log",
        "--audit-log-mode=blocking",
    ]);
}

const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
";
