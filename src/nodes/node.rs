//! A node, with the fields that decide about its stage.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::keys;
use super::{AgentState, HookPoint, Hooks, Pool, Stage};

/// A node of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The name.
    pub name: String,
    /// The version of the object, on which each patch depends.
    pub resource_version: String,
    /// The labels.
    pub labels: Arc<BTreeMap<String, String>>,
    /// The annotations in use: ours, those of autoscalers, and those of hooks.
    pub annotations: Arc<BTreeMap<String, String>>,
    /// The time of the agent's last write; none if it wrote nothing.
    pub agent_wrote: Option<Timestamp>,
    /// `true` for a cordoned node.
    pub is_unschedulable: bool,
    /// `true` if the kubelet reports that the node is ready.
    pub is_ready: bool,
    /// The time at which the node became ready, or ceased to be.
    pub ready_since: Option<Timestamp>,
    /// The ID of the current boot, which the kubelet reports.
    pub boot_id: String,
}

/// The beginning of an attempt at an update of the host's own.
const REPLACES: &str = "replaces=";

/// The approval that the agent acknowledged: the value of its annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The digest of the approved image; empty without an image.
    pub digest: String,
    /// The system that an update of the host's own replaces; none for an approved image.
    pub replaced: Option<String>,
    /// The ID of the boot in which the agent acknowledged it.
    pub boot_id: String,
}

impl Attempt {
    /// Parses the value `DIGEST BOOT-ID`; without an image it is `replaces=SYSTEM BOOT-ID`, or ` BOOT-ID`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (target, boot_id) = text.rsplit_once(' ')?;
        let (digest, replaced) = match target.strip_prefix(REPLACES) {
            Some(system) => (String::new(), Some(system.to_owned())),
            None => (target.to_owned(), None),
        };
        (!boot_id.is_empty()).then(|| Self { digest, replaced, boot_id: boot_id.to_owned() })
    }
}

/// Formats the value of the annotation.
impl std::fmt::Display for Attempt {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.replaced {
            Some(system) => write!(formatter, "{REPLACES}{system} {}", self.boot_id),
            None => write!(formatter, "{} {}", self.digest, self.boot_id),
        }
    }
}

impl Node {
    /// Returns the stage; a missing label means `idle`, and an unknown value is an error.
    ///
    /// # Errors
    ///
    /// The label has another value.
    pub fn stage(&self) -> Result<Stage, &str> {
        self.labels.get(keys::STATE).map_or(Ok(Stage::Idle), |text| Stage::parse(text).ok_or(text.as_str()))
    }

    /// Returns `true` if the node holds a slot.
    #[must_use]
    pub fn holds_slot(&self) -> bool {
        self.stage().is_ok_and(Stage::holds_slot)
    }

    /// Returns `true` if the controller labeled the node as one of a pool.
    #[must_use]
    pub fn is_labeled(&self) -> bool {
        self.labels.contains_key(keys::STATE)
    }

    /// Returns the state of the agent, if it reports a known one.
    #[must_use]
    pub fn agent(&self) -> Option<AgentState> {
        AgentState::parse(self.labels.get(keys::AGENT)?)
    }

