//! What is announced of an object.

use sha2::{Digest, Sha256};

/// An event about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// How much it matters.
    pub type_: EventType,
    /// What happened, in one word.
    pub reason: String,
    /// What happened.
    pub message: String,
}

impl Event {
    /// A digest of what it says, for its message may be long.
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

/// How much an event matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// It is worth a notification.
    Normal,
    /// Something is wrong.
    Warning,
    /// It is only recorded, as a normal event; nobody is notified.
    Trace,
}
