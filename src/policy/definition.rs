//! A parsed policy.

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
use crate::error::ReconcileError;
use crate::reference::TagList;
use crate::tenancy::Interrupted;

/// The parsed spec and annotations of an ImagePolicy.
#[derive(Debug, Clone)]
pub struct Policy {
    pub(super) rule: Rule,
    /// An invalid filter is an error only once there are tags, as in Flux.
    pub(super) filter: Option<Result<Filter, FilterError>>,
    pub(super) pattern: String,
    pub(super) settings: PolicySettings,
}

impl Policy {
    /// Parses a policy.
    ///
    /// # Errors
    ///
    /// Returns an error if the spec is invalid regardless of the tags.
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

    /// Checks that `spec.interval` is set if it is required.
    ///
    /// # Errors
    ///
    /// Returns an error if it is required and missing.
    pub fn check_interval(spec: &ImagePolicySpec) -> Result<(), PolicyError> {
        if spec.digest_reflection_policy == DigestReflectionPolicy::Always && spec.interval.is_none() {
            return Err(PolicyError::NoInterval);
        }
        Ok(())
    }

    /// Checks the filter, if there is one.
    ///
    /// # Errors
    ///
    /// Returns an error if it is invalid. A selection returns this error only if there are tags.
    pub fn check_filter(&self) -> Result<(), PolicyError> {
        match &self.filter {
            Some(Err(error)) => Err(PolicyError::Filter(error.clone())),
            _ => Ok(()),
        }
    }

    /// Selects the winner of a list of tags, with a verdict on every tag.
    ///
    /// # Errors
    ///
    /// Returns an error if there are tags and the filter is invalid.
    pub fn select<'t>(&self, tags: &'t TagList, ages: Ages<'_>) -> Result<Selection<'_, 't>, PolicyError> {
        self.select_within(tags, ages, &|| Ok(()))
    }

    /// Like [`select`](Self::select), with a check between two tags.
    ///
    /// # Errors
    ///
    /// Returns an error if there are tags and the filter is invalid or its values are too large, or if `check` fails.
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

    /// The tags that are excluded by the annotation.
    pub fn excluded(&self) -> impl Iterator<Item = &str> {
        self.settings.exclude.iter()
    }

    /// Returns the tags whose age decides the selection, if the policy has a minimum age.
    ///
    /// Tags that would make the whole selection fail come first, then the candidates, the best first.
    ///
    /// # Errors
    ///
    /// Returns an error if the filter's values are too large, or if `check`, which is called between two tags, fails.
    pub fn age_candidates<'t>(
        &self,
        tags: &'t TagList,
        check: Check<'_>,
    ) -> Result<Vec<&'t str>, PolicyError> {
        if self.minimum_age().is_zero() || self.check_filter().is_err() {
            return Ok(Vec::new());
        }
        selection::age_candidates(self, tags, check)
    }

    /// Returns the maximum bytes that the filter extracts from `tags` tags.
    pub fn max_value_bytes(&self, tags: usize) -> usize {
        self.filter
            .as_ref()
            .and_then(|filter| filter.as_ref().ok())
            .map_or(0, |filter| filter.max_value_bytes(tags))
    }

    /// The minimum age of a tag that can be selected.
    pub fn minimum_age(&self) -> Duration {
        self.settings.minimum_age.duration()
    }

    /// The treatment of tags of unknown age.
    pub fn unknown_age(&self) -> UnknownAge {
        self.settings.unknown_age
    }

    /// Compares two tags by the policy; the better one is greater.
    ///
    /// `None` if one of them can never be a candidate of this policy. Excluded and too new tags are compared as well.
    pub fn compare(&self, left: &str, right: &str) -> Option<Ordering> {
        let ((left, left_rank), (right, right_rank)) = (self.rank(left)?, self.rank(right)?);
        Some(self.rule.compare((&left, &left_rank), (&right, &right_rank)))
    }

    /// Returns the filter's value of a tag.
    ///
    /// `None` if the filter is invalid or does not match.
    pub fn value<'t>(&self, tag: &'t str) -> Option<Cow<'t, str>> {
        match &self.filter {
            None => Some(Cow::Borrowed(tag)),
            Some(Ok(filter)) => filter.value(tag),
            Some(Err(_)) => None,
        }
    }

    /// Returns the filter's value of a tag, with its form for comparison.
    fn rank<'t>(&self, tag: &'t str) -> Option<(Cow<'t, str>, Rank)> {
        let value = self.value(tag)?;
        let rank = self.rule.evaluate(&value).ok()?;
        Some((value, rank))
    }
}

/// A function called between two tags; its error ends the work.
pub type Check<'c> = &'c dyn Fn() -> Result<(), Interrupted>;

/// The error of a policy that selects nothing, regardless of the tags.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The digest is to be refreshed, but the interval is missing.
    #[error("spec.interval must be set when spec.digestReflectionPolicy is set to 'Always'")]
    NoInterval,
    /// The selection rule is invalid.
    #[error("invalid policy")]
    Rule(#[source] RuleError),
    /// The tag filter is invalid.
    #[error("failed to filter tags")]
    Filter(#[source] FilterError),
    /// The selection was interrupted.
    #[error("not all tags were evaluated")]
    Interrupted(#[from] Interrupted),
}

impl ReconcileError for PolicyError {
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
