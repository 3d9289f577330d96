//! Finds the ages of the images that could win, for policies with a minimum age.
//!
//! Most tags are younger than our knowledge of their repository, so their age is known. For the others the registry is
//! asked, from the best tag to the first that is old enough, and no further.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use futures::future::join_all;
use jiff::Timestamp;
use tagboat_api::settings::UnknownAge;

use crate::policy::{Maturity, Policy, TagAge};
use crate::reconcile::lookup::{LookupFailure, LookupFailureKind, Staleness};
use crate::reconcile::tags::{Registry, RepositoryTarget};
use crate::registry::ImageFacts;
use crate::registry::store::{KnownImage, StoredTags};
use crate::tenancy::Interrupted;

/// The maximum number of images that are looked up for one selection.
///
/// Registries count each lookup as a pull.
pub const MAX_LOOKUPS: usize = 32;

/// The maximum number of lookups at the same time.
const AT_ONCE: usize = 8;

/// The number of failed lookups after which the registry is not asked any more.
const FAILURES: usize = 3;

/// Resolves the ages of tags for one selection.
#[derive(Clone, Debug)]
pub struct AgeResolver {
    /// The policy.
    pub policy: Arc<Policy>,
    /// The current tag.
    ///
    /// It was old enough once, and only a user can want it to be older.
    pub current: Option<String>,
    /// True if a user asked, so that unknown ages are looked up again.
    pub is_wanted: bool,
    /// The time of the selection.
    pub now: Timestamp,
}

/// The tags on which a selection may depend beyond the known ages.
///
/// They are few, even if there are many tags, because they are kept while the registry is asked.
#[derive(Debug, Default)]
pub struct Shortlist(Vec<Candidate>);

/// A tag of a shortlist, with its known age.
#[derive(Debug)]
struct Candidate {
    tag: String,
    age: TagAge,
    /// The lookup at the registry that the tag needs.
    kind: Option<LookupKind>,
}

/// The ages that the registry gave.
#[derive(Debug, Default)]
pub struct KnownAges {
    /// The ages by tags of the shortlist.
    ages: HashMap<String, TagAge>,
    /// True if a tag is old enough.
    ///
    /// The ages of lower tags do not matter then.
    has_mature: bool,
    /// The images that were looked up, by their tags.
    pub facts: Vec<(String, ImageFacts)>,
    /// The ages that are missing.
    pub missing_ages: Option<MissingAges>,
}

/// The reason for which ages that matter are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingAges {
    /// More images would have to be looked up than the maximum.
    TooMany,
    /// The registry did not return the age of a tag.
    Failed {
        /// The tag.
        tag: String,
        /// The cause.
        failure: LookupFailure,
    },
}

impl MissingAges {
    /// Returns the staleness of a selection, if the registry is its cause.
    ///
    /// `image` is the image of the tags.
    pub fn staleness(&self, image: &str) -> Option<Staleness> {
        match self {
            Self::TooMany => None,
            Self::Failed { tag, failure } => Some(failure.staleness(&format!("{image}:{tag}"))),
        }
    }
}

impl AgeResolver {
    /// Returns the tags whose age decides, the best first ([`Policy::age_candidates`]).
    ///
    /// # Errors
    ///
    /// If `check` fails, which is called between two tags.
    pub fn shortlist(
        &self,
        candidates: &[&str],
        known: Option<&StoredTags>,
        check: &dyn Fn() -> Result<(), Interrupted>,
    ) -> Result<Shortlist, Interrupted> {
        let (mut listed, mut lookups) = (Vec::new(), 0);
        let mut best: Option<&str> = None;
        for tag in candidates {
            check()?;
            // A better tag that is eligible settles it. Of equal tags each may win.
            let is_settled = best.is_some_and(|best| self.policy.compare(tag, best) != Some(Ordering::Equal));
            if is_settled || lookups > MAX_LOOKUPS {
                break;
            }
            let age = self.known(tag, known);
            let kind = self.lookup_kind(age, known.and_then(|known| known.image(tag)));
            if kind.is_none() && self.takes_part(age) {
                if best.is_some() {
                    continue;
                }
                best = Some(tag);
            } else if matches!(self.maturity(age), Maturity::Young { .. }) && kind.is_none() {
                continue;
            }
            lookups += usize::from(kind.is_some());
            listed.push(Candidate { tag: (*tag).to_owned(), age, kind });
        }
        Ok(Shortlist(listed))
    }

    /// Asks the registry about the tags of a shortlist.
    pub async fn look_up(
        self,
        shortlist: Shortlist,
        registry: &impl Registry,
        target: &RepositoryTarget,
    ) -> KnownAges {
        let mut walk = Walk {
            resolver: self,
            candidates: shortlist.0,
            next: 0,
            best: None,
            asked: 0,
            failures: 0,
            answers: KnownAges::default(),
        };
        let mut width = 1;
        loop {
            let batch = walk.batch(width);
            if batch.is_empty() {
                return walk.answers;
            }
            // A closure that returns these futures would have to be valid for every lifetime.
            let mut lookups = Vec::with_capacity(batch.len());
            for lookup in &batch {
                lookups.push(lookup.run(registry, target));
            }
            let answers = join_all(lookups).await;
            for (lookup, answer) in batch.iter().zip(answers) {
                walk.take(lookup, answer);
            }
            width = AT_ONCE.min(width * 2);
        }
    }

    /// Returns the age of a tag after the registry was asked.
    ///
    /// `known` may be newer than the tags of the lookups: tags that were found since are young.
    pub fn age(&self, tag: &str, known: Option<&StoredTags>, answers: &KnownAges) -> TagAge {
        let found = answers.ages.get(tag).copied();
        found.unwrap_or_else(|| TagAge { is_irrelevant: answers.has_mature, ..self.known(tag, known) })
    }

