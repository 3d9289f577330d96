//! The policies of a run, each carried out once on the tags that were found.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use futures::future::join_all;
use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::policy::ImagePolicyStatus;
use tagboat_api::{ImagePolicy, ImageRef};

use super::blocked::{Blocked, Fate};
use super::choice::Choice;
use super::floating::Digests;
use super::memory::{KnownPolicy, Origin};
use super::permission::permits;
use super::sources::{Policies, Repositories, Scanned, Sources};
use super::wanted::{GivenImage, Rest};
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
use crate::reconcile::policy::run::{Ended, Followed, Run, Scene};
use crate::reference::RepositoryAddress;
use crate::update::PolicyName;

/// A policy that chooses.
struct Chooser<'s> {
    name: ObjectName,
    repository: ObjectName,
    /// With the status from before.
    policy: Arc<ImagePolicy>,
    origin: Origin,
    scanned: &'s Scanned,
    run: Run,
    trigger: Trigger,
    /// Whether it chooses from the tags of an earlier scan, for there are none of this run.
    is_blocked: bool,
}

impl Sources {
    /// Lets all policies choose. Those of a repository that could not be scanned keep what they have, unless a person wants
    /// something else since then.
    pub(super) async fn let_choose(
        &self,
        policies: &Policies,
        repositories: &Repositories,
    ) -> Result<BTreeMap<PolicyName, Choice>, Failure> {
        let failed = |error: StateError| Failure::new(chain(&error));
        let mut choices = BTreeMap::new();
        let mut choosers = Vec::new();
        let mut blocked = BTreeMap::<ObjectName, Blocked>::new();
        for (name, manifest) in policies {
            let repository = repository_of(manifest);
            let scanned = repositories.get(&repository).expect("what a policy chooses from was scanned");
            let known = self.memory.policy(manifest).map_err(failed)?;
            if let Some(place) = &known.damage {
                choices.insert(PolicyName::from(name), Choice::forgotten(name, repository, place));
                continue;
            }
            let image = known.image();
            let chooser = self.chooser(name, repository.clone(), known, scanned).map_err(failed)?;
            let Some(obstacle) = self.obstacle(&repository, scanned).await else {
                choosers.push(chooser);
                continue;
            };
            let fate = match image {
                None => Fate::HasNothing,
                Some(image) if chooser.trigger == Trigger::TagList => Fate::Keeps(image),
                Some(_) if self.has_tags(&repository, scanned).await => Fate::Chooses,
                Some(_) => Fate::IsStranded,
            };
            if fate == Fate::Chooses {
                choosers.push(Chooser { is_blocked: true, ..chooser });
            }
            blocked
                .entry(repository)
                .or_insert_with(|| Blocked::by(obstacle))
                .insert(PolicyName::from(name), fate);
        }
        for (repository, blocked) in &blocked {
            choices.extend(blocked.choices(repository));
        }
        for (chooser, ended) in self.carry_out(&choosers, policies).await {
            let mut choice = self.conclude(chooser, &ended).map_err(failed)?;
            if let Some(blocked) = blocked.get(&chooser.repository) {
                choice.tell_of_block(blocked);
            }
            choices.insert(PolicyName::from(&chooser.name), choice);
        }
        Ok(choices)
    }

