//! From a tree of files and the images that policies have chosen to the edits, with an account of every marker.
//!
//! [`plan()`] walks a [`tree::FileTree`], looks for markers in each YAML file ([`scope`], [`marker`]), asks the
//! [`setter::Setters`] what each should say, and gives an [`UpdatePlan`]: the edits ([`edit`]), what they change
//! ([`result`]), what became of every marker ([`account`]), and which files could not be read. What is known of contents
//! from earlier runs stands in an [`index`]; [`own`] compares contents but for what is others' business. Nothing is
//! written here, and a [`Checkpoint`] can end it between two files.

pub mod account;
mod budget;
pub mod diff;
pub mod edit;
pub mod file;
pub mod index;
pub mod interrupt;
mod links;
pub mod marker;
mod markerless;
pub mod object;
pub mod own;
pub mod plan;
pub mod plan_error;
pub mod policy_name;
pub mod reach;
pub mod result;
pub mod scope;
pub mod setter;
pub mod tree;

pub use account::{MarkerOutcome, MarkerReport, NearMiss, ReadFailure, Severity, Unparsable};
pub use budget::{MAX_CHANGES, ReportedMarkers};
pub use edit::FileEdit;
pub use index::MarkerIndex;
pub use interrupt::{Checkpoint, Interrupt, Progress};
pub use marker::{Field, Marker};
pub use plan::{UpdatePlan, UpdateRequest, plan};
pub use plan_error::PlanError;
pub use policy_name::PolicyName;
pub use scope::{ScopeError, Skipped};

pub use result::{Change, ObjectIdentifier, ResultV2};
pub use setter::{Policy, Setters};
pub use tree::{ContentId, Descent, Entry, EntryKind, FileTree, TreeError, TreePath, TreeVisitor};
