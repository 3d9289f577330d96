//! A simulated machine for tests: a directory with host programs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use super::OnHost;

/// The program behind each name, which does what the file of its name says.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/host/program");

/// A machine with fake programs, whose files the test writes.
pub(super) struct Machine(TempDir);

impl Machine {
    /// Creates a machine without fake programs.
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("bin")).unwrap();
        Self(directory)
    }

    /// Returns the path of a file.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file.
    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    /// Adds or changes a program: a shell script, in which `$machine` is the directory.
    pub(super) fn program(&self, name: &str, script: &str) -> &Self {
        // The script is sourced: one that was just written cannot be executed while another test starts a process.
        self.write(name, script);
        let link = self.path("bin").join(name);
        if !link.is_symlink() {
            symlink(Path::new(PROGRAM), link).unwrap();
        }
        self
    }

    /// Sets the ID of the boot, which is otherwise that of the real machine.
    pub(super) fn set_boot(&self, id: &str) {
        self.write("boot_id", id);
        let is_boot_id = r#"[ "$1" = /proc/sys/kernel/random/boot_id ]"#;
        self.program(
            "cat",
            &format!("{is_boot_id} && exec /bin/cat \"$machine/boot_id\"; exec /bin/cat \"$@\""),
        );
    }

    /// Returns the builder of processes on this machine.
    pub(super) fn on_host(&self) -> OnHost {
        OnHost::new(&format!("env PATH={}:/usr/bin:/bin", self.path("bin").display()))
    }

    /// Returns the calls of the fake programs in order, without those that read files.
    pub(super) fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.path("calls")).unwrap_or_default();
        calls.lines().filter(|line| !line.starts_with("cat ")).map(str::to_owned).collect()
    }
}

/// Waits for a condition.
pub(super) async fn wait_until(condition: impl Fn() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_secs(120), "the condition is still false");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The ID of a boot.
pub(super) const BOOT: &str = "0b6b3d4c-6d0e-4d5e-9f43-2f6f2b1c7a10";

/// Returns a digest of one digit.
pub(super) fn digest(digit: char) -> String {
    format!("sha256:{}", digit.to_string().repeat(64))
}

/// Returns the output of `bootc status`, with images by the digits of their digests.
pub(super) fn bootc_status(booted: char, staged: Option<char>) -> String {
    let entry = |digit: char| {
        json!({
            "image": {
                "image": {"image": "quay.io/os/base:42", "transport": "registry"},
                "version": format!("42.{digit}"),
                "timestamp": null,
                "imageDigest": digest(digit),
                "architecture": "amd64",
            },
            "incompatible": false,
        })
    };
    let status = json!({"booted": entry(booted), "staged": staged.map(entry), "rollback": null});
    json!({"apiVersion": "org.containers.bootc/v1", "kind": "BootcHost", "status": status}).to_string()
}
