//! The places of an automation's markers, found while its commit is proposed.
//!
//! Places are those of the revision from which the automation reads, because appliers read it as well. If the commit is
//! made on another branch, the markers of both trees are compared: a value that differs awaits its merge.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use tagboat_api::ObjectName;
use tagboat_api::deployment_status::CommitRef;

use super::conclusion::Conclusion;
use crate::git::checkout::Revision;
use crate::git::outcome::{Outcome, Target};
use crate::git::{BranchName, CommitId};
use crate::reconcile::conditions::whole_seconds;
use crate::reference::ImageReference;
use crate::rollout::place::{MAX_PLACES, Place, ScannedPlaces, Written};
use crate::update::{
    Checkpoint, Field, FileTree, MarkerIndex, ObjectIdentifier, OwnMarker, OwnMarkerLimits, OwnMarkers,
    TreeError, TreePath, UpdateRequest, plan,
};

/// The maximum memory of the places of an automation, in bytes.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// The maximum memory of the places that a batch finds, in bytes.
///
/// Unlike other parts of a plan, places are kept until the commit is pushed.
const MAX_BATCH_BYTES: usize = 16 * 1024 * 1024;

/// The maximum number of removed files of a scan.
const MAX_REMOVED_FILES: usize = MAX_PLACES;

/// The scan for the places of an automation.
#[derive(Clone, Debug)]
pub struct PlaceScan {
    origin: ScanOrigin,
    limits: OwnMarkerLimits,
    /// The observed revision, unless it is unknown.
    source: Option<ObservedSource>,
    /// The markers of the tree on which the commit is made.
    found: Option<OwnMarkers>,
    removed_files: Vec<String>,
}

/// The origin of a scan, and the state from before it.
#[derive(Clone, Debug)]
pub struct ScanOrigin {
    /// The automation.
    pub automation: ObjectName,
    /// The GitRepository.
    pub source: ObjectName,
    /// The URL of the git repository, without user info.
    pub repository: String,
    /// The reference that is checked out, and the push branch.
    pub target: Target,
    /// The previous scan, if it is known.
    pub previous: Option<Arc<ScannedPlaces>>,
    /// The images of the policies in the last run that was reported.
    pub observed: BTreeMap<ObjectName, ImageReference>,
    /// Files whose removal is reported, besides those of the previous scan.
    pub known_files: BTreeSet<String>,
    /// The number of automations that are reconciled together.
    pub batch_size: usize,
}

/// The revision that is checked out.
#[derive(Clone, Debug)]
struct ObservedSource {
    revision: Revision,
    /// The markers of its tree, if the commit is made on another one.
    markers: Option<OwnMarkers>,
}

/// The key of a marker that stays the same when lines are added above it.
///
/// Markers of one document with the same key are told apart by their order.
type MarkerKey<'m> = (&'m str, &'m ObjectName, &'m ObjectIdentifier, Field);

impl PlaceScan {
    /// Creates a scan that has found nothing yet.
    #[must_use]
    pub fn new(origin: ScanOrigin) -> Self {
        let bytes = MAX_BYTES.min(MAX_BATCH_BYTES / origin.batch_size.max(1));
        let limits = OwnMarkerLimits { count: MAX_PLACES, bytes };
        Self { origin, limits, source: None, found: None, removed_files: Vec::new() }
    }

    /// Returns the limits of the list that a plan makes for this scan.
    #[must_use]
    pub fn limits(&self) -> OwnMarkerLimits {
        self.limits
    }

    /// Observes the revision that is checked out.
    ///
    /// `tree` is its tree if the commit is made on another one. If it has nothing at the path, the scan has found no
    /// marker. If it cannot be scanned, there are no places.
    pub fn observe_source(
        &mut self,
        revision: &Revision,
        tree: Option<&dyn FileTree>,
        update: &UpdateRequest,
        index: &mut MarkerIndex,
        checkpoint: &mut Checkpoint<'_>,
    ) {
        (self.source, self.found, self.removed_files) = (None, None, Vec::new());
        let request = UpdateRequest { own_markers: Some(self.limits), ..update.clone() };
        let markers = match tree.map(|tree| plan(tree, &request, index, checkpoint)) {
            None => None,
            Some(Ok(plan)) => Some(plan.own_markers),
            Some(Err(error)) if error.is_missing_path() => Some(OwnMarkers::default()),
            Some(Err(_)) => return,
        };
        if let (Some(tree), Some(markers)) = (tree, &markers) {
            self.removed_files = self.removed_files(tree, markers);
        }
        self.source = Some(ObservedSource { revision: revision.clone(), markers });
    }