    /// What policies have that do not choose: the image of the state, or else that of their manifest. Of whom the state
    /// has something that nobody can understand it is among the `choices` that there is none. Whose image is forbidden by
    /// now has none either.
    pub(super) fn resting(
        &self,
        policies: &[(ImagePolicy, Rest)],
        choices: &mut BTreeMap<PolicyName, Choice>,
    ) -> Result<BTreeMap<PolicyName, Option<ImageRef>>, Failure> {
        let mut images = BTreeMap::new();
        for (manifest, _) in policies {
            let name = ObjectName::of(manifest);
            let known = self.memory.policy(manifest).map_err(|error| Failure::new(chain(&error)))?;
            if let Some(place) = &known.damage {
                choices.insert(
                    PolicyName::from(&name),
                    Choice::forgotten(&name, repository_of(manifest), place),
                );
                continue;
            }
            let wanted = repository_of(manifest);
            let mut repositories = self.registry.objects.manifests.repositories();
            let repository = repositories.find(|repository| ObjectName::of(*repository) == wanted);
            if let Some(image) = known.image().filter(|image| !permits(manifest, repository, image)) {
                say(&format!("warning: ImagePolicy {name}: {}", in_place_of(&image)));
                images.insert(PolicyName::from(&name), None);
                continue;
            }
            let latest = known.policy.status.and_then(|status| status.latest_ref);
            images.extend(latest.map(|latest| (PolicyName::from(&name), Some(latest))));
        }
        Ok(images)
    }

    /// Makes the images of the command line those that their policies have from now on, so that the next run goes on from
    /// there. A state that nobody can understand stays as it is. Where nothing chooses, and nothing is remembered, the status
    /// of the manifest counts in the next run as it did before.
    pub(super) fn keep_given(&self, given: &[GivenImage]) -> Result<(), Failure> {
        let failed = |error: StateError| Failure::new(chain(&error));
        for GivenImage { policy, repository, image, is_in_place_of_choice } in given {
            let known = self.memory.policy(policy).map_err(failed)?;
            if known.damage.is_some() || !is_in_place_of_choice && known.origin == Origin::Manifest {
                continue;
            }
            let (policy, now) = (Arc::new(known.policy), Timestamp::now());
            let resolution = Resolution { latest: image.clone(), staleness: None, is_retried: false };
            let conclusion = Conclusion::Resolved(Resolved { resolution, held: None, matures_in: None });
            let previous = policy.status.clone().unwrap_or_default();
            let report = Run::of(policy.clone(), now).report(&previous, &conclusion, now);
            self.memory.keep_policy(&policy, &report.status).map_err(failed)?;
            self.memory.save_intent(&policy, repository).map_err(failed)?;
        }
        Ok(())
    }

    /// Why nothing can be chosen from a repository.
    async fn obstacle(&self, name: &ObjectName, scanned: &Scanned) -> Option<String> {
        if let Some(failure) = &scanned.failure {
            return Some(format!("ImageRepository {name}: {failure}"));
        }
        let spec = &scanned.object.spec;
        if RepositoryAddress::parse(&spec.image, spec.insecure).is_err() || self.has_tags(name, scanned).await
        {
            return None;
        }
        let words = if spec.suspend {
            "is suspended, and no run that is remembered has scanned it"
        } else {
            "has no tags to choose from: the registry lists none, or none that spec.exclusionList does not leave out"
        };
        Some(format!("ImageRepository {name} {words}"))
    }

    /// Whether there are tags of a repository, be it of this run or of an earlier one.
    async fn has_tags(&self, name: &ObjectName, scanned: &Scanned) -> bool {
        let spec = &scanned.object.spec;
        let Ok(address) = RepositoryAddress::parse(&spec.image, spec.insecure) else { return false };
        let open = self.shelf.open(&name.namespace, name, &address.canonical(), |_| 0).await;
        open.is_some_and(|open| !open.stored.tags.is_empty())
    }

