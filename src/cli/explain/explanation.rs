//! Explanation of a policy: an outcome with a reason for each tag.

use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::ImagePolicy;
use tagboat_api::policy::ImagePolicyStatus;
use tagboat_api::settings::{PolicySettings, UnknownAge};

use super::group::Group;
use super::live::{Listing, LiveRegistry, RegistryFailure};
use super::report::{ExplainedTag, Explanation};
use super::subject::{RepositoryLookup, Subject};
use super::tags::TagFile;
use crate::cli::Failure;
use crate::cli::inputs::warn_of_repository_settings;
use crate::cli::registry_login::RegistryLogin;
use crate::cli::terminal::count;
use crate::error::chain;
use crate::objects::{ObjectName, Objects};
use crate::policy::downgrade::Trigger;
use crate::policy::{Ages, Policy, Selection, SelectionError, TagAge};
use crate::reconcile::conditions::{self, ConditionType};
use crate::reconcile::lookup::{LookupFailure, LookupFailureKind};
use crate::reconcile::policy::access::AccessError;
use crate::reconcile::policy::ages::{KnownAges, MAX_LOOKUPS, MissingAges};
use crate::reconcile::policy::digest::{DigestResolver, DigestSource, FirstImage, Following};
use crate::reconcile::policy::report::RunFailure;
use crate::reconcile::policy::request::{Request, repository_of};
use crate::reconcile::run::Outcome;
use crate::reconcile::tags::{Registry, RepositoryTarget};
use crate::reference::{Tag, TagList};

/// Default of Flux's `--requeue-dependency`, the delay if no tags are stored yet.
const REQUEUE_DEPENDENCY: &str = "30s";

/// Explains a policy.
pub(super) struct Explainer<'a, O> {
    pub(super) subject: &'a Subject,
    /// The source of the Secrets of its ImageRepository.
    pub(super) objects: &'a O,
    pub(super) login: RegistryLogin,
}

/// An error because of which the tags are not judged.
pub(super) enum ExplainError {
    /// The policy cannot be reconciled: the message of its condition.
    Condition(String),
    /// Its registry cannot be read.
    Registry(RegistryFailure),
    /// The policy, its repository or its tags could not be read.
    Failure(Failure),
}

impl From<Failure> for ExplainError {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<RegistryFailure> for ExplainError {
    fn from(failure: RegistryFailure) -> Self {
        Self::Registry(failure)
    }
}

impl<O: Objects> Explainer<'_, O> {
    /// Explains the choice among the tags of a file or of the registry.
    ///
    /// An error of the policy has the message of its condition.
    ///
    /// # Errors
    ///
    /// Wrong usage. Other failures are returned beside the explanation, which has the same message for programs.
    pub(super) async fn explain(
        &self,
        tags: Option<TagFile<'_>>,
    ) -> Result<(Explanation, Result<(), Failure>), Failure> {
        let policy = ObjectName::of(&self.subject.policy);
        let mut explanation = Explanation::of(policy.clone());
        let (message, failure) = match self.judge(tags, &mut explanation).await {
            Ok(()) => return Ok((explanation, Ok(()))),
            Err(ExplainError::Condition(message)) => {
                let sentence = format!("{policy}: {message}");
                (message, Failure::FailedFor(vec![sentence]))
            }
            Err(ExplainError::Registry(RegistryFailure { condition, message })) => {
                let repository = repository_of(&self.subject.policy);
                (condition, Failure::new(format!("ImageRepository {repository}: {message}")))
            }
            Err(ExplainError::Failure(failure @ Failure::Usage(_))) => return Err(failure),
            Err(ExplainError::Failure(failure)) => (failure.sentences().join("; "), failure),
        };
        explanation.error = Some(message);
        Ok((explanation, Err(failure)))
    }

