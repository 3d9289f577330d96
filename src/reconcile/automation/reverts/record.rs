//! The held policies, as the message of the condition `RevertHeld` has them.
//!
//! The message begins with a list that can be parsed, so that a hold survives a restart without any storage but the status.

use std::collections::BTreeMap;
use std::fmt::Write;

use tagboat_api::Condition;
use tagboat_api::settings::OnRevert;

use crate::git::CommitId;
use crate::printable::printable;
use crate::reconcile::conditions::{self, ConditionStatus, ConditionType};

const BEGIN: &str = "tagboat.dev/on-revert is ";
const KEEPS: &str = " and keeps out ";
const CHANGED: &str = ", changed between ";
const AND: &str = " and ";
const BY: &str = " by ";
const TOO_MANY: &str = "too many images to be named, so that every policy counts as held";
const WITHOUT_IMAGE: &str = ", and of policies without an image ";

/// The held policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldRecord {
    /// The setting that holds them.
    pub mode: OnRevert,
    /// The policies by their names; none if there are too many to be named.
    pub policies: Option<BTreeMap<String, HeldPolicy>>,
    /// If there are too many, those that have no image at present.
    ///
    /// They are here as far as they can be named, because nothing else has the image that is not written.
    pub without_image: BTreeMap<String, HeldPolicy>,
}

/// A policy whose image is not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldPolicy {
    /// The image.
    pub image: String,
    /// The change that took it back, if it is known.
    pub between: Option<Between>,
}

/// The commits between which a change was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Between {
    /// The last commit without the change.
    pub from: CommitId,
    /// The first known commit with it.
    pub to: CommitId,
    /// Its author, if there is no other commit between them.
    pub author: Option<String>,
}

impl HeldRecord {
    /// Returns the record in the conditions of an automation; none if nothing is held.
    ///
    /// A message that cannot be read must not end a hold, so that any policy counts as held then.
    pub fn of_conditions(conditions: &[Condition]) -> Option<Self> {
        let condition = conditions::find(conditions, ConditionType::RevertHeld)?;
        let is_held = condition.status == ConditionStatus::True.to_string();
        is_held.then(|| {
            Self::from_message(&condition.message)
                .unwrap_or_else(|| Self::any(OnRevert::Hold, BTreeMap::new()))
        })
    }

    /// Returns the record of some policies.
    pub fn of(mode: OnRevert, policies: BTreeMap<String, HeldPolicy>) -> Self {
        Self { mode, policies: Some(policies), without_image: BTreeMap::new() }
    }

    /// Returns the record of too many policies to be named.
    pub fn any(mode: OnRevert, without_image: BTreeMap<String, HeldPolicy>) -> Self {
        Self { mode, policies: None, without_image }
    }

    /// Returns the policies that are named with their images.
    pub fn named(&self) -> &BTreeMap<String, HeldPolicy> {
        self.policies.as_ref().unwrap_or(&self.without_image)
    }

    /// Returns true if a policy is held.
    pub fn has(&self, policy: &str) -> bool {
        self.policies.as_ref().is_none_or(|policies| policies.contains_key(policy))
    }

    /// Parses the beginning of a message.
    pub fn from_message(message: &str) -> Option<Self> {
        let (mode, rest) = message.strip_prefix(BEGIN)?.split_once(KEEPS)?;
        let mode = mode.parse().ok()?;
        match rest.strip_prefix(TOO_MANY) {
            None => Some(Self::of(mode, list_from(rest)?)),
            // What cannot be read of such a list must not end a hold.
            Some(rest) => {
                let without_image = rest.strip_prefix(WITHOUT_IMAGE).and_then(list_from);
                Some(Self::any(mode, without_image.unwrap_or_default()))
            }
        }
    }

    /// Returns the beginning of the message, with or without the commits.
    pub(super) fn list(&self, has_commits: bool) -> String {
        let begin = format!("{BEGIN}{}{KEEPS}", self.mode.as_str());
        match &self.policies {
            Some(policies) => begin + &list_of(policies, has_commits),
            None if self.without_image.is_empty() => begin + TOO_MANY,
            None => begin + TOO_MANY + WITHOUT_IMAGE + &list_of(&self.without_image, false),
        }
    }
}

