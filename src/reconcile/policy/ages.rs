//! How old the images are that could win, where a policy has a minimum age.
//!
//! Most tags are younger than our knowledge of their repository, so that we saw ourselves when they came. Of the others the
//! registry is asked, from the best to the first that is old enough, and no further.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use futures::future::join_all;
use jiff::Timestamp;
use tagboat_api::settings::UnknownAge;

use super::digest::{LookFailure, LookFailureKind, Staleness};
use crate::policy::{Birth, Maturity, Policy};
use crate::reconcile::tags::{Place, Registry};
use crate::registry::ImageFacts;
use crate::registry::store::{KnownImage, StoredTags};
use crate::tenancy::{BlockingPool, Checkpoint, Interrupted};

/// How many images are looked at for one choice. Registries count each as a pull.
pub const MOST: usize = 32;

/// How many of them at the same time, at most.
const AT_ONCE: usize = 8;

/// After how many looks that failed the registry is left alone.
const FAILURES: usize = 3;

/// Of which tags the ages are wanted, and what is known of them.
#[derive(Clone, Debug)]
pub struct Inquiry {
    /// The policy's namespace, for which the work counts.
    pub namespace: String,
    /// The policy.
    pub policy: Arc<Policy>,
    /// The tags whose age decides, the best first ([`Policy::contenders`]).
    pub contenders: Vec<String>,
    /// What earlier scans and looks found.
    pub known: Option<Arc<StoredTags>>,
    /// The tag that counts now. It was old enough once, and only a person can want it to be older.
    pub current: Option<String>,
    /// Whether a person asked, so that what was not known before is looked up again.
    pub is_wanted: bool,
    /// The moment.
    pub now: Timestamp,
}

/// What was found out about ages.
#[derive(Debug, Default)]
pub struct Answers {
    births: HashMap<String, Birth>,
    /// The images that were looked at, by their tags.
    pub learned: Vec<(String, ImageFacts)>,
    /// What is still missing.
    pub gap: Option<Gap>,
}

/// Why not all ages are known that matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gap {
    /// More images would have to be looked at than is polite.
    TooMany,
    /// The registry did not say how old a tag is.
    Failed {
        /// The tag.
        tag: String,
        /// Why not.
        failure: LookFailure,
    },
}

impl Gap {
    /// Why the choice among the tags of an image may be out of date, where the registry is the cause.
    pub fn staleness(&self, image: &str) -> Option<Staleness> {
        match self {
            Self::TooMany => None,
            Self::Failed { tag, failure } => Some(failure.staleness(&format!("{image}:{tag}"))),
        }
    }
}

impl Answers {
    /// What is known of a tag.
    pub fn birth(&self, tag: &str) -> Birth {
        self.births.get(tag).copied().unwrap_or_default()
    }
}

impl Inquiry {
    /// Finds out what is to be known for a choice, with `place.timeout` for the work between two lookups.
    ///
    /// # Errors
    ///
    /// When the time for that is up.
    pub async fn answers(
        self,
        registry: &impl Registry,
        place: &Place,
        pool: &BlockingPool,
    ) -> Result<Answers, Interrupted> {
        if self.contenders.is_empty() {
            return Ok(Answers::default());
        }
        let namespace = self.namespace.clone();
        let mut walk =
            Walk { inquiry: self, next: 0, best: None, asked: 0, failures: 0, answers: Answers::default() };
        let mut width = 1;
        loop {
            let job = move |checkpoint: &Checkpoint| walk.step(width, checkpoint);
            let batch;
            (walk, batch) = match pool.run_within(&namespace, place.timeout, job).await? {
                Step::Ask(walk, batch) => (*walk, batch),
                Step::Done(answers) => return Ok(answers),
            };
            // A closure that made these would have to hold for every lifetime.
            let mut looks = Vec::with_capacity(batch.len());
            for question in &batch {
                looks.push(question.look(registry, place));
            }
            let answers = join_all(looks).await;
            for (question, answer) in batch.iter().zip(answers) {
                walk.take(question, answer);
            }
            width = AT_ONCE.min(width * 2);
        }
    }

    /// What is known of a tag before anybody is asked.
    fn known(&self, tag: &str) -> Birth {
        // A tag that a lagging mirror left out for once would be new when it is back, and the one below it win.
        if self.current.as_deref() == Some(tag) && !self.is_wanted {
            return Birth::LONG_AGO;
        }
        let Some(known) = &self.known else { return Birth::default() };
        Birth {
            first_seen: known.first_seen(tag),
            listed_since: known.listed_since(tag),
            created: known.image(tag).and_then(|image| image.created),
            is_outdone: false,
        }
    }

    /// What is to be asked of a tag. One that was too young when it was looked at is no older for being another image now.
    fn ask(&self, tag: &str, birth: Birth) -> Option<Ask> {
        let is_mature = |birth: Birth| self.maturity(birth) == Maturity::Mature;
        if birth.first_seen.is_some() || is_mature(Birth { created: None, ..birth }) {
            return None;
        }
        let known = self.known.as_ref().and_then(|known| known.image(tag));
        let Some(image) = known else { return Some(Ask::Age) };
        match self.maturity(birth) {
            Maturity::Young { .. } => None,
            Maturity::Unknown { .. } => self.is_wanted.then_some(Ask::Age),
            Maturity::Mature => Some(Ask::IsStill(image.clone())),
        }
    }

