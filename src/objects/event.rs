//! Events of objects.

use crate::secrets::Fingerprint;

/// An event of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its severity.
    pub type_: EventType,
    /// The reason, in one word.
    pub reason: String,
    /// The message.
    pub message: String,
}

impl Event {
    /// Returns the fingerprint of the event, because its message may be long.
    pub fn fingerprint(&self) -> Fingerprint {
        let type_ = match self.type_ {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
            EventType::Trace => "Trace",
        };
        Fingerprint::of([type_, &self.reason, &self.message])
    }
}

/// The severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// Worth a notification.
    Normal,
    /// A problem.
    Warning,
    /// Only recorded, as a normal event; no notification is sent.
    Trace,
}
