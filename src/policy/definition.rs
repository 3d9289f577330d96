//! A policy, understood once.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::time::Duration;

use tagboat_api::Reason;
use tagboat_api::policy::{DigestReflectionPolicy, ImagePolicySpec, TagFilter};
use tagboat_api::settings::{PolicySettings, UnknownAge};

use super::age::Ages;
use super::filter::{Filter, FilterError};
use super::rule::{Rank, Rule, RuleError};
use super::selection::{self, Selection};
use crate::failing::Failing;
use crate::reference::TagList;
use crate::tenancy::Interrupted;

/// The spec and the annotations of an ImagePolicy, understood.
#[derive(Debug, Clone)]
pub struct Policy {
    pub(super) rule: Rule,
    /// A filter that cannot be understood is no matter before there are tags, as in Flux.
    pub(super) filter: Option<Result<Filter, FilterError>>,
    pub(super) pattern: String,
    pub(super) settings: PolicySettings,
}

impl Policy {
    /// Understands a policy.
    ///
    /// # Errors
    ///
    /// Returns an error if the spec makes no sense, whatever the tags are.
    pub fn new(spec: &ImagePolicySpec, settings: PolicySettings) -> Result<Self, PolicyError> {
        Self::check_interval(spec)?;
        let rule = Rule::new(&spec.policy, settings.order).map_err(PolicyError::Rule)?;
        let pattern = |filter: &TagFilter| filter.pattern.clone().unwrap_or_default();
        Ok(Self {
            rule,
            filter: spec.filter_tags.as_ref().map(Filter::new),
            pattern: spec.filter_tags.as_ref().map(pattern).unwrap_or_default(),
            settings,
        })
    }

    /// Checks that there is an interval if there has to be one.
    ///
    /// # Errors
    ///
    /// Returns an error if there is none.
    pub fn check_interval(spec: &ImagePolicySpec) -> Result<(), PolicyError> {
        if spec.digest_reflection_policy == DigestReflectionPolicy::Always && spec.interval.is_none() {
            return Err(PolicyError::NoInterval);
        }
        Ok(())
    }

    /// The filter, if there is one.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be understood. A selection says so only where there are tags; this does in any
    /// case.
    pub fn check_filter(&self) -> Result<(), PolicyError> {
        match &self.filter {
            Some(Err(error)) => Err(PolicyError::Filter(error.clone())),
            _ => Ok(()),
        }
    }

    /// Judges every tag of a list.
    ///
    /// # Errors
    ///
    /// Returns an error if there are tags and the filter cannot be understood.
    pub fn select<'t>(&self, tags: &'t TagList, ages: Ages<'_>) -> Result<Selection<'_, 't>, PolicyError> {
        self.select_within(tags, ages, &|| Ok(()))
    }

    /// Judges every tag of a list as [`select`](Self::select) does, with a check between two tags.
    ///
    /// # Errors
    ///
    /// Returns an error if there are tags and the filter cannot be understood or makes too much of them, or if `check`
    /// fails.
    pub fn select_within<'t>(
        &self,
        tags: &'t TagList,
        ages: Ages<'_>,
        check: Check<'_>,
    ) -> Result<Selection<'_, 't>, PolicyError> {
        if !tags.is_empty() {
            self.check_filter()?;
        }
        Selection::new(self, tags, ages, check)
    }

    /// The tags that are never chosen.
    pub fn excluded(&self) -> impl Iterator<Item = &str> {
        self.settings.exclude.iter()
    }

    /// The tags of a list whose age decides what is chosen, where the policy has a minimum age: first those that would
    /// spoil the whole contest, then those in the contest, the best first.
    ///
    /// # Errors
    ///
    /// Returns an error if the filter makes too much of the tags, or if `check`, which is called between two tags,
    /// fails.
    pub fn contenders<'t>(&self, tags: &'t TagList, check: Check<'_>) -> Result<Vec<&'t str>, PolicyError> {
        if self.minimum_age().is_zero() || self.check_filter().is_err() {
            return Ok(Vec::new());
        }
        selection::contenders(self, tags, check)
    }

    /// The most bytes that the filter makes of so many tags.
    pub fn most_value_bytes(&self, tags: usize) -> usize {
        self.filter
            .as_ref()
            .and_then(|filter| filter.as_ref().ok())
            .map_or(0, |filter| filter.most_value_bytes(tags))
    }

    /// How old a tag must be before it can be chosen.
    pub fn minimum_age(&self) -> Duration {
        self.settings.minimum_age.duration()
    }

    /// What becomes of a tag whose age is not known.
    pub fn unknown_age(&self) -> UnknownAge {
        self.settings.unknown_age
    }

    /// Whether the policy would rather have `left` than `right`: greater is better.
    ///
    /// Nothing where one of both can be in no contest of this policy; what is excluded or too new can.
    pub fn compare(&self, left: &str, right: &str) -> Option<Ordering> {
        let ((left, left_rank), (right, right_rank)) = (self.rank(left)?, self.rank(right)?);
        Some(self.rule.compare((&left, &left_rank), (&right, &right_rank)))
    }

    /// What the rule looks at in a tag, and what decides about it.
    fn rank<'t>(&self, tag: &'t str) -> Option<(Cow<'t, str>, Rank)> {
        let value = match &self.filter {
            None => Cow::Borrowed(tag),
            Some(Ok(filter)) => filter.value(tag)?,
            Some(Err(_)) => return None,
        };
        let rank = self.rule.judge(&value).ok()?;
        Some((value, rank))
    }
}

/// Called between two tags; its error ends the work.
pub type Check<'c> = &'c dyn Fn() -> Result<(), Interrupted>;

/// Why a policy can choose nothing, whatever the tags are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The digest is to be looked up again, but it is not said how often.
    #[error("spec.interval must be set when spec.digestReflectionPolicy is set to 'Always'")]
    NoInterval,
    /// The rule of choice cannot be understood.
    #[error("invalid policy")]
    Rule(#[source] RuleError),
    /// The filter of tags cannot be understood.
    #[error("failed to filter tags")]
    Filter(#[source] FilterError),
    /// The tags were not all judged.
    #[error("the tags were not all judged")]
    Interrupted(#[from] Interrupted),
}

impl Failing for PolicyError {
    fn reason(&self) -> Reason {
        match self {
            Self::NoInterval => Reason::IntervalNotConfigured,
            Self::Rule(_) | Self::Filter(_) => Reason::InvalidPolicy,
            Self::Interrupted(_) => Reason::Failure,
        }
    }

    fn is_retryable(&self) -> bool {
        matches!(self, Self::Interrupted(_))
    }
}
