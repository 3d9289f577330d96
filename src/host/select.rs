//! The kinds of hosts, and the choice of one.

use super::bootc_status::StatusError;
use super::{Bootc, CommandError, Host, HostError, OnHost, RebootRequired, UpdateEngine, system};

/// The kind of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostKind {
    /// The kind that applies.
    #[default]
    Auto,
    /// A host that boots images of bootc.
    Bootc,
    /// A host that updates itself by update-engine.
    UpdateEngine,
    /// A host that asks for a reboot by a file.
    RebootRequired,
}

/// The settings of a host.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// The kind.
    pub kind: HostKind,
    /// The builder of processes.
    pub on_host: OnHost,
    /// The address of the system bus of the host.
    pub dbus_address: String,
    /// The path on the host of the file that asks for a reboot.
    pub reboot_sentinel: String,
}

/// Returns the host of the kind; with [`HostKind::Auto`], of the first kind that applies.
///
/// # Errors
///
/// No kind applies, or a program failed. A later call may succeed: a file that asks for a reboot may appear.
pub async fn select(options: HostOptions) -> Result<Box<dyn Host>, HostError> {
    let HostOptions { kind, on_host, dbus_address, reboot_sentinel: sentinel } = options;
    let update_engine = UpdateEngine::new(on_host.clone(), dbus_address);
    let mut has_bootc = false;
    if kind == HostKind::Auto {
        let found = bootc_of(&on_host).await?;
        has_bootc = found != FoundBootc::Missing;
        if found == FoundBootc::Booted {
            return Ok(Box::new(Bootc::new(on_host)));
        }
    }
    let kind = match kind {
        HostKind::Auto if update_engine.is_running().await? => HostKind::UpdateEngine,
        HostKind::Auto if system::exists(&on_host, &sentinel).await? => HostKind::RebootRequired,
        kind => kind,
    };
    match kind {
        HostKind::Auto => Err(HostError::Unknown { has_bootc, sentinel }),
        HostKind::Bootc => Ok(Box::new(Bootc::new(on_host))),
        HostKind::UpdateEngine => Ok(Box::new(update_engine)),
        HostKind::RebootRequired => Ok(Box::new(RebootRequired::new(on_host, sentinel))),
    }
}

/// The state of bootc on a host.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FoundBootc {
    /// The program does not exist.
    Missing,
    /// The program exists, but the host is not booted from an image.
    NotBooted,
    /// The host is booted from an image.
    Booted,
}

/// Returns the state of bootc on the host.
///
/// Local changes, which keep bootc from updating it, do not count.
async fn bootc_of(on_host: &OnHost) -> Result<FoundBootc, HostError> {
    match Bootc::new(on_host.clone()).status().await {
        Ok(_) | Err(HostError::Status(StatusError::Incompatible(_))) => Ok(FoundBootc::Booted),
        Err(HostError::Command(CommandError::Missing { .. })) => Ok(FoundBootc::Missing),
        Err(HostError::Status(StatusError::NotBooted)) => Ok(FoundBootc::NotBooted),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{BOOT, Machine, bootc_status};
    use super::*;
    use crate::nodes::OwnUpdate;

    /// Selects a host; has it a booted image, and does it require a reboot?
    async fn selected(machine: &Machine, kind: HostKind) -> Result<(bool, bool), String> {
        let options = HostOptions {
            kind,
            on_host: machine.on_host(),
            dbus_address: format!("unix:path={}", machine.path("bus").display()),
            reboot_sentinel: machine.path("sentinel").display().to_string(),
        };
        let host = select(options).await.map_err(|error| error.to_string())?;
        let state = host.state().await.map_err(|error| error.to_string())?;
        Ok((state.booted.is_some(), state.own_update != OwnUpdate::None))
    }

    #[tokio::test]
    async fn bootc_comes_before_the_file_and_neither_is_an_error() {
        let machine = Machine::new();
        machine.set_boot(BOOT);
        let path = machine.path("sentinel").display().to_string();
        let rest = format!(
            "update-engine is not on its D-Bus, and {path} does not exist; if the host asks for reboots by that file, run the \
             agent with --host=reboot-required"
        );
        let missing = format!("bootc is missing on the host, {rest}");
        assert_eq!(selected(&machine, HostKind::Auto).await, Err(missing));
        machine.program("bootc", "cat $machine/status");
        machine.write("status", r#"{"apiVersion":"org.containers.bootc/v1","status":{"booted":null}}"#);
        let not_booted = format!("the host is not booted from an image of bootc, {rest}");
        assert_eq!(selected(&machine, HostKind::Auto).await, Err(not_booted));
        machine.write("sentinel", "");
        assert_eq!(selected(&machine, HostKind::Auto).await, Ok((false, true)));
        machine.write("status", bootc_status('1', None));
        assert_eq!(selected(&machine, HostKind::Auto).await, Ok((true, false)));
        machine.write("status", bootc_status('1', None).replace("false", "true"));
        let error = selected(&machine, HostKind::Auto).await.unwrap_err();
        assert!(error.starts_with("the booted image has local changes"), "{error}");
        // So does bootc print it: a host of bootc, and not one of the file.
        let changed = r#"{"booted": {"image": null, "incompatible": true}}"#;
        machine.write("status", format!(r#"{{"apiVersion":"org.containers.bootc/v1","status":{changed}}}"#));
        let error = selected(&machine, HostKind::Auto).await.unwrap_err();
        assert!(error.starts_with("the booted image has local changes"), "{error}");
        // It may be a host of bootc all the same.
        machine.write("status", "");
        let error = selected(&machine, HostKind::Auto).await.unwrap_err();
        assert!(error.starts_with("`bootc status` printed no JSON"), "{error}");
    }

    #[tokio::test]
    async fn a_given_kind_is_used_without_a_question() {
        let machine = Machine::new();
        machine.set_boot(BOOT);
        assert_eq!(selected(&machine, HostKind::RebootRequired).await, Ok((false, false)));
        assert_eq!(selected(&machine, HostKind::Bootc).await, Err("bootc is missing".to_owned()));
    }
}
