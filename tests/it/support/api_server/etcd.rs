//! The process etcd, with the data of one or more API servers.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use crate::support::built_program::ETCD;
use crate::support::process_reaper::ProcessReaper;

/// A running etcd. Its directory is removed with it.
pub(super) struct Etcd {
    address: String,
    directory: PathBuf,
    command: Command,
    /// The running process, after those that a backup or a restore has killed.
    processes: Mutex<Vec<ProcessReaper>>,
}

impl Etcd {
    /// Starts etcd on two free ports.
    pub(super) fn start() -> Self {
        let program = ETCD.file();
        // A shared server is a static, which is never dropped, so the process reaper removes the directory and not
        // `TempDir`.
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let directory = tempfile::Builder::new().prefix("tagboat-api-").tempdir_in(&place).unwrap().keep();
        let [clients, peers] = free_ports().map(|port| format!("http://127.0.0.1:{port}"));
        let mut command = command(&program, &directory);
        command.args(["--data-dir=etcd", "--unsafe-no-fsync", "--log-level=warn"]);
        command.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
        command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
        command.arg("--initial-cluster").arg(format!("default={peers}"));
        let process = ProcessReaper::start_with(&command, &directory).unwrap();
        Self { address: clients, directory, command, processes: Mutex::new(vec![process]) }
    }

    /// The URL for clients.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// The directory of its data, and of the files of the first API server.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes a backup of all data, during an outage.
    pub(super) fn back_up(&self) {
        self.stopped(copy);
    }

    /// Restores the data of the backup, during an outage.
    pub(super) fn restore(&self) {
        self.stopped(|data, backup| {
            fs::remove_dir_all(data).unwrap();
            copy(backup, data);
        });
    }

    /// Runs `work` with the directories of data and backup, while etcd does not run.
    fn stopped(&self, work: impl FnOnce(&Path, &Path)) {
        let mut processes = self.processes.lock().unwrap();
        processes.last().unwrap().kill_server();
        work(&self.directory.join("etcd"), &self.directory.join("backup"));
        processes.push(ProcessReaper::start(&self.command).unwrap());
    }

    /// The output so far.
    pub(super) fn output(&self) -> String {
        self.processes.lock().unwrap().last().map(ProcessReaper::output).unwrap_or_default()
    }
}

/// Copies a directory recursively.
fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(copied.success());
}

/// Returns a server's command in a directory of its own.
/// It has only `PATH` of the caller's environment.
pub(crate) fn command(program: &Path, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", directory).current_dir(directory);
    command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command
}

/// Returns ports that are free now.
pub(super) fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    // All are held until the last is known, so that they differ.
    let sockets = [(); COUNT].map(|()| TcpListener::bind(("127.0.0.1", 0)).unwrap());
    sockets.map(|socket| socket.local_addr().unwrap().port())
}
