//! The decisions of the agent: its report of the host, and its next step.
//!
//! The agent keeps nothing between two decisions, so it can be killed at any time.

use serde_json::{Value, json};

use super::keys;
use super::node::digest_of;
use super::{AgentState, Attempt, Node, Stage};
use crate::reference::ReferenceParts;

/// An image of the host, as bootc describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostImage {
    /// The reference, as it was given to the host.
    pub reference: String,
    /// The digest of the manifest of this platform.
    pub digest: String,
}

impl HostImage {
    /// Returns `true` if the image is the wanted one.
    ///
    /// The digest of the reference may be that of an index, and the other that of the platform's manifest: either counts.
    #[must_use]
    pub fn is(&self, wanted: &str) -> bool {
        digest_of(wanted)
            .is_some_and(|wanted| self.digest == wanted || digest_of(&self.reference) == Some(wanted))
    }

    fn is_same(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

/// The state of a host, as its programs report it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// The booted image; `None` for a host without images.
    pub booted: Option<HostImage>,
    /// The image that the next reboot boots.
    pub staged: Option<HostImage>,
    /// The version of the booted system.
    pub version: Option<String>,
    /// The state of an update that the host makes itself.
    pub own_update: OwnUpdate,
    /// The system that such an update replaces, by its digest or version.
    ///
    /// There is none if the host only asks for a reboot.
    pub replaceable: Option<String>,
    /// The ID of the current boot.
    pub boot_id: String,
}

impl Host {
    /// Returns `true` if an image of the host is the wanted one.
    ///
    /// A host that was installed by a tag knows the digest of the platform's manifest only. The staged image tells that the
    /// wanted digest is that of an index with this manifest.
    fn equals(&self, image: &HostImage, wanted: &str) -> bool {
        let is_twin = |staged: &HostImage| staged.is_same(image) && staged.is(wanted);
        image.is(wanted) || self.staged.as_ref().is_some_and(is_twin)
    }

    /// Returns `true` if the booted image is the wanted one.
    fn has_booted(&self, wanted: &str) -> bool {
        self.booted.as_ref().is_some_and(|booted| self.equals(booted, wanted))
    }
}

/// The state of an update that a host makes itself, without a wanted image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OwnUpdate {
    /// There is none.
    #[default]
    None,
    /// It is in progress.
    Staging,
    /// It needs a reboot; the reason for users.
    NeedsReboot(String),
}

/// The report of an agent: its label and its annotations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentReport {
    /// The state.
    pub state: AgentState,
    /// The message for users.
    pub message: String,
    /// The digest of the booted image.
    ///
    /// It is the wanted digest, if the image is the wanted one.
    pub booted_digest: Option<String>,
    /// The digest of the staged image, in the same way.
    pub staged_digest: Option<String>,
    /// The version of the booted system.
    pub booted_version: Option<String>,
    /// The ID of the current boot.
    pub boot_id: String,
}

/// The next step of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentStep {
    /// Publishes the report.
    Publish,
    /// Stages an image.
    Stage(String),
    /// Acknowledges the approval; after that patch, the host is rebooted.
    Acknowledge(Attempt),
    /// Reboots the host, whose approval is acknowledged.
    Reboot,
}

/// Returns the report of a host.
///
/// `failure` is the error of the last program that failed.
#[must_use]
pub fn agent_report(node: &Node, host: &Host, failure: Option<&str>) -> AgentReport {
    let failure = failure.map(str::to_owned).or_else(|| rolled_back(node, host));
    let failure = failure.or_else(|| has_undone_its_update(node, host));
    let failure = failure.or_else(|| needs_another_reboot(node, host)).or_else(|| has_no_images(node, host));
    let (state, message) = match failure {
        Some(message) => (AgentState::Error, message),
        None => state_of(node, host),
    };
    let digest = |image: &Option<HostImage>| {
        let image = image.as_ref()?;
        let wanted = node.annotation(keys::DESIRED_IMAGE).filter(|wanted| host.equals(image, wanted));
        Some(wanted.and_then(digest_of).unwrap_or(&image.digest).to_owned())
    };
    AgentReport {
        state,
        message,
        booted_digest: digest(&host.booted),
        staged_digest: digest(&host.staged),
        booted_version: host.version.clone(),
        boot_id: host.boot_id.clone(),
    }
}

