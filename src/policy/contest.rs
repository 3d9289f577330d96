//! The contest: the values that a rule chooses from, put in order.

use super::rule::{Direction, Rank, Rule};

/// A tag in the contest.
#[derive(Debug)]
pub(super) struct Entrant<'v> {
    /// The tag's place in the list.
    pub(super) place: usize,
    /// What the filter made of the tag.
    pub(super) value: &'v str,
    /// What decides about it.
    pub(super) rank: Rank,
}

/// Puts entrants, given in the order of the list, in the order of the rule, the winner first.
///
/// Of equal versions and texts the first of the list wins, of equal numbers the last, as in Flux.
pub(super) fn order(rule: &Rule, entrants: &mut [Entrant<'_>]) {
    let winner = number_that_wins(rule, entrants).map(|index| entrants[index].place);
    if matches!(rule, Rule::Number(_)) {
        entrants.reverse();
    }
    entrants.sort_by(|left, right| rule.compare((right.value, &right.rank), (left.value, &left.rank)));
    if let Some(at) = entrants.iter().position(|entrant| Some(entrant.place) == winner) {
        entrants[..=at].rotate_right(1);
    }
}

/// The winner among numbers of which some are NaN, found as Flux finds it.
///
/// NaN is neither greater nor less than anything, so that it takes any other's place, and any other takes its.
fn number_that_wins(rule: &Rule, entrants: &[Entrant<'_>]) -> Option<usize> {
    let Rule::Number(direction) = rule else { return None };
    let number = |index: usize| match entrants[index].rank {
        Rank::Number(number) => number,
        _ => f64::NAN,
    };
    if !(0..entrants.len()).any(|index| number(index).is_nan()) {
        return None;
    }
    (0..entrants.len()).reduce(|best, next| {
        let is_worse = match direction {
            Direction::Ascending => number(next) < number(best),
            Direction::Descending => number(next) > number(best),
        };
        if is_worse { best } else { next }
    })
}