    /// Returns the age of a tag before the registry is asked.
    fn known(&self, tag: &str, known: Option<&StoredTags>) -> TagAge {
        // Otherwise a tag that a lagging mirror once left out would be new when it is back, and the tag below it would
        // win.
        if self.current.as_deref() == Some(tag) && !self.is_wanted {
            return TagAge::ALWAYS_OLD_ENOUGH;
        }
        let Some(known) = known else { return TagAge::default() };
        TagAge {
            first_seen: known.first_seen(tag),
            listed_since: known.listed_since(tag),
            created: known.image(tag).and_then(|image| image.created),
            is_irrelevant: false,
        }
    }

    /// Returns the question to the registry about a tag, if there is one.
    ///
    /// A tag that was too young when it was looked up is no older with another image.
    fn lookup_kind(&self, age: TagAge, image: Option<&KnownImage>) -> Option<LookupKind> {
        let is_mature = |age: TagAge| self.maturity(age) == Maturity::Mature;
        if age.first_seen.is_some() || is_mature(TagAge { created: None, ..age }) {
            return None;
        }
        let Some(image) = image else { return Some(LookupKind::Age) };
        match self.maturity(age) {
            Maturity::Young { .. } => None,
            Maturity::Unknown { .. } => self.is_wanted.then_some(LookupKind::Age),
            Maturity::Mature => Some(LookupKind::IsStill(image.clone())),
        }
    }

    fn maturity(&self, age: TagAge) -> Maturity {
        age.maturity(self.now, self.policy.minimum_age())
    }

    /// Returns whether a tag with this known age is eligible.
    fn takes_part(&self, age: TagAge) -> bool {
        match self.maturity(age) {
            Maturity::Mature => true,
            Maturity::Young { .. } => false,
            Maturity::Unknown { .. } => self.policy.unknown_age() == UnknownAge::Accept,
        }
    }
}

/// The kind of a lookup.
#[derive(Clone, Debug)]
enum LookupKind {
    /// The age of its image.
    Age,
    /// True if its image is still this one, which is old enough.
    IsStill(KnownImage),
}

/// A lookup of the age of a tag at the registry.
#[derive(Clone, Debug)]
struct AgeLookup {
    index: usize,
    tag: String,
    kind: LookupKind,
}

impl AgeLookup {
    /// Looks the tag up; returns nothing if nothing has changed.
    async fn run(
        &self,
        registry: &impl Registry,
        target: &RepositoryTarget,
    ) -> Result<Option<ImageFacts>, LookupFailure> {
        if let LookupKind::IsStill(image) = &self.kind {
            match registry.digest(target, &self.tag).await {
                Ok(digest) if digest != image.digest => {}
                // The known age stays while the registry does not answer.
                _ => return Ok(None),
            }
        }
        registry.facts(target, &self.tag).await.map(Some)
    }
}

/// The walk from the best tag down to the first that is old enough.
struct Walk {
    resolver: AgeResolver,
    candidates: Vec<Candidate>,
    next: usize,
    /// The index of the best eligible tag so far.
    best: Option<usize>,
    asked: usize,
    failures: usize,
    answers: KnownAges,
}

impl Walk {
    /// Returns the next lookups, at most `width`; none at the end of the walk.
    fn batch(&mut self, width: usize) -> Vec<AgeLookup> {
        let mut batch = Vec::new();
        while batch.len() < width && !self.is_settled() {
            let Some(Candidate { tag, age, kind }) = self.candidates.get(self.next) else { break };
            let (index, tag, age) = (self.next, tag.clone(), *age);
            match kind {
                Some(_) if self.failures >= FAILURES => break,
                Some(_) if self.asked == MAX_LOOKUPS => {
                    self.answers.missing_ages.get_or_insert(MissingAges::TooMany);
                    break;
                }
                Some(kind) => {
                    self.asked += 1;
                    batch.push(AgeLookup { index, tag: tag.clone(), kind: kind.clone() });
                    self.answers.ages.insert(tag, age);
                }
                None => self.note(index, &tag, age),
            }
            self.next += 1;
        }
        batch
    }

    /// Returns whether nothing depends on the age of the next tag.
    ///
    /// That is so if a better tag is eligible. Of equal tags each may win.
    fn is_settled(&self) -> bool {
        let (Some(best), Some(next)) = (self.best, self.candidates.get(self.next)) else { return false };
        let best = &self.candidates[best].tag;
        self.resolver.policy.compare(&next.tag, best) != Some(Ordering::Equal)
    }

    fn take(&mut self, lookup: &AgeLookup, answer: Result<Option<ImageFacts>, LookupFailure>) {
        let AgeLookup { index, tag, .. } = lookup;
        let mut age = self.candidates[*index].age;
        match answer {
            Ok(None) => {}
            Ok(Some(facts)) => {
                age.created = facts.created;
                self.answers.facts.push((tag.clone(), facts));
            }
            // It is listed before it can be pulled, so its age is unknown.
            Err(failure) if failure.kind == LookupFailureKind::Missing => {}
            Err(failure) => {
                self.failures += 1;
                self.answers.missing_ages.get_or_insert(MissingAges::Failed { tag: tag.clone(), failure });
            }
        }
        self.note(*index, tag, age);
    }

    fn note(&mut self, index: usize, tag: &str, age: TagAge) {
        self.answers.ages.insert(tag.to_owned(), age);
        if self.resolver.takes_part(age) {
            self.best = Some(self.best.map_or(index, |best| best.min(index)));
            self.answers.has_mature = true;
        }
    }
}