    async fn judge(
        &self,
        tags: Option<TagFile<'_>>,
        explanation: &mut Explanation,
    ) -> Result<(), ExplainError> {
        let rules = &self.subject.policy.spec.policy;
        if rules.semver.is_none() && rules.alphabetical.is_none() && rules.numerical.is_none() {
            explanation
                .notes
                .push("spec.policy has no rule; write semver, alphabetical or numerical".to_owned());
        }
        let request =
            Request::of(&self.subject.policy).map_err(|error| ExplainError::Condition(chain(&error)))?;
        let policy = request.policy.compile().map(Arc::new);
        let policy = || policy.as_ref().map_err(|error| ExplainError::Condition(chain(error)));
        let repository = match (&self.subject.repository, tags) {
            (_, Some(tags)) => {
                let policy = policy()?;
                let list = tags.read()?;
                explanation.notes.extend(tags.note(&list));
                if let Some(group) = PolicySettings::release_group(self.subject.policy.annotations()) {
                    let note = format!("with --tags the release group {group} does not count");
                    explanation.notes.push(note);
                }
                let (well_formed, others): (Vec<&str>, Vec<&str>) =
                    list.iter().partition(|tag| Tag::is_well_formed(tag));
                // The age of tags of a file is unknown.
                let judged = if well_formed.is_empty() {
                    Err(Failure::new(format!("there is no tag in {}", tags.name())).into())
                } else {
                    explanation.judge(policy, &well_formed.into_iter().collect(), &|_| TagAge::default())
                };
                explanation.tags.extend(others.into_iter().map(ExplainedTag::not_a_tag));
                return judged;
            }
            (RepositoryLookup::Found(repository), None) => repository,
            (RepositoryLookup::NotGiven | RepositoryLookup::NotNeeded, None) => {
                policy()?;
                return Err(not_given(&self.subject.policy).into());
            }
            (RepositoryLookup::Invalid(sentences), None) => {
                policy()?;
                return Err(Failure::Failed(sentences.clone()).into());
            }
            (RepositoryLookup::Missing, None) => {
                let name = repository_of(&self.subject.policy).name;
                return Err(at_repository(&AccessError::Missing { name }));
            }
        };
        warn_of_repository_settings(repository);
        let reached = self.reach(self.subject, repository, policy()?).await?;
        let Listing { tags, number } = &reached.listing;
        if tags.is_empty() && *number > 0 {
            let patterns = repository.spec.effective_exclusion_list().join("\", \"");
            explanation.notes.push(format!(
                "the registry lists {}, and spec.exclusionList of the ImageRepository {} (\"{patterns}\") excludes all of them",
                count(*number, "tag"),
                repository_of(&self.subject.policy)
            ));
        }
        let group = self.group(&reached).await?;
        let possible = group.as_ref().and_then(Group::possible);
        let (resolver, answers) = reached.ages(possible.as_ref()).await?;
        let age_of = |tag: &str| resolver.age(tag, None, &answers);
        explanation.note_gap(&reached.policy, &answers);
        explanation.judge(&reached.policy, tags, &age_of)?;
        if let Some(group) = group {
            let ages = Ages { now: resolver.now, age_of: &age_of };
            let choice = group.choose(&reached, ages).await?;
            explanation.judge_group(choice, reached.current.as_deref())?;
        }
        self.check_announcement(&request, &reached.registry, &reached.target, explanation).await
    }

    /// Applies the checks before the winner is announced: a winner without a manifest is not.
    async fn check_announcement(
        &self,
        request: &Request,
        registry: &LiveRegistry,
        target: &RepositoryTarget,
        explanation: &mut Explanation,
    ) -> Result<(), ExplainError> {
        let Some(winner) = explanation.latest.clone() else { return Ok(()) };
        let previous = self.subject.policy.status.clone().unwrap_or_default();
        let image = target.address.to_string();
        let question = DigestResolver {
            image: &image,
            tag: &winner,
            digests: &request.digests,
            trigger: Trigger::TagList,
            polled: None,
            following: Following::Alone,
            first: FirstImage::Counts,
        };
        match question.need(&previous) {
            DigestSource::Lookup { wants_digest } => {
                let answer = registry.digest(target, &winner).await;
                let missing = missing(&answer);
                let resolution = question.looked(wants_digest, answer, &previous);
                let kept = resolution.as_ref().ok().map(|resolution| resolution.latest.tag.as_str());
                if let Some(failure) = missing {
                    explanation.hold_back(&winner, kept, &failure);
                }
                if let Err(unresolved) = resolution {
                    explanation.latest = None;
                    return Err(ExplainError::Condition(message_of(unresolved.outcome)));
                }
            }
            // A first image is announced unchecked, but manifests do not state whether there was one before.
            DigestSource::Settled(None) if previous.latest_ref.is_none() => {
                if let Some(failure) = missing(&registry.digest(target, &winner).await) {
                    explanation.doubt(&winner, &failure);
                }
            }
            DigestSource::Settled(_) | DigestSource::AwaitGroup => {}
        }
        explanation.note_status(&previous, &image);
        Ok(())
    }
}

impl Explanation {
    /// Judges all tags.
    fn judge(
        &mut self,
        policy: &Policy,
        tags: &TagList,
        age_of: &dyn Fn(&str) -> TagAge,
    ) -> Result<(), ExplainError> {
        let ages = Ages { now: Timestamp::now(), age_of };
        let selection = policy.select(tags, ages).map_err(|error| ExplainError::Condition(chain(&error)))?;
        self.latest = selection.latest().map(str::to_owned);
        self.has_values = selection.has_values();
        self.tags = explained_tags(&selection);
        self.note_idle_exclusions(policy, tags);
        selection.error().map_or(Ok(()), |error| Err(ExplainError::Condition(condition_text(error))))
    }

    /// Adds a note about ages that are unknown and matter.
    fn note_gap(&mut self, policy: &Policy, answers: &KnownAges) {
        let counts = match policy.unknown_age() {
            UnknownAge::Wait => "too new",
            UnknownAge::Accept => "old enough",
        };
        match &answers.missing_ages {
            None => {}
            Some(MissingAges::TooMany) => self.notes.push(format!(
                "only the {MAX_LOOKUPS} best images had their age looked up; the others count as {counts}"
            )),
            Some(MissingAges::Failed { tag, failure }) => self.notes.push(format!(
                "the age of {tag} could not be looked up, so it counts as {counts}: {}",
                failure.message
            )),
        }
    }

