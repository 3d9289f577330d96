//! The values of the tags that a rule accepts, in the order of the rule.

use std::collections::HashMap;

use super::{ValueBytes, evaluate, too_new};
use crate::policy::age::Ages;
use crate::policy::definition::{Check, Policy, PolicyError};
use crate::policy::ranking::{self, Candidate};
use crate::policy::rule::Rank;
use crate::policy::selection::Outcome;
use crate::reference::TagList;

/// The maximum number of values of one policy.
const MAX_VALUES: usize = 1_000;

/// The maximum length of the values and tags of one policy together, in bytes.
const MAX_BYTES: usize = 256 << 10;

/// A value with the tag that counts for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankedValue {
    /// The value: the result of the filter, or the tag.
    pub value: String,
    /// The tag.
    pub tag: String,
    /// True if the tag is not old enough yet.
    pub is_young: bool,
}

/// Returns the values that the rule accepts, the best first, each once.
///
/// They are at most 1,000. There are none if a tag makes the whole selection fail.
///
/// # Errors
///
/// If the filter is invalid or its values are too large, or if `check`, which is called between two tags, fails.
pub fn ranked_values(
    policy: &Policy,
    tags: &TagList,
    ages: Ages<'_>,
    check: Check<'_>,
) -> Result<Vec<RankedValue>, PolicyError> {
    policy.check_filter()?;
    let (mut accepted, mut ranks) = (Vec::new(), Vec::<Rank>::new());
    let mut values = ValueBytes::default();
    for tag in tags.iter() {
        check()?;
        let (value, evaluated) = evaluate(policy, tag);
        values.add(value.as_ref())?;
        let is_young = || too_new(policy, tag, ages).is_some();
        match (evaluated, value) {
            (Ok(rank), Some(value)) => {
                accepted.push((tag, value, is_young()));
                ranks.push(rank);
            }
            (Err(Outcome::NotANumber(_)), _) if !is_young() => return Ok(Vec::new()),
            _ => {}
        }
    }
    let indexed = ranks.into_iter().enumerate();
    let mut candidates: Vec<Candidate<'_>> =
        indexed.map(|(index, rank)| Candidate { index, value: &accepted[index].1, rank }).collect();
    ranking::sort(&policy.rule, &mut candidates);
    let (mut ranked, mut bytes) = (Vec::<RankedValue>::new(), 0);
    // The position of each value, with the index of its tag in the list.
    let mut places = HashMap::<&str, (usize, usize)>::new();
    for Candidate { index, value, .. } in &candidates {
        let (tag, _, is_young) = &accepted[*index];
        if let Some((place, known)) = places.get_mut(value) {
            // Of the tags with one value the last counts, as in a selection, and a tag that is too new does not.
            let entry = &mut ranked[*place];
            if (!is_young, *index) > (!entry.is_young, *known) {
                (entry.tag, entry.is_young, *known) = ((*tag).to_owned(), *is_young, *index);
            }
            continue;
        }
        bytes += value.len() + tag.len();
        if ranked.len() < MAX_VALUES && bytes <= MAX_BYTES {
            places.insert(value, (ranked.len(), *index));
            let (value, tag) = ((*value).to_owned(), (*tag).to_owned());
            ranked.push(RankedValue { value, tag, is_young: *is_young });
        }
    }
    Ok(ranked)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{Value, json};
    use tagboat_api::policy::ImagePolicySpec;
    use tagboat_api::settings::PolicySettings;

    use super::*;
    use crate::policy::TagAge;

    fn policy(spec: &Value, minimum_age: &str) -> Policy {
        let mut whole = json!({"imageRepositoryRef": {"name": "r"}});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let spec: ImagePolicySpec = serde_json::from_value(whole).unwrap();
        let annotations = [("tagboat.dev/minimum-age".to_owned(), minimum_age.to_owned())];
        Policy::new(&spec, PolicySettings::from_annotations(&annotations.into()).unwrap()).unwrap()
    }

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    fn age_of(tag: &str) -> TagAge {
        let first_seen = if tag.ends_with("new") { now() } else { Timestamp::UNIX_EPOCH };
        TagAge { first_seen: Some(first_seen), ..TagAge::default() }
    }

    /// The winner of a selection.
    fn winner(policy: &Policy, tags: &str) -> Option<String> {
        let tags: TagList = tags.split_whitespace().collect();
        let selection = policy.select(&tags, Ages { now: now(), age_of: &age_of }).unwrap();
        selection.latest().map(str::to_owned)
    }

    /// The values as `VALUE=TAG`, with a `?` after tags that are too new.
    ///
    /// Tags that end with `new` are.
    fn shown(policy: &Policy, tags: &str) -> String {
        let tags: TagList = tags.split_whitespace().collect();
        let ranked = ranked_values(policy, &tags, Ages { now: now(), age_of: &age_of }, &|| Ok(())).unwrap();
        let shown = ranked.iter().map(|RankedValue { value, tag, is_young }| {
            format!("{value}={tag}{}", if *is_young { "?" } else { "" })
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_values_are_those_of_the_candidates_in_the_order_of_the_rule() {
        let semver = json!({"policy": {"semver": {"range": "<2"}}});
        let builds = json!({
            "policy": {"numerical": {"order": "asc"}},
            "filterTags": {"pattern": "^(?:api|web)-(?P<build>[0-9a-z]+)", "extract": "$build"},
        });
        for (spec, tags, expected) in [
            (&semver, "1.0.0 1.2.0 2.0.0 latest", "1.2.0=1.2.0 1.0.0=1.0.0"),
            (&builds, "api-1 api-3 other-9 web-20", "20=web-20 3=api-3 1=api-1"),
            // Of the tags with one value the last in the list counts, unless it is too new.
            (&builds, "api-3-a api-3-b", "3=api-3-a"),
            (&builds, "api-3-a-new api-3-b api-4-new", "4=api-4-new? 3=api-3-b"),
            (&builds, "api-3 api-x", ""),
            (&builds, "", ""),
        ] {
            let shown = shown(&policy(spec, "1h"), tags);
            assert_eq!(shown, expected, "{tags}");
            let best = shown.split(' ').find(|one| !one.ends_with('?'));
            let best = best.and_then(|one| one.split_once('=')).map(|(_, tag)| tag.to_owned());
            assert_eq!(best, winner(&policy(spec, "1h"), tags), "{tags}");
        }
    }

    #[test]
    fn a_policy_has_at_most_a_thousand_values() {
        let numbers = policy(&json!({"policy": {"numerical": {"order": "asc"}}}), "0s");
        let tags: Vec<String> = (0..1_500).map(|number| number.to_string()).collect();
        let shown = shown(&numbers, &tags.join(" "));
        assert!(shown.starts_with("1499=1499 ") && shown.ends_with(" 500=500"));
    }
}
