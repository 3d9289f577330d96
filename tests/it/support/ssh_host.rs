//! A git server over SSH.
//! It is the real `sshd` on loopback, whose sessions can run nothing but git.
//!
//! ```text
//! let host = SshHost::start();
//! let url = host.url(&root.path().join("fleet.git"));       // ssh://USER@127.0.0.1:PORT/ABSOLUTE/fleet.git
//! host.key().private();                                     // authorized; so is `locked_key`, with PASSPHRASE
//! host.known_hosts();                                       // the lines of its host keys
//! ```

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::git_program::harden;
use super::process_reaper::ProcessReaper;
use super::program::{installed, run};
use super::ssh_key::SshKey;

/// The passphrase of the second authorized key.
pub(crate) const PASSPHRASE: &str = "open sesame";

/// A running server.
pub(crate) struct SshHost {
    user: String,
    port: u16,
    keys: [SshKey; 2],
    host_keys: [SshKey; 2],
    reaper: ProcessReaper,
    directory: TempDir,
}

impl SshHost {
    /// Starts on a free port.
    pub(crate) fn start() -> Self {
        // It refuses to run without its absolute path.
        let program = installed("sshd");
        let directory = tempfile::tempdir().unwrap();
        let make = |name, kind, passphrase| SshKey::generate(directory.path(), name, kind, passphrase);
        let host_keys = [make("host_ed25519", "ed25519", ""), make("host_ecdsa", "ecdsa", "")];
        let keys = [make("plain", "ed25519", ""), make("locked", "ed25519", PASSPHRASE)];
        let authorized = keys.iter().map(SshKey::public).collect::<Vec<_>>().join("\n");
        fs::write(directory.path().join("authorized_keys"), authorized + "\n").unwrap();
        let user = run(Command::new("id").arg("-un")).with_status(0).output.trim_end().to_owned();
        if user == "root" {
            // Only root's sshd needs this directory, which a system service would make.
            fs::create_dir_all("/run/sshd").unwrap();
        }
        let (reaper, port) = (0..3)
            .find_map(|_| start(&program, directory.path()))
            .expect("of three free ports one stays free until sshd takes it");
        Self { user, port, keys, host_keys, reaper, directory }
    }

    /// The URL of a repository, by its absolute path.
    pub(crate) fn url(&self, repository: &Path) -> String {
        format!("ssh://{}@127.0.0.1:{}{}", self.user, self.port, repository.display())
    }

    /// An authorized key.
    pub(crate) fn key(&self) -> &SshKey {
        &self.keys[0]
    }

    /// An authorized key with the passphrase [`PASSPHRASE`].
    pub(crate) fn locked_key(&self) -> &SshKey {
        &self.keys[1]
    }

    /// Authorizes another key, given as a line of public key.
    pub(crate) fn authorize(&self, public: &str) {
        let file = self.directory.path().join("authorized_keys");
        let known = fs::read_to_string(&file).unwrap();
        fs::write(file, format!("{known}{}\n", public.trim_end())).unwrap();
    }

    /// The lines of this host for a `known_hosts` file.
    pub(crate) fn known_hosts(&self) -> String {
        self.host_keys.iter().map(|key| format!("[127.0.0.1]:{} {}\n", self.port, key.public())).collect()
    }

    /// The log of the server.
    pub(crate) fn log(&self) -> String {
        self.reaper.output()
    }

    /// The SSH command for git with a key and the lines of a `known_hosts` file.
    pub(crate) fn command(&self, key: &SshKey, known_hosts: &str) -> String {
        let file = tempfile::NamedTempFile::new_in(self.directory.path()).unwrap();
        fs::write(&file, known_hosts).unwrap();
        // The file is removed with the directory, after the last use of the command.
        let (_, file) = file.keep().unwrap();
        format!(
            "ssh -F /dev/null -i {} -o IdentitiesOnly=yes -o IdentityAgent=none -o UserKnownHostsFile={} \
             -o GlobalKnownHostsFile=/dev/null -o StrictHostKeyChecking=yes",
            key.private_file().display(),
            file.display()
        )
    }
}

impl Drop for SshHost {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("sshd on port {} said: {}", self.port, self.log());
        }
    }
}

/// Starts sshd on some port; `None` if another program took the port first.
fn start(program: &Path, directory: &Path) -> Option<(ProcessReaper, u16)> {
    let port = TcpListener::bind(("127.0.0.1", 0)).and_then(|socket| socket.local_addr()).unwrap().port();
    let file = directory.join("sshd_config");
    fs::write(&file, configuration(directory, port)).unwrap();
    let mut command = Command::new(program);
    harden(&mut command).args(["-D", "-e", "-f"]).arg(&file);
    let reaper = ProcessReaper::start(&command).unwrap();
    let begin = Instant::now();
    loop {
        let output = reaper.output();
        if output.contains("Server listening on") {
            return Some((reaper, port));
        }
        if output.contains("Address already in use") {
            return None;
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "sshd does not start: {output}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn configuration(directory: &Path, port: u16) -> String {
    let directory = directory.display();
    format!(
        r#"ListenAddress 127.0.0.1
Port {port}
HostKey {directory}/host_ed25519
HostKey {directory}/host_ecdsa
PidFile none
AuthorizedKeysFile {directory}/authorized_keys
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
AllowTcpForwarding no
X11Forwarding no
PermitTTY no
AcceptEnv GIT_PROTOCOL
SetEnv GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
ForceCommand git-shell -c "$SSH_ORIGINAL_COMMAND"
"#
    )
}