    fn chooser<'s>(
        &self,
        name: &ObjectName,
        repository: ObjectName,
        known: KnownPolicy,
        scanned: &'s Scanned,
    ) -> Result<Chooser<'s>, StateError> {
        let (policy, origin) = (Arc::new(known.policy), known.origin);
        let run = Run::of(policy.clone(), Timestamp::now());
        let latest = policy.status.as_ref().and_then(|status| status.latest_ref.as_ref());
        // Whoever forbids what counts now wants something else, also where that could not be had before.
        let is_wanted = run.is_wanted()
            || self.memory.intent_changed(&policy, &scanned.manifest)?
            || latest.is_some_and(|latest| !permits(&policy, Some(&scanned.manifest), latest));
        let trigger = if is_wanted { Trigger::User } else { Trigger::TagList };
        let name = name.clone();
        Ok(Chooser { name, repository, policy, origin, scanned, run, trigger, is_blocked: false })
    }

    /// Lets them choose, then looks at what floats, and lets those choose again who follow that.
    async fn carry_out<'c, 's>(
        &self,
        choosers: &'c [Chooser<'s>],
        policies: &Policies,
    ) -> Vec<(&'c Chooser<'s>, Ended)> {
        let nothing = |_: &Followed| None;
        let first = choosers.iter().map(|chooser| chooser.carry_out(self, &nothing));
        let mut ended = join_all(first).await;
        let mut digests = Digests::default();
        let is_open = |ended: &Ended| ended.followed.is_some() && !ended.is_fresh;
        for (chooser, ended) in choosers.iter().zip(&ended).filter(|(_, ended)| is_open(ended)) {
            digests.follow(&chooser.name, ended, &chooser.previous(), policies);
        }
        digests.look(&self.registry).await;
        let digests = &digests;
        let again = choosers.iter().zip(&mut ended).filter(|(_, ended)| is_open(ended));
        join_all(again.map(async |(chooser, ended)| {
            *ended = chooser.carry_out(self, &|followed| digests.known(&chooser.name, followed)).await;
        }))
        .await;
        choosers.iter().zip(ended).collect()
    }

    /// What waits in this run, and what it takes until it counts.
    fn held(&self, conclusion: &Conclusion) -> Option<String> {
        let Conclusion::Resolved(Resolved { held: Some(held), resolution, .. }) = conclusion else {
            return None;
        };
        match &held.pending {
            Some(pending) if !self.memory.is_lasting() => {
                Some(downgrade::message_without_state(&resolution.latest.tag, pending))
            }
            _ => Some(held.message.clone()),
        }
    }

    /// Keeps what became of a policy, and says it.
    fn conclude(&self, chooser: &Chooser<'_>, ended: &Ended) -> Result<Choice, StateError> {
        let report = chooser.run.report(&chooser.previous(), &ended.conclusion, Timestamp::now());
        let mut status = report.status;
        let is_resolved = matches!(ended.conclusion, Conclusion::Resolved(_));
        // What only the manifest knows is no choice, neither of this run nor for the next one.
        let is_doubtful = ended.is_provisional || find(&status.conditions, ConditionType::Stale).is_some();
        let is_unfounded = chooser.origin == Origin::Manifest
            && (!is_resolved || is_doubtful && status.latest_ref == chooser.previous().latest_ref);
        if is_unfounded {
            status.latest_ref = None;
        }
        if is_resolved && ended.is_provisional {
            // What a person wants is not met yet, so the next run is to see it as wanted.
            let ImagePolicyStatus { observed_generation, last_handled_reconcile_at, .. } = chooser.previous();
            (status.observed_generation, status.last_handled_reconcile_at) =
                (observed_generation, last_handled_reconcile_at);
        }
        let latest = status.latest_ref.clone();
        let forbidden =
            latest.filter(|latest| !permits(&chooser.policy, Some(&chooser.scanned.manifest), latest));
        // What a person wants is not met by an image that they forbid, and is wanted in the next run too.
        if forbidden.is_none() || !is_resolved {
            self.memory.keep_policy(&chooser.policy, &status)?;
        }
        if is_resolved && !ended.is_provisional && forbidden.is_none() {
            self.memory.save_intent(&chooser.policy, &chooser.scanned.manifest)?;
        }
        let words = |type_| find(&status.conditions, type_).map(|found| found.message.clone());
        let failure = words(ConditionType::Ready).filter(|_| !is_resolved);
        // Tags that are too new may only seem so.
        let cause = words(ConditionType::Stale).filter(|_| ended.is_provisional);
        let cause = cause.map(|words| format!("; {words}")).unwrap_or_default();
        let is_passed_over = is_unfounded && chooser.previous().latest_ref.is_some();
        let end = if is_passed_over { NOT_KNOWN } else { "" };
        let name = &chooser.name;
        if let Some(forbidden) = forbidden {
            let cause = words(ConditionType::Stale).map(|words| format!("; {words}")).unwrap_or_default();
            let failure = failure.map(|words| format!("{words}; ")).unwrap_or_default();
            let words = format!("ImagePolicy {name}: {failure}{}{cause}", in_place_of(&forbidden));
            return Ok(Choice::kept(chooser.repository.clone(), None, words));
        }
        // What made a policy fail is told once.
        let stale = words(ConditionType::Stale).map(|words| words + end);
        let of_old_tags = chooser.is_blocked.then(|| OF_OLD_TAGS.to_owned());
        let stale: Vec<String> = stale.into_iter().chain(of_old_tags).filter(|_| is_resolved).collect();
        Ok(Choice {
            repository: chooser.repository.clone(),
            held: self.held(&ended.conclusion),
            stale: Some(stale.join("; ")).filter(|words| !words.is_empty()),
            error: failure.map(|words| format!("ImagePolicy {name}: {words}{cause}{end}")),
            latest: status.latest_ref,
        })
    }
}

