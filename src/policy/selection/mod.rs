//! The selection from a list of tags: a winner, and verdicts on the others.

mod error;
mod ranked_values;
mod verdict;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use jiff::SignedDuration;
use tagboat_api::settings::{TextOrder, UnknownAge};
use tagboat_versions::Version;

use super::age::{Ages, Maturity};
use super::definition::{Check, Policy, PolicyError};
use super::filter::{FilterError, MAX_VALUE_BYTES};
use super::ranking::{self, Candidate};
use super::rule::{Direction, Rank, Rejection, Rule};
use crate::reference::TagList;

pub use error::{Rejected, SelectionError};
pub use ranked_values::{RankedValue, ranked_values};
pub use verdict::{Outcome, Verdict};

/// The verdicts on all tags of a list.
#[derive(Debug)]
pub struct Selection<'p, 't> {
    policy: &'p Policy,
    verdicts: Vec<Verdict<'t>>,
    /// The number of candidates, whose verdicts come first.
    candidate_count: usize,
    error: Option<SelectionError>,
}

impl<'p, 't> Selection<'p, 't> {
    pub(super) fn new(
        policy: &'p Policy,
        tags: &'t TagList,
        ages: Ages<'_>,
        check: Check<'_>,
    ) -> Result<Self, PolicyError> {
        let mut verdicts: Vec<Verdict<'t>> = Vec::with_capacity(tags.len());
        let mut ranks: Vec<(usize, Rank)> = Vec::new();
        let mut values = ValueBytes::default();
        for tag in tags.iter() {
            check()?;
            let (value, evaluated) = evaluate(policy, tag);
            values.add(value.as_ref())?;
            let outcome = match evaluated {
                // An invalid number makes the whole selection fail, but a too new tag does not count yet.
                Err(outcome @ Outcome::NotANumber(_)) => too_new(policy, tag, ages).unwrap_or(outcome),
                Err(outcome) => outcome,
                Ok(rank) => too_new(policy, tag, ages).unwrap_or_else(|| {
                    ranks.push((verdicts.len(), rank));
                    Outcome::Candidate
                }),
            };
            verdicts.push(Verdict { tag, value, outcome });
        }
        let shadowed = shadows(policy, &verdicts, &ranks);
        ranks.retain(|(index, _)| !shadowed.contains_key(index));
        let ranked: Vec<usize> = {
            let value = |index: usize| verdicts[index].value.as_deref().unwrap_or_default();
            let ranks = ranks.into_iter();
            let mut candidates: Vec<Candidate<'_>> =
                ranks.map(|(index, rank)| Candidate { index, value: value(index), rank }).collect();
            ranking::sort(&policy.rule, &mut candidates);
            candidates.into_iter().map(|candidate| candidate.index).collect()
        };
        for (index, by) in shadowed {
            verdicts[index].outcome = Outcome::Shadowed { by };
        }
        let error = SelectionError::of(&verdicts, ranked.len());
        if let Some(&winner) = ranked.first().filter(|_| error.is_none()) {
            verdicts[winner].outcome = Outcome::Latest;
        }
        Ok(Self { policy, candidate_count: ranked.len(), verdicts: best_first(verdicts, &ranked), error })
    }

