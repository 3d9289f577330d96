//! The errors that end a controller.

/// The error that ended a controller, which no signal had stopped.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControllerError {
    /// Another process is the leader, or may be.
    #[error("the leadership is lost: {message}")]
    LeadershipLost {
        /// The reason.
        message: String,
    },
    /// The API server refuses the label selector of the objects to reconcile.
    #[error("--watch-label-selector {selector:?} cannot be used: {refusal}")]
    SelectorRefused {
        /// The selector, as it was given.
        selector: String,
        /// The message of the API server.
        refusal: String,
    },
}
