//! Ranks the candidates: the values that a rule chooses from.

use super::rule::{Direction, Rank, Rule};

/// A tag among the candidates.
#[derive(Debug)]
pub(super) struct Candidate<'v> {
    /// The tag's index in the list.
    pub(super) index: usize,
    /// The filter's value of the tag.
    pub(super) value: &'v str,
    /// The value in the form that the rule compares.
    pub(super) rank: Rank,
}

/// Sorts candidates, given in the order of the list, by the rule, the winner first.
///
/// The first of equal versions and texts in the list wins, and the last of equal numbers, as in Flux.
pub(super) fn sort(rule: &Rule, candidates: &mut [Candidate<'_>]) {
    let winner = winning_number(rule, candidates).map(|index| candidates[index].index);
    if matches!(rule, Rule::Number(_)) {
        candidates.reverse();
    }
    candidates.sort_by(|left, right| rule.compare((right.value, &right.rank), (left.value, &left.rank)));
    if let Some(at) = candidates.iter().position(|candidate| Some(candidate.index) == winner) {
        candidates[..=at].rotate_right(1);
    }
}

/// Finds the winner among numbers that include NaN, with the algorithm of Flux.
///
/// NaN is neither greater nor less than any number, so it replaces any best number so far, and any number replaces it.
fn winning_number(rule: &Rule, candidates: &[Candidate<'_>]) -> Option<usize> {
    let Rule::Number(direction) = rule else { return None };
    let number = |index: usize| match candidates[index].rank {
        Rank::Number(number) => number,
        _ => f64::NAN,
    };
    if !(0..candidates.len()).any(|index| number(index).is_nan()) {
        return None;
    }
    (0..candidates.len()).reduce(|best, next| {
        let is_worse = match direction {
            Direction::Ascending => number(next) < number(best),
            Direction::Descending => number(next) > number(best),
        };
        if is_worse { best } else { next }
    })
}
