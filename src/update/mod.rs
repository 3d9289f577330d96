//! Plans the edits of a file tree from policies' images, and reports every marker.
//!
//! [`plan()`] walks a [`tree::FileTree`], finds the markers in each YAML file, looks up their desired values in the
//! [`setter::Setters`], and gives an [`UpdatePlan`]. Nothing is written here, and a [`Checkpoint`] can interrupt a plan
//! between two files.
//!
//! | files | contents |
//! |---|---|
//! | `plan`, `error` | the loop over all files, and its errors |
//! | `scope`, `links`, `tree_limits` | the files below a path, with symbolic links resolved and bounded |
//! | `manifest_files` | the files of a tree that may be manifests |
//! | `file`, `object` | the markers of one file; the Kubernetes object that a value belongs to |
//! | `marker`, `setter` | the comment that marks a value, and the desired value |
//! | `report` | the outcome of every marker |
//! | `own_marker` | the markers of selected policies, for reports of rollouts |
//! | `edit`, `result`, `diff` | the edits, the changes that they make, and a unified diff |
//! | `division` | the edits of a plan, divided by groups of policies |
//! | `held_values`, `placed_marker` | the values that an update leaves as they are, and the places of marked values |
//! | `reverts` | marked values that others took back since the last run |
//! | `tree` | the interface to files |
//! | `marker_index`, `markerless` | the marker index by content, and directories without markers |
//! | `history` | changes of marked values between versions of files |
//! | `marker_values` | file contents without the values of some markers |
//! | `budget`, `interrupt` | limits of a plan in memory and time |

mod budget;
pub mod diff;
pub mod division;
pub mod edit;
mod error;
pub mod file;
mod held_values;
pub mod history;
pub mod interrupt;
mod links;
pub mod manifest_files;
pub mod marker;
pub mod marker_index;
pub mod marker_values;
mod markerless;
pub mod object;
pub mod own_marker;
mod placed_marker;
pub mod plan;
pub mod report;
pub mod result;
pub mod reverts;
mod scope;
pub mod setter;
pub mod tree;
pub mod tree_limits;

pub use budget::{MAX_CHANGES, ReportedMarkers};
pub use division::{PlanPart, divide, edits_in, have_values};
pub use edit::FileEdit;
pub use error::{PlanError, ScopeError};
pub use held_values::{FileHolds, HeldValues};
pub use interrupt::{Checkpoint, Interrupt, Progress};
pub use links::{SkipReason, Skipped};
pub use marker::{Field, Marker};
pub use marker_index::MarkerIndex;
pub use own_marker::{OwnMarker, OwnMarkerLimits, OwnMarkers};
pub use plan::{UpdatePlan, UpdateRequest, plan};
pub use report::{MarkerOutcome, MarkerReport, NearMiss, ReadError, Severity, Unparsable};
pub use result::{Change, ObjectIdentifier, ResultV2};
pub use setter::{PolicyState, Setters};
pub use tree::{ContentId, Entry, EntryKind, FileTree, TreeError, TreePath, TreeVisitor, WalkDecision};