    fn maturity(&self, birth: Birth) -> Maturity {
        birth.maturity(self.now, self.policy.minimum_age())
    }

    /// Whether a tag of which this is known takes part.
    fn takes_part(&self, birth: Birth) -> bool {
        match self.maturity(birth) {
            Maturity::Mature => true,
            Maturity::Young { .. } => false,
            Maturity::Unknown { .. } => self.policy.unknown_age() == UnknownAge::Accept,
        }
    }
}

/// What is to be asked of a tag.
#[derive(Clone, Debug)]
enum Ask {
    /// How old its image is.
    Age,
    /// Whether its image is still this one, which is old enough.
    IsStill(KnownImage),
}

/// A question about a tag.
#[derive(Clone, Debug)]
struct Question {
    place: usize,
    tag: String,
    ask: Ask,
}

impl Question {
    /// Asks the registry; nothing where all is as it was.
    async fn look(&self, registry: &impl Registry, place: &Place) -> Result<Option<ImageFacts>, LookFailure> {
        if let Ask::IsStill(image) = &self.ask {
            match registry.digest(place, &self.tag).await {
                Ok(digest) if digest != image.digest => {}
                // What is known stays known while the registry does not answer.
                _ => return Ok(None),
            }
        }
        registry.facts(place, &self.tag).await.map(Some)
    }
}

/// The way from the best tag down to the first that is old enough.
struct Walk {
    inquiry: Inquiry,
    next: usize,
    /// The place of the best one so far that takes part.
    best: Option<usize>,
    asked: usize,
    failures: usize,
    answers: Answers,
}

/// What follows from the answers so far.
enum Step {
    /// Questions to the registry.
    Ask(Box<Walk>, Vec<Question>),
    /// Nothing is left to ask.
    Done(Answers),
}

impl Walk {
    /// Goes on to the next questions, as many as `width` at most, or to the end of the way.
    fn step(mut self, width: usize, checkpoint: &Checkpoint) -> Result<Step, Interrupted> {
        let batch = self.batch(width, checkpoint)?;
        Ok(if batch.is_empty() { Step::Done(self.end()) } else { Step::Ask(Box::new(self), batch) })
    }

    fn batch(&mut self, width: usize, checkpoint: &Checkpoint) -> Result<Vec<Question>, Interrupted> {
        let mut batch = Vec::new();
        while let Some(tag) = self.inquiry.contenders.get(self.next).cloned()
            && batch.len() < width
            && !self.is_settled(&tag)
        {
            checkpoint.check()?;
            let (place, birth) = (self.next, self.inquiry.known(&tag));
            match self.inquiry.ask(&tag, birth) {
                Some(_) if self.failures >= FAILURES => break,
                Some(_) if self.asked == MOST => {
                    self.answers.gap.get_or_insert(Gap::TooMany);
                    break;
                }
                Some(ask) => {
                    self.asked += 1;
                    batch.push(Question { place, tag: tag.clone(), ask });
                    self.answers.births.insert(tag, birth);
                }
                None => self.note(place, &tag, birth),
            }
            self.next += 1;
        }
        Ok(batch)
    }

    /// Whether nothing depends on the age of a tag: a better one takes part. Of equal ones each may count.
    fn is_settled(&self, tag: &str) -> bool {
        let Inquiry { policy, contenders, .. } = &self.inquiry;
        self.best.is_some_and(|best| policy.compare(tag, &contenders[best]) != Some(Ordering::Equal))
    }

    fn take(&mut self, question: &Question, answer: Result<Option<ImageFacts>, LookFailure>) {
        let Question { place, tag, .. } = question;
        let mut birth = self.answers.birth(tag);
        match answer {
            Ok(None) => {}
            Ok(Some(facts)) => {
                birth.created = facts.created;
                self.answers.learned.push((tag.clone(), facts));
            }
            // It is listed before it can be pulled: nobody can say how old it is.
            Err(failure) if failure.kind == LookFailureKind::Missing => {}
            Err(failure) => {
                self.failures += 1;
                self.answers.gap.get_or_insert(Gap::Failed { tag: tag.clone(), failure });
            }
        }
        self.note(*place, tag, birth);
    }

    fn note(&mut self, place: usize, tag: &str, birth: Birth) {
        self.answers.births.insert(tag.to_owned(), birth);
        if self.inquiry.takes_part(birth) {
            self.best = Some(self.best.map_or(place, |best| best.min(place)));
        }
    }

    fn end(mut self) -> Answers {
        let is_outdone = self.best.is_some();
        for tag in &self.inquiry.contenders[self.next..] {
            let birth = Birth { is_outdone, ..self.inquiry.known(tag) };
            self.answers.births.insert(tag.clone(), birth);
        }
        self.answers
    }
}
