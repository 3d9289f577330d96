//! What is announced of an object.

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
