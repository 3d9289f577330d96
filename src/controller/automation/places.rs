//! The places of all automations, as of their last scans.
//!
//! Reconciles put the scans in; the rollout controller reads them by policy, and tells which files its previous
//! statuses name, so that the next scan tells which of them are gone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::objects::ObjectName;
use crate::rollout::place::ScannedPlaces;
use crate::tenancy::FairCache;

/// The maximum memory of all places, in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The places of all automations; clones share them.
///
/// Until [`turn_on`](Self::turn_on), none are kept, and scans do not look for any.
#[derive(Clone, Debug, Default)]
pub struct Places {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// `None` while it is off.
    known: Mutex<Option<Known>>,
    changed: Notify,
}

#[derive(Debug)]
struct Known {
    /// The last scan of each automation.
    scans: FairCache<ObjectName, Arc<ScannedPlaces>>,
    /// The automations that have places of a policy.
    automations: HashMap<ObjectName, BTreeSet<ObjectName>>,
    /// The files that the status of each policy names.
    files: BTreeMap<ObjectName, BTreeSet<KnownFile>>,
    /// The policies with changes that were not taken yet.
    changed: BTreeSet<ObjectName>,
    /// The policies whose changes were taken, and are being handled.
    taken: BTreeSet<ObjectName>,
}

/// A file that a previous status names as the place of a component.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KnownFile {
    /// The name of the automation, in the namespace of the policy.
    pub automation: String,
    /// The file, relative to the root of the repository.
    pub file: String,
}

impl Places {
    /// Begins to keep places.
    pub fn turn_on(&self) {
        self.shared.known.lock().get_or_insert_with(Known::new);
    }

    /// Forgets all places, and keeps none any more.
    pub fn turn_off(&self) {
        *self.shared.known.lock() = None;
    }

    /// Returns true if places are kept.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.shared.known.lock().is_some()
    }

    /// Returns true if an automation was scanned since places are kept.
    #[must_use]
    pub fn is_known(&self, automation: &ObjectName) -> bool {
        self.of_automation(automation).is_some()
    }

    /// Returns the last scan of an automation.
    #[must_use]
    pub fn of_automation(&self, automation: &ObjectName) -> Option<Arc<ScannedPlaces>> {
        self.shared.known.lock().as_mut()?.scans.get(automation).cloned()
    }

    /// Returns the scans that have places of a policy, in the order of automations.
    #[must_use]
    pub fn of_policy(&self, policy: &ObjectName) -> Vec<Arc<ScannedPlaces>> {
        let mut known = self.shared.known.lock();
        let Some(Known { scans, automations, .. }) = known.as_mut() else { return Vec::new() };
        let automations = automations.get(policy).into_iter().flatten();
        automations.filter_map(|automation| scans.get(automation).cloned()).collect()
    }

    /// Returns the policies that have places.
    #[must_use]
    pub fn policies(&self) -> BTreeSet<ObjectName> {
        let known = self.shared.known.lock();
        known.as_ref().map(|known| known.automations.keys().cloned().collect()).unwrap_or_default()
    }

    /// Returns true if a policy has places.
    #[must_use]
    pub fn has_policy(&self, policy: &ObjectName) -> bool {
        self.shared.known.lock().as_ref().is_some_and(|known| known.automations.contains_key(policy))
    }

    /// Waits for changes, and takes the policies that are affected since the last call.
    ///
    /// [`handled`](Self::handled) must follow. A policy is affected if its places or the revision of their scan changed.
    /// After the first scan of an automation, all policies of its namespace with known files are affected as well.
    pub async fn changed(&self) -> BTreeSet<ObjectName> {
        loop {
            let changed = self.shared.known.lock().as_mut().map(Known::take_changed);
            match changed {
                Some(changed) if !changed.is_empty() => return changed,
                _ => self.shared.changed.notified().await,
            }
        }
    }

    /// Records that all taken changes are handled.
    pub fn handled(&self) {
        self.shared.known.lock().iter_mut().for_each(|known| known.taken.clear());
    }

    /// Returns true if the last change of a policy is handled.
    ///
    /// Until then, its places can lead to objects that are not watched yet.
    #[must_use]
    pub fn is_settled(&self, policy: &ObjectName) -> bool {
        let known = self.shared.known.lock();
        known
            .as_ref()
            .is_none_or(|known| ![&known.changed, &known.taken].iter().any(|set| set.contains(policy)))
    }

    /// Sets the files that the status of a policy names; `None` without a status.
    pub fn set_known_files(&self, policy: &ObjectName, files: Option<BTreeSet<KnownFile>>) {
        let mut known = self.shared.known.lock();
        let Some(known) = known.as_mut() else { return };
        match files {
            Some(files) => known.files.insert(policy.clone(), files),
            None => known.files.remove(policy),
        };
    }

    /// Returns the files of an automation that statuses name.
    pub(super) fn known_files(&self, automation: &ObjectName) -> BTreeSet<String> {
        let known = self.shared.known.lock();
        let Some(known) = known.as_ref() else { return BTreeSet::new() };
        let files = known.known_files(&automation.namespace).flat_map(|(_, files)| files);
        let files = files.filter(|known| known.automation == automation.name);
        files.map(|known| known.file.clone()).collect()
    }

    /// Keeps the scan of an automation instead of the previous one.
    pub(super) fn put(&self, scan: ScannedPlaces) {
        let mut known = self.shared.known.lock();
        let Some(known) = known.as_mut() else { return };
        known.put(scan);
        self.shared.changed.notify_one();
    }

    /// Forgets a deleted automation.
    pub(super) fn forget(&self, automation: &ObjectName) {
        let mut known = self.shared.known.lock();
        let Some(known) = known.as_mut() else { return };
        if let Some(scan) = known.scans.remove(automation) {
            known.remove_policies(&scan);
            known.changed.extend(scan.policies().cloned());
            self.shared.changed.notify_one();
        }
    }
}

