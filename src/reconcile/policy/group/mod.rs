//! The choice of a policy that is in a release group.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::policy::ImagePolicyStatus;
use tagboat_api::settings::PolicySettings;
use tagboat_api::{ImagePolicy, ImageRepository};

use super::choice::{self, Choice, ChoiceError, Held, SelectionInputs};
use super::run::Run;
use crate::objects::ObjectName;
use crate::policy::downgrade::{Decision, DowngradeInputs, Trigger};
use crate::policy::group::{Position, Ranking, Values, does_not_move, too_many};
use crate::policy::selection::ranked_values;
use crate::policy::{Check, HeldDowngrade, Policy};

/// The release group of a policy.
#[derive(Debug)]
pub struct ReleaseGroup {
    /// Its name.
    pub name: String,
    /// The other members.
    pub members: Vec<Member>,
}

/// Another member of a release group.
#[derive(Debug)]
pub struct Member {
    /// The run that it would have now.
    pub run: Run,
    /// The repository that it names, if there is one.
    pub repository: Option<Arc<ImageRepository>>,
    /// The reason why it cannot select, if its objects do not show it.
    pub obstacle: Option<String>,
}

impl ReleaseGroup {
    /// Returns the reason why no member can be asked, if there is one.
    pub(super) fn obstacle(&self) -> Option<String> {
        too_many(self.members.len() + 1)
    }
}

/// Returns the other policies that have the release group of a policy.
///
/// They are of its namespace. A policy whose settings are invalid is one of them.
pub fn other_members<P: Borrow<ImagePolicy>>(
    policy: &ImagePolicy,
    all: impl IntoIterator<Item = P>,
) -> Vec<P> {
    let Some(group) = PolicySettings::release_group(policy.annotations()) else { return Vec::new() };
    let own = ObjectName::of(policy);
    let is_member = |other: &P| {
        let other = other.borrow();
        let is_in_group = PolicySettings::release_group(other.annotations()) == Some(group);
        is_in_group && other.namespace().as_ref() == Some(&own.namespace) && ObjectName::of(other) != own
    };
    all.into_iter().filter(is_member).collect()
}

/// The release group in one run, with the rankings of the other members.
#[derive(Debug)]
pub(super) struct Survey {
    /// The name of the group.
    group: String,
    own: ObjectName,
    /// The values of the policy, to which the rankings refer.
    values: Values,
    rankings: Vec<Ranking>,
    /// The other members, in the order of the rankings.
    members: Vec<SurveyedMember>,
    /// The reason why nothing moves, if a member has no ranking.
    obstacle: Option<String>,
}

/// A member, as far as it decides about a downgrade.
#[derive(Debug)]
pub(super) struct SurveyedMember {
    pub(super) policy: Arc<Policy>,
    /// The tag that it has.
    pub(super) current: Option<String>,
    /// The downgrade that it holds.
    pub(super) pending: Option<HeldDowngrade>,
    /// The time of its last complete scan.
    pub(super) scanned: Option<Timestamp>,
}

impl Survey {
    pub(super) fn new(group: String, own: ObjectName, values: Values) -> Self {
        Self { group, own, values, rankings: Vec::new(), members: Vec::new(), obstacle: None }
    }

    /// Adds a member with its ranking.
    pub(super) fn add(&mut self, ranking: Ranking, member: SurveyedMember) {
        self.rankings.push(ranking);
        self.members.push(member);
    }

    /// Stops the group: no member moves.
    #[must_use]
    pub(super) fn stopped(self, obstacle: String) -> Self {
        Self { obstacle: Some(obstacle), ..self }
    }

    /// Returns true if no member moves, independently of the tags of this one.
    pub(super) fn is_stopped(&self) -> bool {
        self.obstacle.is_some()
    }

    /// Returns the values of the policy.
    pub(super) fn values(&self) -> &Values {
        &self.values
    }

    /// Returns the values that all other members have, be their tags old enough or not.
    pub(super) fn possible(&self) -> HashSet<String> {
        let rankings: Vec<&Ranking> = self.rankings.iter().collect();
        self.values.possible(&rankings).into_iter().map(str::to_owned).collect()
    }

