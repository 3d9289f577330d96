//! The release group of a policy that is explained.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::ImageRepository;
use tagboat_api::settings::PolicySettings;

use super::explanation::{ExplainError, Explainer, at_repository};
use super::live::{Listing, LiveRegistry, RegistryFailure};
use super::report::Explanation;
use super::subject::{RepositoryLookup, Subject};
use crate::error::chain;
use crate::objects::{ObjectName, Objects};
use crate::policy::group::{Lacking, Obstacle, Ranking, Values, does_not_move, too_many};
use crate::policy::selection::{RankedValue, ranked_values};
use crate::policy::{Ages, Policy};
use crate::reconcile::policy::access;
use crate::reconcile::policy::ages::{AgeResolver, KnownAges};
use crate::reconcile::policy::request::Request;
use crate::reconcile::tags::RepositoryTarget;
use crate::reference::RepositoryAddress;

/// A policy whose tags were listed.
pub(super) struct Reached {
    name: ObjectName,
    pub(super) policy: Arc<Policy>,
    pub(super) registry: LiveRegistry,
    pub(super) target: RepositoryTarget,
    pub(super) listing: Listing,
    /// The tag in the policy's status.
    pub(super) current: Option<String>,
}

/// The other members of the release group.
pub(super) struct Group {
    name: String,
    values: Values,
    members: Vec<Reached>,
    /// Their rankings while ages are unknown.
    rankings: Vec<Ranking>,
    /// The reason why no member moves.
    obstacle: Option<String>,
}

/// The choice of a policy in its release group.
pub(super) enum GroupChoice {
    /// All members move to the value of a tag.
    Moves {
        tag: String,
        /// The values that members lack, with the clause about it.
        lacked: BTreeMap<String, String>,
    },
    /// None of them moves.
    Stays {
        message: String,
        /// The values that members lack, with the clause about it.
        lacked: BTreeMap<String, String>,
    },
}

impl<O: Objects> Explainer<'_, O> {
    /// Lists the tags of a policy.
    pub(super) async fn reach(
        &self,
        subject: &Subject,
        repository: &ImageRepository,
        policy: &Arc<Policy>,
    ) -> Result<Reached, ExplainError> {
        let name = ObjectName::of(&subject.policy);
        access::check(&name.namespace, repository, &subject.labels).map_err(|error| at_repository(&error))?;
        let address = RepositoryAddress::parse(&repository.spec.image, repository.spec.insecure);
        let address = address.map_err(|error| ExplainError::Condition(chain(&error)))?;
        let logins = self.login.logins().map_err(|failure| RegistryFailure::of(&failure))?;
        let registry = LiveRegistry::reach(self.objects, repository, &logins).await?;
        let listing = registry.list().await?;
        let image = address.to_string();
        let latest = subject.policy.status.as_ref().and_then(|status| status.latest_ref.as_ref());
        let current = latest.filter(|latest| latest.name == image).map(|latest| latest.tag.clone());
        // An invalid timeout was an error of the access before.
        let timeout = repository.spec.effective_timeout().unwrap_or_default();
        let repository = Arc::new(repository.clone());
        let target = RepositoryTarget { repository, address, timeout, referred_from: None };
        Ok(Reached { name, policy: policy.clone(), registry, target, listing, current })
    }

    /// Lists the tags of the other members, if the policy is in a release group.
    pub(super) async fn group(&self, own: &Reached) -> Result<Option<Group>, ExplainError> {
        let Some(name) = PolicySettings::release_group(self.subject.policy.annotations()) else {
            return Ok(None);
        };
        let values = Values::of(&own.ranked(&own.unknown_ages())?);
        let (name, members) = (name.to_owned(), Vec::new());
        let mut group = Group { name, values, members, rankings: Vec::new(), obstacle: None };
        group.obstacle = too_many(self.subject.members.len() + 1);
        for member in &self.subject.members {
            if group.obstacle.is_some() {
                break;
            }
            match self.member(member).await {
                Ok((ranked, reached)) => {
                    group.rankings.push(group.values.ranking(reached.name.clone(), ranked));
                    group.members.push(reached);
                }
                Err(obstacle) => group.obstacle = Some(obstacle.of(&ObjectName::of(&member.policy))),
            }
        }
        Ok(Some(group))
    }

    /// Lists and ranks the tags of another member.
    async fn member(&self, member: &Subject) -> Result<(Vec<RankedValue>, Reached), Obstacle> {
        if member.policy.spec.suspend {
            return Err(Obstacle::Suspended);
        }
        let RepositoryLookup::Found(repository) = &member.repository else {
            return Err(Obstacle::Error("its ImageRepository cannot be read".to_owned()));
        };
        let request = Request::of(&member.policy).map_err(|error| Obstacle::Error(chain(&error)))?;
        let policy = request.policy.compile().map_err(|error| Obstacle::Error(chain(&error)))?;
        let reached = self.reach(member, repository, &Arc::new(policy)).await.map_err(obstacle)?;
        if reached.listing.tags.is_empty() {
            return Err(Obstacle::NoTags);
        }
        let ranked = reached.ranked(&reached.unknown_ages()).map_err(obstacle)?;
        Ok((ranked, reached))
    }
}

/// Returns the error of a member as the reason why it cannot select.
fn obstacle(error: ExplainError) -> Obstacle {
    Obstacle::Error(match error {
        ExplainError::Condition(message) => message,
        ExplainError::Registry(failure) => failure.condition,
        ExplainError::Failure(failure) => failure.sentences().join("; "),
    })
}

