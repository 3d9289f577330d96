//! Schedules lookups of followed tags.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::circuit_breaker::{CircuitBreakers, after};
use super::digest_state::{DigestState, FailureScope, Missing, PollFailure, StaleReason};
use super::interval;

/// A target of lookups, which is in a registry.
pub trait InRegistry {
    /// Returns the key of the registry's circuit breaker, which includes login and route.
    fn registry(&self) -> &str;
}

/// A subscription to the digest of a tag.
///
/// `T` is a tag with the login and route of its lookups; subscribers with an equal one share lookups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription<S, T> {
    /// The tag.
    pub target: T,
    /// The time between two lookups.
    pub interval: Duration,
    /// The group of the subscriber, if it is in one.
    pub group: Option<Group<S>>,
    /// The digest that the subscriber knows already, used until the first lookup.
    pub seed: Option<String>,
    /// Set if that digest has just been looked up.
    pub is_fresh: bool,
}

/// A group, whose members get their digests together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group<S> {
    /// Its name.
    pub name: String,
    /// All its members, including those that follow nothing yet.
    pub members: BTreeSet<S>,
}

/// The subscribers, the states of their digests, and the lookups that are due.
///
/// The time is always an argument.
#[derive(Debug)]
pub struct Schedule<S, T, W> {
    subscribers: BTreeMap<S, Subscriber<S, T, W>>,
    targets: BTreeMap<T, Target<S, W>>,
    /// The subscribed members of each group.
    groups: BTreeMap<String, BTreeSet<S>>,
    /// The targets that wait for a lookup, by due time.
    queue: BTreeSet<(Timestamp, T)>,
    /// The circuit breakers of registries.
    breakers: CircuitBreakers,
}

#[derive(Debug)]
struct Subscriber<S, T, W> {
    target: T,
    interval: Duration,
    group: Option<Group<S>>,
    state: DigestState<S, W>,
}

#[derive(Debug)]
struct Target<S, W> {
    followers: BTreeSet<S>,
    /// The time at which it is due; `None` while a lookup is in flight.
    due: Option<Timestamp>,
    /// The start of the last lookup.
    taken: Timestamp,
    /// The number of consecutive failures that were not the registry's.
    failures: u32,
    /// The result of the last lookup.
    last: Option<Result<String, W>>,
}

impl<S, T, W> Default for Schedule<S, T, W> {
    fn default() -> Self {
        Self {
            subscribers: BTreeMap::new(),
            targets: BTreeMap::new(),
            groups: BTreeMap::new(),
            queue: BTreeSet::new(),
            breakers: CircuitBreakers::default(),
        }
    }
}

impl<S: Ord + Clone, T: InRegistry + Ord + Clone, W: Clone + PartialEq> Schedule<S, T, W> {
    /// Adds or replaces a subscription, and returns the subscribers whose state has changed.
    pub fn subscribe(&mut self, subscriber: &S, subscription: Subscription<S, T>, now: Timestamp) -> Vec<S> {
        let Subscription { target, interval, group, seed, is_fresh } = subscription;
        let before = self.leave(subscriber);
        let unfollowed =
            before.as_ref().map(|before| before.target.clone()).filter(|unfollowed| *unfollowed != target);
        let mut state =
            before.filter(|before| before.target == target).map(|before| before.state).unwrap_or_default();
        if is_fresh || state.digest.is_none() {
            state.digest.clone_from(&seed);
        }
        if let Some(group) = &group {
            self.groups.entry(group.name.clone()).or_default().insert(subscriber.clone());
        }
        let is_grouped = group.is_some();
        let entry = Subscriber { target: target.clone(), interval, group, state };
        self.subscribers.insert(subscriber.clone(), entry);
        let is_new = !self.targets.contains_key(&target);
        let followed = self.targets.entry(target.clone()).or_insert_with(|| Target {
            followers: BTreeSet::new(),
            due: None,
            taken: Timestamp::MIN,
            failures: 0,
            last: None,
        });
        followed.followers.insert(subscriber.clone());
        let is_looking = !is_new && followed.due.is_none();
        let mut has_changed = is_grouped;
        if let Some(digest) = seed.filter(|_| is_fresh) {
            has_changed |= !matches!(&followed.last, Some(Ok(last)) if *last == digest);
            (followed.failures, followed.last) = (0, Some(Ok(digest)));
            self.breakers.record_success(target.registry(), now);
            if !is_looking {
                self.set_due(&target, Some(after(now, interval)));
            }
        } else if is_new {
            self.set_due(&target, Some(now));
        }
        self.cap_due(&target, now);
        unfollowed.iter().for_each(|unfollowed| self.remove_unfollowed(unfollowed));
        // If the target's digest is unchanged, only the new follower does not have it yet.
        if has_changed {
            self.publish(&target)
        } else {
            self.update_states([subscriber.clone()].into(), &BTreeMap::new())
        }
    }