    /// Keeps the markers of the tree on which the commit is made.
    pub fn keep(&mut self, markers: OwnMarkers, tree: &dyn FileTree) {
        if self.source.as_ref().is_some_and(|source| source.markers.is_none()) {
            self.removed_files = self.removed_files(tree, &markers);
        }
        self.found = Some(markers);
    }

    /// Forgets the markers of an earlier attempt.
    pub fn reset(&mut self) {
        self.found = None;
    }

    /// Returns the files that have no place any more and are not in the tree.
    fn removed_files(&self, tree: &dyn FileTree, markers: &OwnMarkers) -> Vec<String> {
        let ScanOrigin { previous, known_files, repository, .. } = &self.origin;
        let (known_files, scanned) = match previous {
            // Files of another repository are not removed.
            Some(previous) if previous.repository != *repository => return Vec::new(),
            previous => (known_files, previous.iter().flat_map(|previous| &previous.places)),
        };
        let present: BTreeSet<&str> = markers.markers.iter().map(|marker| marker.file.as_str()).collect();
        let candidates = known_files.iter().chain(scanned.map(|place| &place.file));
        let candidates: BTreeSet<&String> =
            candidates.filter(|file| !present.contains(file.as_str())).collect();
        let is_removed = |file: &&String| {
            // A path with other bytes than UTF-8 cannot be looked up by its text.
            !file.contains('\\')
                && matches!(
                    tree.kind(&TreePath::from_bytes(file.as_bytes())),
                    Err(TreeError::NotFound { .. })
                )
        };
        candidates.into_iter().filter(is_removed).take(MAX_REMOVED_FILES).cloned().collect()
    }

    /// Returns the places after a run, or `None` if the run ended before its scan.
    ///
    /// `proposed` has the policies whose values are on a branch of the automation's own, and `now` is the time of the push.
    #[must_use]
    pub fn finish(
        self,
        conclusion: &Conclusion,
        proposed: &ProposedPolicies,
        now: Timestamp,
    ) -> Option<ScannedPlaces> {
        let Self { origin, source, found, removed_files, .. } = self;
        let target = &origin.target;
        let push = match conclusion {
            Conclusion::Success { outcome: Outcome::NothingNew | Outcome::DryRun { .. }, .. } => return None,
            Conclusion::Success { outcome: Outcome::Pushed(push), .. } => Some(push),
            Conclusion::Success {
                outcome: Outcome::NothingToCommit { .. } | Outcome::Branches { .. } | Outcome::Waiting { .. },
                ..
            }
            | Conclusion::Stall(_)
            | Conclusion::Failure(_) => None,
        };
        let (ObservedSource { revision, markers: of_source }, found) = (source?, found?);
        let checkout = target.checkout.branch();
        let has_own_branches = target.own_branches.is_some();
        let is_same_branch =
            of_source.is_none() && !has_own_branches && checkout.as_ref() == Some(&target.push);
        let omitted = of_source.as_ref().map_or(found.omitted, |markers| markers.omitted);
        let is_pushed = push.is_some();
        let place = |marker: OwnMarker| {
            let is_pushed = is_pushed || proposed.contains_key(&marker.policy);
            ScannedPlace::of(marker, is_pushed, is_same_branch)
        };
        let mut places: Vec<ScannedPlace> = match of_source {
            None => found.markers.into_iter().map(place).collect(),
            Some(of_source) => {
                // The commit is on another branch, so nothing changes here.
                let unchanged = |marker| ScannedPlace::of(marker, false, is_same_branch);
                let mut places: Vec<_> = of_source.markers.into_iter().map(unchanged).collect();
                compare(&mut places, &found, is_pushed);
                places
            }
        };
        let commit = |commit: String, branch: String| CommitRef {
            id: commit,
            branch,
            time: whole_seconds(now),
            automation: origin.automation.name.clone(),
        };
        let pushed = push.map(|push| commit(push.commit.to_string(), push.branch.to_string()));
        let commit_of = |policy: &ObjectName| {
            let own = proposed.get(policy);
            let own = own.and_then(|own| Some(commit(own.commit?.to_string(), own.branch.to_string())));
            own.or_else(|| pushed.clone())
        };
        attribute(&mut places, &origin, &commit_of);
        let revision = push.filter(|_| is_same_branch).map_or(revision.clone(), |push| {
            let pushed = Revision { reference: revision.reference, commit: push.commit };
            push.found.clone().unwrap_or(pushed)
        });
        let mut scan = ScannedPlaces {
            automation: origin.automation,
            source: origin.source,
            repository: origin.repository,
            revision: revision.to_string(),
            checkout: checkout.map(|branch| branch.to_string()),
            push: proposed.values().next().map_or(&target.push, |own| &own.branch).to_string(),
            places: places.into_iter().map(|scanned| scanned.place).collect(),
            omitted,
            removed_files,
        };
        scan.sort();
        Some(scan)
    }
}

