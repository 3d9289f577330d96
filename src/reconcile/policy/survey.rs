//! Collects the rankings of the members of a release group.

use std::sync::Arc;

use super::ages::{AgeResolver, KnownAges};
use super::choice;
use super::group::{Member, Survey, SurveyedMember};
use super::run::{PolicyInputs, PolicyOptions, Run};
use super::selection::{ChoiceInputs, NoChoice};
use crate::error::chain;
use crate::objects::ObjectName;
use crate::policy::group::{Obstacle, Values};
use crate::policy::selection::{RankedValue, ranked_values};
use crate::policy::{Ages, PolicyError};
use crate::reconcile::run::Outcome;
use crate::reconcile::tags::SharedTagStore;

impl Run {
    /// Surveys the release group of the policy, if it is in one.
    ///
    /// The tags of all members are those that are stored, one list after the other. No registry is asked.
    pub(super) async fn survey(
        &self,
        options: &PolicyOptions,
        policy_inputs: &PolicyInputs<'_>,
        inputs: &ChoiceInputs<'_>,
        tag_store: &SharedTagStore,
    ) -> Result<Option<Survey>, NoChoice> {
        let Some(group) = &policy_inputs.group else { return Ok(None) };
        let values = Values::of(&self.ranked(options, policy_inputs, inputs, tag_store).await?);
        let mut survey = Survey::new(group.name.clone(), self.name(), values);
        if let Some(obstacle) = group.obstacle() {
            return Ok(Some(survey.stopped(obstacle)));
        }
        for member in &group.members {
            match member.survey(options, policy_inputs, tag_store).await {
                Ok((ranked, surveyed)) => {
                    let ranking = survey.values().ranking(member.run.name(), ranked);
                    survey.add(ranking, surveyed);
                }
                Err(obstacle) => return Ok(Some(survey.stopped(obstacle.of(&member.run.name())))),
            }
        }
        Ok(Some(survey))
    }

    /// Ranks the values of the stored tags; ages that are not stored are unknown.
    async fn ranked(
        &self,
        options: &PolicyOptions,
        policy_inputs: &PolicyInputs<'_>,
        inputs: &ChoiceInputs<'_>,
        tag_store: &SharedTagStore,
    ) -> Result<Vec<RankedValue>, NoChoice> {
        let open = self.open(options, policy_inputs, inputs, tag_store).await?;
        let (policy, count, now) = (inputs.policy.clone(), open.stored.tags.len(), self.started());
        let current = choice::current(self.previous(), &inputs.target.address.to_string()).map(str::to_owned);
        let resolver = AgeResolver { policy: policy.clone(), current, is_wanted: false, now };
        let ranking = inputs.run(&options.capacity, move |checkpoint| {
            let (stored, known) = (&open.stored, KnownAges::default());
            let ages = Ages { now, age_of: &|tag| resolver.age(tag, Some(stored), &known) };
            ranked_values(&policy, &stored.tags, ages, &|| checkpoint.check())
        });
        ranking.await.map_err(|error: PolicyError| inputs.failure(&error.into(), count).into())
    }
}

impl Member {
    /// Returns the ranking of the member, or the reason why it has none.
    async fn survey(
        &self,
        options: &PolicyOptions,
        policy_inputs: &PolicyInputs<'_>,
        tag_store: &SharedTagStore,
    ) -> Result<(Vec<RankedValue>, SurveyedMember), Obstacle> {
        if let Some(obstacle) = &self.obstacle {
            return Err(Obstacle::Other(obstacle.clone()));
        }
        if self.run.is_suspended() {
            return Err(Obstacle::Suspended);
        }
        let own_inputs = PolicyInputs {
            repository: self.repository.clone(),
            labels: Arc::clone(&policy_inputs.labels),
            scan_failure: None,
            trigger: policy_inputs.trigger,
            polled: policy_inputs.polled,
            group: None,
        };
        let failed = |outcome: Outcome| match outcome {
            Outcome::Success(message) | Outcome::Stall(_, message) | Outcome::Failure(_, message) => {
                Obstacle::Error(message)
            }
        };
        let inputs =
            self.run.inputs(options, &own_inputs).await.map_err(|failure| failed(failure.outcome))?;
        inputs.policy.check_filter().map_err(|error| Obstacle::Error(chain(&error)))?;
        let ranked = self.run.ranked(options, &own_inputs, &inputs, tag_store).await;
        let ranked = ranked.map_err(|missing| match missing {
            NoChoice::EmptyList(_) => Obstacle::NoTags,
            NoChoice::Failed(failure) if failure.retry_after.is_some() => Obstacle::NoTags,
            NoChoice::Failed(failure) => failed(failure.outcome),
        })?;
        let previous = self.run.previous();
        let repository = &inputs.target.repository;
        let last = repository.status.as_ref().and_then(|status| status.last_scan_result.as_ref());
        let surveyed = SurveyedMember {
            current: choice::current(previous, &inputs.target.address.to_string()).map(str::to_owned),
            pending: choice::pending(&previous.conditions),
            scanned: last.and_then(|last| last.scan_time.as_ref()).map(|time| time.0),
            policy: inputs.policy,
        };
        Ok((ranked, surveyed))
    }
}

impl Run {
    /// Returns the name of the policy.
    pub fn name(&self) -> ObjectName {
        ObjectName::of(self.policy())
    }
}