impl Known {
    fn new() -> Self {
        let scans = FairCache::sized(MAX_BYTES);
        let (files, changed, taken) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Self { scans, automations: HashMap::new(), files, changed, taken }
    }

    fn take_changed(&mut self) -> BTreeSet<ObjectName> {
        let changed = std::mem::take(&mut self.changed);
        self.taken.extend(changed.iter().cloned());
        changed
    }

    /// Returns the known files of the policies in a namespace.
    fn known_files(&self, namespace: &str) -> impl Iterator<Item = (&ObjectName, &BTreeSet<KnownFile>)> {
        let first = ObjectName { namespace: namespace.to_owned(), name: String::new() };
        self.files.range(first..).take_while(move |(policy, _)| policy.namespace == namespace)
    }

    fn put(&mut self, scan: ScannedPlaces) {
        let (automation, scan) = (scan.automation.clone(), Arc::new(scan));
        match self.scans.get(&automation).cloned() {
            Some(before) => {
                self.changed.extend(differing_policies(&before, &scan));
                self.remove_policies(&before);
            }
            None => {
                let unscanned = self.known_files(&automation.namespace).map(|(policy, _)| policy.clone());
                let unscanned: Vec<ObjectName> = unscanned.chain(scan.policies().cloned()).collect();
                self.changed.extend(unscanned);
            }
        }
        for policy in scan.policies() {
            self.automations.entry(policy.clone()).or_default().insert(automation.clone());
        }
        let (namespace, bytes) = (automation.namespace.clone(), scan.bytes());
        for evicted in self.scans.insert_sized(&namespace, automation, bytes, scan) {
            self.automations.retain(|policy, automations| {
                if automations.remove(&evicted) {
                    self.changed.insert(policy.clone());
                }
                !automations.is_empty()
            });
        }
    }

    /// Removes an automation from the policies of a scan.
    fn remove_policies(&mut self, scan: &ScannedPlaces) {
        for policy in scan.policies() {
            if let Some(automations) = self.automations.get_mut(policy) {
                automations.remove(&scan.automation);
                if automations.is_empty() {
                    self.automations.remove(policy);
                }
            }
        }
    }
}