    /// Removes the subscription of a subscriber.
    pub fn unsubscribe(&mut self, subscriber: &S) {
        if let Some(before) = self.leave(subscriber) {
            self.remove_unfollowed(&before.target);
        }
    }

    /// Returns the state of the digest that a subscriber follows.
    pub fn state(&self, subscriber: &S, target: &T) -> Option<&DigestState<S, W>> {
        self.subscribers.get(subscriber).filter(|entry| entry.target == *target).map(|entry| &entry.state)
    }

    /// Makes the target of a subscriber due at once.
    pub fn make_due(&mut self, subscriber: &S, now: Timestamp) {
        let Some(entry) = self.subscribers.get(subscriber) else { return };
        let target = entry.target.clone();
        if self.targets.get(&target).is_some_and(|target| target.due.is_some()) {
            self.set_due(&target, Some(now));
        }
    }

    /// Returns the time of the next lookup that is due and allowed by its breakers.
    pub fn next(&self) -> Option<Timestamp> {
        let mut next: Option<Timestamp> = None;
        for (due, target) in &self.queue {
            if next.is_some_and(|next| next <= *due) {
                break;
            }
            let ready = self.ready(*due, target);
            next = Some(next.map_or(ready, |next| next.min(ready)));
        }
        next
    }

    /// Returns the time of a subscriber's next lookup; `None` while one is in flight.
    pub fn next_of(&self, subscriber: &S) -> Option<Timestamp> {
        let target = &self.subscribers.get(subscriber)?.target;
        Some(self.ready(self.targets.get(target)?.due?, target))
    }

    /// Returns the end of the wait if the breaker opened after the target was taken.
    ///
    /// A lookup now would be useless.
    pub fn blocked_since_taken(&self, target: &T) -> Option<Timestamp> {
        self.breakers.open_until_since(target.registry(), self.targets.get(target)?.taken)
    }

    /// Returns the number of followed targets.
    pub fn count(&self) -> usize {
        self.targets.len()
    }

    /// Returns the followers of a target.
    pub fn followers(&self, target: &T) -> impl Iterator<Item = &S> {
        self.targets.get(target).into_iter().flat_map(|target| &target.followers)
    }

    /// Takes the targets that are due; their lookups are in flight then.
    ///
    /// The targets of a group are due together, and wait for the breakers of all their registries. Of a half-open
    /// registry one target is taken as the probe; the others wait for its result.
    pub fn take_due(&mut self, now: Timestamp) -> Vec<T> {
        let due = self.queue.iter().take_while(|(due, _)| *due <= now).map(|(_, target)| target.clone());
        let mut taken = BTreeSet::new();
        for target in due.collect::<Vec<T>>() {
            if taken.contains(&target) || self.ready(now, &target) > now {
                continue;
            }
            for member in self.batch(&target) {
                if self.breakers.open_until(member.registry()).is_some() {
                    let interval = self.interval_at(member.registry());
                    self.breakers.probe(member.registry(), interval, now);
                }
                taken.insert(member);
            }
        }
        taken.retain(|target| self.set_due(target, None).is_some());
        for target in &taken {
            if let Some(entry) = self.targets.get_mut(target) {
                entry.taken = now;
            }
        }
        taken.into_iter().collect()
    }

