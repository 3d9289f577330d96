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

/// A problem of a node: it counts as degraded, and keeps its slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The agent reports an error; its message.
    Agent(String),
    /// The kubelet does not report that the node is ready.
    NotReady,
    /// The node is longer in its stage than the pool allows.
    Overdue(Stage, Duration),
}

/// Formats the problem as a part of a sentence.
impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(message) if message.is_empty() => write!(formatter, "the agent reports an error"),
            Self::Agent(message) => write!(formatter, "{message}"),
            Self::NotReady => write!(formatter, "the node is not ready"),
            Self::Overdue(stage, limit) => write!(formatter, "{stage} takes longer than {}", span(*limit)),
        }
    }
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
    (!node.is_ready && (!node.reboots() || is_late())).then_some(Problem::NotReady)
}

/// Returns the time at which the stage of a node will exceed its limit.
#[must_use]
pub fn next_deadline(node: &Node, limits: TimeLimits, now: Timestamp) -> Option<Timestamp> {
    let stage = node.stage().ok()?;
    let limit = limits.of(stage).or((stage == Stage::Rebooting).then_some(REBOOT))?;
    deadline(node, limit).filter(|deadline| *deadline > now)
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
            assert_eq!(problem(&node, limited(None), at(9_999)), None, "it is back");
        }
        let idle = Node { is_ready: true, ..node_of(Stage::Idle, AgentState::UpToDate) };
        assert_eq!(next_deadline(&idle, limited(None), at(0)), None);
    }

    #[test]
    fn a_time_limit_is_printed_in_whole_units() {
        for (seconds, text) in [(0, "0s"), (5_400, "1h30m"), (3_601, "1h1s"), (59, "59s")] {
            assert_eq!(span(Duration::from_secs(seconds)), text);
        }
    }
}
