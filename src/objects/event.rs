//! Events of objects.

use sha2::{Digest, Sha256};

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
    /// Returns a digest of the event, because its message may be long.
    pub fn digest(&self) -> [u8; 32] {
        let type_ = match self.type_ {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
            EventType::Trace => "Trace",
        };
        let mut hash = Sha256::new();
        for text in [type_, &self.reason, &self.message] {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        }
        hash.finalize().into()
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