    /// Selects the policy's tag for the value of the group.
    ///
    /// # Errors
    ///
    /// If the policy has no image and there is no such tag, or `check` fails.
    pub(super) fn choose(
        &self,
        policy: &Policy,
        inputs: &SelectionInputs<'_>,
        previous: &ImagePolicyStatus,
        check: Check<'_>,
    ) -> Result<Choice, ChoiceError> {
        let current = choice::current(previous, inputs.image);
        let pending = choice::pending(&previous.conditions);
        let kept = |held: Option<HeldDowngrade>, incomplete: Option<String>, matures_in| {
            let incomplete = incomplete.map(|message| self.message(&message));
            match (current, incomplete) {
                (Some(current), incomplete) => {
                    let held = held.map(|held| Held::of(held, current, &inputs.downgrade_protection));
                    Ok(Choice { tag: current.to_owned(), held, matures_in, incomplete })
                }
                (None, message) => {
                    Err(ChoiceError::Group { message: message.unwrap_or_default(), matures_in })
                }
            }
        };
        if let Some(obstacle) = &self.obstacle {
            return kept(pending, Some(obstacle.clone()), None);
        }
        let selection = policy.select_within(inputs.tags, inputs.ages, check)?;
        let matures_in = selection.matures_in();
        if let Some(error) = selection.error()
            && (current.is_none() || !inputs.is_provisional)
        {
            return Err(ChoiceError::Selection { error: error.clone(), matures_in });
        }
        let own = ranked_values(policy, inputs.tags, inputs.ages, check)?;
        let own = self.values.ranking(self.own.clone(), own);
        let rankings: Vec<&Ranking> = [&own].into_iter().chain(&self.rankings).collect();
        let position = match self.values.agree(&rankings) {
            Ok(position) => position,
            Err(disagreement) => return kept(pending, Some(disagreement.to_string()), matures_in),
        };
        let winner = own.tag(position);
        let decision = decide(inputs, policy, (current, winner), inputs.scanned, pending.as_ref());
        let held_by = || self.held_by(inputs, position);
        match decision {
            Decision::Hold(held) => kept(held, None, matures_in),
            Decision::Accept if winner == current => Ok(Choice::of(winner.unwrap_or_default(), matures_in)),
            Decision::Accept => match held_by() {
                None => Ok(Choice::of(winner.unwrap_or_default(), matures_in)),
                // The own wait is not begun anew when it is over before that of the other member.
                Some(member) => {
                    let message = format!("{member} holds a downgrade (condition RegressionHeld)");
                    kept(pending, Some(message), matures_in)
                }
            },
        }
    }

    /// Returns a member that holds its tag although another one is that of the group.
    fn held_by(&self, inputs: &SelectionInputs<'_>, position: Position) -> Option<&ObjectName> {
        let holds = |(ranking, member): &(&Ranking, &SurveyedMember)| {
            let SurveyedMember { policy, current, pending, scanned } = member;
            let tags = (current.as_deref(), ranking.tag(position));
            decide(inputs, policy, tags, *scanned, pending.as_ref()) != Decision::Accept
        };
        self.rankings.iter().zip(&self.members).find(holds).map(|(ranking, _)| &ranking.policy)
    }

    /// Returns the message of the condition `Stale`.
    fn message(&self, cause: &str) -> String {
        does_not_move(&self.group, &cause)
    }
}

/// Decides whether a member may move to a tag.
fn decide(
    inputs: &SelectionInputs<'_>,
    policy: &Policy,
    (current, winner): (Option<&str>, Option<&str>),
    scanned: Option<Timestamp>,
    pending: Option<&HeldDowngrade>,
) -> Decision {
    let (trigger, complete_scan) =
        if inputs.is_provisional { (Trigger::TagList, None) } else { (inputs.trigger, scanned) };
    let inputs_of_decision =
        DowngradeInputs { policy, current, winner, trigger, complete_scan, now: inputs.ages.now };
    inputs.downgrade_protection.decide(pending, &inputs_of_decision)
}

#[cfg(test)]
mod tests;