/// Returns the next step of the agent; `None` if it waits for a change.
///
/// The agent of a node that is in no pool writes nothing: the controller has removed its keys.
#[must_use]
pub fn agent_step(node: &Node, host: &Host, report: &AgentReport) -> Option<AgentStep> {
    if !node.is_labeled() {
        return None;
    }
    if node.stage() == Ok(Stage::Rebooting) && report.state == AgentState::Rebooting {
        return Some(AgentStep::Reboot);
    }
    if !is_published(node, report) {
        return Some(AgentStep::Publish);
    }
    match report.state {
        AgentState::Staging => image_to_stage(node, host).map(AgentStep::Stage),
        AgentState::UpdateStaged if node.stage() == Ok(Stage::Rebooting) && node.is_staged() => {
            let digest = node.desired_digest().unwrap_or_default().to_owned();
            let replaced = host.replaceable.clone().filter(|_| digest.is_empty());
            Some(AgentStep::Acknowledge(Attempt { digest, replaced, boot_id: host.boot_id.clone() }))
        }
        _ => None,
    }
}

/// Returns the merge patch that publishes a report.
#[must_use]
pub fn report_patch(node: &Node, report: &AgentReport) -> Value {
    let mut patch = json!({"metadata": {
        "resourceVersion": node.resource_version,
        "labels": {keys::AGENT: report.state.as_str()},
        "annotations": {
            keys::MESSAGE: Some(&report.message).filter(|message| !message.is_empty()),
            keys::BOOTED_DIGEST: report.booted_digest,
            keys::STAGED_DIGEST: report.staged_digest,
            keys::BOOTED_VERSION: report.booted_version,
        },
    }});
    if ends_attempt(node, report) {
        // It would be taken for a failed one when the node wants its image again.
        patch["metadata"]["annotations"][keys::ATTEMPTED] = Value::Null;
    }
    patch
}

/// Returns the merge patch that acknowledges an approval.
///
/// It has the resource version of the node with the approval, so a cancellation that was written before wins.
#[must_use]
pub fn acknowledgment_patch(node: &Node, attempt: &Attempt) -> Value {
    json!({"metadata": {
        "resourceVersion": node.resource_version,
        "labels": {keys::AGENT: AgentState::Rebooting.as_str()},
        "annotations": {keys::ATTEMPTED: attempt.to_string()},
    }})
}

fn is_published(node: &Node, report: &AgentReport) -> bool {
    let has = |key: &str, value: Option<&str>| node.annotation(key) == value;
    node.agent() == Some(report.state)
        && !ends_attempt(node, report)
        && has(keys::MESSAGE, Some(report.message.as_str()).filter(|message| !message.is_empty()))
        && has(keys::BOOTED_DIGEST, report.booted_digest.as_deref())
        && has(keys::STAGED_DIGEST, report.staged_digest.as_deref())
        && has(keys::BOOTED_VERSION, report.booted_version.as_deref())
}

/// Returns the error of a host that came back without the approved image.
///
/// It would reboot forever if the agent tried again.
fn rolled_back(node: &Node, host: &Host) -> Option<String> {
    let (attempt, booted) = (node.attempt()?, host.booted.as_ref()?);
    let wanted = node.annotation(keys::DESIRED_IMAGE)?;
    let is_attempted = !attempt.digest.is_empty() && node.desired_digest() == Some(&attempt.digest);
    (is_attempted && attempt.boot_id != host.boot_id && !host.has_booted(wanted)).then(|| {
        format!(
            "the host came back with {} in place of {}; to try it again: kubectl annotate node {} {}-",
            booted.digest,
            attempt.digest,
            node.name,
            keys::ATTEMPTED
        )
    })
}

/// Returns the error of a host that undid its own update.
///
/// It would reboot forever, because it makes the same update again.
fn has_undone_its_update(node: &Node, host: &Host) -> Option<String> {
    let system = own_attempt(node, host)?.replaced?;
    // After a boot, update-engine may start later than the agent, which knows the version only until then.
    let booted = host.replaceable.as_ref().or(host.version.as_ref());
    (booted == Some(&system)).then(|| {
        format!("the host came back with {system}, which its update had replaced; {}", end_of_attempt(node))
    })
}

