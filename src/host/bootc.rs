//! Hosts that boot images of bootc.

use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt};

use super::bootc_status::{self, BootcStatus};
use super::command::SHORT;
use super::{CommandError, Host, HostError, HostState, OnHost, excerpt, system};
use crate::nodes::OwnUpdate;
use crate::reference::ReferenceParts;

/// The transient unit in which bootc stages an image, so that it survives the agent.
const UNIT: &str = "tagboat-stage";

/// The time limit of a staging, which downloads an image.
const STAGE_LIMIT: Duration = Duration::from_secs(60 * 60);

/// The time limit of stopping a unit; systemd kills it after 90 s by default.
const STOP_LIMIT: Duration = Duration::from_secs(120);

/// The exit status of `systemctl stop` for a unit that is not loaded.
const NOT_LOADED: i32 = 5;

/// The maximum length of a reference in an error, in bytes.
const MAX_REFERENCE: usize = 256;

/// A host whose images bootc stages.
#[derive(Clone, Debug)]
pub struct Bootc {
    on_host: OnHost,
}

impl Bootc {
    /// Creates the host.
    #[must_use]
    pub fn new(on_host: OnHost) -> Self {
        Self { on_host }
    }

    /// Returns the images of the host.
    pub(super) async fn status(&self) -> Result<BootcStatus, HostError> {
        let output = self.on_host.run(SHORT, "bootc", &["status", "--json", "--format-version", "1"]).await?;
        Ok(bootc_status::parse(&output)?)
    }

    /// Runs `bootc switch` in its unit; it succeeds if there is nothing to do.
    async fn switch(&self, image: &str) -> Result<(), CommandError> {
        let unit = format!("--unit={UNIT}");
        let arguments = ["--wait", "--collect", &unit, "bootc", "switch", image];
        let begin = Instant::now();
        match self.on_host.run(STAGE_LIMIT, "systemd-run", &arguments).await {
            Err(CommandError::Failed { line, status, output }) => {
                let output = self.journal(begin.elapsed()).await.unwrap_or(output);
                Err(CommandError::Failed { line, status, output })
            }
            result => result.map(drop),
        }
    }

    /// Returns the end of the output of the unit, which does not reach `systemd-run`.
    ///
    /// Earlier lines are those of an earlier run.
    async fn journal(&self, age: Duration) -> Option<String> {
        let (since, unit) = (format!("--since=-{}s", age.as_secs() + 1), format!("--unit={UNIT}"));
        let arguments = ["--quiet", "--output=cat", "--lines=20", &since, &unit];
        let output = self.on_host.run(SHORT, "journalctl", &arguments).await.ok()?;
        Some(excerpt::end(&output)).filter(|text| !text.is_empty())
    }

    async fn stop_unit(&self) -> Result<(), CommandError> {
        match self.on_host.run(STOP_LIMIT, "systemctl", &["stop", &format!("{UNIT}.service")]).await {
            Err(error) if error.exit_code() == Some(NOT_LOADED) => Ok(()),
            result => result.map(drop),
        }
    }
}

impl Host for Bootc {
    /// An image that the host staged by itself is a reason for a reboot.
    fn state(&self) -> BoxFuture<'_, Result<HostState, HostError>> {
        async {
            let BootcStatus { booted, version, staged } = self.status().await?;
            let own_update = match &staged {
                Some(staged) if staged.digest != booted.digest => {
                    OwnUpdate::NeedsReboot(format!("{} is staged", staged.digest))
                }
                _ => OwnUpdate::None,
            };
            let boot_id = system::boot_id(&self.on_host).await?;
            let replaceable = Some(booted.digest.clone());
            Ok(HostState { booted: Some(booted), staged, version, own_update, replaceable, boot_id })
        }
        .boxed()
    }

    fn stage<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<(), HostError>> {
        async {
            let image = image_to_switch_to(reference).ok_or_else(|| HostError::Reference {
                reference: excerpt::beginning(reference, MAX_REFERENCE),
            })?;
            self.stop_unit().await?;
            Ok(self.switch(&image).await?)
        }
        .boxed()
    }

    fn stop_staging(&self) -> BoxFuture<'_, Result<(), HostError>> {
        async { Ok(self.stop_unit().await?) }.boxed()
    }

    fn reboot(&self) -> BoxFuture<'_, Result<(), HostError>> {
        async { Ok(system::reboot(&self.on_host).await?) }.boxed()
    }
}

