//! Which tags are followed, by whom, and when each is looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::knowledge::{Failure, Known, Trouble};
use super::waiting;

/// What a subscriber follows. `T` is a tag as somebody sees it: equal ones share one look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription<S, T> {
    /// The tag.
    pub target: T,
    /// The time between two looks.
    pub interval: Duration,
    /// The group of the subscriber, if it is in one.
    pub group: Option<Group<S>>,
    /// The digest that it knows already, by which it goes until there is a better one.
    pub seed: Option<String>,
    /// Whether that digest has only just been looked up.
    pub is_fresh: bool,
}

/// A group, whose members get their digests together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group<S> {
    /// Its name.
    pub name: String,
    /// All who belong to it, also those who do not follow anything yet.
    pub members: BTreeSet<S>,
}

/// Who follows what, what is known, and what is due. Time comes in as an argument.
#[derive(Debug)]
pub struct Schedule<S, T, W> {
    subscribers: BTreeMap<S, Subscriber<S, T, W>>,
    targets: BTreeMap<T, Target<W>>,
}

#[derive(Debug)]
struct Subscriber<S, T, W> {
    target: T,
    interval: Duration,
    group: Option<Group<S>>,
    known: Known<W>,
}

#[derive(Debug)]
struct Target<W> {
    /// When it is due; nothing while somebody looks.
    due: Option<Timestamp>,
    failures: u32,
    /// What the last look brought.
    last: Option<Result<String, W>>,
}

impl<S, T, W> Default for Schedule<S, T, W> {
    fn default() -> Self {
        Self { subscribers: BTreeMap::new(), targets: BTreeMap::new() }
    }
}

impl<S: Ord + Clone, T: Ord + Clone, W: Clone + PartialEq> Schedule<S, T, W> {
    /// Takes note of what a subscriber follows, and gives those for whom something else is known by that.
    pub fn subscribe(&mut self, subscriber: &S, subscription: Subscription<S, T>, now: Timestamp) -> Vec<S> {
        let Subscription { target, interval, group, seed, is_fresh } = subscription;
        let before = self.subscribers.remove(subscriber).filter(|before| before.target == target);
        let mut known = before.map(|before| before.known).unwrap_or_default();
        if is_fresh || known.digest.is_none() {
            known.digest = seed.clone();
        }
        let entry = Subscriber { target: target.clone(), interval, group, known };
        self.subscribers.insert(subscriber.clone(), entry);
        let fresh = if is_fresh { seed } else { None };
        match (self.targets.get_mut(&target), fresh) {
            (Some(_), None) => {}
            (None, None) => {
                self.targets.insert(target.clone(), Target { due: Some(now), failures: 0, last: None });
            }
            (entry, Some(digest)) => {
                let is_looking = entry.is_some_and(|entry| entry.due.is_none());
                let due = (!is_looking).then(|| now.saturating_add(interval).unwrap_or(Timestamp::MAX));
                self.targets.insert(target.clone(), Target { due, failures: 0, last: Some(Ok(digest)) });
            }
        }
        self.hasten(&target, now);
        self.let_go();
        self.publish(&target)
    }

    /// Takes note that a subscriber follows nothing any more.
    pub fn unsubscribe(&mut self, subscriber: &S) {
        self.subscribers.remove(subscriber);
        self.let_go();
    }

    /// What is known of the digest that a subscriber follows.
    pub fn known(&self, subscriber: &S, target: &T) -> Option<&Known<W>> {
        self.subscribers.get(subscriber).filter(|entry| entry.target == *target).map(|entry| &entry.known)
    }

    /// Makes due what a subscriber follows.
    pub fn hurry(&mut self, subscriber: &S, now: Timestamp) {
        let Some(entry) = self.subscribers.get(subscriber) else { return };
        if let Some(target) = self.targets.get_mut(&entry.target).filter(|target| target.due.is_some()) {
            target.due = Some(now);
        }
    }

    /// When the next look is due.
    pub fn next(&self) -> Option<Timestamp> {
        self.targets.values().filter_map(|target| target.due).min()
    }

    /// Takes what is due. Of a group all are due together.
    pub fn take_due(&mut self, now: Timestamp) -> Vec<T> {
        let due: BTreeSet<T> = self
            .targets
            .iter()
            .filter(|(_, entry)| entry.due.is_some_and(|due| due <= now))
            .map(|(target, _)| target.clone())
            .collect();
        let mut taken = due.clone();
        for group in self.groups_of(&due) {
            taken.extend(self.members(&group).map(|member| member.target.clone()));
        }
        taken.retain(|target| self.targets.get_mut(target).is_some_and(|entry| entry.due.take().is_some()));
        taken.into_iter().collect()
    }