    /// The winning tag.
    pub fn latest(&self) -> Option<&'t str> {
        self.verdicts.first().filter(|verdict| verdict.outcome == Outcome::Latest).map(|verdict| verdict.tag)
    }

    /// The error, if no tag won.
    pub fn error(&self) -> Option<&SelectionError> {
        self.error.as_ref()
    }

    /// The verdicts on all tags.
    ///
    /// Candidates come first, from best to worst, then the other tags in descending byte order.
    pub fn verdicts(&self) -> &[Verdict<'t>] {
        &self.verdicts
    }

    /// The time until the next too new tag is old enough, if known.
    pub fn matures_in(&self) -> Option<Duration> {
        let young = self.verdicts.iter().filter_map(|verdict| match verdict.outcome {
            Outcome::TooNew { left, .. } => left,
            _ => None,
        });
        young.min()
    }

    /// Returns true if the rule may compare values that differ from the tags.
    pub fn has_values(&self) -> bool {
        matches!(&self.policy.filter, Some(Ok(filter)) if filter.extracts())
    }

    /// The reason for a verdict, as a phrase.
    pub fn reason(&self, verdict: &Verdict<'_>) -> String {
        let value = verdict.value.as_deref().unwrap_or_default();
        match &verdict.outcome {
            Outcome::Latest if self.candidate_count == 1 => "the only candidate".to_owned(),
            Outcome::Latest => {
                let (which, order) = describe_winner(&self.policy.rule);
                format!("the {which} of {} candidates{order}", self.candidate_count)
            }
            Outcome::Candidate => self.reason_of_loss(verdict.tag, value),
            Outcome::Shadowed { by } => format!("{by} has the same value {value:?} and counts in its place"),
            Outcome::Filtered => format!("it does not match the pattern {:?}", self.policy.pattern),
            Outcome::NotAVersion(error) => error.to_string(),
            Outcome::NotANumber(error) => format!("{value:?} is not a number: {error}"),
            Outcome::OutOfRange => self.reason_of_range(value),
            Outcome::Excluded => "the annotation tagboat.dev/exclude names it".to_owned(),
            Outcome::TooNew { age, .. } => {
                let minimum = Span(self.policy.minimum_age());
                match age {
                    Some(age) => {
                        format!("it is {} old, and tagboat.dev/minimum-age requires {minimum}", Span(*age))
                    }
                    None => format!("its age is not known, and tagboat.dev/minimum-age requires {minimum}"),
                }
            }
        }
    }

    fn reason_of_loss(&self, tag: &str, value: &str) -> String {
        let Some(winner) = self.latest() else {
            let bad = self.verdicts.iter().find(|verdict| matches!(verdict.outcome, Outcome::NotANumber(_)));
            let bad = bad.map_or("", |verdict| verdict.tag);
            return format!("nothing is selected while {bad} is not a number");
        };
        if self.policy.compare(winner, tag).is_some_and(std::cmp::Ordering::is_eq) {
            let position = if matches!(self.policy.rule, Rule::Number(_)) { "last" } else { "first" };
            return format!("{winner} is equal to it, and comes {position} in the list");
        }
        match &self.policy.rule {
            Rule::Number(_) if value.trim_start_matches(['+', '-']).eq_ignore_ascii_case("nan") => {
                "it is not a number that can be compared".to_owned()
            }
            Rule::SemVer(_) | Rule::Number(Direction::Ascending) => format!("{winner} is greater"),
            Rule::Number(Direction::Descending) => format!("{winner} is less"),
            Rule::Text(_, Direction::Ascending) => format!("{winner} comes after it"),
            Rule::Text(_, Direction::Descending) => format!("{winner} comes before it"),
        }
    }

    fn reason_of_range(&self, value: &str) -> String {
        let (Rule::SemVer(range), Ok(version)) = (&self.policy.rule, Version::parse_tag(value)) else {
            return String::new();
        };
        let mismatches: Vec<String> = range.mismatches(&version).iter().map(ToString::to_string).collect();
        format!("{:?} does not include it: {}", range.as_str(), mismatches.join(", or "))
    }
}

/// Limits the size of the filter's values: they stay in memory during the selection.
#[derive(Default)]
struct ValueBytes(usize);

impl ValueBytes {
    fn add(&mut self, value: Option<&Cow<'_, str>>) -> Result<(), PolicyError> {
        if let Some(Cow::Owned(value)) = value {
            self.0 += value.len();
        }
        if self.0 > MAX_VALUE_BYTES { Err(PolicyError::Filter(FilterError::LargeValues)) } else { Ok(()) }
    }
}

/// Filters a tag, and decides whether its value is a candidate, ignoring its age.
fn evaluate<'t>(policy: &Policy, tag: &'t str) -> (Option<Cow<'t, str>>, Result<Rank, Outcome<'t>>) {
    let value = match &policy.filter {
        Some(Ok(filter)) => filter.value(tag),
        _ => Some(Cow::Borrowed(tag)),
    };
    if policy.settings.exclude.contains(tag) {
        return (value, Err(Outcome::Excluded));
    }
    let Some(value) = value else { return (None, Err(Outcome::Filtered)) };
    let evaluated = policy.rule.evaluate(&value).map_err(|rejection| match rejection {
        Rejection::NotAVersion(error) => Outcome::NotAVersion(error),
        Rejection::OutOfRange => Outcome::OutOfRange,
        Rejection::NotANumber(error) => Outcome::NotANumber(error),
    });
    (Some(value), evaluated)
}

