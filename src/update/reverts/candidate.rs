//! The values that would be overwritten, and are not those of the baseline's images.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tagboat_api::ObjectName;
use tagboat_api::settings::OnRevert;

use crate::reference::ImageReference;
use crate::update::error::PlanError;
use crate::update::interrupt::{Checkpoint, Progress};
use crate::update::marker::Marker;
use crate::update::placed_marker::{Place, PlacedMarker, placed_markers};
use crate::update::plan::{UpdatePlan, UpdateRequest};
use crate::update::result::Change;
use crate::update::tree::{FileTree, TreePath};

/// The last run, and the treatment of what was taken back since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevertQuery {
    /// The treatment.
    pub mode: OnRevert,
    /// The images that the last run wanted.
    pub images: BTreeMap<ObjectName, ImageReference>,
    /// The policies whose values the last run held.
    pub held: HeldBefore,
    /// Policies whose values are written in any case.
    pub exempt: BTreeSet<ObjectName>,
}

/// The policies whose values the last run held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldBefore {
    /// These.
    Policies(BTreeSet<ObjectName>),
    /// Any policy: there were too many to be named.
    Any,
}

impl Default for HeldBefore {
    fn default() -> Self {
        Self::Policies(BTreeSet::new())
    }
}

impl HeldBefore {
    /// Returns true if values of a policy were held.
    pub fn has(&self, policy: &ObjectName) -> bool {
        match self {
            Self::Policies(policies) => policies.contains(policy),
            Self::Any => true,
        }
    }
}

/// A value that would be overwritten, and is not that of the baseline's image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The file.
    pub path: TreePath,
    /// Its name in results.
    pub file: Arc<str>,
    /// The line of the comment, counted from 1.
    pub line: usize,
    /// The setter as written.
    pub setter: String,
    /// The policy.
    pub policy: ObjectName,
    /// The present value.
    pub value: String,
    /// The value of the baseline's image.
    pub(super) then: String,
    pub(super) place: Place,
    /// True if the wanted image is the baseline's.
    pub has_same_image: bool,
    /// True if the baseline has a reverted value already.
    pub was_reverted_before: bool,
}

impl RevertQuery {
    /// Returns the value of the baseline's image, if the marker may be reverted.
    ///
    /// `wanted` is the image that the policy has now.
    fn then(&self, marker: &Marker, value: &str, wanted: &ImageReference) -> Option<String> {
        let old = self.images.get(&marker.policy).filter(|_| !self.exempt.contains(&marker.policy))?;
        let then = marker.field.value_in(old)?;
        // A pause goes on even where the former image is back.
        let is_as_before = value == then && !self.held.has(&marker.policy);
        let is_over = self.mode == OnRevert::Hold && old != wanted;
        let is_wanted = marker.field.value_in(wanted).as_deref() == Some(value);
        (!is_as_before && !is_over && !is_wanted).then_some(then)
    }
}

/// The size of a candidate without its texts, in bytes.
const CANDIDATE_BYTES: usize = 512;

/// Returns the values that a plan changes and that may be reverted.
///
/// If there is none, the tree of the baseline is not needed. Only files with one are read.
///
/// # Errors
///
/// If they take more memory than the plan has left, or `checkpoint` returns an error.
pub fn candidates(
    tree: &dyn FileTree,
    plan: &UpdatePlan,
    request: &UpdateRequest,
    query: &RevertQuery,
    checkpoint: &mut Checkpoint<'_>,
) -> Result<Vec<Candidate>, PlanError> {
    let images: BTreeMap<_, _> = request.setters.images().collect();
    let then = |marker: &Marker, value: &str| query.then(marker, value, images.get(&marker.policy)?);
    let is_suspect = |change: &Change| then(&Marker::of_setter(&change.setter), &change.old_value).is_some();
    let (mut found, mut content, mut bytes) = (Vec::new(), Vec::new(), 0);
    for edit in &plan.edits {
        checkpoint(Progress::default())?;
        let changes = plan.result.file_changes.get(&edit.key);
        if !changes.is_some_and(|changes| changes.values().flatten().any(is_suspect))
            || tree.read(&edit.entry, request.limits.file_size, &mut content).is_err()
        {
            continue;
        }
        let placed =
            placed_markers(&content, &request.limits, &|marker| request.setters.value(marker).is_ok());
        for PlacedMarker { marker, place, value, line } in placed.unwrap_or_default() {
            let Some(then) = then(&marker, &value) else { continue };
            let has_same_image = query.images.get(&marker.policy) == images.get(&marker.policy).copied();
            // Files with the same content share what the plan says of them, but not these values. They are copied for the
            // decision and for reports.
            bytes += 4 * (CANDIDATE_BYTES + edit.entry.path.as_bytes().len() + value.len() + then.len());
            if bytes > plan.remaining_bytes {
                return Err(PlanError::TooLarge { limit: plan.remaining_bytes });
            }
            found.push(Candidate {
                path: edit.entry.path.clone(),
                file: Arc::clone(&edit.key),
                line,
                setter: marker.setter,
                policy: marker.policy,
                value,
                then,
                place,
                has_same_image,
                was_reverted_before: false,
            });
        }
    }
    Ok(found)
}
