//! Release groups: the value to which all members of a group move.
//!
//! A policy ranks the values of its tags. The group moves to the best value that occurs in the rankings of all members, if
//! it is the best one for each of them.

use std::collections::{HashMap, HashSet};
use std::fmt;

use tagboat_api::ObjectName;
use tagboat_api::policy::ImagePolicySpec;

use super::filter::Filter;
use super::selection::RankedValue;

/// The maximum number of members of a group.
const MAX_MEMBERS: usize = 100;

/// Returns the reason why a group of too many members does not move.
pub fn too_many(members: usize) -> Option<String> {
    (members > MAX_MEMBERS).then(|| format!("it has {members} policies, and {MAX_MEMBERS} are allowed"))
}

/// Returns the sentence about a group that does not move.
pub fn does_not_move(group: &str, cause: &dyn fmt::Display) -> String {
    format!("the release group {group} does not move: {cause}")
}

/// The reason why a member of a group does not select, as a clause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// It is suspended.
    #[error("is suspended")]
    Suspended,
    /// Its repository has no tags.
    #[error("has no tags to choose from")]
    NoTags,
    /// An error keeps it from selecting.
    #[error("cannot select: {0}")]
    Error(String),
    /// Another reason.
    #[error("{0}")]
    Other(String),
}

impl Obstacle {
    /// Returns the sentence about the member that has it.
    pub fn of(&self, member: &ObjectName) -> String {
        format!("ImagePolicy {member} {self}")
    }
}

/// The values of one policy, to which the rankings of a group refer.
#[derive(Clone, Debug, Default)]
pub struct Values {
    all: Vec<String>,
    positions: HashMap<String, usize>,
}

/// The values of one member that are among those of a group, the best first.
#[derive(Clone, Debug)]
pub struct Ranking {
    /// The member.
    pub policy: ObjectName,
    /// The positions of the values that it may select, with its tag for each.
    open: Vec<(usize, String)>,
    /// The positions of values whose tags are not old enough yet.
    young: Vec<usize>,
}

/// The reason why the members of a group have no value to move to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disagreement {
    /// No value is in the rankings of all members.
    NoCommonValue {
        /// The best value of the first member that has one, and the members without it.
        best: Option<(String, Vec<ObjectName>)>,
    },
    /// The best of the common values is not the same for two members.
    ///
    /// Two members, each with the best one for it.
    OtherOrder(Box<[(ObjectName, String); 2]>),
}

impl Values {
    /// Creates the table of the values of one member.
    pub fn of(ranked: &[RankedValue]) -> Self {
        let all: Vec<String> = ranked.iter().map(|ranked| ranked.value.clone()).collect();
        let positions = all.iter().enumerate().map(|(position, value)| (value.clone(), position)).collect();
        Self { all, positions }
    }

    /// Returns the values, the best first.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(String::as_str)
    }

    /// Returns the ranking of a member, as far as it concerns these values.
    pub fn ranking(&self, policy: ObjectName, ranked: Vec<RankedValue>) -> Ranking {
        let mut ranking = Ranking { policy, open: Vec::new(), young: Vec::new() };
        for RankedValue { value, tag, is_young } in ranked {
            match self.positions.get(&value) {
                Some(position) if is_young => ranking.young.push(*position),
                Some(position) => ranking.open.push((*position, tag)),
                None => {}
            }
        }
        ranking
    }

    /// Returns the values of all members, with tags that are not old enough.
    pub fn possible(&self, members: &[&Ranking]) -> HashSet<&str> {
        let mut counts = vec![0; self.all.len()];
        for member in members {
            let open = member.open.iter().map(|(position, _)| position);
            open.chain(&member.young).for_each(|position| counts[*position] += 1);
        }
        let all = self.all.iter().zip(counts);
        all.filter(|(_, count)| *count == members.len()).map(|(value, _)| value.as_str()).collect()
    }

    /// Returns the position of the value to which all members move.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn agree(&self, members: &[&Ranking]) -> Result<Position, Disagreement> {
        let mut counts = vec![0; self.all.len()];
        members.iter().flat_map(|member| &member.open).for_each(|(position, _)| counts[*position] += 1);
        let best = |member: &Ranking| {
            member.open.iter().map(|(position, _)| *position).find(|one| counts[*one] == members.len())
        };
        let Some((first, position)) = members.first().and_then(|first| Some((first, best(first)?))) else {
            return Err(Disagreement::NoCommonValue { best: self.lacked(members) });
        };
        let named = |member: &Ranking, position: usize| (member.policy.clone(), self.all[position].clone());
        let differing = members.iter().find_map(|member| {
            best(member).filter(|other| *other != position).map(|other| named(member, other))
        });
        match differing {
            None => Ok(Position(position)),
            Some(other) => Err(Disagreement::OtherOrder(Box::new([named(first, position), other]))),
        }
    }

    /// Returns the members that lack a value.
    pub fn lacking<'m>(&self, value: &str, members: &[&'m Ranking]) -> Vec<&'m ObjectName> {
        let position = self.positions.get(value);
        let has = |member: &Ranking| position.is_some_and(|position| member.has(*position));
        members.iter().filter(|member| !has(member)).map(|member| &member.policy).collect()
    }

    /// Returns the best value of a member, and the members that lack it.
    fn lacked(&self, members: &[&Ranking]) -> Option<(String, Vec<ObjectName>)> {
        let (position, _) = members.iter().find_map(|member| member.open.first())?;
        let value = &self.all[*position];
        Some((value.clone(), self.lacking(value, members).into_iter().cloned().collect()))
    }
}

