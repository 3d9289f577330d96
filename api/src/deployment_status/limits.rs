//! The maximum lengths of texts and lists.

/// The maximum number of components in a status.
pub const MAX_COMPONENTS: usize = 500;

/// The maximum number of entries in the history of a status.
pub const MAX_HISTORY: usize = 3;

/// The maximum length of a message, in characters.
pub const MAX_MESSAGE: usize = 300;

/// The maximum length of an error code, in characters.
pub const MAX_CODE: usize = 128;

/// The maximum length of any other text, in characters.
pub const MAX_TEXT: usize = 1024;