    /// Records the result of a lookup, and returns the subscribers whose state has changed.
    ///
    /// `jitter` is from 0 to 1.
    pub fn record(
        &mut self,
        target: &T,
        result: Result<String, PollFailure<W>>,
        now: Timestamp,
        jitter: f64,
    ) -> Vec<S> {
        // Before the check for followers: other targets may be in the same registry.
        let open_until = match &result {
            Err(PollFailure { scope: FailureScope::Registry, retry_after, .. }) => {
                let interval = self.interval_at(target.registry());
                Some(self.breakers.record_failure(target.registry(), interval, *retry_after, now))
            }
            Err(PollFailure { scope: FailureScope::Caller, .. }) => {
                if let Some(entry) = self.targets.get(target) {
                    self.breakers.abort_probe(target.registry(), entry.taken, now);
                }
                None
            }
            Ok(_) | Err(PollFailure { scope: FailureScope::Tag, .. }) => {
                self.breakers.record_success(target.registry(), now);
                None
            }
        };
        let interval = self.interval(target);
        // The last follower has left.
        let (Some(entry), Some(interval)) = (self.targets.get_mut(target), interval) else {
            return Vec::new();
        };
        let due = match (&result, open_until) {
            (_, Some(open_until)) => open_until,
            (Ok(_), None) => {
                entry.failures = 0;
                after(now, interval::after_success(interval, jitter))
            }
            (Err(failure), None) => {
                entry.failures = entry.failures.saturating_add(1);
                after(now, interval::after_failure(interval, entry.failures, failure.retry_after))
            }
        };
        entry.last = Some(result.map_err(|failure| failure.reason));
        self.set_due(target, Some(due));
        self.publish(target)
    }

    /// Returns the time at which its breakers, and those of its groups, allow a target.
    fn ready(&self, due: Timestamp, target: &T) -> Timestamp {
        if self.breakers.is_empty() {
            return due;
        }
        let batch = self.batch(target);
        let waits = batch.iter().filter_map(|target| self.breakers.open_until(target.registry()));
        waits.fold(due, Timestamp::max)
    }

    /// Returns a target with the targets of its groups, which are looked up together.
    fn batch(&self, target: &T) -> BTreeSet<T> {
        let mut batch = BTreeSet::from([target.clone()]);
        for group in self.groups_of(target) {
            batch.extend(self.members(&group).map(|member| member.target.clone()));
        }
        batch
    }

    /// Returns the shortest interval of the subscribers at a registry.
    fn interval_at(&self, registry: &str) -> Duration {
        let there = self.subscribers.values().filter(|entry| entry.target.registry() == registry);
        there.map(|entry| entry.interval).min().unwrap_or(Duration::MAX)
    }

    /// Sets the due time of a followed target, and returns the one before.
    fn set_due(&mut self, target: &T, due: Option<Timestamp>) -> Option<Timestamp> {
        let entry = self.targets.get_mut(target)?;
        let before = std::mem::replace(&mut entry.due, due);
        if let Some(before) = before {
            self.queue.remove(&(before, target.clone()));
        }
        if let Some(due) = due {
            self.queue.insert((due, target.clone()));
        }
        before
    }

    /// Returns the shortest interval of a target's followers.
    fn interval(&self, target: &T) -> Option<Duration> {
        let followers = self.followers(target).filter_map(|name| self.subscribers.get(name));
        followers.map(|entry| entry.interval).min()
    }

    /// Makes a target due no later than its followers' intervals demand.
    fn cap_due(&mut self, target: &T, now: Timestamp) {
        let Some(interval) = self.interval(target) else { return };
        let latest = after(now, interval::after_success(interval, 1.0));
        let is_too_late =
            |entry: &Target<S, W>| entry.due.is_some_and(|due| due > latest) && entry.failures == 0;
        if self.targets.get(target).is_some_and(is_too_late) {
            self.set_due(target, Some(latest));
        }
    }

    /// Removes a subscriber from its target and its group.
    fn leave(&mut self, subscriber: &S) -> Option<Subscriber<S, T, W>> {
        let before = self.subscribers.remove(subscriber)?;
        if let Some(target) = self.targets.get_mut(&before.target) {
            target.followers.remove(subscriber);
        }
        if let Some(group) = &before.group
            && let Some(members) = self.groups.get_mut(&group.name)
        {
            members.remove(subscriber);
            if members.is_empty() {
                self.groups.remove(&group.name);
            }
        }
        Some(before)
    }