/// The policies whose values are on a branch of the automation's own.
pub type ProposedPolicies = BTreeMap<ObjectName, ProposedPolicy>;

/// The branch of the automation's own that has the value of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposedPolicy {
    /// The branch.
    pub branch: BranchName,
    /// The commit, if this run reports it.
    pub commit: Option<CommitId>,
}

/// A place, with the change that this run has pushed.
struct ScannedPlace {
    place: Place,
    /// The value before the change, if there is one.
    former: Option<String>,
}

impl ScannedPlace {
    /// Makes the place of a marker in the tree on which the commit is made.
    fn of(marker: OwnMarker, is_pushed: bool, is_same_branch: bool) -> Self {
        let OwnMarker { file, line, object, policy, field, pointer, value, new_value } = marker;
        let pushed = new_value.filter(|_| is_pushed);
        let former = pushed.is_some().then(|| value.clone());
        let (value, proposed) = match pushed {
            Some(pushed) if is_same_branch => (pushed, None),
            pushed => (value, pushed),
        };
        let (document, written) = (object, None);
        let place = Place { policy, document, file, line, field, pointer, value, proposed, written };
        Self { place, former }
    }
}

/// Sets the values on the push branch.
fn compare(places: &mut [ScannedPlace], found: &OwnMarkers, is_pushed: bool) {
    let mut found =
        by_key(&found.markers, |marker| (&marker.file, &marker.policy, &marker.object, marker.field));
    for ScannedPlace { place, former } in places {
        let key = (&*place.file, &place.policy, &place.document, place.field);
        let Some(marker) = found.get_mut(&key).and_then(VecDeque::pop_front) else { continue };
        let pushed = marker.new_value.as_ref().filter(|_| is_pushed);
        *former = pushed.map(|_| marker.value.clone());
        let committed = pushed.unwrap_or(&marker.value);
        place.proposed = (*committed != place.value).then(|| committed.clone());
    }
}

/// Sets the commits that wrote the values.
///
/// A place with an unchanged value keeps its commit. If the push is one of an earlier run, it has made all changes since
/// the previous scan. In a new process, which knows no scan, these are the changes since the last run that was reported.
fn attribute(
    places: &mut [ScannedPlace],
    origin: &ScanOrigin,
    commit_of: &dyn Fn(&ObjectName) -> Option<CommitRef>,
) {
    let is_of_earlier_run = places.iter().all(|scanned| scanned.former.is_none());
    let mut previous = by_key(origin.previous.as_ref().map_or(&[], |previous| &previous.places), |place| {
        (&place.file, &place.policy, &place.document, place.field)
    });
    for ScannedPlace { place, former } in places {
        let key = (&*place.file, &place.policy, &place.document, place.field);
        let before = previous.get_mut(&key).and_then(VecDeque::pop_front);
        let value = place.committed_value();
        let kept = before.filter(|before| before.committed_value() == value);
        let kept = kept.and_then(|before| before.written.clone());
        let known = || match (before, &origin.previous) {
            (Some(before), _) => Some(before.committed_value().to_owned()),
            (None, Some(_)) => None,
            (None, None) => place.field.value_in(origin.observed.get(&place.policy)?),
        };
        let former = former.take();
        let former =
            former.or_else(|| known().filter(|known| is_of_earlier_run && known != place.committed_value()));
        place.written = match (commit_of(&place.policy), former) {
            (Some(commit), Some(former)) => Some(Written { former, commit }),
            _ => kept,
        };
    }
}

/// Groups items by the keys of their markers.
fn by_key<'m, T>(
    items: &'m [T],
    key: impl Fn(&'m T) -> MarkerKey<'m>,
) -> HashMap<MarkerKey<'m>, VecDeque<&'m T>> {
    let mut groups: HashMap<MarkerKey<'m>, VecDeque<&'m T>> = HashMap::new();
    for item in items {
        groups.entry(key(item)).or_default().push_back(item);
    }
    groups
}

#[cfg(test)]
mod tests;
