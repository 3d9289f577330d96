//! The processes etcd and kube-apiserver.

use std::fs;
use std::net::TcpListener;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::support::built_program::{ETCD, KUBE_APISERVER};
use crate::support::certificates::Authority;
use crate::support::process_reaper::ProcessReaper;

use super::access::{ADMIN_TOKEN, Access};
use super::audit::Audited;
use super::definitions;

/// A running API server.
/// Its processes and files are removed when the last owner drops it, or when the tests end.
pub(crate) struct ApiServer {
    access: Access,
    directory: PathBuf,
    command: Command,
    server: Mutex<Option<ProcessReaper>>,
    etcd_command: Command,
    /// The running etcd, after those that a restore has killed.
    etcds: Mutex<Vec<ProcessReaper>>,
}

impl ApiServer {
    /// The server that all tests share.
    pub(crate) fn shared() -> Arc<Self> {
        static SHARED: OnceLock<Option<Arc<ApiServer>>> = OnceLock::new();
        // The first test reports the failed start; the others do not try it again.
        let shared = SHARED.get_or_init(|| catch_unwind(|| Arc::new(Self::start())).ok());
        Arc::clone(shared.as_ref().expect("the API server starts: see the test that failed first"))
    }

    /// Starts a server on free ports, and waits until it answers and has our kinds.
    pub(crate) fn start() -> Self {
        let (etcd_program, program) = (ETCD.file(), KUBE_APISERVER.file());
        // A shared server is a static, which is never dropped, so the process reaper removes the directory and not
        // `TempDir`.
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let directory = || tempfile::Builder::new().prefix("tagboat-api-").tempdir_in(&place).unwrap().keep();
        let server = (0..3).find_map(|_| Self::start_in(&directory(), &etcd_program, &program));
        let server =
            server.expect("of three times three free ports three stay free until the servers take them");
        definitions::apply(&server.access);
        server
    }

    /// Tries to start it once; `None` if other programs took the ports first.
    fn start_in(directory: &Path, etcd_program: &Path, program: &Path) -> Option<Self> {
        let [clients, peers, port] = free_ports();
        let mut etcd = command(etcd_program, directory);
        let (clients, peers) = (format!("http://127.0.0.1:{clients}"), format!("http://127.0.0.1:{peers}"));
        etcd.args(["--data-dir=etcd", "--unsafe-no-fsync", "--log-level=warn"]);
        etcd.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
        etcd.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
        etcd.arg("--initial-cluster").arg(format!("default={peers}"));
        let authority = Authority::new();
        let mut command = command(program, directory);
        arguments(&mut command, directory, &authority).arg(format!("--etcd-servers={clients}"));
        command.arg(format!("--secure-port={port}"));
        let access = Access::new(port, fs::read(authority.certificate_file()).unwrap());
        // kube-apiserver waits for etcd, and does not use the directory any more once it runs.
        let etcd_reaper = ProcessReaper::start_with(&etcd, directory).unwrap();
        let reaper = ProcessReaper::start(&command).unwrap();
        let server = Self {
            access,
            directory: directory.to_owned(),
            command,
            server: Mutex::new(Some(reaper)),
            etcd_command: etcd,
            etcds: Mutex::new(vec![etcd_reaper]),
        };
        server.wait().then_some(server)
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
        self.without_etcd(copy);
    }

    /// Restores the data of the backup, as if nothing had been written since.
    pub(crate) fn restore(&self) {
        self.without_etcd(|data, backup| {
            fs::remove_dir_all(data).unwrap();
            copy(backup, data);
        });
    }

    /// Runs `work` with the directories of etcd's data and of the backup, during an outage.
    fn without_etcd(&self, work: impl FnOnce(&Path, &Path)) {
        self.stop();
        let mut etcds = self.etcds.lock().unwrap();
        etcds.last().unwrap().kill_server();
        work(&self.directory.join("etcd"), &self.directory.join("backup"));
        etcds.push(ProcessReaper::start(&self.etcd_command).unwrap());
        drop(etcds);
        self.resume();
    }

    /// The output of both processes.
    pub(crate) fn output(&self) -> String {
        let server = self.server.lock().unwrap().as_ref().map(ProcessReaper::output).unwrap_or_default();
        let last = |output: &str| -> String {
            let lines: Vec<&str> = output.lines().collect();
            lines[lines.len().saturating_sub(30)..].join("\n")
        };
        format!(
            "kube-apiserver:\n{}\netcd:\n{}",
            last(&server),
            last(&self.etcds.lock().unwrap().last().map(ProcessReaper::output).unwrap_or_default())
        )
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

/// Copies a directory recursively.
fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(copied.success());
}

/// Returns a server's command in a directory of its own.
/// It has only `PATH` of the caller's environment.
fn command(program: &Path, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", directory).current_dir(directory);
    command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command
}

/// Writes the files of kube-apiserver into its directory, and adds the arguments with their paths.
fn arguments<'a>(command: &'a mut Command, directory: &Path, authority: &Authority) -> &'a mut Command {
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
    ])
}

const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
";

fn free_ports() -> [u16; 3] {
    // All are held until the last is known, so that they differ.
    let sockets = [(); 3].map(|()| TcpListener::bind(("127.0.0.1", 0)).unwrap());
    sockets.map(|socket| socket.local_addr().unwrap().port())
}
