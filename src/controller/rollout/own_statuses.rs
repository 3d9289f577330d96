//! The last status of each object that this process has read first, or written.
//!
//! The next status is computed from them. A status that another client has changed is replaced by it, so a change by
//! another client leaves nothing behind.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use kube::ResourceExt;
use parking_lot::Mutex;
use tagboat_api::deployment_status::DeploymentStatusStatus;
use tagboat_api::{DeploymentStatus, ObjectName};

use crate::rollout::future::without_future;

/// The statuses of this process.
#[derive(Debug, Default)]
pub(super) struct OwnStatuses {
    known: Mutex<HashMap<ObjectName, OwnStatus>>,
}

#[derive(Debug, Default)]
struct OwnStatus {
    /// The time before the last write was sent; none before the first.
    written: Option<Instant>,
    /// The object as the API server stored it; none while a write is in flight.
    ///
    /// The API server drops fields that an older CRD lacks, so this can differ from what was sent.
    object: Option<Arc<DeploymentStatus>>,
    /// The write that is in flight, or has failed.
    write: Option<Write>,
}

/// A write of a status whose end is not known.
#[derive(Debug)]
struct Write {
    /// The object before.
    before: Arc<DeploymentStatus>,
    sent: DeploymentStatusStatus,
}

impl OwnStatuses {
    /// Returns an object with its own status.
    ///
    /// The first status that the process sees counts as its own, with its future times replaced by `now`. After a write
    /// that failed, it is the one before, unless the API server has stored what was sent.
    pub(super) fn of(&self, object: &Arc<DeploymentStatus>, now: Timestamp) -> Arc<DeploymentStatus> {
        let mut known = self.known.lock();
        let own = known.entry(ObjectName::of(object.as_ref())).or_default();
        let failed = own.write.take().filter(|write| object.status.as_ref() != Some(&write.sent));
        let kept = own.object.take().or_else(|| failed.map(|write| write.before));
        let kept = kept.filter(|kept| kept.uid() == object.uid());
        let kept = match kept {
            // The cache has the new object, so the memory is shared with it.
            Some(kept) if kept.status == object.status => object.clone(),
            Some(kept) => kept,
            None => first_seen(object, now),
        };
        own.object.insert(kept).clone()
    }

    /// Returns an object with its own status, if that is known.
    pub(super) fn of_known(&self, object: Arc<DeploymentStatus>) -> Arc<DeploymentStatus> {
        let known = self.known.lock();
        let own = known.get(&ObjectName::of(object.as_ref())).and_then(|own| own.object.clone());
        own.filter(|own| own.uid() == object.uid()).unwrap_or(object)
    }

    /// Returns `true` if another client has changed the status of an object to this one.
    ///
    /// A status that is seen before the first one, or during a write, is not another client's.
    pub(super) fn is_foreign(&self, name: &ObjectName, status: Option<&DeploymentStatusStatus>) -> bool {
        let known = self.known.lock();
        let own = known.get(name).and_then(|own| own.object.as_ref());
        own.is_some_and(|own| own.status.as_ref() != status)
    }

    /// Returns the time of the last write of an object.
    pub(super) fn last_write(&self, name: &ObjectName) -> Option<Instant> {
        self.known.lock().get(name)?.written
    }

    /// Notes a write of labels.
    pub(super) fn write_labels(&self, name: &ObjectName, now: Instant) {
        self.known.lock().entry(name.clone()).or_default().written = Some(now);
    }

    /// Notes the beginning of a write of a status.
    pub(super) fn begin_write(&self, name: &ObjectName, sent: &DeploymentStatusStatus, now: Instant) {
        let mut known = self.known.lock();
        let own = known.entry(name.clone()).or_default();
        own.written = Some(now);
        own.write = own.object.take().map(|before| Write { before, sent: sent.clone() });
    }

    /// Notes the end of a write with the object that the API server stored.
    pub(super) fn end_write(&self, object: Arc<DeploymentStatus>) {
        let name = ObjectName::of(object.as_ref());
        let mut known = self.known.lock();
        let own = known.entry(name).or_default();
        (own.object, own.write) = (Some(object), None);
    }

    /// Forgets a deleted object.
    pub(super) fn forget(&self, name: &ObjectName) {
        self.known.lock().remove(name);
    }

    /// Forgets all objects.
    pub(super) fn clear(&self) {
        self.known.lock().clear();
    }
}

