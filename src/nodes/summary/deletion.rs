//! The status of a pool that is being deleted: the nodes for which it waits.

use jiff::Timestamp;
use tagboat_api::node_pool::{NodePoolStatus, UP_TO_DATE, UpToDateReason};

use super::super::{AgentState, Node, Release, Stage, release};
use super::{Conditions, listed};

/// The part of a deletion that is left.
#[derive(Clone, Copy, Debug)]
pub struct Departure<'d> {
    /// The generation of the spec.
    pub generation: i64,
    /// The nodes that leave the pool.
    pub nodes: &'d [&'d Node],
    /// Another pool without a valid node selector, which may select these nodes.
    pub undecided: Option<&'d str>,
}

/// Returns the status of a deleted pool that waits for nodes.
///
/// Its message names the nodes, and for each what is awaited, and until when.
#[must_use]
pub fn departing_status(
    departure: &Departure<'_>,
    previous: Option<&NodePoolStatus>,
    now: Timestamp,
) -> NodePoolStatus {
    let conditions = Conditions { generation: departure.generation, previous, now };
    let text = match departure.undecided {
        Some(pool) => {
            format!("spec.nodeSelector of the pool {pool} is invalid, and may select its nodes: correct it")
        }
        None => awaited_of_all(departure.nodes, now),
    };
    let reason = UpToDateReason::RolloutInProgress.to_string();
    let condition = conditions.condition(UP_TO_DATE, "False", reason, format!("being deleted: {text}"));
    let mut status = previous.cloned().unwrap_or_default();
    status.observed_generation = departure.generation;
    status.conditions.retain(|known| known.type_ != UP_TO_DATE);
    status.conditions.insert(0, condition);
    status
}

/// Returns the events that the release of nodes waits for.
///
/// The remedy for agents that do nothing is at the end.
fn awaited_of_all(nodes: &[&Node], now: Timestamp) -> String {
    let awaits_agent = |node: &&Node| matches!(release(node, now), Release::Wait(_)) && !is_rebooting(node);
    let advice = if nodes.iter().any(awaits_agent) {
        "; the pods of the agents: kubectl get pods -A -o wide -l app.kubernetes.io/name=tagboat-agent"
    } else {
        ""
    };
    listed(nodes.iter().map(|node| awaited(node, now))) + advice
}

/// Returns the event that the release of a node waits for.
fn awaited(node: &Node, now: Timestamp) -> String {
    let name = &node.name;
    let Release::Wait(until) = release(node, now) else { return format!("{name} is being released") };
    let event = if is_rebooting(node) { "come back from its reboot" } else { "remove its staged image" };
    format!("{name} has until {until} to {event}")
}

fn is_rebooting(node: &Node) -> bool {
    node.stage() == Ok(Stage::Rebooting) && node.agent() == Some(AgentState::Rebooting)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tagboat_api::node_pool::DEGRADED;

    use super::super::super::{keys, testing::node_of};
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn leaving(name: &str, stage: Stage, agent: AgentState, desired: &str) -> Node {
        let mut node = node_of(stage, agent);
        name.clone_into(&mut node.name);
        Arc::make_mut(&mut node.annotations).insert(keys::DESIRED_IMAGE.to_owned(), desired.to_owned());
        node
    }

    #[test]
    fn a_deleted_pool_names_the_nodes_for_which_it_waits() {
        let nodes = [
            leaving("a", Stage::Idle, AgentState::UpdateStaged, ""),
            leaving("b", Stage::Rebooting, AgentState::Rebooting, "r/os@sha256:v2"),
            leaving("c", Stage::Idle, AgentState::UpToDate, ""),
        ];
        let nodes: Vec<&Node> = nodes.iter().collect();
        let departure = Departure { generation: 4, nodes: &nodes, undecided: None };
        let mut previous = NodePoolStatus { node_count: 3, ..NodePoolStatus::default() };
        let conditions = Conditions { generation: 3, previous: None, now: at("2026-11-23T09:00:00Z") };
        previous.conditions = [UP_TO_DATE, DEGRADED]
            .map(|type_| conditions.condition(type_, "True", String::new(), String::new()))
            .to_vec();
        let status = departing_status(&departure, Some(&previous), at("2026-11-23T10:00:01Z"));
        assert_eq!((status.observed_generation, status.node_count, status.conditions.len()), (4, 3, 2));
        let found = &status.conditions[0];
        assert_eq!((found.type_.as_str(), found.status.as_str()), (UP_TO_DATE, "False"));
        let expected = "being deleted: a has until 2026-11-23T10:05:00Z to remove its staged image; b has until \
                        2026-11-23T11:00:00Z to come back from its reboot; c is being released; the pods of the agents: \
                        kubectl get pods -A -o wide -l app.kubernetes.io/name=tagboat-agent";
        assert_eq!(found.message, expected);
        let again = departing_status(&departure, Some(&status), at("2026-11-23T10:04:59Z"));
        assert_eq!(again, status, "nothing is written while nothing happens");
        let undecided = Departure { undecided: Some("x"), ..departure };
        let status = departing_status(&undecided, None, at("2026-11-23T10:00:01Z"));
        let expected =
            "being deleted: spec.nodeSelector of the pool x is invalid, and may select its nodes: correct it";
        assert_eq!(status.conditions[0].message, expected);
    }
}
