//! The images that were deployed: a fold over the components that Tagboat observed becoming installed.
//!
//! Each installed component is a record: the time at which its rollout ended ([`last_deployed`]). The history is a
//! function of the records and of the previous history, so nothing is counted twice, and a crash between two writes
//! changes nothing:
//!
//! - An entry is the image of a digest; without a digest, that of a tag.
//! - `objectCount` is the number of its records, and never falls. So it is the largest number of objects at the same
//!   time, not the number of rollouts: after a rollback to an image that three objects had, it is 3, not 6.
//! - `lastDeployed` is the time of the newest record, and never falls. `version` and `commit` are those of that time.
//! - An entry without records stays as it was. The three last entries are kept.
//!
//! A workload that ran before Tagboat observed it is no record: Tagboat did not observe a deployment. Neither is a
//! component that becomes installed again with the same image after a failure, a restart or an outage: its status says
//! since when the rollout of the image is complete, also in other states.
//!
//! If a marker does not write the digest, the digest of a record is not in the object. Such a record belongs to the
//! entry of its tag under which it was counted first, also after the tag has moved to another digest.

#[cfg(test)]
mod tests;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tagboat_api::deployment_status::{BlockReason, CommitRef, ComponentStatus, HistoryEntry, State, Target};

use super::records::Records;

/// The identity of an entry.
#[derive(PartialEq, Eq)]
enum Key<'e> {
    Digest(&'e str),
    Version(Option<&'e str>),
}

fn key(entry: &HistoryEntry) -> Key<'_> {
    match &entry.digest {
        Some(digest) => Key::Digest(digest),
        None => Key::Version(entry.version.as_deref()),
    }
}

/// Returns the history after an observation of all components.
///
/// The last image that was deployed is the first entry. `commit` is that of the target.
#[must_use]
pub fn fold(
    previous: &[HistoryEntry],
    target: Option<&Target>,
    commit: Option<&CommitRef>,
    components: &[ComponentStatus],
) -> Vec<HistoryEntry> {
    let mut history = Records::new(previous);
    let installed = components.iter().filter(|component| component.state == State::Installed);
    let records = installed.filter_map(|component| component.last_deployed.as_ref());
    for (target, time) in target.iter().flat_map(|target| records.clone().map(move |time| (target, time))) {
        let index = match counted_before(previous, target, time) {
            Some(index) => index,
            None => history.entry(new_entry(target, time), |entry, new| key(entry) == key(new)),
        };
        if let Some(entry) = history.add(index, time) {
            entry.version = Some(target.tag.clone());
            entry.commit = commit.map(|commit| commit.id.clone()).or(entry.commit.take());
        }
    }
    history.finish(|entry| {
        target.is_some_and(|target| match (&entry.digest, &target.digest) {
            (Some(digest), Some(wanted)) => digest == wanted,
            _ => entry.version.as_ref() == Some(&target.tag),
        })
    })
}

/// Returns the entry under which a record was counted before.
///
/// It is the oldest entry of the tag that is not older than the record.
fn counted_before(previous: &[HistoryEntry], target: &Target, time: &Time) -> Option<usize> {
    let entries = previous.iter().enumerate();
    let counted = entries
        .filter(|(_, entry)| entry.version.as_ref() == Some(&target.tag) && entry.last_deployed >= *time);
    counted.min_by_key(|(_, entry)| &entry.last_deployed).map(|(index, _)| index)
}

/// Returns an entry of the target without records.
fn new_entry(target: &Target, time: &Time) -> HistoryEntry {
    HistoryEntry {
        digest: target.digest().map(str::to_owned),
        version: Some(target.tag.clone()),
        object_count: 0,
        last_deployed: time.clone(),
        commit: None,
    }
}

/// Returns the `lastDeployed` of a component from its previous status.
///
/// `current` has the state, the image, and in `since` the beginning of the state, which for an installed component is
/// the end of the rollout as the object reports it. The end of a rollout counts that began since the previous status,
/// or was in progress then. A component about which nothing was known before ran before, unless its rollout ended later.
#[must_use]
pub fn last_deployed(previous: Option<&ComponentStatus>, current: &ComponentStatus) -> Option<Time> {
    let previous = previous?;
    let is_same = is_same_rollout(previous, current);
    let ran_before = is_unknown(previous) && current.since < previous.since;
    match current.state {
        State::Installed if is_same && complete_since(previous).is_some() => previous.last_deployed.clone(),
        State::Installed if ran_before => previous.last_deployed.clone(),
        State::Installed => Some(current.since.clone()),
        State::Installing | State::Failed if !is_same => None,
        // The object keeps the image that was deployed, or is gone.
        State::Installing | State::Failed | State::Pending | State::Removing | State::Removed => {
            previous.last_deployed.clone()
        }
    }
}

/// Returns true if it is not known whether the component has an object.
///
/// The objects are still to be listed, or no image is selected by which they are found.
#[must_use]
pub fn is_unknown(component: &ComponentStatus) -> bool {
    let is_undecided = matches!(component.reason, None | Some(BlockReason::NotChosen));
    component.state == State::Pending && is_undecided && component.image.is_none()
}

/// Returns the time since which the rollout of a component's image is complete.
#[must_use]
pub fn complete_since(component: &ComponentStatus) -> Option<&Time> {
    match component.state {
        State::Installed => Some(&component.since),
        _ => component.complete_since.as_ref(),
    }
}

/// Returns the `completeSince` of a component from its previous status.
///
/// The rollout of an image stays complete while pods fail, an object is restarted, or its cluster does not answer.
/// `current` has the time if the component is observed for the first time.
#[must_use]
pub fn continued_complete_since(
    previous: Option<&ComponentStatus>,
    current: &ComponentStatus,
) -> Option<Time> {
    match previous {
        _ if current.state == State::Installed => None,
        Some(previous) if is_same_rollout(previous, current) => complete_since(previous).cloned(),
        Some(_) => None,
        None => current.complete_since.clone(),
    }
}

/// Returns true if a component has the rollout of its previous status.
///
/// An object that lacked the wanted image, and has it now with the same text, begins another rollout: its digest may be
/// in an annotation.
fn is_same_rollout(previous: &ComponentStatus, current: &ComponentStatus) -> bool {
    let lacks =
        |component: &ComponentStatus| component.reason.is_some_and(|reason| reason != BlockReason::NotChosen);
    let is_unsettled = matches!(current.state, State::Installing | State::Failed);
    let begins = is_unsettled && lacks(previous) && !lacks(current);
    previous.image == current.image && !begins
}
