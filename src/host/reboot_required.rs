//! Hosts that update themselves and ask for a reboot by a file, as Debian does.

use futures::future::{BoxFuture, FutureExt};

use super::{Host, HostError, HostState, OnHost, excerpt, system};
use crate::nodes::OwnUpdate;

/// The file of Debian and its derivatives, and of kured.
pub const DEFAULT_SENTINEL: &str = "/var/run/reboot-required";

/// The maximum length of the list of packages, in bytes before it is escaped.
const MAX_PACKAGES: usize = 1024;

/// A host whose file asks for a reboot while it exists.
#[derive(Clone, Debug)]
pub struct RebootRequired {
    on_host: OnHost,
    sentinel: String,
}

impl RebootRequired {
    /// Creates the host; the path is one on the host.
    #[must_use]
    pub fn new(on_host: OnHost, sentinel: String) -> Self {
        Self { on_host, sentinel }
    }

    async fn own_update(&self) -> Result<OwnUpdate, HostError> {
        if !system::exists(&self.on_host, &self.sentinel).await? {
            return Ok(OwnUpdate::None);
        }
        let packages = system::read_file(&self.on_host, &format!("{}.pkgs", self.sentinel)).await?;
        Ok(OwnUpdate::NeedsReboot(reason(&packages.unwrap_or_default())))
    }
}

impl Host for RebootRequired {
    fn state(&self) -> BoxFuture<'_, Result<HostState, HostError>> {
        async {
            Ok(HostState {
                own_update: self.own_update().await?,
                version: system::version(&self.on_host).await?,
                boot_id: system::boot_id(&self.on_host).await?,
                ..HostState::default()
            })
        }
        .boxed()
    }

    fn reboot(&self) -> BoxFuture<'_, Result<(), HostError>> {
        async { Ok(system::reboot(&self.on_host).await?) }.boxed()
    }
}

/// Returns the reason of a reboot for users: the packages, one per line, each once.
fn reason(packages: &str) -> String {
    let mut names: Vec<&str> = packages.lines().map(str::trim).filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return "the host requires a reboot".to_owned();
    }
    format!("the host requires a reboot for {}", excerpt::beginning(&names.join(", "), MAX_PACKAGES))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{BOOT, Machine};
    use super::*;

    #[test]
    fn the_reason_has_each_package_once_bounded_and_printable() {
        for (packages, expected) in [
            ("", "the host requires a reboot"),
            ("\n \r\n", "the host requires a reboot"),
            ("libc6\r\nlinux-image\nlibc6\n", "the host requires a reboot for libc6, linux-image"),
            ("a\u{1b}[2J\n", r"the host requires a reboot for a\u{1b}[2J"),
        ] {
            assert_eq!(reason(packages), expected);
        }
        let long = reason(&"x".repeat(1_000_000));
        assert!(long.ends_with("x…") && long.len() < MAX_PACKAGES + 100, "{long}");
        let many = reason(&(0..100_000).fold(String::new(), |all, number| format!("{all}p{number}\n")));
        assert!(many.contains("p0, p1, p10, ") && many.len() < MAX_PACKAGES + 100, "{many}");
    }

    #[tokio::test]
    async fn a_reboot_is_required_while_the_file_exists() {
        let machine = Machine::new();
        machine.set_boot(BOOT);
        let host = RebootRequired::new(machine.on_host(), machine.path("sentinel").display().to_string());
        let state = host.state().await.unwrap();
        assert_eq!((state.own_update, state.boot_id.as_str()), (OwnUpdate::None, BOOT));
        assert_eq!((state.booted, state.staged), (None, None));
        machine.write("sentinel", "*** System restart required ***\n");
        let required = |reason: &str| OwnUpdate::NeedsReboot(reason.to_owned());
        assert_eq!(host.state().await.unwrap().own_update, required("the host requires a reboot"));
        machine.write("sentinel.pkgs", "linux-base\n");
        let expected = required("the host requires a reboot for linux-base");
        assert_eq!(host.state().await.unwrap().own_update, expected);
        std::fs::remove_file(machine.path("sentinel")).unwrap();
        assert_eq!(host.state().await.unwrap().own_update, OwnUpdate::None);
    }

    #[tokio::test]
    async fn a_host_without_images_stages_none_and_reboots() {
        let machine = Machine::new();
        machine.program("systemctl", "");
        let host = RebootRequired::new(machine.on_host(), DEFAULT_SENTINEL.to_owned());
        let error = host.stage("quay.io/os/base:42").await.unwrap_err().to_string();
        assert_eq!(error, "the host has no images, so none can be staged");
        host.stop_staging().await.unwrap();
        host.reboot().await.unwrap();
        assert_eq!(machine.calls(), ["systemctl reboot"]);
        assert!(host.changed().now_or_never().is_none());
    }
}