impl Reached {
    /// Looks up the ages that decide, of the values that are `possible` only.
    pub(super) async fn ages(
        &self,
        possible: Option<&HashSet<String>>,
    ) -> Result<(AgeResolver, KnownAges), ExplainError> {
        let failed = |error: String| ExplainError::Condition(error);
        let candidates = self.policy.age_candidates(&self.listing.tags, &|| Ok(()));
        let mut candidates = candidates.map_err(|error| failed(chain(&error)))?;
        if let Some(possible) = possible {
            candidates.retain(|tag| {
                let value = self.policy.value(tag).filter(|_| self.policy.compare(tag, tag).is_some());
                value.is_none_or(|value| possible.contains(value.as_ref()))
            });
        }
        let resolver = self.unknown_ages();
        let shortlist = resolver.shortlist(&candidates, None, &|| Ok(()));
        let shortlist = shortlist.map_err(|error| failed(chain(&error)))?;
        let answers = resolver.clone().look_up(shortlist, &self.registry, &self.target).await;
        Ok((resolver, answers))
    }

    /// Returns the resolver of ages before the registry is asked.
    fn unknown_ages(&self) -> AgeResolver {
        let (policy, current) = (self.policy.clone(), self.current.clone());
        AgeResolver { policy, current, is_wanted: false, now: Timestamp::now() }
    }

    fn ranked(&self, resolver: &AgeResolver) -> Result<Vec<RankedValue>, ExplainError> {
        let known = KnownAges::default();
        let ages = Ages { now: resolver.now, age_of: &|tag| resolver.age(tag, None, &known) };
        self.ranked_at(ages)
    }

    fn ranked_at(&self, ages: Ages<'_>) -> Result<Vec<RankedValue>, ExplainError> {
        let ranked = ranked_values(&self.policy, &self.listing.tags, ages, &|| Ok(()));
        ranked.map_err(|error| ExplainError::Condition(chain(&error)))
    }
}

impl Group {
    /// Returns the values that all other members have, unless the group does not move anyway.
    pub(super) fn possible(&self) -> Option<HashSet<String>> {
        if self.obstacle.is_some() {
            return None;
        }
        let rankings: Vec<&Ranking> = self.rankings.iter().collect();
        Some(self.values.possible(&rankings).into_iter().map(str::to_owned).collect())
    }

    /// Finds the value of the group, with the ages of the own tags.
    pub(super) async fn choose(self, own: &Reached, ages: Ages<'_>) -> Result<GroupChoice, ExplainError> {
        if let Some(obstacle) = &self.obstacle {
            return Ok(GroupChoice::Stays { message: self.stays(obstacle), lacked: BTreeMap::new() });
        }
        let own_ranking = self.values.ranking(own.name.clone(), own.ranked_at(ages)?);
        let possible = self.possible();
        let mut rankings = Vec::new();
        for member in &self.members {
            let (resolver, known) = member.ages(possible.as_ref()).await?;
            let ages = Ages { now: resolver.now, age_of: &|tag| resolver.age(tag, None, &known) };
            rankings.push(self.values.ranking(member.name.clone(), member.ranked_at(ages)?));
        }
        let all: Vec<&Ranking> = [&own_ranking].into_iter().chain(&rankings).collect();
        let lacked = self.values.iter().filter_map(|value| {
            let lacking = self.values.lacking(value, &all[1..]);
            let clause = format!("{} the value {value:?}", Lacking(&lacking));
            (!lacking.is_empty()).then(|| (value.to_owned(), clause))
        });
        let lacked = lacked.collect();
        Ok(match self.values.agree(&all) {
            Ok(position) => {
                let tag = own_ranking.tag(position).unwrap_or_default().to_owned();
                GroupChoice::Moves { tag, lacked }
            }
            Err(disagreement) => GroupChoice::Stays { message: self.stays(&disagreement), lacked },
        })
    }

    fn stays(&self, cause: &dyn fmt::Display) -> String {
        does_not_move(&self.name, cause)
    }
}

impl Explanation {
    /// Replaces the choice of the policy alone by that of its release group.
    pub(super) fn judge_group(
        &mut self,
        choice: GroupChoice,
        current: Option<&str>,
    ) -> Result<(), ExplainError> {
        let (winner, reason, lacked) = match &choice {
            GroupChoice::Moves { tag, lacked } => {
                (Some(tag.as_str()), "the best value that all policies of its release group have", lacked)
            }
            GroupChoice::Stays { message, lacked } => {
                self.notes.push(message.clone());
                (current, "it stays, because the release group does not move", lacked)
            }
        };
        for tag in &mut self.tags {
            let is_choosable = ["latest", "candidate"].contains(&tag.outcome);
            let clause = tag.value.as_ref().and_then(|value| lacked.get(value)).filter(|_| is_choosable);
            if Some(tag.tag.as_str()) == winner {
                (tag.outcome, tag.reason) = ("latest", reason.to_owned());
            } else if let Some(clause) = clause {
                (tag.outcome, tag.reason) = ("not-in-group", clause.clone());
            } else if is_choosable {
                tag.outcome = "candidate";
                tag.reason = match (&choice, winner) {
                    (GroupChoice::Moves { .. }, Some(winner)) => format!("{winner} is better"),
                    _ => "the release group does not move".to_owned(),
                };
            }
        }
        self.latest = winner.map(str::to_owned);
        match choice {
            GroupChoice::Stays { message, .. } if winner.is_none() => {
                self.notes.pop();
                Err(ExplainError::Condition(message))
            }
            _ => Ok(()),
        }
    }
}
