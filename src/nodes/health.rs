//! The problems of a node, which keep it in its stage.

use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::keys;
use super::{AgentState, Node, Stage, TimeLimits};

/// The time limit of a reboot in a pool without one.
///
/// A node that is back may take longer, so it counts only while the node is not ready.
const REBOOT: Duration = Duration::from_mins(15);

/// The time in which an agent reports on the wanted image, or acknowledges an approval.
const REPORT: Duration = Duration::from_mins(15);

/// The time in which an agent reports the end of a staging.
///
/// The agent ends one after an hour.
const STAGING: Duration = Duration::from_mins(75);

/// The time in which an agent reports the end of a reboot.
///
/// The host may take the first half of it.
const REPORT_AFTER_REBOOT: Duration = Duration::from_mins(30);

/// A problem of a node: it counts as degraded, and keeps its slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The agent reports an error; its message.
    Agent(String),
    /// The kubelet does not report that the node is ready.
    NotReady,
    /// The node is longer in its stage than the pool allows.
    Overdue(Stage, Duration),
    /// The agent has not reported in its time.
    Silent {
        /// The name of the node.
        node: String,
        /// The time without a report.
        limit: Duration,
    },
}

/// Formats the problem as a part of a sentence.
impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(message) if message.is_empty() => write!(formatter, "the agent reports an error"),
            Self::Agent(message) => write!(formatter, "{message}"),
            Self::NotReady => write!(formatter, "the node is not ready"),
            Self::Overdue(stage, limit) => write!(formatter, "{stage} takes longer than {}", span(*limit)),
            Self::Silent { node, limit } => {
                write!(formatter, "its agent has not reported for {}; {}", span(*limit), agent_advice(node))
            }
        }
    }
}

/// Returns the remedy for an agent that does not report.
pub(super) fn agent_advice(node: &str) -> String {
    format!(
        "check its pod: kubectl get pods -A -l app.kubernetes.io/name=tagboat-agent \
         --field-selector spec.nodeName={node}"
    )
}

/// Formats a duration in whole seconds, such as `1h30m`.
fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let parts = [(seconds / 3600, 'h'), (seconds / 60 % 60, 'm'), (seconds % 60, 's')];
    let text: String = parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}")).collect();
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// Returns the problem of a node.
///
/// A node that reboots is not ready for a while. Once the agent has begun, the node has the time limit of the pool for
/// that, or else 15 minutes.
#[must_use]
pub fn problem(node: &Node, limits: TimeLimits, now: Timestamp) -> Option<Problem> {
    let stage = node.stage().unwrap_or(Stage::Idle);
    if node.agent() == Some(AgentState::Error) {
        return Some(Problem::Agent(node.annotation(keys::MESSAGE).unwrap_or_default().to_owned()));
    }
    if let Some(limit) = limits.of(stage)
        && deadline(node, limit).is_some_and(|deadline| deadline <= now)
    {
        return Some(Problem::Overdue(stage, limit));
    }
    let is_late =
        || limits.reboot.is_none() && deadline(node, REBOOT).is_some_and(|deadline| deadline <= now);
    if !node.is_ready {
        return (!node.reboots() || is_late()).then_some(Problem::NotReady);
    }
    let limit = report_limit(node, limits)?;
    let is_silent = report_deadline(node, limit).is_some_and(|deadline| deadline <= now);
    is_silent.then(|| Problem::Silent { node: node.name.clone(), limit })
}

/// Returns the time in which the agent of a node must report.
///
/// None if nothing is awaited. In a pool with a time limit for reboots, that one counts.
fn report_limit(node: &Node, limits: TimeLimits) -> Option<Duration> {
    let is_limited = node.stage() == Ok(Stage::Rebooting) && limits.reboot.is_some();
    (node.awaits_agent() && !is_limited).then(|| match node.agent() {
        Some(AgentState::Staging) => STAGING,
        Some(AgentState::Rebooting) => REPORT_AFTER_REBOOT,
        _ => REPORT,
    })
}

/// Returns the time at which an agent without a report counts as silent.
///
/// It counts from the last report, from the time of the stage or of the wanted image, or from the time at which the node became
/// ready, whichever is the latest.
fn report_deadline(node: &Node, limit: Duration) -> Option<Timestamp> {
    let later = [node.agent_wrote, node.ready_since].into_iter().flatten();
    let begin = later.fold(node.since()?, Timestamp::max);
    begin.checked_add(SignedDuration::try_from(limit).ok()?).ok()
}