    /// Removes a target without followers.
    fn remove_unfollowed(&mut self, target: &T) {
        if self.targets.get(target).is_some_and(|entry| entry.followers.is_empty()) {
            self.set_due(target, None);
            self.targets.remove(target);
        }
    }

    /// Returns the names of the groups that follow a target.
    fn groups_of(&self, target: &T) -> BTreeSet<String> {
        let followers = self.followers(target).filter_map(|name| self.subscribers.get(name));
        followers.filter_map(|entry| Some(entry.group.as_ref()?.name.clone())).collect()
    }

    fn members<'s>(&'s self, group: &str) -> impl Iterator<Item = &'s Subscriber<S, T, W>> {
        let names = self.groups.get(group).into_iter().flatten();
        names.filter_map(|name| self.subscribers.get(name))
    }

    /// Publishes the result of a target to its followers and their groups.
    ///
    /// Returns the subscribers whose state has changed.
    fn publish(&mut self, target: &T) -> Vec<S> {
        let groups = self.groups_of(target);
        let states: BTreeMap<&str, GroupState<S>> =
            groups.iter().map(|group| (group.as_str(), self.group_state(group))).collect();
        let members = groups.iter().filter_map(|group| self.groups.get(group)).flatten();
        let subscribers: BTreeSet<S> = self.followers(target).chain(members).cloned().collect();
        self.update_states(subscribers, &states)
    }

    /// Updates the states of subscribers, depending on the states of their groups.
    fn update_states(&mut self, subscribers: BTreeSet<S>, groups: &BTreeMap<&str, GroupState<S>>) -> Vec<S> {
        let mut changed = Vec::new();
        for name in subscribers {
            let Some(entry) = self.subscribers.get_mut(&name) else { continue };
            let group = entry.group.as_ref().and_then(|group| groups.get(group.name.as_str()));
            let Some(last) = self.targets.get(&entry.target).and_then(|target| target.last.as_ref()) else {
                continue;
            };
            let state = match (last, group) {
                (_, Some(GroupState::LookupInFlight)) => continue,
                (Ok(digest), None | Some(GroupState::Complete)) => {
                    DigestState { digest: Some(digest.clone()), stale: None }
                }
                (Ok(_), Some(GroupState::Incomplete(missing))) => DigestState {
                    stale: Some(StaleReason::GroupIncomplete(missing.clone())),
                    ..entry.state.clone()
                },
                (Err(reason), _) => DigestState {
                    stale: Some(StaleReason::LookupFailed(reason.clone())),
                    ..entry.state.clone()
                },
            };
            if state != entry.state {
                entry.state = state;
                changed.push(name);
            }
        }
        changed
    }

    /// Returns the state of a group.
    fn group_state(&self, group: &str) -> GroupState<S> {
        let wanted = self.members(group).filter_map(|entry| entry.group.as_ref());
        let wanted: BTreeSet<&S> = wanted.flat_map(|group| &group.members).collect();
        let mut targets = self.members(group).filter_map(|entry| self.targets.get(&entry.target));
        if targets.any(|target| target.due.is_none()) {
            return GroupState::LookupInFlight;
        }
        let here = self.groups.get(group);
        let is_known = |name: &S| {
            let entry = self.subscribers.get(name).filter(|_| here.is_some_and(|here| here.contains(name)));
            let target = entry.and_then(|entry| self.targets.get(&entry.target));
            target.is_some_and(|target| matches!(target.last, Some(Ok(_))))
        };
        let all: BTreeSet<&S> = wanted.into_iter().chain(here.into_iter().flatten()).collect();
        let mut missing = all.into_iter().filter(|name| !is_known(name));
        match missing.next() {
            None => GroupState::Complete,
            Some(first) => GroupState::Incomplete(Missing { first: first.clone(), others: missing.count() }),
        }
    }
}

/// The state of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
enum GroupState<S> {
    /// A lookup for the group is in flight, so the results of others wait.
    LookupInFlight,
    /// The digests of all members are known.
    Complete,
    /// Digests of some members are missing.
    Incomplete(Missing<S>),
}

#[cfg(test)]
mod tests;