/// The position of a value on which a group agrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position(usize);

impl Ranking {
    /// Returns the tag of the member for a value on which the group agrees.
    pub fn tag(&self, Position(wanted): Position) -> Option<&str> {
        self.open.iter().find(|(position, _)| *position == wanted).map(|(_, tag)| tag.as_str())
    }

    fn has(&self, wanted: usize) -> bool {
        self.open.iter().any(|(position, _)| *position == wanted)
    }
}

impl fmt::Display for Disagreement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCommonValue { best: None } => formatter.write_str("no policy has a value"),
            Self::NoCommonValue { best: Some((value, lacking)) } => {
                write!(formatter, "no value is common to all policies: {} {value}", Lacking(lacking))
            }
            Self::OtherOrder(two) => {
                let [(one, value), (other, other_value)] = two.as_ref();
                write!(
                    formatter,
                    "of the values that all policies have, {value} is the best one for {one} and {other_value} for {other}"
                )
            }
        }
    }
}

/// The members that lack a value, as the beginning of a clause.
#[derive(Debug)]
pub struct Lacking<'a, N>(pub &'a [N]);

/// The number of members that such a clause names.
const MAX_NAMED: usize = 10;

impl<N: fmt::Display> fmt::Display for Lacking<'_, N> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().take(MAX_NAMED).map(ToString::to_string).collect();
        formatter.write_str(&names.join(", "))?;
        match self.0.len() {
            1 => formatter.write_str(" lacks"),
            number if number > MAX_NAMED => write!(formatter, " and {} more lack", number - MAX_NAMED),
            _ => formatter.write_str(" lack"),
        }
    }
}

