//! Reconciles each policy of a run once, on the tags of its repository.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use futures::future::join_all;
use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::policy::ImagePolicyStatus;
use tagboat_api::{ImagePolicy, ImageRef};

use super::allowed::allows;
use super::choice::Choice;
use super::digests::Digests;
use super::groups::{Groups, group_of, share_triggers};
use super::selection::{PolicyOverride, Selection, SkipReason};
use super::sources::{Policies, Repositories, Scanned, Sources};
use super::state::{KnownPolicy, Origin};
use super::unavailable::{ScanFailureEffect, UnavailableRepository};
use crate::cli::Failure;
use crate::cli::terminal::say;
use crate::error::chain;
use crate::objects::ObjectName;
use crate::objects::manifests::{NAME_LABEL, StateError};
use crate::policy::downgrade::{self, Trigger};
use crate::reconcile::conditions::{ConditionType, find};
use crate::reconcile::policy::digest::{Polled, Resolution};
use crate::reconcile::policy::report::{Conclusion, Resolved};
use crate::reconcile::policy::request::repository_of;
use crate::reconcile::policy::run::{FollowedTag, PolicyInputs, PolicyRunResult, Run};
use crate::reference::RepositoryAddress;

/// A policy that is reconciled.
pub(super) struct PolicyRun<'s> {
    name: ObjectName,
    repository: ObjectName,
    /// The policy, with its status before the run.
    pub(super) policy: Arc<ImagePolicy>,
    origin: Origin,
    scanned: &'s Scanned,
    run: Run,
    pub(super) trigger: Trigger,
    /// True if it chooses from tags of an earlier scan, as this run has none.
    is_unavailable: bool,
}

impl Sources {
    /// Reconciles all policies.
    ///
    /// Those of a repository that could not be scanned keep their images, unless the user changed or requested them.
    pub(super) async fn resolve(
        &self,
        selection: &Selection,
        repositories: &Repositories,
    ) -> Result<BTreeMap<ObjectName, Choice>, Failure> {
        let policies = &selection.policies;
        let failed = |error: StateError| Failure::new(chain(&error));
        let mut choices = BTreeMap::new();
        let mut policy_runs = Vec::new();
        let mut unavailable = BTreeMap::<ObjectName, UnavailableRepository>::new();
        for (name, manifest) in policies {
            let repository = repository_of(manifest);
            let scanned =
                repositories.get(&repository).expect("the repositories of all policies were scanned");
            let known = self.state.policy(manifest).map_err(failed)?;
            if let Some(path) = &known.damage {
                choices.insert(name.clone(), Choice::state_lost(name, repository, path));
                continue;
            }
            let image = known.image();
            let policy_run = self.policy_run(name, repository.clone(), known, scanned).map_err(failed)?;
            let Some(reason) = self.unavailability(&repository, scanned).await else {
                policy_runs.push(policy_run);
                continue;
            };
            let effect = match image {
                None => ScanFailureEffect::NoImage,
                Some(_) if group_of(manifest).is_some() && self.has_tags(&repository, scanned).await => {
                    ScanFailureEffect::InGroup
                }
                Some(image) if policy_run.trigger == Trigger::TagList => {
                    ScanFailureEffect::ImageRetained(image)
                }
                Some(_) if self.has_tags(&repository, scanned).await => ScanFailureEffect::Reselected,
                Some(_) => ScanFailureEffect::NoTags,
            };
            if effect.chooses() {
                policy_runs.push(PolicyRun { is_unavailable: true, ..policy_run });
            }
            unavailable
                .entry(repository)
                .or_insert_with(|| UnavailableRepository::new(reason))
                .insert(name.clone(), effect);
        }
        for (name, repository) in &unavailable {
            choices.extend(repository.choices(name));
        }
        share_triggers(&mut policy_runs);
        let groups = Groups::of(self, repositories, &selection.overrides).map_err(failed)?;
        for (policy_run, result) in self.reconcile(&policy_runs, policies, &groups).await {
            let mut choice = self.conclude(policy_run, &result).map_err(failed)?;
            if let Some(repository) = unavailable.get(&policy_run.repository) {
                choice.add_error_of(repository);
            }
            choices.insert(policy_run.name.clone(), choice);
        }
        Ok(choices)
    }