/// Returns the time of the next problem that a node will have by time alone.
///
/// Its stage exceeds a limit, or its agent counts as silent.
#[must_use]
pub fn next_deadline(node: &Node, limits: TimeLimits, now: Timestamp) -> Option<Timestamp> {
    let stage = node.stage().ok()?;
    let limit = limits.of(stage).or((stage == Stage::Rebooting).then_some(REBOOT));
    let of_stage = limit.and_then(|limit| deadline(node, limit));
    let awaited = report_limit(node, limits).filter(|_| node.is_ready);
    let of_agent = awaited.and_then(|limit| report_deadline(node, limit));
    [of_stage, of_agent].into_iter().flatten().filter(|deadline| *deadline > now).min()
}

fn deadline(node: &Node, limit: Duration) -> Option<Timestamp> {
    let limit = SignedDuration::try_from(limit).ok()?;
    node.since()?.checked_add(limit).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::testing::node_of;
    use super::*;

    fn limits() -> TimeLimits {
        TimeLimits {
            drain: Some(Duration::from_secs(600)),
            reboot: Some(Duration::from_secs(5400)),
            hooks: None,
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_problem_is_an_error_of_the_agent_a_time_limit_or_a_node_that_is_not_ready() {
        let mut node = node_of(Stage::Draining, AgentState::UpdateStaged);
        Arc::make_mut(&mut node.annotations).insert(keys::STATE_SINCE.to_owned(), at(1_000).to_string());
        assert_eq!(problem(&node, limits(), at(1_599)), None);
        assert_eq!(next_deadline(&node, limits(), at(1_599)), Some(at(1_600)));
        let overdue = problem(&node, limits(), at(1_600)).unwrap();
        assert_eq!(overdue.to_string(), "draining takes longer than 10m");
        assert_eq!(next_deadline(&node, limits(), at(1_600)), None);
        node.is_ready = false;
        assert_eq!(problem(&node, limits(), at(1_000)), Some(Problem::NotReady));
        Arc::make_mut(&mut node.labels).insert(keys::STATE.to_owned(), "rebooting".to_owned());
        assert_eq!(problem(&node, limits(), at(1_000)), Some(Problem::NotReady), "the reboot did not begin");
        for agent in ["rebooting", "up-to-date"] {
            Arc::make_mut(&mut node.labels).insert(keys::AGENT.to_owned(), agent.to_owned());
            assert_eq!(problem(&node, limits(), at(1_000)), None, "a node that reboots is not ready");
        }
        assert_eq!(
            problem(&node, limits(), at(6_400)),
            Some(Problem::Overdue(Stage::Rebooting, Duration::from_secs(5400)))
        );
        Arc::make_mut(&mut node.labels).insert(keys::AGENT.to_owned(), "error".to_owned());
        Arc::make_mut(&mut node.annotations).insert(keys::MESSAGE.to_owned(), "bootc is missing".to_owned());
        assert_eq!(problem(&node, limits(), at(1_000)).unwrap().to_string(), "bootc is missing");
    }

    #[test]
    fn a_node_that_does_not_come_back_is_a_problem_after_a_quarter_of_an_hour_without_a_time_limit() {
        let limited = |seconds: Option<u64>| TimeLimits {
            reboot: seconds.map(Duration::from_secs),
            ..TimeLimits::default()
        };
        let overdue = |seconds| Some(Problem::Overdue(Stage::Rebooting, Duration::from_secs(seconds)));
        for agent in [AgentState::Rebooting, AgentState::UpToDate] {
            let mut node = node_of(Stage::Rebooting, agent);
            Arc::make_mut(&mut node.annotations).insert(keys::STATE_SINCE.to_owned(), at(1_000).to_string());
            node.is_ready = false;
            for (limit, second, expected, next) in [
                (None, 1_899, None, Some(1_900)),
                (None, 1_900, Some(Problem::NotReady), None),
                (Some(600), 1_599, None, Some(1_600)),
                (Some(600), 1_600, overdue(600), None),
                (Some(3_600), 1_900, None, Some(4_600)),
                (Some(3_600), 4_600, overdue(3_600), None),
            ] {
                let (limits, now) = (limited(limit), at(second));
                assert_eq!(problem(&node, limits, now), expected, "{agent:?} {limit:?} {second}");
                assert_eq!(next_deadline(&node, limits, now), next.map(at), "{agent:?} {limit:?} {second}");
            }
            node.is_ready = true;
            assert_eq!(problem(&node, limited(None), at(1_900)), None, "it is back");
        }
        let idle = Node { is_ready: true, ..node_of(Stage::Idle, AgentState::UpToDate) };
        assert_eq!(next_deadline(&idle, limited(None), at(0)), None);
    }

    /// The agent never reported, or died: its label stays what it was.
    #[test]
    fn a_node_whose_agent_does_not_report_is_degraded_after_its_time() {
        let since = |node: &mut Node, second| {
            Arc::make_mut(&mut node.annotations).insert(keys::STATE_SINCE.to_owned(), at(second).to_string());
        };
        let with = |stage, agent: Option<AgentState>, annotations: &[(&str, &str)]| {
            let mut node = node_of(stage, agent.unwrap_or(AgentState::UpToDate));
            if agent.is_none() {
                Arc::make_mut(&mut node.labels).remove(keys::AGENT);
            }
            since(&mut node, 1_000);
            for (key, value) in annotations {
                Arc::make_mut(&mut node.annotations).insert((*key).to_owned(), (*value).to_owned());
            }
            node
        };
        let old = [(keys::BOOTED_DIGEST, "sha256:v1")];
        let (done, staged) = (Some(AgentState::UpToDate), Some(AgentState::UpdateStaged));
        for (name, node, minutes) in [
            ("no report", with(Stage::Idle, None, &[]), Some(15)),
            ("an old report, with the image", with(Stage::Idle, done, &[]), None),
            ("an image since then", with(Stage::Idle, done, &old), Some(15)),
            ("a staged image", with(Stage::Idle, staged, &[]), None),
            (
                "another image than the staged one",
                with(Stage::Idle, staged, &[(keys::STAGED_DIGEST, "sha256:v1")]),
                Some(15),
            ),
            (
                "an image that must be unstaged",
                with(Stage::Idle, staged, &[(keys::DESIRED_IMAGE, "")]),
                Some(15),
            ),
            ("a staging", with(Stage::Idle, Some(AgentState::Staging), &[]), Some(75)),
            ("an error", with(Stage::Paused, Some(AgentState::Error), &old), None),
            ("hooks", with(Stage::BeforeDrain, staged, &[]), None),
            ("an approval", with(Stage::Rebooting, staged, &[]), Some(15)),
            ("a reboot", with(Stage::Rebooting, Some(AgentState::Rebooting), &[]), Some(30)),
        ] {
            let is_silent = |node: &Node, second| {
                matches!(problem(node, TimeLimits::default(), at(second)), Some(Problem::Silent { .. }))
            };
            let end = minutes.map_or(9_999_999, |minutes| 1_000 + minutes * 60);
            assert!(!is_silent(&node, end - 1), "{name}");
            assert_eq!(is_silent(&node, end), minutes.is_some(), "{name}");
            if minutes.is_some() {
                let mut reported = Node { agent_wrote: Some(at(1_500)), ..node.clone() };
                assert!(!is_silent(&reported, end) && is_silent(&reported, end + 500), "{name}");
                since(&mut reported, 2_000);
                assert!(
                    !is_silent(&reported, end + 500),
                    "{name}: the wanted image is newer than the report"
                );
                let back = Node { ready_since: Some(at(1_500)), ..node.clone() };
                assert!(!is_silent(&back, end + 499) && is_silent(&back, end + 500), "{name}");
                let not_ready = Node { is_ready: false, ..node.clone() };
                assert!(!is_silent(&not_ready, end), "{name}: the node is the reason");
                let next = next_deadline(&node, TimeLimits::default(), at(end - 1));
                assert_eq!(next, Some(at(end)), "{name}");
            }
        }
        let limited = TimeLimits { reboot: Some(Duration::from_hours(2)), ..TimeLimits::default() };
        assert_eq!(problem(&with(Stage::Rebooting, staged, &[]), limited, at(8_199)), None);
        let text = problem(&with(Stage::Idle, None, &[]), limited, at(9_999)).unwrap().to_string();
        let expected = "its agent has not reported for 15m; check its pod: kubectl get pods -A -l \
                        app.kubernetes.io/name=tagboat-agent --field-selector spec.nodeName=a";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_time_limit_is_printed_in_whole_units() {
        for (seconds, text) in [(0, "0s"), (5_400, "1h30m"), (3_601, "1h1s"), (59, "59s")] {
            assert_eq!(span(Duration::from_secs(seconds)), text);
        }
    }
}
