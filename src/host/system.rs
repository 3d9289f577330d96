//! The boot ID, the version, the files and the reboot of any host.
//!
//! The files are read by programs of the host. Below `/proc/1/root`, an absolute link such as `/var/run` of Debian
//! would lead into the container of the agent.

use super::command::SHORT;
use super::{CommandError, HostError, OnHost, os_release};

/// The file with the ID of the current boot, which the kubelet reports as well.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The file with the version of the system.
const OS_RELEASE: &str = "/etc/os-release";

/// Returns the ID of the current boot.
pub(super) async fn boot_id(on_host: &OnHost) -> Result<String, HostError> {
    let output = on_host.run(SHORT, "cat", &[BOOT_ID]).await?;
    let text = String::from_utf8_lossy(&output);
    let id = text.trim();
    let is_id = id.len() == 36 && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    if is_id { Ok(id.to_owned()) } else { Err(HostError::BootId) }
}

/// Returns the version of the system, if its `os-release` has one.
pub(super) async fn version(on_host: &OnHost) -> Result<Option<String>, CommandError> {
    Ok(read_file(on_host, OS_RELEASE).await?.and_then(|text| os_release::version(&text)))
}

/// Returns the text of a file; `None` if it does not exist.
pub(super) async fn read_file(on_host: &OnHost, path: &str) -> Result<Option<String>, CommandError> {
    if !exists(on_host, path).await? {
        return Ok(None);
    }
    let bytes = on_host.run(SHORT, "cat", &[path]).await?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Returns `true` if a file exists.
///
/// `test` is silent. A prefix that fails with the same exit status prints its reason, and is an error.
pub(super) async fn exists(on_host: &OnHost, path: &str) -> Result<bool, CommandError> {
    match on_host.run(SHORT, "test", &["-e", path]).await {
        Ok(_) => Ok(true),
        Err(CommandError::Failed { status, output, .. }) if status.code() == Some(1) && output.is_empty() => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Begins a reboot; systemd ends the agent with all services.
pub(super) async fn reboot(on_host: &OnHost) -> Result<(), CommandError> {
    on_host.run(SHORT, "systemctl", &["reboot"]).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{BOOT, Machine};
    use super::*;

    #[tokio::test]
    async fn the_boot_id_is_that_of_the_machine() {
        let machine = Machine::new();
        let own = std::fs::read_to_string(BOOT_ID).unwrap();
        assert_eq!(boot_id(&machine.on_host()).await.unwrap(), own.trim());
        machine.set_boot(BOOT);
        assert_eq!(boot_id(&machine.on_host()).await.unwrap(), BOOT);
        for wrong in ["", "1 2", "../../../../../../../../../../../etc", &"a".repeat(1000)] {
            machine.set_boot(wrong);
            let error = boot_id(&machine.on_host()).await.unwrap_err();
            assert_eq!(error.to_string(), "the boot ID of the host is not a UUID", "{wrong}");
        }
    }

    #[tokio::test]
    async fn a_file_is_absent_only_if_the_host_says_so() {
        let machine = Machine::new();
        let path = machine.path("file").display().to_string();
        assert_eq!(read_file(&machine.on_host(), &path).await.unwrap(), None);
        machine.write("file", b"text\xff");
        assert_eq!(read_file(&machine.on_host(), &path).await.unwrap().unwrap(), "text\u{fffd}");
        machine.program("test", "echo 'nsenter: Operation not permitted' >&2; exit 1");
        let error = exists(&machine.on_host(), &path).await.unwrap_err().to_string();
        assert!(error.ends_with("failed, exit status: 1: nsenter: Operation not permitted"), "{error}");
    }

    #[tokio::test]
    async fn a_reboot_asks_systemd() {
        let machine = Machine::new();
        machine.program("systemctl", "");
        reboot(&machine.on_host()).await.unwrap();
        assert_eq!(machine.calls(), ["systemctl reboot"]);
        machine.program("systemctl", "echo 'Operation inhibited' >&2; exit 1");
        let error = reboot(&machine.on_host()).await.unwrap_err().to_string();
        assert_eq!(error, "`systemctl reboot` failed, exit status: 1: Operation inhibited");
    }
}