    /// Adds notes about excluded tags that do not exist, such as `1.2` instead of `v1.2`.
    ///
    /// A tag is excluded by its whole name.
    fn note_idle_exclusions(&mut self, policy: &Policy, tags: &TagList) {
        let is_there = |name: &str| tags.iter().any(|tag| tag == name);
        for name in policy.excluded().filter(|name| !tags.is_empty() && !is_there(name)) {
            let meant = tags.iter().find(|tag| is_same_version(tag, name));
            let meant = meant.map(|tag| format!("; did you mean {tag}?")).unwrap_or_default();
            self.notes.push(format!("tagboat.dev/exclude names {name}, which is not one of the tags{meant}"));
        }
    }

    /// Notes that the winner cannot be pulled yet.
    /// The previous tag, if any, stays.
    fn hold_back(&mut self, winner: &str, kept: Option<&str>, failure: &LookupFailure) {
        let stays = match kept {
            Some(kept) => format!("{kept} stays"),
            None => "nothing is announced".to_owned(),
        };
        let reason = format!("it is listed but cannot be pulled yet, so {stays}: {}", failure.message);
        self.notes.push(format!("{winner} would win; {reason}"));
        for tag in &mut self.tags {
            if tag.tag == winner {
                (tag.outcome, tag.reason) = ("candidate", reason.clone());
            } else if Some(tag.tag.as_str()) == kept {
                tag.outcome = "latest";
                tag.reason = format!("it stays, because {winner} is listed but cannot be pulled yet");
            }
        }
        self.latest = kept.map(str::to_owned);
    }

    /// Notes that the winner cannot be pulled yet, if no previous tag is known.
    fn doubt(&mut self, winner: &str, failure: &LookupFailure) {
        let reason = format!(
            "it is listed but cannot be pulled yet, so a controller that has announced an image before keeps that one, \
             and announces this one if it has not; tagboat run leaves the markers alone until it can be pulled: {}",
            failure.message
        );
        self.notes.push(format!("{winner} wins; {reason}"));
        for tag in self.tags.iter_mut().filter(|tag| tag.tag == winner) {
            tag.reason = format!("{}; {reason}", tag.reason);
        }
    }

    /// Notes that the policy's status has another tag, with the reason if it is known.
    fn note_status(&mut self, status: &ImagePolicyStatus, image: &str) {
        let announced = status.latest_ref.as_ref().filter(|announced| announced.name == image);
        let Some(announced) = announced.filter(|announced| Some(&announced.tag) != self.latest.as_ref())
        else {
            return;
        };
        let held = conditions::find(&status.conditions, ConditionType::RegressionHeld);
        let why = held.map(|held| format!(": {}", held.message)).unwrap_or_default();
        self.notes.push(format!("the policy's status has {}{why}", announced.tag));
    }
}

/// Returns true if two tags are equal but for a leading `v` and case.
fn is_same_version(one: &str, other: &str) -> bool {
    let plain = |tag: &str| {
        let tag = tag.to_ascii_lowercase();
        tag.strip_prefix('v').map(str::to_owned).unwrap_or(tag)
    };
    plain(one) == plain(other)
}

fn explained_tags(selection: &Selection<'_, '_>) -> Vec<ExplainedTag> {
    let explained = selection.verdicts().iter().map(|verdict| ExplainedTag {
        tag: verdict.tag.to_owned(),
        value: verdict.value.as_deref().map(str::to_owned),
        outcome: verdict.outcome.as_str(),
        reason: selection.reason(verdict),
    });
    explained.collect()
}

fn condition_text(error: &SelectionError) -> String {
    match error {
        SelectionError::NoTags => format!("retrying in {REQUEUE_DEPENDENCY} error: {error}"),
        error => error.to_string(),
    }
}

/// Returns the failure of a lookup if it is a missing manifest.
fn missing(answer: &Result<String, LookupFailure>) -> Option<LookupFailure> {
    answer.as_ref().err().filter(|failure| failure.kind == LookupFailureKind::Missing).cloned()
}

/// Returns the condition of a policy without access to its repository.
pub(super) fn at_repository(error: &AccessError) -> ExplainError {
    ExplainError::Condition(message_of(RunFailure::at_repository(error).outcome))
}

fn message_of(outcome: Outcome) -> String {
    match outcome {
        Outcome::Success(message) | Outcome::Stall(_, message) | Outcome::Failure(_, message) => message,
    }
}

fn not_given(policy: &ImagePolicy) -> Failure {
    Failure::Usage(format!(
        "the ImageRepository {}, from whose tags {} chooses, is not among the manifests: add it, or give the tags with --tags \
         FILE",
        repository_of(policy),
        ObjectName::of(policy)
    ))
}