impl Chooser<'_> {
    async fn carry_out(
        &self,
        sources: &Sources,
        polled: &(dyn Fn(&Followed) -> Option<Polled> + Sync),
    ) -> Ended {
        let own = self.policy.namespace().unwrap_or_default();
        let manifests = &sources.registry.objects.manifests;
        let mut labels = manifests.namespace_labels(&own).unwrap_or_default();
        labels.insert(NAME_LABEL.to_owned(), own);
        let scene = Scene {
            repository: Some(self.scanned.object.clone()),
            labels: Ok(labels),
            // Whose registry cannot be read is not carried out.
            scan_trouble: None,
            trigger: self.trigger,
            polled,
        };
        self.run.carry_out(&sources.policies, scene, &sources.shelf, &sources.registry).await
    }

    fn previous(&self) -> ImagePolicyStatus {
        self.policy.status.clone().unwrap_or_default()
    }
}

impl Choice {
    /// The choice of a policy that could not choose anew.
    pub(super) fn kept(repository: ObjectName, latest: Option<ImageRef>, words: String) -> Self {
        Self { repository, latest, held: None, stale: None, error: Some(words) }
    }

    /// Says of what was chosen from the tags of an earlier scan why there are none of this run.
    fn tell_of_block(&mut self, blocked: &Blocked) {
        let sentence = blocked.sentence();
        self.error = Some(match &self.error {
            None => sentence,
            Some(own) => format!("{sentence}; {own}"),
        });
    }

    /// That there is no choice where the image before is not known any more: any other could be lower.
    fn forgotten(name: &ObjectName, repository: ObjectName, place: &Path) -> Self {
        let words = format!(
            "ImagePolicy {name}: the state in {} is damaged, so that nobody knows below which image not to go back, and its \
             markers are left alone; restore the file, or remove it to choose as a first run does",
            place.display()
        );
        Self::kept(repository, None, words)
    }
}

/// What is said where a policy has no image but that of its manifest.
const NOT_KNOWN: &str = "; no run that is remembered has chosen an image, so its markers are left alone";

/// What is said of an image that was chosen while the registry could not be asked.
const OF_OLD_TAGS: &str = "what it chooses is of the tags that the state has, which may be out of date, for its \
                           repository could not be scanned";

/// What is said of a policy that has an image which it forbids, and no other.
fn in_place_of(image: &ImageRef) -> String {
    format!(
        "nothing could be chosen in the place of {image}, which it had before and does not allow as it stands, so its markers \
         are left alone"
    )
}