    /// Returns the images of policies that do not choose.
    ///
    /// They are those of the state, or else those of the manifests.
    /// A policy whose state file is corrupt gets no image, and an error in `choices`. A policy that does not allow its
    /// image any more gets none.
    pub(super) fn skipped(
        &self,
        policies: &[(ImagePolicy, SkipReason)],
        choices: &mut BTreeMap<ObjectName, Choice>,
    ) -> Result<BTreeMap<ObjectName, Option<ImageRef>>, Failure> {
        let mut images = BTreeMap::new();
        for (manifest, _) in policies {
            let name = ObjectName::of(manifest);
            let known = self.state.policy(manifest).map_err(|error| Failure::new(chain(&error)))?;
            if let Some(path) = &known.damage {
                choices.insert(name.clone(), Choice::state_lost(&name, repository_of(manifest), path));
                continue;
            }
            let wanted = repository_of(manifest);
            let mut repositories = self.registry.objects.manifests.repositories();
            let repository = repositories.find(|repository| ObjectName::of(*repository) == wanted);
            if let Some(image) = known.image().filter(|image| !allows(manifest, repository, image)) {
                say(&format!("warning: ImagePolicy {name}: {}", forbidden_image(&image)));
                images.insert(name.clone(), None);
                continue;
            }
            let latest = known.policy.status.and_then(|status| status.latest_ref);
            images.extend(latest.map(|latest| (name.clone(), Some(latest))));
        }
        Ok(images)
    }

    /// Saves the images of `--latest` as the images of their policies.
    ///
    /// So the next run continues from them.
    /// A corrupt state file is not changed. If the policy does not choose and the state has no image, the status of the
    /// manifest counts in the next run as before.
    pub(super) fn save_overrides(&self, overrides: &[PolicyOverride]) -> Result<(), Failure> {
        let failed = |error: StateError| Failure::new(chain(&error));
        for PolicyOverride { policy, repository, image, is_in_place_of_choice } in overrides {
            let known = self.state.policy(policy).map_err(failed)?;
            if known.damage.is_some() || !is_in_place_of_choice && known.origin == Origin::Manifest {
                continue;
            }
            let (policy, now) = (Arc::new(known.policy), Timestamp::now());
            let resolution = Resolution { latest: image.clone(), staleness: None, is_retried: false };
            let conclusion = Conclusion::Resolved(Resolved { resolution, held: None, matures_in: None });
            let previous = policy.status.clone().unwrap_or_default();
            let report = Run::of(policy.clone(), now).report(&previous, &conclusion, now);
            if let Some(state) = self.state.writable() {
                state.save_policy(&policy, &report.status).map_err(failed)?;
                state.save_intent(&policy, repository).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Returns the reason, if any, for which nothing can be chosen from a repository.
    async fn unavailability(&self, name: &ObjectName, scanned: &Scanned) -> Option<String> {
        if let Some(failure) = &scanned.failure {
            return Some(format!("ImageRepository {name}: {failure}"));
        }
        let spec = &scanned.object.spec;
        if RepositoryAddress::parse(&spec.image, spec.insecure).is_err() || self.has_tags(name, scanned).await
        {
            return None;
        }
        let message = if spec.suspend {
            "is suspended, and no recorded run has scanned it"
        } else {
            "has no tags to choose from: the registry lists none, or spec.exclusionList excludes all of them"
        };
        Some(format!("ImageRepository {name} {message}"))
    }

    /// Returns true if a repository has tags, of this run or of an earlier one.
    async fn has_tags(&self, name: &ObjectName, scanned: &Scanned) -> bool {
        let spec = &scanned.object.spec;
        let Ok(address) = RepositoryAddress::parse(&spec.image, spec.insecure) else { return false };
        let open = self.tag_store.open(&name.namespace, name, &address.canonical(), |_| 0).await;
        open.is_some_and(|open| !open.stored.tags.is_empty())
    }

    fn policy_run<'s>(
        &self,
        name: &ObjectName,
        repository: ObjectName,
        known: KnownPolicy,
        scanned: &'s Scanned,
    ) -> Result<PolicyRun<'s>, StateError> {
        let (policy, origin) = (Arc::new(known.policy), known.origin);
        let run = Run::of(policy.clone(), Timestamp::now());
        let latest = policy.status.as_ref().and_then(|status| status.latest_ref.as_ref());
        // A user who forbids the current image wants another one, also if there was none before.
        let is_wanted = run.is_wanted()
            || self.state.intent_changed(&policy, &scanned.manifest)?
            || latest.is_some_and(|latest| !allows(&policy, Some(&scanned.manifest), latest));
        let trigger = if is_wanted { Trigger::User } else { Trigger::TagList };
        let name = name.clone();
        Ok(PolicyRun { name, repository, policy, origin, scanned, run, trigger, is_unavailable: false })
    }

    /// Reconciles policies, and those that follow floating tags once more with their digests.
    async fn reconcile<'c, 's>(
        &self,
        policy_runs: &'c [PolicyRun<'s>],
        policies: &Policies,
        groups: &Groups,
    ) -> Vec<(&'c PolicyRun<'s>, PolicyRunResult)> {
        let nothing = |_: &FollowedTag| None;
        let first = policy_runs.iter().map(|policy_run| policy_run.reconcile(self, groups, &nothing));
        let mut results = join_all(first).await;
        let mut digests = Digests::default();
        let is_open = |result: &PolicyRunResult| result.followed.is_some() && !result.is_fresh;
        for (policy_run, result) in policy_runs.iter().zip(&results).filter(|(_, result)| is_open(result)) {
            digests.follow(&policy_run.name, result, &policy_run.previous(), policies);
        }
        digests.look_up(&self.registry).await;
        let digests = &digests;
        let again = policy_runs.iter().zip(&mut results).filter(|(_, result)| is_open(result));
        join_all(again.map(async |(policy_run, result)| {
            let known = |followed: &FollowedTag| digests.known(&policy_run.name, followed);
            *result = policy_run.reconcile(self, groups, &known).await;
        }))
        .await;
        policy_runs.iter().zip(results).collect()
    }