/// Returns the error of a host that rebooted, and asks for a reboot again.
///
/// There was no image to compare, and it would reboot forever if it never stopped asking.
fn needs_another_reboot(node: &Node, host: &Host) -> Option<String> {
    let OwnUpdate::NeedsReboot(reason) = &host.own_update else { return None };
    own_attempt(node, host)?;
    let advice = end_of_attempt(node);
    Some(format!("the host still needs a reboot after one; {advice}; its reason: {reason}"))
}

/// Returns the attempt at an update of the host's own, after the reboot.
fn own_attempt(node: &Node, host: &Host) -> Option<Attempt> {
    let is_approved = node.stage() == Ok(Stage::Rebooting) && node.annotation(keys::DESIRED_IMAGE).is_none();
    node.attempt()
        .filter(|attempt| is_approved && attempt.digest.is_empty() && attempt.boot_id != host.boot_id)
}

/// Returns the advice on the end of an attempt.
fn end_of_attempt(node: &Node) -> String {
    let label = format!("kubectl label node {} {}", node.name, keys::PAUSE);
    format!("to end the attempt: {label}=true, and later {label}-")
}

/// Returns `true` if a report is about another update than that of the attempt.
///
/// Without an image, another update is one that is staged before its approval; and there is none any more if the reboot has
/// not begun, and nothing asks for it. With one, the node wants another digest: as long as it wants that of the attempt, a
/// host that rolls back late is noticed.
fn ends_attempt(node: &Node, report: &AgentReport) -> bool {
    let Some(attempt) = node.attempt() else { return false };
    if attempt.digest.is_empty() {
        match report.state {
            AgentState::UpdateStaged => node.stage() != Ok(Stage::Rebooting),
            AgentState::UpToDate => attempt.boot_id == report.boot_id,
            _ => false,
        }
    } else {
        report.state != AgentState::Rebooting && node.desired_digest() != Some(&attempt.digest)
    }
}

/// Returns the error of a host without images in a pool with one.
fn has_no_images(node: &Node, host: &Host) -> Option<String> {
    let wanted = node.annotation(keys::DESIRED_IMAGE).filter(|wanted| !wanted.is_empty())?;
    host.booted.is_none().then(|| format!("the host has no images, so {wanted} cannot be staged"))
}

fn state_of(node: &Node, host: &Host) -> (AgentState, String) {
    let is_acknowledged = node.stage() == Ok(Stage::Rebooting) && node.agent() == Some(AgentState::Rebooting);
    if is_acknowledged && node.attempt().is_some_and(|attempt| attempt.boot_id == host.boot_id) {
        return (AgentState::Rebooting, "the host reboots".to_owned());
    }
    let Some(wanted) = node.annotation(keys::DESIRED_IMAGE) else {
        return match &host.own_update {
            OwnUpdate::None => (AgentState::UpToDate, String::new()),
            OwnUpdate::Staging => (AgentState::Staging, "the host stages an update".to_owned()),
            OwnUpdate::NeedsReboot(reason) => (AgentState::UpdateStaged, reason.clone()),
        };
    };
    match image_to_stage(node, host) {
        Some(image) => (AgentState::Staging, format!("staging {image}")),
        None if wanted.is_empty() => (AgentState::UpToDate, String::new()),
        None if host.has_booted(wanted) => (AgentState::UpToDate, String::new()),
        None => (AgentState::UpdateStaged, String::new()),
    }
}

/// Returns the image that must be staged, so that a reboot boots the wanted one.
///
/// An empty wish is the booted image.
#[must_use]
pub fn image_to_stage(node: &Node, host: &Host) -> Option<String> {
    let wanted = node.annotation(keys::DESIRED_IMAGE)?;
    let booted = host.booted.as_ref()?;
    let is_booted = wanted.is_empty() || host.has_booted(wanted);
    match &host.staged {
        None if is_booted => None,
        Some(staged) if is_booted && staged.is_same(booted) => None,
        Some(staged) if !is_booted && staged.is(wanted) => None,
        _ if wanted.is_empty() => Some(pinned(booted)),
        _ => Some(wanted.to_owned()),
    }
}

