//! Watched objects: workloads, and the objects that decide about them.
//!
//! | file | contents |
//! |---|---|
//! | `group_kind` | the group and the kind of an object |
//! | `texts` | the texts in a value of any form |
//! | `watched_id` | the identity of an object in its cluster |
//! | `watched_object` | an object of any watched kind |
//! | `document` | the identity of a document that has a marker |
//! | `marks` | the appliers that own an object, by its labels and annotations |

mod document;
mod group_kind;
mod marks;
mod texts;
mod watched_id;
mod watched_object;

pub use document::{can_be_component, document};
pub use group_kind::GroupKind;
pub use marks::{Mark, marks, release};
pub use texts::has_text;
pub use watched_id::WatchedId;
pub use watched_object::WatchedObject;