    /// Returns the held downgrade, and the condition under which it counts.
    fn held(&self, conclusion: &Conclusion) -> Option<String> {
        let Conclusion::Resolved(Resolved { held: Some(held), resolution, .. }) = conclusion else {
            return None;
        };
        match &held.pending {
            Some(pending) if !self.state.is_lasting() => {
                Some(downgrade::message_without_state(&resolution.latest.tag, pending))
            }
            _ => Some(held.message.clone()),
        }
    }

    /// Saves the status of a policy, and returns its choice.
    fn conclude(&self, policy_run: &PolicyRun<'_>, result: &PolicyRunResult) -> Result<Choice, StateError> {
        let report = policy_run.run.report(&policy_run.previous(), &result.conclusion, Timestamp::now());
        let mut status = report.status;
        let is_resolved = matches!(result.conclusion, Conclusion::Resolved(_));
        // The image of the manifest is not a choice, neither of this run nor for the next one.
        let is_doubtful = result.is_provisional || find(&status.conditions, ConditionType::Stale).is_some();
        let is_unfounded = policy_run.origin == Origin::Manifest
            && (!is_resolved || is_doubtful && status.latest_ref == policy_run.previous().latest_ref);
        if is_unfounded {
            status.latest_ref = None;
        }
        if is_resolved && result.is_provisional {
            // The request of the user is not fulfilled yet, so the next run must see it, too.
            let ImagePolicyStatus { observed_generation, last_handled_reconcile_at, .. } =
                policy_run.previous();
            (status.observed_generation, status.last_handled_reconcile_at) =
                (observed_generation, last_handled_reconcile_at);
        }
        let latest = status.latest_ref.clone();
        let forbidden =
            latest.filter(|latest| !allows(&policy_run.policy, Some(&policy_run.scanned.manifest), latest));
        // A forbidden image does not fulfil the request of the user, so the next run must see it, too.
        if let Some(state) = self.state.writable() {
            if forbidden.is_none() || !is_resolved {
                state.save_policy(&policy_run.policy, &status)?;
            }
            if is_resolved && !result.is_provisional && forbidden.is_none() {
                state.save_intent(&policy_run.policy, &policy_run.scanned.manifest)?;
            }
        }
        let message = |type_| find(&status.conditions, type_).map(|found| found.message.clone());
        let failure = message(ConditionType::Ready).filter(|_| !is_resolved);
        // Tags may seem too new because their age is unknown.
        let cause = message(ConditionType::Stale).filter(|_| result.is_provisional);
        let cause = cause.map(|message| format!("; {message}")).unwrap_or_default();
        let is_passed_over = is_unfounded && policy_run.previous().latest_ref.is_some();
        let end = if is_passed_over { NOT_KNOWN } else { "" };
        let name = &policy_run.name;
        if let Some(forbidden) = forbidden {
            let cause =
                message(ConditionType::Stale).map(|message| format!("; {message}")).unwrap_or_default();
            let failure = failure.map(|message| format!("{message}; ")).unwrap_or_default();
            let message = format!("ImagePolicy {name}: {failure}{}{cause}", forbidden_image(&forbidden));
            return Ok(Choice::failed(policy_run.repository.clone(), None, message));
        }
        // The error of a policy is stated once.
        // A release group that does not move is no sign of an old image.
        let (of_group, stale) = match message(ConditionType::Stale) {
            of_group if result.is_group_stopped => (of_group.map(|message| message + end), None),
            stale => (None, stale.map(|message| message + end)),
        };
        let of_old_tags = policy_run.is_unavailable.then(|| OF_OLD_TAGS.to_owned());
        let stale: Vec<String> = stale.into_iter().chain(of_old_tags).filter(|_| is_resolved).collect();
        Ok(Choice {
            repository: policy_run.repository.clone(),
            held: of_group.or_else(|| self.held(&result.conclusion)).filter(|_| is_resolved),
            stale: Some(stale.join("; ")).filter(|message| !message.is_empty()),
            error: failure.map(|message| format!("ImagePolicy {name}: {message}{cause}{end}")),
            latest: status.latest_ref,
        })
    }
}

