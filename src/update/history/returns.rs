//! Recognizes changes that restore an earlier value.
//!
//! Changes arrive from the newest to the oldest, so a change waits until an older one shows its value, or until it has
//! waited long enough. So an endless history takes bounded memory.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use super::marked_content::MarkerKey;
use super::value_change::{ChangeKind, Place, ValueChange};

/// The number of older commits in which an earlier value is looked for.
const MAX_COMMITS: u64 = 2_000;

/// The maximum number of changes that wait.
const MAX_WAITING: usize = 20_000;

/// The number of older values of one marker that are compared.
const MAX_VALUES: usize = 100;

/// A change with the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Returning<C> {
    /// The commit as the caller passed it.
    pub commit: Rc<C>,
    /// The change.
    pub change: ValueChange,
    /// True if the marker had the new value before.
    pub is_back: bool,
}

/// The changes that wait for older ones.
///
/// `C` describes a commit.
#[derive(Debug)]
pub struct Returns<C> {
    /// The waiting changes in order.
    waiting: VecDeque<Waiting<C>>,
    /// The number of the first waiting change.
    first: u64,
    /// The number of commits so far.
    commits: u64,
    /// The searches for earlier values of each marker, in the order of their changes.
    searches: HashMap<MarkerLocation, VecDeque<Search>>,
}

/// The identity of a marker among all files.
type MarkerLocation = (Rc<str>, Rc<MarkerKey>);

/// A change that waits.
#[derive(Debug)]
struct Waiting<C> {
    /// The number of its commit.
    commit: u64,
    returning: Returning<C>,
    /// True if older changes cannot change the answer.
    is_answered: bool,
}

/// A search for the value of a waiting change.
#[derive(Debug)]
struct Search {
    /// The number of the change.
    change: u64,
    value: Rc<str>,
    /// The number of older values that were compared.
    compared: usize,
}

impl<C> Default for Returns<C> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), first: 0, commits: 0, searches: HashMap::new() }
    }
}

impl<C> Returns<C> {
    /// Adds the changes of the next older commit.
    ///
    /// If `is_listed` is false, the changes are compared with newer ones, and not returned. A marker that moved without
    /// another value is never returned.
    pub fn add(&mut self, commit: &Rc<C>, changes: Vec<ValueChange>, is_listed: bool) {
        self.commits += 1;
        // All are removed before any is inserted, because two markers may have exchanged their places.
        let mut continued: Vec<VecDeque<Search>> = Vec::with_capacity(changes.len());
        for change in &changes {
            let searches = change.new.as_ref().and_then(|new| self.searches.remove(&location(new)));
            continued.push(searches.unwrap_or_default());
        }
        for (change, mut searches) in changes.into_iter().zip(continued) {
            let old = change.old.clone();
            if is_listed && change.kind() != ChangeKind::Moved {
                searches.extend(self.wait(commit.clone(), change));
            }
            // The oldest value that is compared is that of `old`; a new marker has none.
            searches.retain_mut(|search| {
                search.compared += 1;
                let is_back = match &old {
                    Some(old) if old.value == search.value => true,
                    Some(_) if search.compared < MAX_VALUES => return self.is_waiting(search.change),
                    _ => false,
                };
                self.answer(search.change, is_back);
                false
            });
            if let Some(old) = old.filter(|_| !searches.is_empty()) {
                self.searches.entry(location(&old)).or_default().extend(searches);
            }
        }
        if self.searches.len() > 2 * MAX_WAITING {
            let first = self.first;
            self.searches.retain(|_, searches| searches.iter().any(|search| search.change >= first));
        }
    }

    /// Adds a change, and returns the search for its value.
    fn wait(&mut self, commit: Rc<C>, change: ValueChange) -> Option<Search> {
        let number = self.first + u64::try_from(self.waiting.len()).ok()?;
        let value = change.new.as_ref().filter(|_| change.kind() == ChangeKind::Changed);
        let search = value.map(|new| Search { change: number, value: new.value.clone(), compared: 0 });
        self.waiting.push_back(Waiting {
            commit: self.commits,
            returning: Returning { commit, change, is_back: false },
            is_answered: search.is_none(),
        });
        search
    }

    fn is_waiting(&self, change: u64) -> bool {
        change >= self.first
    }

    fn answer(&mut self, change: u64, is_back: bool) {
        let index = change.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        if let Some(waiting) = index.and_then(|index| self.waiting.get_mut(index)) {
            waiting.returning.is_back = is_back;
            waiting.is_answered = true;
        }
    }

    /// Returns the newest waiting change once it is ready.
    ///
    /// It is ready if its answer is known, or if it has waited long enough.
    pub fn next_ready(&mut self) -> Option<Returning<C>> {
        let front = self.waiting.front()?;
        let is_ready = front.is_answered
            || self.waiting.len() > MAX_WAITING
            || self.commits - front.commit >= MAX_COMMITS;
        if is_ready { self.next_waiting() } else { None }
    }

    /// Returns the newest waiting change in any case: the history has ended.
    pub fn next_waiting(&mut self) -> Option<Returning<C>> {
        let front = self.waiting.pop_front()?;
        self.first += 1;
        Some(front.returning)
    }

