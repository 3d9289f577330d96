//! Hosts that update themselves by update-engine, as Flatcar does.

use std::sync::Arc;

use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt, pending};
use tokio::sync::Mutex;
use zbus::MessageStream;

use super::bus::{self, Bus, BusError, Member};
use super::{Host, HostError, HostState, OnHost, excerpt, system};
use crate::nodes::OwnUpdate;

/// The name of update-engine on the bus.
const NAME: &str = "com.coreos.update1";

const GET_STATUS: Member = Member {
    destination: NAME,
    path: "/com/coreos/update1",
    interface: "com.coreos.update1.Manager",
    name: "GetStatus",
};

const STATUS_UPDATE: Member = Member { name: "StatusUpdate", ..GET_STATUS };

const REBOOT: Member = Member {
    destination: "org.freedesktop.login1",
    path: "/org/freedesktop/login1",
    interface: "org.freedesktop.login1.Manager",
    name: "Reboot",
};

/// The maximum length of a version or a status, in bytes before it is escaped.
const MAX_TEXT: usize = 128;

/// The values of `GetStatus` and of `StatusUpdate`.
///
/// They are: the last check, the progress, the operation, the new version, and its size.
type Status = (i64, f64, String, String, i64);

/// A host with update-engine, which stages updates by itself.
#[derive(Clone, Debug)]
pub struct UpdateEngine {
    on_host: OnHost,
    bus: Bus,
    notices: Arc<Mutex<Notices>>,
}

/// The signals of update-engine.
#[derive(Debug, Default)]
struct Notices {
    stream: Option<MessageStream>,
    /// The operation that was read or announced last.
    operation: String,
}

impl UpdateEngine {
    /// Creates the host; the address is that of its system bus.
    #[must_use]
    pub fn new(on_host: OnHost, address: String) -> Self {
        Self { on_host, bus: Bus::new(address), notices: Arc::default() }
    }

    /// Returns `true` if update-engine runs; a host without a bus has none.
    pub(super) async fn is_running(&self) -> Result<bool, BusError> {
        match self.bus.has_owner(NAME).await {
            Err(BusError::Missing { .. }) => Ok(false),
            result => result,
        }
    }

    /// Waits for a signal with another operation; progress is no news.
    ///
    /// A new subscription counts as a notice, because the operation may have changed before it. So does its end. If
    /// the bus cannot be subscribed to, this never ends: the next reading reports the error.
    async fn notice(&self) {
        let mut notices = self.notices.lock().await;
        let Notices { stream, operation } = &mut *notices;
        let Some(signals) = stream else {
            match self.bus.signals(STATUS_UPDATE).await {
                Ok(signals) => *stream = Some(signals),
                Err(error) => {
                    tracing::debug!("{error}");
                    pending::<()>().await;
                }
            }
            return;
        };
        while let Some(Ok(signal)) = signals.next().await {
            match bus::values::<Status>(&signal, STATUS_UPDATE) {
                Ok((_, _, announced, _, _)) if announced == *operation => {}
                Ok((_, _, announced, _, _)) => {
                    *operation = announced;
                    return;
                }
                Err(error) => {
                    // The next reading reports its like, if the status has other types as well.
                    tracing::debug!("{error}");
                    return;
                }
            }
        }
        *stream = None;
    }
}

impl Host for UpdateEngine {
    fn state(&self) -> BoxFuture<'_, Result<HostState, HostError>> {
        async {
            let (_, _, operation, version, _): Status = self.bus.call(GET_STATUS, &()).await?;
            let own_update = own_update(&operation, &version)?;
            self.notices.lock().await.operation = operation;
            let version = system::version(&self.on_host).await?;
            Ok(HostState {
                own_update,
                replaceable: version.clone(),
                version,
                boot_id: system::boot_id(&self.on_host).await?,
                ..HostState::default()
            })
        }
        .boxed()
    }

    /// Asks logind, without a question to users at the console.
    fn reboot(&self) -> BoxFuture<'_, Result<(), HostError>> {
        async { Ok(self.bus.call(REBOOT, &(false,)).await?) }.boxed()
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        self.notice().boxed()
    }
}

/// Returns the state of the update for an operation of update-engine (its file `update_status.h`).
fn own_update(operation: &str, version: &str) -> Result<OwnUpdate, HostError> {
    match operation.strip_prefix("UPDATE_STATUS_") {
        // Where updates are disabled, there is none.
        Some("IDLE" | "DISABLED") => Ok(OwnUpdate::None),
        Some(
            "CHECKING_FOR_UPDATE"
            | "UPDATE_AVAILABLE"
            | "DOWNLOADING"
            | "VERIFYING"
            | "FINALIZING"
            | "ATTEMPTING_ROLLBACK",
        ) => Ok(OwnUpdate::Staging),
        Some("UPDATED_NEED_REBOOT") => Ok(OwnUpdate::NeedsReboot(reason(version))),
        Some("REPORTING_ERROR_EVENT") => Err(HostError::UpdateFailed),
        _ => Err(HostError::UpdateStatus { status: excerpt::beginning(operation, MAX_TEXT) }),
    }
}

/// Returns the reason of a reboot for users.
fn reason(version: &str) -> String {
    match version.trim() {
        "" | "0.0.0" | "0.0.0.0" => "update-engine requires a reboot".to_owned(),
        version => format!("version {} is staged", excerpt::beginning(version, MAX_TEXT)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_is_a_state_of_the_update() {
        for (operation, expected) in [
            ("IDLE", Ok(OwnUpdate::None)),
            ("DISABLED", Ok(OwnUpdate::None)),
            ("CHECKING_FOR_UPDATE", Ok(OwnUpdate::Staging)),
            ("UPDATE_AVAILABLE", Ok(OwnUpdate::Staging)),
            ("DOWNLOADING", Ok(OwnUpdate::Staging)),
            ("VERIFYING", Ok(OwnUpdate::Staging)),
            ("FINALIZING", Ok(OwnUpdate::Staging)),
            ("ATTEMPTING_ROLLBACK", Ok(OwnUpdate::Staging)),
            ("UPDATED_NEED_REBOOT", Ok(OwnUpdate::NeedsReboot("version 4230.2.1 is staged".to_owned()))),
            ("REPORTING_ERROR_EVENT", Err("update-engine reports that its update failed")),
            ("REST", Err(r#"update-engine reports an unknown status, "UPDATE_STATUS_REST""#)),
        ] {
            let state = own_update(&format!("UPDATE_STATUS_{operation}"), "4230.2.1");
            assert_eq!(state.map_err(|error| error.to_string()), expected.map_err(str::to_owned));
        }
        for (operation, shown) in [("", ""), ("IDLE", "IDLE"), ("a\u{1b}[2J", r"a\u{1b}[2J")] {
            let error = own_update(operation, "").unwrap_err().to_string();
            assert_eq!(error, format!("update-engine reports an unknown status, \"{shown}\""));
        }
    }

    #[test]
    fn a_version_is_printable_and_may_be_missing() {
        for (version, expected) in [
            ("4230.2.1", "version 4230.2.1 is staged"),
            ("", "update-engine requires a reboot"),
            ("0.0.0", "update-engine requires a reboot"),
            ("1\n2", r"version 1\n2 is staged"),
        ] {
            assert_eq!(reason(version), expected);
        }
        assert!(reason(&"1".repeat(1_000_000)).len() < 200);
    }
}