/// Returns the argument of `bootc switch` for a reference: `NAME@DIGEST`, or `NAME:TAG` without a digest.
///
/// bootc refuses a reference with both. All parts are checked, because the reference comes from an annotation:
/// `systemd-run` would expand `$`, and an option begins with `-`.
fn image_to_switch_to(reference: &str) -> Option<String> {
    let ReferenceParts { name, tag, digest } = ReferenceParts::parse(reference).ok()?;
    let name = name.to_string();
    match (digest, tag) {
        _ if name.starts_with('-') => None,
        (Some(digest), _) => Some(format!("{name}@{digest}")),
        (None, Some(tag)) => Some(format!("{name}:{tag}")),
        (None, None) => Some(name),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{BOOT, Machine, bootc_status, digest, wait_until};
    use super::*;

    const STOP: &str = "systemctl stop tagboat-stage.service";
    const SWITCH: &str = "systemd-run --wait --collect --unit=tagboat-stage bootc switch";
    const JOURNAL: &str = "journalctl --quiet --output=cat --lines=20 --since=-";

    /// Returns a machine without a running unit, and its host.
    fn machine() -> (Machine, Bootc) {
        let machine = Machine::new();
        machine.set_boot(BOOT);
        machine.program("systemctl", "echo 'Unit tagboat-stage.service not loaded.' >&2; exit 5");
        machine.program("systemd-run", "").program("journalctl", "");
        let host = Bootc::new(machine.on_host());
        (machine, host)
    }

    #[test]
    fn references_of_registries_are_switched_to_and_no_others() {
        let wanted = digest('a');
        for (reference, expected) in [
            ("quay.io/os/base:42".to_owned(), Some("quay.io/os/base:42".to_owned())),
            ("quay.io/os/base".to_owned(), Some("quay.io/os/base".to_owned())),
            ("host:5000/os/base".to_owned(), Some("host:5000/os/base".to_owned())),
            (format!("host:5000/os/base:42@{wanted}"), Some(format!("host:5000/os/base@{wanted}"))),
            (format!("quay.io/os/base@{wanted}"), Some(format!("quay.io/os/base@{wanted}"))),
            (format!("quay.io/os/base@{wanted}0"), None),
            (format!("quay.io/os/base@{wanted}@{wanted}"), None),
            ("quay.io/os/base@".to_owned(), None),
            ("quay.io/os/base:".to_owned(), None),
            ("--transport=oci".to_owned(), None),
            ("-a.b/os/base:42".to_owned(), None),
            ("quay.io/os/$HOME:42".to_owned(), None),
            ("quay.io/os/base:${HOME}".to_owned(), None),
            ("quay.io/os/base 42".to_owned(), None),
            ("oci:///var/os".to_owned(), None),
            ("containers-storage://base:42".to_owned(), None),
            ("containers-storage://localhost:5000/os/base:42".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(image_to_switch_to(&reference), expected, "{reference}");
        }
    }

    #[tokio::test]
    async fn the_state_has_the_images_the_version_and_the_boot() {
        let (machine, host) = machine();
        machine.program("bootc", "cat $machine/status");
        machine.write("status", bootc_status('1', None));
        let state = host.state().await.unwrap();
        assert_eq!((state.boot_id.as_str(), state.version.as_deref()), (BOOT, Some("42.1")));
        assert_eq!((state.booted.unwrap().digest, state.staged), (digest('1'), None));
        assert_eq!(state.own_update, OwnUpdate::None);
        assert_eq!(machine.calls()[0], "bootc status --json --format-version 1");
        machine.write("status", bootc_status('1', Some('2')));
        let state = host.state().await.unwrap();
        assert_eq!(state.staged.unwrap().digest, digest('2'));
        assert_eq!(state.own_update, OwnUpdate::NeedsReboot(format!("{} is staged", digest('2'))));
        machine.write("status", bootc_status('1', Some('1')));
        assert_eq!(host.state().await.unwrap().own_update, OwnUpdate::None);
    }

    #[tokio::test]
    async fn a_status_that_is_not_usable_is_an_error_of_one_sentence() {
        let (machine, host) = machine();
        let error = host.state().await.unwrap_err().to_string();
        assert_eq!(error, "bootc is missing");
        for (script, expected) in [
            ("echo 'error: must be root' >&2; exit 1", "failed, exit status: 1: error: must be root"),
            ("echo no", "`bootc status` printed no JSON: expected ident at line 1 column 2"),
            ("yes", "printed more than 1024 KiB: "),
        ] {
            machine.program("bootc", script);
            let error = host.state().await.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[tokio::test]
    async fn an_image_is_staged_in_a_unit_after_the_one_before_has_ended() {
        let (machine, host) = machine();
        let reference = format!("quay.io/os/base:42@{}", digest('a'));
        let switch = format!("{SWITCH} quay.io/os/base@{}", digest('a'));
        host.stage(&reference).await.unwrap();
        assert_eq!(machine.calls(), [STOP, &switch]);
        // A unit was running, and bootc has nothing to do.
        machine.program("systemctl", "").program("systemd-run", "echo 'Image specification is unchanged.'");
        host.stage(&reference).await.unwrap();
        assert_eq!(machine.calls()[2..], [STOP, &switch]);
    }

    #[tokio::test]
    async fn nothing_is_staged_while_another_unit_cannot_be_stopped_or_without_a_valid_reference() {
        let (machine, host) = machine();
        let error = host.stage("--retain\u{1b}").await.unwrap_err().to_string();
        assert!(error.ends_with("is not a reference of an image in a registry"), "{error}");
        assert!(!error.contains('\u{1b}') && machine.calls().is_empty(), "{error}");
        machine.program("systemctl", "echo 'Failed to stop' >&2; exit 1");
        let error = host.stage("quay.io/os/base:42").await.unwrap_err().to_string();
        assert_eq!(error, format!("`{STOP}` failed, exit status: 1: Failed to stop"));
        assert_eq!(machine.calls(), [STOP]);
    }

    /// `systemd-run` prints the exit status only.
    #[tokio::test]
    async fn a_failed_staging_has_the_last_words_of_bootc() {
        let (machine, host) = machine();
        let error =
            |expected: &str| format!("`{SWITCH} quay.io/os/base:42` failed, exit status: 1: {expected}");
        machine.program("systemd-run", "echo 'Finished with result: exit-code' >&2; exit 1");
        let result = host.stage("quay.io/os/base:42").await;
        assert_eq!(result.unwrap_err().to_string(), error("Finished with result: exit-code"));
        machine.program("journalctl", r"printf 'error: no \033space\n'");
        let result = host.stage("quay.io/os/base:42").await;
        assert_eq!(result.unwrap_err().to_string(), error(r"error: no \u{1b}space"));
        let call = machine.calls()[5].clone();
        assert!(call.starts_with(JOURNAL) && call.ends_with("s --unit=tagboat-stage"), "{call}");
        machine.program("journalctl", "exit 1");
        let result = host.stage("quay.io/os/base:42").await;
        assert_eq!(result.unwrap_err().to_string(), error("Finished with result: exit-code"));
    }

    #[tokio::test]
    async fn a_new_target_stops_the_unit_of_the_one_before() {
        let (machine, host) = machine();
        machine.program("systemd-run", "exec sleep 600");
        tokio::select! {
            result = host.stage("quay.io/os/base:42") => panic!("{result:?}"),
            () = wait_until(|| machine.calls().len() == 2) => {}
        }
        machine.program("systemd-run", "");
        host.stage("quay.io/os/base:43").await.unwrap();
        let switches = ["42", "43"].map(|tag| format!("{SWITCH} quay.io/os/base:{tag}"));
        assert_eq!(machine.calls(), [STOP, &switches[0], STOP, &switches[1]]);
        // The new target is the booted image.
        host.stop_staging().await.unwrap();
        assert_eq!(machine.calls()[4..], [STOP]);
    }

    #[tokio::test]
    async fn a_reboot_asks_systemd() {
        let (machine, host) = machine();
        machine.program("systemctl", "");
        host.reboot().await.unwrap();
        assert_eq!(machine.calls(), ["systemctl reboot"]);
        assert!(host.changed().now_or_never().is_none());
    }
}
