//! The wait that an earlier run found, which holds while nothing changes.

use std::collections::BTreeMap;

use tagboat_api::ImageRef;
use tagboat_api::automation::ImageUpdateAutomationStatus;

use super::wait::Wait;
use crate::git::Known;
use crate::reconcile::conditions::{self, ConditionType};

/// A wait that an earlier run found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownWait {
    /// The wait, if values wait.
    ///
    /// A release group may be incomplete although none of its values would change.
    pub wait: Option<Wait>,
    /// The images that were wanted, by the name of their policy.
    pub policies: BTreeMap<String, ImageRef>,
    /// The revision that was checked out.
    pub revision: String,
}

/// The state of an automation before a run, as far as it concerns waiting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EarlierRun {
    /// True if the status has the condition `UpdatesWaiting`.
    pub reports_waiting: bool,
    /// The wait, if something waited and the wanted images are the same.
    pub wait: Option<Wait>,
}

impl EarlierRun {
    /// Compares the images that are wanted now with those of the last run.
    ///
    /// It also returns what is known for the writer: while something waits, the status does not have it.
    pub fn compare(
        status: Option<&ImageUpdateAutomationStatus>,
        known: Option<KnownWait>,
        policies: &BTreeMap<String, ImageRef>,
    ) -> (Self, Known) {
        let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
        let condition = conditions::find(conditions, ConditionType::UpdatesWaiting);
        let was_waiting = condition.is_some_and(|condition| condition.status == "True");
        let known = known.filter(|known| was_waiting == known.wait.is_some() && known.policies == *policies);
        let is_as_observed = status.is_some_and(|status| status.observed_policies == *policies);
        let for_writer = Known {
            is_unchanged: known.is_some() || (!was_waiting && is_as_observed),
            has_waited: known.as_ref().and_then(|known| known.wait.as_ref()).is_some_and(Wait::is_of_all),
            revision: match &known {
                Some(known) => Some(known.revision.clone()),
                None => status.and_then(|status| status.observed_source_revision.clone()),
            },
            observed: status.and_then(|status| status.observed_source_revision.clone()),
            pushed: status.and_then(|status| status.last_push_commit.clone()),
        };
        let wait = known.and_then(|known| known.wait);
        (Self { reports_waiting: condition.is_some(), wait }, for_writer)
    }
}

#[cfg(test)]
mod tests {
    use tagboat_api::Reason;

    use super::*;
    use crate::reconcile::automation::waiting::WaitReason;
    use crate::reconcile::conditions::{ConditionStatus, ConditionsBuilder};

    fn images(tag: &str) -> BTreeMap<String, ImageRef> {
        let image = ImageRef { name: "img".to_owned(), tag: tag.to_owned(), digest: None };
        BTreeMap::from([("app".to_owned(), image)])
    }

    /// A status that was written with the image `1`.
    fn status(waiting: Option<ConditionStatus>) -> ImageUpdateAutomationStatus {
        let mut builder = ConditionsBuilder::new(&[], 1);
        if let Some(status) = waiting {
            builder.set(ConditionType::UpdatesWaiting, status, Reason::ReleaseGroupIncomplete, "");
        }
        ImageUpdateAutomationStatus {
            observed_policies: images("1"),
            observed_source_revision: Some("observed".to_owned()),
            conditions: builder.build(&[], jiff::Timestamp::UNIX_EPOCH),
            ..Default::default()
        }
    }

    fn known(tag: &str, waits: bool) -> KnownWait {
        let wait = waits.then(|| Wait {
            reason: WaitReason::ReleaseGroupIncomplete,
            by: String::new(),
            until: None,
            policies: Vec::new(),
            values: 1,
            look_again: None,
            changes: None,
        });
        KnownWait { wait, policies: images(tag), revision: "known".to_owned() }
    }

    #[test]
    fn files_are_read_again_unless_the_wanted_images_are_known() {
        use ConditionStatus::{False, True};
        for (waiting, earlier, wanted, expected) in [
            (None, None, "1", (true, "observed")),
            (None, None, "2", (false, "observed")),
            (Some(False), None, "1", (true, "observed")),
            // A restart has lost what waits.
            (Some(True), None, "1", (false, "observed")),
            (Some(True), Some(known("2", true)), "2", (true, "known")),
            (Some(True), Some(known("2", true)), "3", (false, "observed")),
            // A release group is incomplete, and no value of it would change.
            (Some(False), Some(known("2", false)), "2", (true, "known")),
            (Some(False), Some(known("2", false)), "3", (false, "observed")),
            // The status is of another wait.
            (Some(True), Some(known("2", false)), "2", (false, "observed")),
            (Some(False), Some(known("2", true)), "2", (false, "observed")),
        ] {
            let (run, writer) = EarlierRun::compare(Some(&status(waiting)), earlier.clone(), &images(wanted));
            let found = (writer.is_unchanged, writer.revision.as_deref().unwrap_or_default());
            assert_eq!(found, expected, "{waiting:?} {earlier:?} {wanted}");
            assert_eq!(run.reports_waiting, waiting.is_some());
            assert_eq!(run.wait.is_some(), expected == (true, "known") && waiting == Some(True));
        }
    }
}