/// Returns a list of policies with their images, with or without the commits.
fn list_of(policies: &BTreeMap<String, HeldPolicy>, has_commits: bool) -> String {
    let mut text = String::new();
    for (index, (name, HeldPolicy { image, between })) in policies.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        let _ = write!(text, "{separator}{image} of {name}");
        if let Some(between) = between.as_ref().filter(|_| has_commits) {
            text.push_str(&between.to_text());
        }
    }
    text
}

/// Parses a list of policies, which ends with a semicolon.
fn list_from(text: &str) -> Option<BTreeMap<String, HeldPolicy>> {
    let (mut policies, mut rest) = (BTreeMap::new(), text);
    loop {
        let (image, after) = rest.split_once(" of ")?;
        let end = after.find([',', ';', ' '])?;
        let (policy, mut after) = after.split_at(end);
        let between = match after.strip_prefix(CHANGED) {
            Some(changed) => {
                let (between, end) = Between::parse(changed)?;
                after = end;
                Some(between)
            }
            None => None,
        };
        policies.insert(policy.to_owned(), HeldPolicy { image: image.to_owned(), between });
        match after.strip_prefix(", ") {
            Some(next) => rest = next,
            None => return after.starts_with(';').then_some(policies),
        }
    }
}

impl Between {
    fn parse(text: &str) -> Option<(Self, &str)> {
        let (from, rest) = text.split_once(AND)?;
        let end = rest.find([',', ';', ' '])?;
        let (to, mut rest) = rest.split_at(end);
        let mut author = None;
        if let Some(quoted) = rest.strip_prefix(BY) {
            let mut values = serde_json::Deserializer::from_str(quoted).into_iter::<String>();
            author = Some(values.next()?.ok()?);
            rest = &quoted[values.byte_offset()..];
        }
        Some((Self { from: from.parse().ok()?, to: to.parse().ok()?, author }, rest))
    }

    fn to_text(&self) -> String {
        let author = self.author.as_ref().map(|author| {
            let name = printable(author).into_owned();
            format!("{BY}{}", serde_json::Value::String(name))
        });
        format!("{CHANGED}{}{AND}{}{}", self.from, self.to, author.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_parsed_from_its_list() {
        let commit = |digit: &str| digit.repeat(40).parse().unwrap();
        let between = |author: Option<&str>| {
            Some(Between { from: commit("1"), to: commit("2"), author: author.map(ToOwned::to_owned) })
        };
        let policy = |image: &str, between| HeldPolicy { image: image.to_owned(), between };
        let policies = BTreeMap::from([
            ("a.b".to_owned(), policy("ghcr.io/x/a:1.0.0@sha256:0", between(None))),
            ("b".to_owned(), policy("x:5000/b:1", None)),
            ("c".to_owned(), policy("c:1", between(Some("O\"Neil, by; of x")))),
        ]);
        let record = HeldRecord::of(OnRevert::Pause, policies);
        let text = format!("{}; it ends", record.list(true));
        assert_eq!(HeldRecord::from_message(&text), Some(record.clone()), "{text}");
        let short = format!("{}; it ends", record.list(false));
        let found = HeldRecord::from_message(&short).unwrap().policies.unwrap();
        assert!(found.len() == 3 && found.values().all(|policy| policy.between.is_none()), "{short}");
        let without_image = BTreeMap::from([("b".to_owned(), policy("x:5000/b:1", None))]);
        for without_image in [BTreeMap::new(), without_image] {
            let any = HeldRecord::any(OnRevert::Pause, without_image);
            assert_eq!(HeldRecord::from_message(&format!("{}; it ends", any.list(true))), Some(any));
        }
        for bad in ["no value is held", "tagboat.dev/on-revert is hold and keeps out a of", "x"] {
            assert_eq!(HeldRecord::from_message(bad), None, "{bad}");
        }
    }
}
