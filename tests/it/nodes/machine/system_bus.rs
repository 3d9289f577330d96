//! A real D-Bus daemon, with update-engine and logind as a host with Flatcar has them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use tokio::task::JoinHandle;
use zbus::{Connection, MessageStream, connection, message};

use crate::support::eventually::eventually_found;
use crate::support::process_reaper::ProcessReaper;

/// The names on the bus.
const NAMES: [&str; 2] = ["com.coreos.update1", "org.freedesktop.login1"];

/// The values of a status: last check, progress, operation, version, size.
type Status = (i64, f64, String, String, i64);

/// The answer of update-engine to `GetStatus`.
#[derive(Clone)]
pub(crate) enum Answer {
    Status(&'static str, &'static str),
    OtherTypes,
    Error(&'static str),
    Nothing,
}

/// A bus on which update-engine and logind answer.
pub(crate) struct SystemBus {
    path: PathBuf,
    daemon: Option<ProcessReaper>,
    connection: Connection,
    services: Arc<Mutex<Services>>,
    work: JoinHandle<()>,
}

struct Services {
    answer: Answer,
    /// The arguments of the calls of `Reboot`.
    reboots: Vec<bool>,
    on_reboot: Box<dyn Fn() + Send>,
}

impl SystemBus {
    /// Starts a bus with its socket at a path; update-engine is idle.
    pub(crate) async fn start(path: &Path) -> Self {
        let bus = Self::start_without_services(path).await;
        for name in NAMES {
            bus.connection.request_name(name).await.unwrap();
        }
        bus
    }

    /// Starts a bus on which no program has a name.
    pub(crate) async fn start_without_services(path: &Path) -> Self {
        let _there_is_none = fs::remove_file(path);
        let configuration = path.with_extension("conf");
        let content = format!(
            r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:path={}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy>
</busconfig>"#,
            path.display()
        );
        fs::write(&configuration, content).unwrap();
        let mut command = Command::new("dbus-daemon");
        command.arg("--nofork").arg(format!("--config-file={}", configuration.display()));
        let daemon = Some(ProcessReaper::start(&command).unwrap());
        let address = format!("unix:path={}", path.display());
        let connection = eventually_found("the bus answers", async || {
            connection::Builder::address(address.as_str()).build().await.ok()
        })
        .await;
        let services = Arc::new(Mutex::new(Services {
            answer: Answer::Status("IDLE", "0.0.0"),
            reboots: Vec::new(),
            on_reboot: Box::new(|| {}),
        }));
        let work = tokio::spawn(serve(connection.clone(), Arc::clone(&services)));
        Self { path: path.to_owned(), daemon, connection, services, work }
    }

    /// The address of the bus.
    pub(crate) fn address(&self) -> String {
        format!("unix:path={}", self.path.display())
    }

    /// Sets what a call of `Reboot` does.
    pub(crate) fn on_reboot(&self, action: impl Fn() + Send + 'static) {
        self.services.lock().unwrap().on_reboot = Box::new(action);
    }

    /// Sets the answer of update-engine, without a signal.
    pub(crate) fn answer(&self, answer: Answer) {
        self.services.lock().unwrap().answer = answer;
    }

    /// Changes the status of update-engine, with a signal.
    pub(crate) async fn set(&self, operation: &'static str, version: &'static str) {
        self.answer(Answer::Status(operation, version));
        self.signal(&status(operation, version)).await;
    }

    /// Emits the signal `StatusUpdate`.
    pub(crate) async fn signal(&self, values: &(impl serde::Serialize + zbus::DynamicType)) {
        let (path, interface) = ("/com/coreos/update1", "com.coreos.update1.Manager");
        let signal = self.connection.emit_signal(None::<&str>, path, interface, "StatusUpdate", values);
        signal.await.unwrap();
    }

    /// The arguments of the calls of `Reboot`.
    pub(crate) fn reboots(&self) -> Vec<bool> {
        self.services.lock().unwrap().reboots.clone()
    }

    /// Kills the bus.
    pub(crate) fn kill(&mut self) {
        self.daemon = None;
    }
}

impl Drop for SystemBus {
    fn drop(&mut self) {
        self.work.abort();
    }
}

/// Returns the values of a status.
pub(crate) fn status(operation: &str, version: &str) -> Status {
    (1_700_000_000, 0.5, format!("UPDATE_STATUS_{operation}"), version.to_owned(), 1_000)
}

/// Answers the calls of methods.
async fn serve(connection: Connection, services: Arc<Mutex<Services>>) {
    let mut messages = MessageStream::from(&connection);
    while let Some(Ok(message)) = messages.next().await {
        if message.message_type() != message::Type::MethodCall {
            continue;
        }
        let header = message.header();
        match header.member().map(|member| member.as_str().to_owned()).as_deref() {
            Some("GetStatus") => {
                let answer = services.lock().unwrap().answer.clone();
                match answer {
                    Answer::Status(operation, version) => {
                        connection.reply(&header, &status(operation, version)).await.unwrap();
                    }
                    Answer::OtherTypes => {
                        connection.reply(&header, &("UPDATE_STATUS_IDLE", 1_u32)).await.unwrap();
                    }
                    Answer::Error(text) => {
                        let name = "com.coreos.update1.Error";
                        connection.reply_error(&header, name, &text).await.unwrap();
                    }
                    Answer::Nothing => {}
                }
            }
            Some("Reboot") => {
                let (is_interactive,): (bool,) = message.body().deserialize().unwrap();
                connection.reply(&header, &()).await.unwrap();
                let mut services = services.lock().unwrap();
                services.reboots.push(is_interactive);
                // The update is booted.
                services.answer = Answer::Status("IDLE", "0.0.0");
                (services.on_reboot)();
            }
            member => panic!("{member:?} is called"),
        }
    }
}
