//! The D-Bus of the host: method calls and signals, with limits of time.
//!
//! A message is bounded by the bus: 32 MiB in the default configuration of `dbus-daemon` for the system.

use std::future::Future;
use std::io;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::time::timeout;
use zbus::{Connection, DynamicType, MatchRule, MessageStream, Type, connection, message};

use super::excerpt;

/// The default address of the bus, below the root of the process 1.
pub const DEFAULT_ADDRESS: &str = "unix:path=/proc/1/root/run/dbus/system_bus_socket";

/// The time limit of connecting, and of each call.
const LIMIT: Duration = Duration::from_secs(25);

/// The maximum length of an error's text, in bytes before it is escaped.
const MAX_REASON: usize = 1024;

/// The bus at an address.
#[derive(Clone, Debug)]
pub(super) struct Bus {
    address: String,
}

/// A method or a signal of an object on the bus.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// The name of the program on the bus.
    pub(super) destination: &'static str,
    pub(super) path: &'static str,
    pub(super) interface: &'static str,
    pub(super) name: &'static str,
}

/// The error of the bus, or of a program on it.
#[derive(Debug, Error)]
pub enum BusError {
    /// There is no socket at the address.
    #[error("there is no D-Bus at {address}")]
    Missing {
        /// The address of the bus.
        address: String,
    },
    /// The bus cannot be used.
    #[error("the D-Bus at {address} cannot be used: {reason}")]
    NotConnected {
        /// The address of the bus.
        address: String,
        /// The cause, printable.
        reason: String,
    },
    /// The bus or the program did not answer.
    #[error("{what} did not answer within {} s", limit.as_secs())]
    TimedOut {
        /// The bus, or the method.
        what: String,
        /// The time limit.
        limit: Duration,
    },
    /// A program refused a call, or does not run.
    #[error("{method} failed: {reason}")]
    Failed {
        /// The interface and the method.
        method: String,
        /// The cause, printable.
        reason: String,
    },
    /// An answer or a signal has other types than the interface.
    #[error("{method} has values of other types, \"{signature}\"")]
    Types {
        /// The interface and the method or signal.
        method: String,
        /// The types of the values (D-Bus specification, type system).
        signature: String,
    },
}

impl Bus {
    pub(super) fn new(address: String) -> Self {
        Self { address }
    }

    /// Returns `true` if a program has the name.
    pub(super) async fn has_owner(&self, name: &str) -> Result<bool, BusError> {
        let member = Member {
            destination: "org.freedesktop.DBus",
            path: "/org/freedesktop/DBus",
            interface: "org.freedesktop.DBus",
            name: "NameHasOwner",
        };
        self.call(member, &(name,)).await.map(|(has_owner,)| has_owner)
    }

    /// Calls a method by a connection of its own.
    pub(super) async fn call<Answer>(
        &self,
        member: Member,
        arguments: &(impl Serialize + DynamicType + Sync),
    ) -> Result<Answer, BusError>
    where
        Answer: DeserializeOwned + Type,
    {
        let connection = self.connect().await?;
        let Member { destination, path, interface, name } = member;
        let call = connection.call_method(Some(destination), path, Some(interface), name, arguments);
        let answer = limited(&member.to_string(), call)
            .await?
            .map_err(|error| BusError::Failed { method: member.to_string(), reason: printable(&error) })?;
        values(&answer, member)
    }

    /// Subscribes to a signal.
    pub(super) async fn signals(&self, member: Member) -> Result<MessageStream, BusError> {
        let Member { destination, path, interface, name } = member;
        let rule = MatchRule::builder().msg_type(message::Type::Signal).sender(destination);
        let rule = rule.path(path).interface(interface).member(name).build();
        let rule = rule.map_err(|error| self.not_connected(&error))?;
        let connection = self.connect().await?;
        let stream = MessageStream::for_match_rule(rule, &connection, None);
        limited(&member.to_string(), stream).await?.map_err(|error| self.not_connected(&error))
    }

    async fn connect(&self) -> Result<Connection, BusError> {
        let connection = connection::Builder::address(self.address.as_str()).build();
        let what = format!("the D-Bus at {}", self.address);
        limited(&what, connection).await?.map_err(|error| match &error {
            zbus::Error::Connection(cause, _) if cause.kind() == io::ErrorKind::NotFound => {
                BusError::Missing { address: self.address.clone() }
            }
            _ => self.not_connected(&error),
        })
    }

    fn not_connected(&self, error: &zbus::Error) -> BusError {
        let reason = match error {
            // Its own text repeats the address.
            zbus::Error::Connection(cause, _) => cause.to_string(),
            _ => printable(error),
        };
        BusError::NotConnected { address: self.address.clone(), reason }
    }
}

impl std::fmt::Display for Member {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{}", self.interface, self.name)
    }
}

/// Returns `true` if a text is the address of a bus.
pub(crate) fn is_address(text: &str) -> bool {
    text.parse::<zbus::Address>().is_ok()
}

/// Returns the values of an answer or a signal.
pub(super) fn values<Values>(message: &zbus::Message, member: Member) -> Result<Values, BusError>
where
    Values: DeserializeOwned + Type,
{
    let body = message.body();
    body.deserialize().map_err(|_| BusError::Types {
        method: member.to_string(),
        signature: excerpt::beginning(&body.signature().to_string(), MAX_REASON),
    })
}

async fn limited<Output>(what: &str, future: impl Future<Output = Output>) -> Result<Output, BusError> {
    timeout(LIMIT, future).await.map_err(|_| BusError::TimedOut { what: what.to_owned(), limit: LIMIT })
}

fn printable(error: &zbus::Error) -> String {
    excerpt::beginning(&error.to_string(), MAX_REASON)
}