/// Returns an object as it counts when it is seen first.
fn first_seen(object: &Arc<DeploymentStatus>, now: Timestamp) -> Arc<DeploymentStatus> {
    let status = object.status.as_ref().map(|status| without_future(status, now));
    if status == object.status {
        return object.clone();
    }
    Arc::new(DeploymentStatus { status, ..object.as_ref().clone() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SINCE: &str = "2026-01-01T00:00:00Z";

    /// Returns an object with a uid, and the `since` and the message of its status.
    fn object(uid: &str, since: &str, message: &str) -> Arc<DeploymentStatus> {
        let object = json!({
            "apiVersion": "tagboat.dev/v1alpha1", "kind": "DeploymentStatus",
            "metadata": {"name": "app", "namespace": "n", "uid": uid}, "spec": {"policyRef": {"name": "app"}},
            "status": {
                "deploymentId": "1", "timeStamp": SINCE, "state": "installed", "progress": "", "since": since,
                "summary": {}, "message": message,
            },
        });
        Arc::new(serde_json::from_value(object).unwrap())
    }

    fn now() -> Timestamp {
        "2026-01-02T00:00:00.5Z".parse().unwrap()
    }

    #[test]
    fn a_status_that_another_client_has_changed_is_not_the_own_one() {
        let (statuses, first) = (OwnStatuses::default(), object("1", SINCE, "first"));
        let name = ObjectName::of(first.as_ref());
        let is_foreign = |object: &DeploymentStatus| statuses.is_foreign(&name, object.status.as_ref());
        let edited = object("1", "2026-01-01T12:00:00Z", "edited");
        assert!(!is_foreign(&edited), "nothing was seen before");
        assert_eq!(statuses.of_known(first.clone()), first);

        assert_eq!(statuses.of(&first, now()), first);
        assert!(is_foreign(&edited) && !is_foreign(&first));
        assert_eq!((statuses.of(&edited, now()), statuses.of_known(edited.clone())), (first.clone(), first));

        // The watch can be ahead of the answer.
        let (begin, written) = (Instant::now(), object("1", SINCE, "written"));
        statuses.begin_write(&name, written.status.as_ref().unwrap(), begin);
        assert!(!is_foreign(&written) && !is_foreign(&edited));
        statuses.end_write(written.clone());
        assert_eq!(statuses.last_write(&name), Some(begin));
        assert!(is_foreign(&edited) && !is_foreign(&written));
        assert_eq!(statuses.of(&edited, now()), written);

        let other = object("2", SINCE, "other");
        assert_eq!(statuses.of_known(other.clone()), other, "it has the name of a deleted object");
        assert_eq!(statuses.of(&other, now()), other);
        statuses.forget(&name);
        assert_eq!((is_foreign(&written), statuses.last_write(&name)), (false, None));
    }

    /// Formerly, the status of the API server counted as the own one.
    #[test]
    fn after_a_failed_write_the_status_before_counts_unless_the_sent_one_was_stored() {
        let (first, written) = (object("1", SINCE, "first"), object("1", SINCE, "written"));
        let edited = object("1", "2026-01-01T12:00:00Z", "edited");
        let name = ObjectName::of(first.as_ref());
        for (stored, expected) in [(&edited, &first), (&first, &first), (&written, &written)] {
            let statuses = OwnStatuses::default();
            statuses.of(&first, now());
            statuses.begin_write(&name, written.status.as_ref().unwrap(), Instant::now());
            assert_eq!(statuses.of(stored, now()), *expected);
            assert_eq!(statuses.of(&edited, now()), *expected, "it stays so");
        }
        let statuses = OwnStatuses::default();
        statuses.of(&first, now());
        statuses.begin_write(&name, written.status.as_ref().unwrap(), Instant::now());
        let other = object("2", SINCE, "other");
        assert_eq!(statuses.of(&other, now()), other, "it was deleted and made again");
    }

    /// Formerly, it stayed until the state changed.
    #[test]
    fn a_time_in_the_future_is_replaced_when_the_status_is_seen_first() {
        let (statuses, stored) = (OwnStatuses::default(), object("1", "2099-01-01T00:00:00Z", ""));
        let own = statuses.of(&stored, now());
        assert_eq!(own, object("1", "2026-01-02T00:00:00Z", ""));
        assert_eq!(statuses.of(&stored, now()), own);
    }
}