/// Returns the reference of an image with its digest: its tag may have moved.
///
/// References of other transports than registries, which do not parse, are those of the host.
fn pinned(image: &HostImage) -> String {
    match ReferenceParts::parse(&image.reference) {
        Ok(ReferenceParts { name, digest: None, .. }) => format!("{name}@{}", image.digest),
        _ => image.reference.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::testing::node_of;
    use super::*;

    /// A digest of one repeated digit.
    fn digest(digit: char) -> String {
        format!("sha256:{}", digit.to_string().repeat(64))
    }

    fn host_image(reference: &str, digit: char) -> HostImage {
        HostImage { reference: reference.to_owned(), digest: digest(digit) }
    }

    fn wanting(wanted: &str) -> Node {
        let mut node = node_of(Stage::Idle, AgentState::UpdateStaged);
        Arc::make_mut(&mut node.annotations).insert(keys::DESIRED_IMAGE.to_owned(), wanted.to_owned());
        node
    }

    #[test]
    fn an_image_that_was_booted_by_a_tag_is_kept_by_its_digest() {
        let newer = host_image("quay.io/org/os:v1", '2');
        for (reference, expected) in [
            ("quay.io/org/os:v1".to_owned(), format!("quay.io/org/os@{}", digest('1'))),
            ("host:5000/os".to_owned(), format!("host:5000/os@{}", digest('1'))),
            // It may be the digest of an index.
            (format!("quay.io/org/os@{}", digest('9')), format!("quay.io/org/os@{}", digest('9'))),
            ("containers-storage://os:v1".to_owned(), "containers-storage://os:v1".to_owned()),
        ] {
            let booted = Some(host_image(&reference, '1'));
            let host = Host { booted, staged: Some(newer.clone()), ..Host::default() };
            assert_eq!(image_to_stage(&wanting(""), &host), Some(expected), "{reference}");
        }
    }

    /// A node whose agent acknowledged image 2 in boot 1, and its wanted image.
    fn attempted(wanted: char) -> Node {
        let mut node = wanting(&format!("quay.io/org/os@{}", digest(wanted)));
        let attempt = format!("{} 1", digest('2'));
        Arc::make_mut(&mut node.annotations).insert(keys::ATTEMPTED.to_owned(), attempt);
        node
    }

    fn booted(digit: char) -> Host {
        let booted = Some(host_image(&format!("quay.io/org/os@{}", digest(digit)), digit));
        Host { booted, boot_id: "2".to_owned(), ..Host::default() }
    }

    /// Returns the state that the agent reports, and `true` if its patch removes the attempt.
    fn reported(node: &Node, host: &Host) -> (AgentState, bool) {
        let report = agent_report(node, host, None);
        let patch = report_patch(node, &report);
        let removed = patch["metadata"]["annotations"].get(keys::ATTEMPTED).is_some_and(Value::is_null);
        assert!(!removed || agent_step(node, host, &report) == Some(AgentStep::Publish));
        (report.state, removed)
    }

    #[test]
    fn an_attempt_ends_when_another_image_is_wanted_and_is_no_rollback_later() {
        // The host booted the image of the attempt, or rolls back at once or late.
        assert_eq!(reported(&attempted('2'), &booted('2')), (AgentState::UpToDate, false));
        assert_eq!(reported(&attempted('2'), &booted('1')), (AgentState::Error, false));
        // Another image is wanted; a crash boots it, and the wish goes back after that.
        assert_eq!(reported(&attempted('3'), &booted('2')), (AgentState::Staging, true));
        assert_eq!(reported(&attempted('3'), &booted('3')), (AgentState::UpToDate, true));
        let mut node = attempted('2');
        Arc::make_mut(&mut node.annotations).remove(keys::ATTEMPTED);
        assert_eq!(reported(&node, &booted('3')), (AgentState::Staging, false));
    }

    /// A node with an attempt without an image, in boot 1.
    fn attempted_without_an_image(stage: Stage, agent: AgentState) -> Node {
        let mut node = node_of(stage, agent);
        let annotations = Arc::make_mut(&mut node.annotations);
        annotations.remove(keys::DESIRED_IMAGE);
        annotations.insert(keys::ATTEMPTED.to_owned(), " 1".to_owned());
        node
    }

    #[test]
    fn an_own_update_is_undone_if_the_host_comes_back_with_the_system_before() {
        let mut node = attempted_without_an_image(Stage::Rebooting, AgentState::Rebooting);
        let system = |version: &str, boot: &str| {
            let replaceable = Some(version.to_owned()).filter(|version| !version.is_empty());
            Host { replaceable, boot_id: boot.to_owned(), ..Host::default() }
        };
        let attempt =
            Attempt { digest: String::new(), replaced: Some("12".to_owned()), boot_id: "1".to_owned() };
        assert_eq!(attempt.to_string(), "replaces=12 1");
        assert_eq!(Attempt::parse("replaces=12 1"), Some(attempt.clone()));
        Arc::make_mut(&mut node.annotations).insert(keys::ATTEMPTED.to_owned(), attempt.to_string());
        assert_eq!(reported(&node, &system("12", "2")).0, AgentState::Error);
        assert_eq!(reported(&node, &system("13", "2")), (AgentState::UpToDate, false));
        let before_update_engine = Host { version: Some("12".to_owned()), ..system("", "2") };
        assert_eq!(reported(&node, &before_update_engine).0, AgentState::Error);
        assert_eq!(reported(&node, &system("12", "1")).0, AgentState::Rebooting, "it has not rebooted yet");
        // An attempt of an agent of before, and a host that only asked for a reboot.
        Arc::make_mut(&mut node.annotations).insert(keys::ATTEMPTED.to_owned(), " 1".to_owned());
        assert_eq!(reported(&node, &system("12", "2")).0, AgentState::UpToDate);
        // The acknowledgment has the system of the time before.
        let mut approved = node_of(Stage::Rebooting, AgentState::UpdateStaged);
        Arc::make_mut(&mut approved.annotations).remove(keys::DESIRED_IMAGE);
        for version in ["12", ""] {
            let own_update = OwnUpdate::NeedsReboot("it is".to_owned());
            let host = Host { own_update, ..system(version, "1") };
            let report = agent_report(&approved, &host, None);
            let annotations = Arc::make_mut(&mut approved.annotations);
            annotations.insert(keys::MESSAGE.to_owned(), report.message.clone());
            annotations.retain(|key, _| {
                ![keys::BOOTED_DIGEST, keys::STAGED_DIGEST, keys::BOOTED_VERSION].contains(&key.as_str())
            });
            let Some(AgentStep::Acknowledge(attempt)) = agent_step(&approved, &host, &report) else {
                panic!("{report:?}")
            };
            assert_eq!(attempt.replaced.as_deref(), Some(version).filter(|version| !version.is_empty()));
        }
    }

    /// The reboot failed, and nothing asks for one any more.
    #[test]
    fn an_attempt_without_an_image_ends_if_its_reason_is_gone_before_the_reboot() {
        let node = attempted_without_an_image(Stage::Rebooting, AgentState::Error);
        let host = |boot: &str| Host { boot_id: boot.to_owned(), ..Host::default() };
        assert_eq!(reported(&node, &host("1")), (AgentState::UpToDate, true));
        assert_eq!(reported(&node, &host("2")), (AgentState::UpToDate, false), "it has rebooted");
    }

    #[test]
    fn an_error_after_a_reboot_says_what_to_do() {
        let report = agent_report(&attempted('2'), &booted('1'), None);
        let expected = format!(
            "the host came back with {} in place of {}; to try it again: kubectl annotate node a tagboat.dev/attempted-",
            digest('1'),
            digest('2')
        );
        assert_eq!(report.message, expected);
        let node = attempted_without_an_image(Stage::Rebooting, AgentState::Rebooting);
        let own_update = OwnUpdate::NeedsReboot("linux-base".to_owned());
        let report =
            agent_report(&node, &Host { own_update, boot_id: "2".to_owned(), ..Host::default() }, None);
        let expected = "the host still needs a reboot after one; to end the attempt: kubectl label node a \
                        tagboat.dev/pause=true, and later kubectl label node a tagboat.dev/pause-; its reason: linux-base";
        assert_eq!(report.message, expected);
    }

    #[test]
    fn an_attempt_stays_while_its_reboot_is_in_progress() {
        let mut node = attempted('3');
        Arc::make_mut(&mut node.labels).insert(keys::STATE.to_owned(), "rebooting".to_owned());
        Arc::make_mut(&mut node.labels).insert(keys::AGENT.to_owned(), "rebooting".to_owned());
        let host = Host { boot_id: "1".to_owned(), ..booted('1') };
        assert_eq!(reported(&node, &host), (AgentState::Rebooting, false));
    }
}