    /// Returns `true` if a user paused the node.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.labels.get(keys::PAUSE).is_some_and(|value| value == "true")
    }

    /// Returns `true` for a node of the control plane.
    #[must_use]
    pub fn is_control_plane(&self) -> bool {
        self.labels.contains_key(keys::CONTROL_PLANE)
    }

    /// Returns the zone; empty if it is unknown.
    #[must_use]
    pub fn zone(&self) -> &str {
        self.labels.get(keys::ZONE).map_or("", String::as_str)
    }

    /// Returns an annotation.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(String::as_str)
    }

    /// Returns `true` for a node that is not promoted.
    ///
    /// It is not ready, or its agent reports an error.
    #[must_use]
    pub fn is_held(&self) -> bool {
        !self.is_ready || self.agent() == Some(AgentState::Error)
    }

    /// Returns `true` from the acknowledgment of an approval until the next stage.
    #[must_use]
    pub fn reboots(&self) -> bool {
        self.stage().is_ok_and(|stage| reboots(stage, self.agent()))
    }

    /// Returns `true` if the controller cordoned the node.
    #[must_use]
    pub fn is_made_unschedulable(&self) -> bool {
        self.annotations.contains_key(keys::MADE_UNSCHEDULABLE)
    }

    /// Returns the time since which the node is in its stage.
    #[must_use]
    pub fn since(&self) -> Option<Timestamp> {
        self.annotation(keys::STATE_SINCE)?.parse().ok()
    }

    /// Returns the pool that a node with a slot has left for the given one.
    ///
    /// It is the one in which its rollout began.
    #[must_use]
    pub fn left_pool(&self, pool: &Pool) -> Option<&str> {
        self.annotation(keys::POOL).filter(|_| self.holds_slot() && self.is_of_another_pool(&pool.name))
    }

    /// Returns `true` if the pool that is recorded on the node is another one.
    #[must_use]
    pub fn is_of_another_pool(&self, pool: &str) -> bool {
        self.annotation(keys::POOL).is_some_and(|recorded| recorded != pool)
    }

    /// Returns `true` if the begin of the stage is unknown, or to come.
    ///
    /// A minute is left for the clocks of two controllers.
    #[must_use]
    pub fn lacks_since(&self, now: Timestamp) -> bool {
        self.since().is_none_or(|since| since.duration_since(now) > SignedDuration::from_mins(1))
    }

    /// Returns `true` if the node takes the place of another one.
    ///
    /// It holds a slot, or is not ready.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        self.holds_slot() || !self.is_ready
    }

    /// Returns the last deployment in a pool, digest or version, and its time.
    ///
    /// One in another pool is none.
    #[must_use]
    pub fn last_deployment(&self, pool: &str) -> Option<(&str, Timestamp)> {
        let deployed = self.annotation(keys::LAST_DEPLOYED).unwrap_or_default();
        let at = self.annotation(keys::LAST_DEPLOYED_AT)?.parse().ok()?;
        (!self.is_of_another_pool(pool)).then_some((deployed, at))
    }

    /// Returns `true` if a rollout of the node has led to its image.
    ///
    /// Without an image, it has led to a host that needed no reboot, and may be at its next update by now.
    #[must_use]
    pub fn is_deployed(&self) -> bool {
        let needs_none = || matches!(self.agent(), Some(AgentState::UpToDate | AgentState::Staging));
        if self.desired_digest().is_some() { self.has_booted() } else { needs_none() }
    }

    /// Returns the approval that the agent acknowledged last.
    #[must_use]
    pub fn attempt(&self) -> Option<Attempt> {
        Attempt::parse(self.annotation(keys::ATTEMPTED)?)
    }

    /// Returns the digest of the wanted image; none without an image.
    #[must_use]
    pub fn desired_digest(&self) -> Option<&str> {
        self.annotation(keys::DESIRED_IMAGE).and_then(digest_of)
    }

    /// Returns `true` if all hooks of a stage confirmed, by label or annotation.
    #[must_use]
    pub fn has_confirmed(&self, hooks: &Hooks, point: HookPoint) -> bool {
        let is_true = |map: &BTreeMap<String, String>, key: &str| map.get(key).is_some_and(|v| v == "true");
        hooks.of(point).iter().all(|key| is_true(&self.labels, key) || is_true(&self.annotations, key))
    }

    /// Returns `true` if a reboot is needed.
    ///
    /// With a wanted image, it must be the staged one. A node that keeps its booted image needs none.
    #[must_use]
    pub fn is_staged(&self) -> bool {
        self.agent() == Some(AgentState::UpdateStaged)
            && self.annotation(keys::DESIRED_IMAGE) != Some("")
            && self.has_digest(keys::STAGED_DIGEST)
    }

    /// Returns `true` if the wanted image is booted, or no reboot is needed.
    ///
    /// The label of the agent can be older than the wanted image, so its digest must be that of the image.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.agent() == Some(AgentState::UpToDate) && self.has_booted()
    }

    /// Returns `true` if the host has not rebooted since the agent acknowledged the approval.
    #[must_use]
    pub fn awaits_reboot(&self) -> bool {
        self.attempt().is_some_and(|attempt| {
            attempt.boot_id == self.boot_id && attempt.digest == self.desired_digest().unwrap_or_default()
        })
    }

    /// Returns `true` if the agent must report something else than it did last.
    ///
    /// It has reported nothing yet, or what it reported is older than the wanted image or the approval; or it has something
    /// in progress, whose end it will report. The updates of a host without images have no end that is known.
    #[must_use]
    pub fn awaits_agent(&self) -> bool {
        match self.agent() {
            None | Some(AgentState::Rebooting) => true,
            Some(AgentState::Error) => false,
            Some(AgentState::UpToDate) => !self.has_booted(),
            Some(AgentState::Staging) => self.annotation(keys::DESIRED_IMAGE).is_some(),
            Some(AgentState::UpdateStaged) => !self.is_staged() || self.stage() == Ok(Stage::Rebooting),
        }
    }

    /// Returns `true` if the reported booted image is the wanted one, or none is wanted.
    #[must_use]
    pub fn has_booted(&self) -> bool {
        self.has_digest(keys::BOOTED_DIGEST)
    }

    fn has_digest(&self, key: &str) -> bool {
        self.desired_digest().is_none_or(|digest| self.annotation(key) == Some(digest))
    }
}

/// Returns `true` for a node in this stage whose agent has begun the reboot.
pub(super) fn reboots(stage: Stage, agent: Option<AgentState>) -> bool {
    stage == Stage::Rebooting && matches!(agent, Some(AgentState::Rebooting | AgentState::UpToDate))
}

/// Returns the digest of a reference.
pub(super) fn digest_of(reference: &str) -> Option<&str> {
    reference.rsplit_once('@').map(|(_, digest)| digest).filter(|digest| !digest.is_empty())
}
