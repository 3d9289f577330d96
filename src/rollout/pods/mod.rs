//! The errors of the pods that have the wanted image, before any deadline expires.
//!
//! | file | contents |
//! |---|---|
//! | `container` | one container → its failure |
//! | `list` | a list of pods → the failure of their component |
//! | `kept` | a list of pods → those that decide its report |

mod container;
mod kept;
mod list;
#[cfg(test)]
mod testing;

pub use container::waiting;
pub use kept::most_informative;
pub use list::{LastList, PodList, PodReport, UNAVAILABLE, has_any, is_code, none_created, report};