    /// Takes note of what a look brought, and gives those for whom something else is known by that. `jitter` is from
    /// 0 to 1.
    pub fn done(
        &mut self,
        target: &T,
        answer: Result<String, Failure<W>>,
        now: Timestamp,
        jitter: f64,
    ) -> Vec<S> {
        let interval = self.interval(target);
        // Nobody follows it any more.
        let (Some(entry), Some(interval)) = (self.targets.get_mut(target), interval) else {
            return Vec::new();
        };
        let wait = match &answer {
            Ok(_) => {
                entry.failures = 0;
                waiting::after_success(interval, jitter)
            }
            Err(failure) => {
                entry.failures = entry.failures.saturating_add(1);
                waiting::after_failure(interval, entry.failures, failure.retry_after)
            }
        };
        entry.last = Some(answer.map_err(|failure| failure.why));
        entry.due = Some(now.saturating_add(wait).unwrap_or(Timestamp::MAX));
        self.publish(target)
    }

    /// The shortest time between two looks that a follower of a target wants.
    fn interval(&self, target: &T) -> Option<Duration> {
        let followers = self.subscribers.values().filter(|entry| entry.target == *target);
        followers.map(|entry| entry.interval).min()
    }

    /// Sees to it that a target is due no later than its followers want.
    fn hasten(&mut self, target: &T, now: Timestamp) {
        let Some(interval) = self.interval(target) else { return };
        let latest = now.saturating_add(waiting::after_success(interval, 1.0)).unwrap_or(Timestamp::MAX);
        if let Some(entry) = self.targets.get_mut(target)
            && entry.due.is_some_and(|due| due > latest)
            && entry.failures == 0
        {
            entry.due = Some(latest);
        }
    }

    /// Forgets what nobody follows.
    fn let_go(&mut self) {
        let followed: BTreeSet<&T> = self.subscribers.values().map(|entry| &entry.target).collect();
        self.targets.retain(|target, _| followed.contains(target));
    }

    /// The names of the groups that follow any of these targets.
    fn groups_of(&self, targets: &BTreeSet<T>) -> BTreeSet<String> {
        let followers = self.subscribers.values().filter(|entry| targets.contains(&entry.target));
        followers.filter_map(|entry| Some(entry.group.as_ref()?.name.clone())).collect()
    }

    fn members<'s>(&'s self, group: &'s str) -> impl Iterator<Item = &'s Subscriber<S, T, W>> {
        self.subscribers
            .values()
            .filter(move |entry| entry.group.as_ref().is_some_and(|own| own.name == group))
    }

    /// Tells the followers of a target, and the groups that they are in, what is known; gives those for whom that is
    /// something else.
    fn publish(&mut self, target: &T) -> Vec<S> {
        let groups = self.groups_of(&BTreeSet::from([target.clone()]));
        let states: BTreeMap<&str, GroupState> =
            groups.iter().map(|group| (group.as_str(), self.state(group))).collect();
        let targets = &self.targets;
        let mut changed = Vec::new();
        for (name, entry) in &mut self.subscribers {
            let group = entry.group.as_ref().and_then(|group| states.get(group.name.as_str()));
            if entry.target != *target && group.is_none() {
                continue;
            }
            let Some(last) = targets.get(&entry.target).and_then(|target| target.last.as_ref()) else {
                continue;
            };
            let known = match (last, group) {
                (_, Some(GroupState::Looking)) => continue,
                (Ok(digest), None | Some(GroupState::Complete)) => {
                    Known { digest: Some(digest.clone()), trouble: None }
                }
                (Ok(_), Some(GroupState::Incomplete)) => {
                    Known { trouble: Some(Trouble::GroupIncomplete), ..entry.known.clone() }
                }
                (Err(why), _) => Known { trouble: Some(Trouble::Failed(why.clone())), ..entry.known.clone() },
            };
            if known != entry.known {
                entry.known = known;
                changed.push(name.clone());
            }
        }
        changed
    }

    /// Whether all members of a group have an answer, and a good one.
    fn state(&self, group: &str) -> GroupState {
        let members = || self.members(group);
        let wanted: BTreeSet<&S> =
            members().filter_map(|entry| entry.group.as_ref()).flat_map(|group| &group.members).collect();
        let targets: Vec<&Target<W>> =
            members().filter_map(|entry| self.targets.get(&entry.target)).collect();
        let is_everybody_here = wanted.iter().all(|name| {
            self.subscribers
                .get(*name)
                .is_some_and(|entry| entry.group.as_ref().is_some_and(|own| own.name == group))
        });
        if targets.iter().any(|target| target.due.is_none()) {
            GroupState::Looking
        } else if is_everybody_here && targets.iter().all(|target| matches!(target.last, Some(Ok(_)))) {
            GroupState::Complete
        } else {
            GroupState::Incomplete
        }
    }
}

/// Where a group stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupState {
    /// Somebody looks at a tag of it, so what is known of the others waits.
    Looking,
    /// The digests of all members are known.
    Complete,
    /// Somebody's is not.
    Incomplete,
}

#[cfg(test)]
mod tests;