fn too_new<'t>(policy: &Policy, tag: &str, ages: Ages<'_>) -> Option<Outcome<'t>> {
    let minimum = policy.minimum_age();
    if minimum.is_zero() {
        return None;
    }
    match ages.maturity(tag, minimum) {
        Maturity::Mature => None,
        Maturity::Unknown { .. } if policy.unknown_age() == UnknownAge::Accept => None,
        Maturity::Unknown { left } => Some(Outcome::TooNew { age: None, left }),
        Maturity::Young { age, left } => Some(Outcome::TooNew { age: Some(age), left: Some(left) }),
    }
}

/// Returns the tags whose age decides the selection.
///
/// Tags whose values are invalid numbers come first, then the candidates, the best first. Shadowed tags are included,
/// since one of them counts if the tag that shadows it is too new.
pub(super) fn age_candidates<'t>(
    policy: &Policy,
    tags: &'t TagList,
    check: Check<'_>,
) -> Result<Vec<&'t str>, PolicyError> {
    let mut evaluated = Vec::with_capacity(tags.len());
    let mut values = ValueBytes::default();
    for tag in tags.iter() {
        check()?;
        let (value, outcome) = evaluate(policy, tag);
        values.add(value.as_ref())?;
        evaluated.push((tag, (value, outcome)));
    }
    let is_invalid_number =
        |evaluated: &Result<Rank, Outcome<'_>>| matches!(evaluated, Err(Outcome::NotANumber(_)));
    let invalid_numbers =
        evaluated.iter().filter(|(_, (_, evaluated))| is_invalid_number(evaluated)).map(|(tag, _)| *tag);
    let candidates = evaluated.iter().enumerate().filter_map(|(index, (_, (value, evaluated)))| {
        let rank = evaluated.as_ref().ok()?.clone();
        Some(Candidate { index, value: value.as_deref().unwrap_or_default(), rank })
    });
    let mut candidates: Vec<Candidate<'_>> = candidates.collect();
    ranking::sort(&policy.rule, &mut candidates);
    Ok(invalid_numbers.chain(candidates.iter().map(|candidate| evaluated[candidate.index].0)).collect())
}

/// Finds tags whose value a later tag of the list has too, with that tag.
///
/// The last one counts, as in Flux.
fn shadows<'t>(
    policy: &Policy,
    verdicts: &[Verdict<'t>],
    ranks: &[(usize, Rank)],
) -> HashMap<usize, &'t str> {
    let mut shadowed = HashMap::new();
    if !matches!(&policy.filter, Some(Ok(filter)) if filter.extracts()) {
        return shadowed;
    }
    let mut last: HashMap<&str, &'t str> = HashMap::new();
    for (index, _) in ranks.iter().rev() {
        let verdict = &verdicts[*index];
        let value = verdict.value.as_deref().unwrap_or_default();
        let by = *last.entry(value).or_insert(verdict.tag);
        if by != verdict.tag {
            shadowed.insert(*index, by);
        }
    }
    shadowed
}

/// Moves the verdicts at the indices `ranked` to the front, in that order.
fn best_first<'t>(verdicts: Vec<Verdict<'t>>, ranked: &[usize]) -> Vec<Verdict<'t>> {
    let mut verdicts: Vec<Option<Verdict<'t>>> = verdicts.into_iter().map(Some).collect();
    let mut ordered: Vec<Verdict<'t>> = Vec::with_capacity(verdicts.len());
    ordered.extend(ranked.iter().filter_map(|&index| verdicts[index].take()));
    ordered.extend(verdicts.into_iter().flatten());
    ordered
}

/// Describes the winner among the candidates, and the order if it has a name.
fn describe_winner(rule: &Rule) -> (&'static str, &'static str) {
    match rule {
        Rule::SemVer(_) | Rule::Number(Direction::Ascending) => ("greatest", ""),
        Rule::Number(Direction::Descending) => ("least", ""),
        Rule::Text(order, direction) => (
            if *direction == Direction::Ascending { "last" } else { "first" },
            if *order == TextOrder::Natural { " in natural order" } else { " in alphabetical order" },
        ),
    }
}

/// A duration printed to the second.
struct Span(Duration);

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = i64::try_from(self.0.as_secs()).unwrap_or(i64::MAX);
        write!(formatter, "{:#}", SignedDuration::from_secs(seconds))
    }
}

#[cfg(test)]
mod tests;
