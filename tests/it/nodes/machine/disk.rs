//! The directory of a machine: its images, its files, and its programs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The program behind each name.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/host/machine");

/// The programs of the host.
const PROGRAMS: [&str; 6] = ["bootc", "cat", "journalctl", "systemctl", "systemd-run", "test"];

const BOOT_ID: &str = "root/proc/sys/kernel/random/boot_id";

/// The directory of a machine.
pub(super) struct Disk(TempDir);

/// The images of a machine by their digests, and its boots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MachineState {
    pub(crate) booted: String,
    pub(crate) staged: Option<String>,
    /// The number of reboots and crashes.
    pub(crate) boots: usize,
}

/// Returns a digest of one digit.
pub(crate) fn digest(digit: char) -> String {
    format!("sha256:{}", digit.to_string().repeat(64))
}

/// Returns the reference of an image, with a digest of one digit.
pub(crate) fn image(digit: char) -> String {
    format!("quay.io/org/os@{}", digest(digit))
}

impl Disk {
    /// Creates the directory, with a booted image.
    pub(super) fn new(image: &str) -> Self {
        let disk = Self(tempfile::tempdir().unwrap());
        for directory in ["bin", "lib", "faults", "platforms", "versions"] {
            fs::create_dir(disk.path().join(directory)).unwrap();
        }
        for program in PROGRAMS {
            symlink(PROGRAM, disk.path().join("bin").join(program)).unwrap();
        }
        symlink(PROGRAM, disk.path().join("lib/unit")).unwrap();
        disk.write("booted", &entry(image).to_string());
        disk.write("staged", "null");
        disk.write("boots", "0");
        disk.write_version("12");
        disk.new_boot_id(0);
        disk
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the words that run a program of this machine, and of no other.
    pub(super) fn prefix(&self) -> String {
        format!("env PATH={}", self.path().join("bin").display())
    }

    /// The address of the system bus of this machine.
    pub(super) fn bus_address(&self) -> String {
        format!("unix:path={}", self.path().join("bus").display())
    }

    /// Writes a file at once as a whole.
    pub(super) fn write(&self, name: &str, content: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let new = tempfile::NamedTempFile::new_in(self.path()).unwrap();
        fs::write(&new, content).unwrap();
        new.persist(path).unwrap();
    }

    /// Removes a file; returns false if there is none.
    pub(super) fn remove(&self, name: &str) -> bool {
        fs::remove_file(self.path().join(name)).is_ok()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }

    pub(super) fn calls(&self, program: &str) -> Vec<String> {
        let of_program = |line: &str| Some(line.strip_prefix(program)?.strip_prefix(' ')?.to_owned());
        self.read("calls").lines().filter_map(of_program).collect()
    }

    pub(super) fn stage(&self, image: &str) {
        self.write("staged", &entry(image).to_string());
    }

    pub(super) fn state(&self) -> MachineState {
        let image = |name: &str| -> Option<String> {
            let entry: Value = serde_json::from_str(&self.read(name)).unwrap();
            Some(entry["image"]["imageDigest"].as_str()?.to_owned())
        };
        MachineState {
            booted: image("booted").unwrap(),
            staged: image("staged"),
            boots: self.read("boots").parse().unwrap(),
        }
    }

    pub(super) fn boot_id(&self) -> String {
        self.read(BOOT_ID)
    }

    /// Boots the staged image, unless the host rolls back.
    pub(super) fn boot(&self, is_rolled_back: bool) {
        let staged = self.read("staged");
        if staged != "null" && !is_rolled_back {
            self.write("booted", &staged);
        }
        self.write("staged", "null");
        let version = self.read("next_version");
        if !version.is_empty() && !is_rolled_back {
            self.write_version(&version);
        }
        self.remove("unit");
        let _there_is_none = fs::remove_dir_all(self.path().join("root/var/run"));
        let boots = self.state().boots + 1;
        self.new_boot_id(boots);
        self.write("boots", &boots.to_string());
    }

    fn write_version(&self, version: &str) {
        self.write("root/etc/os-release", &format!("ID=test\nVERSION_ID=\"{version}\"\n"));
    }

    fn new_boot_id(&self, boots: usize) {
        self.write(BOOT_ID, &format!("00000000-0000-4000-8000-{boots:012}"));
    }

    /// Kills the programs that run.
    pub(super) fn kill_programs(&self) {
        for process in self.read("processes").lines() {
            // Another process may have the ID of one that has ended.
            let is_ours =
                fs::read_link(format!("/proc/{process}/cwd")).is_ok_and(|cwd| cwd == self.resolved());
            if let Some(id) = process.parse().ok().and_then(Pid::from_raw).filter(|_| is_ours) {
                let _leads_none = kill_process_group(id, Signal::KILL);
            }
        }
        self.write("processes", "");
    }

    fn resolved(&self) -> PathBuf {
        self.path().canonicalize().unwrap()
    }
}

/// Returns the entry of an image in the status of bootc.
fn entry(image: &str) -> Value {
    let (_, digest) = image.rsplit_once('@').unwrap();
    json!({
        "image": {
            "image": {"image": image, "transport": "registry"}, "version": &digest[7..15],
            "timestamp": null, "imageDigest": digest, "architecture": "amd64",
        },
        "incompatible": false,
    })
}