/// Returns the policies that two scans of an automation concern in different ways.
fn differing_policies(before: &ScannedPlaces, now: &ScannedPlaces) -> Vec<ObjectName> {
    let policies: BTreeSet<&ObjectName> = before.policies().chain(now.policies()).collect();
    let is_same_source = before.is_same_source(now);
    let differs = |policy: &&ObjectName| !is_same_source || before.of_policy(policy) != now.of_policy(policy);
    policies.into_iter().filter(differs).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::place::Place;
    use crate::update::{Field, ObjectIdentifier};

    fn name(name: &str) -> ObjectName {
        ObjectName { namespace: "apps".into(), name: name.into() }
    }

    /// A scan of an automation with a place of each policy, at a revision.
    fn scan(automation: &ObjectName, revision: &str, policies: &[(&str, &str)]) -> ScannedPlaces {
        let place = |(policy, value): &(&str, &str)| Place {
            policy: ObjectName { namespace: automation.namespace.clone(), name: (*policy).to_owned() },
            document: ObjectIdentifier::default(),
            file: format!("{policy}.yaml"),
            line: 1,
            field: Field::Tag,
            pointer: None,
            value: (*value).to_owned(),
            proposed: None,
            written: None,
        };
        ScannedPlaces {
            automation: automation.clone(),
            source: name("fleet"),
            repository: "https://git.example/fleet".into(),
            revision: revision.into(),
            checkout: Some("main".into()),
            push: "main".into(),
            places: policies.iter().map(place).collect(),
            omitted: 0,
            removed_files: Vec::new(),
        }
    }

    fn turned_on() -> Places {
        let places = Places::default();
        places.turn_on();
        places
    }

    /// The names of the policies that changed since the last call.
    fn changed(places: &Places) -> Vec<String> {
        let mut known = places.shared.known.lock();
        let changed = std::mem::take(&mut known.as_mut().unwrap().changed);
        changed.into_iter().map(|policy| policy.name).collect()
    }

    fn automations_of(places: &Places, policy: &str) -> Vec<String> {
        places.of_policy(&name(policy)).iter().map(|scan| scan.automation.name.clone()).collect()
    }

    #[test]
    fn only_policies_with_other_places_or_another_revision_change() {
        let places = turned_on();
        let fleet = name("fleet");
        for (revision, policies, expected) in [
            ("1", &[("a", "1"), ("b", "1")][..], &["a", "b"][..]),
            ("1", &[("a", "1"), ("b", "1")], &[]),
            ("1", &[("a", "2"), ("b", "1")], &["a"]),
            ("2", &[("a", "2"), ("b", "1")], &["a", "b"]),
            ("2", &[("a", "2"), ("c", "1")], &["b", "c"]),
            ("2", &[], &["a", "c"]),
        ] {
            places.put(scan(&fleet, revision, policies));
            assert_eq!(changed(&places), expected, "{revision} {policies:?}");
            let known: Vec<String> = places.policies().into_iter().map(|policy| policy.name).collect();
            assert_eq!(known, policies.iter().map(|(policy, _)| *policy).collect::<Vec<_>>());
        }
    }

    #[test]
    fn several_automations_have_places_of_one_policy() {
        let places = turned_on();
        places.put(scan(&name("y"), "1", &[("a", "1")]));
        places.put(scan(&name("x"), "1", &[("a", "1"), ("b", "1")]));
        assert_eq!(
            (automations_of(&places, "a"), automations_of(&places, "b")),
            (vec!["x".to_owned(), "y".to_owned()], vec!["x".to_owned()])
        );
        changed(&places);
        places.forget(&name("x"));
        assert_eq!(
            (automations_of(&places, "a"), changed(&places)),
            (vec!["y".to_owned()], vec!["a".to_owned(), "b".to_owned()])
        );
        assert!(!places.is_known(&name("x")) && places.is_known(&name("y")));
        assert_eq!(places.policies(), BTreeSet::from([name("a")]));
    }

    #[test]
    fn the_first_scan_concerns_all_policies_with_a_status_in_the_namespace() {
        let places = turned_on();
        let elsewhere = ObjectName { namespace: "apps-2".into(), name: "c".into() };
        let file = |automation: &str| KnownFile { automation: automation.into(), file: "a.yaml".into() };
        places.set_known_files(&name("a"), Some(BTreeSet::from([file("fleet"), file("other")])));
        places.set_known_files(&name("b"), Some(BTreeSet::new()));
        places.set_known_files(&elsewhere, Some(BTreeSet::from([file("fleet")])));
        assert_eq!(places.known_files(&name("fleet")), BTreeSet::from(["a.yaml".to_owned()]));
        assert_eq!(places.known_files(&name("none")), BTreeSet::new());
        places.put(scan(&name("fleet"), "1", &[]));
        assert_eq!(changed(&places), ["a", "b"]);
        places.put(scan(&name("fleet"), "1", &[]));
        assert!(changed(&places).is_empty());
        places.set_known_files(&name("a"), None);
        assert_eq!(places.known_files(&name("fleet")), BTreeSet::new());
    }

    #[test]
    fn nothing_is_kept_while_it_is_off() {
        let places = Places::default();
        places.put(scan(&name("fleet"), "1", &[("a", "1")]));
        places.set_known_files(&name("a"), Some(BTreeSet::new()));
        assert!(!places.is_on() && !places.is_known(&name("fleet")) && places.policies().is_empty());
        places.turn_on();
        assert!(places.is_on() && !places.is_known(&name("fleet")));
        places.put(scan(&name("fleet"), "1", &[("a", "1")]));
        places.turn_off();
        places.turn_on();
        assert!(!places.is_known(&name("fleet")) && automations_of(&places, "a").is_empty());
    }

    /// A tenant may have any number of automations, each with 10,000 places.
    #[test]
    fn places_of_many_automations_evict_only_places_of_their_namespace() {
        let places = turned_on();
        let attacker = |number: u64| ObjectName { namespace: "attacker".into(), name: number.to_string() };
        places.put(scan(&name("fleet"), "1", &[("a", "1")]));
        let long = "x".repeat(1024 * 1024);
        let number = MAX_BYTES / (1024 * 1024) + 2;
        for automation in (0..number).map(attacker) {
            places.put(scan(&automation, &automation.name, &[("a", &long)]));
        }
        assert!(places.is_known(&name("fleet")) && places.is_known(&attacker(number - 1)));
        assert!(!places.is_known(&attacker(0)));
        let policy = ObjectName { namespace: "attacker".into(), name: "a".into() };
        let kept = places.of_policy(&policy);
        assert!(kept.len() > 1 && (kept.len() as u64) < number, "{}", kept.len());
        assert!(kept.iter().all(|scan| scan.automation != attacker(0)));
    }

    /// A reconcile before that reported that the kind of a new place is not watched.
    #[tokio::test]
    async fn a_policy_is_settled_when_the_change_of_its_places_is_handled() {
        let (places, fleet) = (turned_on(), name("fleet"));
        let settled = || ["a", "b"].map(|policy| places.is_settled(&name(policy)));
        assert_eq!(settled(), [true, true]);
        places.put(scan(&fleet, "1", &[("a", "1"), ("b", "1")]));
        assert_eq!(settled(), [false, false]);
        assert_eq!(places.changed().await, BTreeSet::from([name("a"), name("b")]));
        assert_eq!(settled(), [false, false], "they are taken, and not handled");
        places.put(scan(&fleet, "1", &[("a", "2"), ("b", "1")]));
        places.handled();
        assert_eq!(settled(), [false, true], "a new change of one is not handled");
        assert_eq!(places.changed().await, BTreeSet::from([name("a")]));
        places.handled();
        assert_eq!(settled(), [true, true]);
        places.put(scan(&fleet, "2", &[]));
        places.turn_off();
        assert_eq!(settled(), [true, true], "nothing is handled while it is off");
    }

    #[tokio::test]
    async fn a_change_ends_the_wait_for_it() {
        let places = turned_on();
        let waiting = tokio::spawn({
            let places = places.clone();
            async move { places.changed().await }
        });
        tokio::task::yield_now().await;
        places.put(scan(&name("fleet"), "1", &[("a", "1")]));
        assert_eq!(waiting.await.unwrap(), BTreeSet::from([name("a")]));
    }
}