impl PolicyRun<'_> {
    async fn reconcile(
        &self,
        sources: &Sources,
        groups: &Groups,
        polled: &(dyn Fn(&FollowedTag) -> Option<Polled> + Sync),
    ) -> PolicyRunResult {
        let own = self.policy.namespace().unwrap_or_default();
        let manifests = &sources.registry.objects.manifests;
        let mut labels = manifests.namespace_labels(&own).unwrap_or_default();
        labels.insert(NAME_LABEL.to_owned(), own);
        let policy_inputs = PolicyInputs {
            repository: Some(self.scanned.object.clone()),
            labels: Arc::new(Ok(labels)),
            // A policy of an unreadable registry is not reconciled.
            scan_failure: None,
            trigger: self.trigger,
            polled,
            group: groups.group(&self.policy, Timestamp::now()),
        };
        self.run.reconcile(&sources.policies, policy_inputs, &sources.tag_store, &sources.registry).await
    }

    fn previous(&self) -> ImagePolicyStatus {
        self.policy.status.clone().unwrap_or_default()
    }
}

impl Choice {
    /// Creates the choice of a policy that could not choose anew.
    pub(super) fn failed(repository: ObjectName, latest: Option<ImageRef>, message: String) -> Self {
        Self { repository, latest, held: None, stale: None, error: Some(message) }
    }

    /// Adds the reason for which the tags of an earlier scan were used.
    fn add_error_of(&mut self, repository: &UnavailableRepository) {
        let sentence = repository.sentence();
        self.error = Some(match &self.error {
            None => sentence,
            Some(own) => format!("{sentence}; {own}"),
        });
    }

    /// Creates the choice of a policy whose state is lost, which is no image.
    ///
    /// Any image could be a downgrade.
    fn state_lost(name: &ObjectName, repository: ObjectName, path: &Path) -> Self {
        let message = format!(
            "ImagePolicy {name}: the state in {} is damaged, so the lowest image that may be written is unknown, and its \
             markers are left alone; restore the file, or remove it to choose as a first run does",
            path.display()
        );
        Self::failed(repository, None, message)
    }
}

/// Message about a policy with no image but that of its manifest.
const NOT_KNOWN: &str = "; no recorded run has chosen an image, so its markers are left alone";

/// Message about an image that was chosen without the registry.
const OF_OLD_TAGS: &str = "it chooses from the tags in the state, which may be out of date, because its repository \
                           could not be scanned";

/// Returns the message about a policy that forbids its image and has no other.
fn forbidden_image(image: &ImageRef) -> String {
    format!(
        "its current image {image} is no longer allowed, and no other could be chosen, so its markers are left alone"
    )
}