/// Returns the value of a tag by the filter of a policy.
///
/// There is none if the filter is invalid or does not match.
pub fn value_of(spec: &ImagePolicySpec, tag: &str) -> Option<String> {
    let Some(filter) = &spec.filter_tags else { return Some(tag.to_owned()) };
    Filter::new(filter).ok()?.value(tag).map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ObjectName {
        ObjectName { namespace: "shop".to_owned(), name: text.to_owned() }
    }

    /// Values from best to worst; those with a `?` are too new.
    fn ranked(policy: &str, values: &str) -> Vec<RankedValue> {
        let value = |text: &str| {
            let value = text.trim_end_matches('?').to_owned();
            RankedValue { tag: format!("{policy}-{value}"), is_young: text.ends_with('?'), value }
        };
        values.split_whitespace().map(value).collect()
    }

    /// The table of the first member, and all rankings.
    fn group(members: &[(&str, &str)]) -> (Values, Vec<Ranking>) {
        let values = Values::of(&ranked(members[0].0, members[0].1));
        let rankings =
            members.iter().map(|(policy, list)| values.ranking(name(policy), ranked(policy, list)));
        let rankings = rankings.collect();
        (values, rankings)
    }

    #[test]
    fn all_members_move_to_the_best_value_that_all_have() {
        for (members, expected) in [
            (&[("api", "3 2 1"), ("web", "2 1"), ("job", "4 3 2 1")][..], "api-2 web-2 job-2"),
            (&[("api", "3 2 1"), ("web", "3 1")], "api-3 web-3"),
            (&[("api", "3 2 1")], "api-3"),
            // A tag that is too new does not count, for any member.
            (&[("api", "3? 2 1"), ("web", "3 2 1")], "api-2 web-2"),
            (&[("api", "3 2 1"), ("web", "3 2? 1")], "api-3 web-3"),
            // The order of values that are not common to all does not matter.
            (&[("api", "3 4 2 1"), ("web", "2 3 1"), ("job", "2 1")], "api-2 web-2 job-2"),
            (
                &[("api", "3 2 1"), ("web", "1 2")],
                "of the values that all policies have, 2 is the best one for shop/api and 1 for shop/web",
            ),
            (
                &[("api", "3 2"), ("web", "1"), ("job", "3")],
                "no value is common to all policies: shop/web lacks 3",
            ),
            (
                &[("api", "2?"), ("web", "2 1"), ("job", "2")],
                "no value is common to all policies: shop/api lacks 2",
            ),
            (&[("api", ""), ("web", "2 1")], "no policy has a value"),
        ] {
            let (values, rankings) = group(members);
            let rankings: Vec<&Ranking> = rankings.iter().collect();
            let shown = match values.agree(&rankings) {
                Ok(position) => {
                    let tags = rankings.iter().filter_map(|member| member.tag(position));
                    tags.collect::<Vec<_>>().join(" ")
                }
                Err(disagreement) => disagreement.to_string(),
            };
            assert_eq!(shown, expected, "{members:?}");
        }
    }

    /// Each member finds the group's value with a table of its own values.
    #[test]
    fn each_member_finds_the_same_value() {
        let members = [("api", "9 7 5 3 1"), ("web", "8 7 6 5 4 3"), ("job", "5 3 9 8")];
        for first in 0..members.len() {
            let mut members = members;
            members.rotate_left(first);
            let (values, rankings) = group(&members);
            let rankings: Vec<&Ranking> = rankings.iter().collect();
            let position = values.agree(&rankings).unwrap();
            let tags: Vec<_> = rankings.iter().filter_map(|member| member.tag(position)).collect();
            assert_eq!(tags, members.map(|(name, _)| format!("{name}-5")), "{first}");
        }
    }

    #[test]
    fn a_value_may_become_common_when_its_tags_are_old_enough() {
        let (values, rankings) = group(&[("api", "3? 2 1"), ("web", "3? 1?"), ("job", "3 1")]);
        let rankings: Vec<&Ranking> = rankings.iter().collect();
        assert_eq!(values.possible(&rankings), ["3", "1"].into());
        let lacking: Vec<String> =
            values.lacking("1", &rankings).into_iter().map(ToString::to_string).collect();
        assert_eq!(lacking, ["shop/web"]);
        let many: Vec<String> = (0..12).map(|number| number.to_string()).collect();
        assert_eq!(Lacking(&many).to_string(), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more lack");
    }

    #[test]
    fn the_value_of_a_tag_is_that_of_the_filter() {
        let value = |filter: serde_json::Value, tag: &str| {
            let mut spec = serde_json::json!({"imageRepositoryRef": {"name": "r"}, "policy": {}});
            spec["filterTags"] = filter;
            value_of(&serde_json::from_value(spec).unwrap(), tag)
        };
        let extract = serde_json::json!({"pattern": "^api-(?P<version>.*)$", "extract": "$version"});
        for (filter, tag, expected) in [
            (serde_json::Value::Null, "api-1.0", Some("api-1.0")),
            (serde_json::json!({"pattern": "^api"}), "api-1.0", Some("api-1.0")),
            (extract.clone(), "api-1.0", Some("1.0")),
            (extract, "web-1.0", None),
            (serde_json::json!({"pattern": "("}), "api-1.0", None),
        ] {
            assert_eq!(value(filter.clone(), tag).as_deref(), expected, "{filter} {tag}");
        }
    }
}