    /// Returns true if no change waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// Returns the identity of the marker of a place.
fn location(place: &Place) -> MarkerLocation {
    (place.file.clone(), place.key.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::update::result::ObjectIdentifier;

    fn place(text: &str) -> Option<Place> {
        let (file, value) = text.split_once(':')?;
        let object = ObjectIdentifier::default();
        let key = Rc::new(MarkerKey { object, setter: "n:p".to_owned(), ordinal: 0 });
        Some(Place { file: file.into(), key, value: value.into(), line: 1 })
    }

    fn change(text: &str) -> ValueChange {
        let (old, new) = text.split_once('>').unwrap();
        ValueChange { old: place(old), new: place(new) }
    }

    fn value(place: &Option<Place>) -> &str {
        place.as_ref().map_or("-", |place| &place.value)
    }

    fn show(returning: &Returning<u32>) -> String {
        let Returning { change, is_back, .. } = returning;
        format!("{}>{}{}", value(&change.old), value(&change.new), if *is_back { " back" } else { "" })
    }

    /// Each row is a history of commits, the newest first, and its result.
    #[test]
    fn values_that_were_there_before_are_back() {
        for (history, expected) in [
            (&["f:b>f:a", "f:a>f:b", ">f:a"][..], &["b>a back", "a>b", "->a"][..]),
            (&["f:b>f:a", "f:c>f:b", "f:a>f:c"], &["b>a back", "c>b", "a>c"]),
            (&["f:b>f:a", "f:a>f:b", "f:b>f:a", "f:a>f:b"], &["b>a back", "a>b back", "b>a back", "a>b"]),
            // Another marker had the value.
            (&["f:b>f:a", "g:a>g:b"], &["b>a", "a>b"]),
            // A marker that moved with its file is the same one.
            (&["g:b>g:a", "f:b>g:b", "f:a>f:b"], &["b>a back", "a>b"]),
            (&["g:b>g:a", "f:c>g:b", "f:a>f:c"], &["b>a back", "c>b", "a>c"]),
            // Two files that exchanged their names, in one commit.
            (&["f:b>f:a", "f:c>g:c g:b>f:b", "f:a>f:c g:a>g:b"], &["b>a back", "a>c", "a>b"]),
            // A new marker has no earlier value, although another one was there before.
            (&["f:b>f:a", ">f:b", "f:a>"], &["b>a", "->b", "a>-"]),
            (&["f:a>", "f:b>f:a", "f:a>f:b"], &["a>-", "b>a back", "a>b"]),
        ] {
            let mut returns = Returns::default();
            for commit in history {
                returns.add(&Rc::new(0), commit.split(' ').map(change).collect(), true);
            }
            let mut found = Vec::new();
            while let Some(returning) = returns.next_waiting() {
                found.push(show(&returning));
            }
            assert_eq!(found, expected, "{history:?}");
        }
    }

    /// The values of newer listed changes used to shorten a search.
    #[test]
    fn the_answer_does_not_depend_on_the_listed_changes() {
        for (period, expected) in [(MAX_VALUES - 1, true), (MAX_VALUES, true), (MAX_VALUES + 1, false)] {
            for listed in [1, 10, usize::MAX] {
                let mut returns = Returns::default();
                for number in 0..3 * period {
                    let value = |number: usize| (3 * period - number) % period;
                    let change = change(&format!("f:{}>f:{}", value(number + 1), value(number)));
                    returns.add(&Rc::new(0), vec![change], number < listed);
                }
                assert_eq!(returns.next_waiting().unwrap().is_back, expected, "{period} {listed}");
            }
        }
    }

    #[test]
    fn a_change_waits_for_its_answer_and_no_longer() {
        let mut returns = Returns::default();
        let commit = Rc::new(0);
        returns.add(&commit, vec![change("f:b>f:a")], true);
        assert!(returns.next_ready().is_none());
        returns.add(&commit, vec![change("f:a>f:b")], false);
        assert_eq!(returns.next_ready().map(|returning| show(&returning)).as_deref(), Some("b>a back"));
        assert!(returns.is_empty(), "a change that is not listed was only compared");

        returns.add(&commit, vec![change("f:b>f:a")], true);
        returns.add(&commit, vec![change(">f:b")], false);
        assert_eq!(returns.next_ready().map(|returning| show(&returning)).as_deref(), Some("b>a"));

        returns.add(&commit, vec![change("f:b>f:a")], true);
        for _ in 1..MAX_COMMITS {
            returns.add(&commit, Vec::new(), true);
            assert!(returns.next_ready().is_none());
        }
        returns.add(&commit, vec![change("f:a>f:b")], true);
        assert!(returns.next_ready().unwrap().is_back, "the last commit counts, too");
    }

    #[test]
    fn an_endless_history_takes_bounded_memory() {
        let mut returns = Returns::default();
        for number in 0..3 * MAX_WAITING {
            let new = format!("f:{}>f:{number}", number + 1);
            let other = format!("{number}:1>{number}:2");
            returns.add(&Rc::new(0), vec![change(&new), change(&other)], true);
            while returns.next_ready().is_some() {}
            assert!(returns.waiting.len() <= MAX_WAITING && returns.searches.len() <= 3 * MAX_WAITING);
        }
        assert!(returns.searches.values().all(|searches| searches.len() <= MAX_VALUES));
    }
}
