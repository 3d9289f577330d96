//! Changes of marked values between the versions of files.
//!
//! | file | contents |
//! |---|---|
//! | `marked_content` | the marked values of one content |
//! | `value_change` | the changes between two versions of several files |
//! | `returns` | changes in order, with those that restore an earlier value |

mod marked_content;
mod returns;
mod value_change;

pub use marked_content::{MarkedContent, MarkedValue, MarkerKey, is_file_name};
pub use returns::{Returning, Returns};
pub use value_change::{ChangeKind, FileVersions, Place, ValueChange, compare};
