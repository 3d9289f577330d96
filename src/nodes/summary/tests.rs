//! Counts, conditions and history of pools.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::super::testing::{IMAGE, node_of};
use super::super::{Settings, TimeLimits, Window};
use super::*;

const NOW: &str = "2026-11-23T12:00:00Z";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn pool() -> Pool {
    let limits = TimeLimits { drain: Some(Duration::from_hours(1)), ..TimeLimits::default() };
    Pool { image: Some(IMAGE.to_owned()), limits, ..Pool::default() }
}

fn node(name: &str, stage: Stage, agent: AgentState) -> Node {
    let mut node = node_of(stage, agent);
    name.clone_into(&mut node.name);
    Arc::make_mut(&mut node.annotations)
        .insert(keys::STATE_SINCE.to_owned(), "2026-11-23T11:30:00Z".to_owned());
    node
}

fn with(mut node: Node, annotations: &[(&str, &str)]) -> Node {
    for (key, value) in annotations {
        Arc::make_mut(&mut node.annotations).insert((*key).to_owned(), (*value).to_owned());
    }
    node
}

fn updated(name: &str) -> Node {
    node(name, Stage::Idle, AgentState::UpToDate)
}

fn waiting(name: &str) -> Node {
    node(name, Stage::Idle, AgentState::UpdateStaged)
}

fn draining(name: &str) -> Node {
    node(name, Stage::Draining, AgentState::UpdateStaged)
}

fn not_ready(node: Node) -> Node {
    Node { is_ready: false, ..node }
}

/// Returns the status of nodes of a pool.
fn status_of(nodes: &[Node], pool: Option<&Pool>) -> NodePoolStatus {
    let nodes: Vec<&Node> = nodes.iter().collect();
    pool_status(&Observation { nodes: &nodes, pool, ..Observation::default() }, None, at(NOW))
}

/// Returns a condition as `status reason message`.
fn condition(status: &NodePoolStatus, type_: &str) -> String {
    let found = status.conditions.iter().find(|condition| condition.type_ == type_).unwrap();
    format!("{} {} {}", found.status, found.reason, found.message)
}

fn counts(status: &NodePoolStatus) -> [i64; 4] {
    [status.node_count, status.updated_count, status.updating_count, status.degraded_count]
}

/// A name, nodes and their pool, the expected counts and condition.
type Case<'c> = (&'c str, Vec<Node>, &'c Pool, [i64; 4], &'c str);

#[test]
fn nodes_are_counted_by_stage() {
    let paused = Pool { is_paused: true, ..pool() };
    let retargeted = Pool { image: Some("registry.example/os@sha256:v3".to_owned()), ..pool() };
    let reboots = Pool { image: None, ..pool() };
    let rebooted = |name: &str| {
        let mut node = updated(name);
        Arc::make_mut(&mut node.annotations).remove(keys::DESIRED_IMAGE);
        node
    };
    let searching = |name: &str| {
        let mut node = node(name, Stage::Idle, AgentState::Staging);
        Arc::make_mut(&mut node.annotations).remove(keys::DESIRED_IMAGE);
        node
    };
    let cases: [Case<'_>; 14] = [
        (
            "a pool that selects no node",
            vec![],
            &pool(),
            [0; 4],
            "True AllUpdated 0/0 updated; spec.nodeSelector selects no node: compare it with kubectl get nodes \
             --show-labels",
        ),
        (
            "a node whose agent reports an error, with the image",
            vec![with(node("a", Stage::Idle, AgentState::Error), &[(keys::BOOTED_DIGEST, "sha256:v2")])],
            &pool(),
            [1, 0, 0, 1],
            "False RolloutInProgress 0/1 updated; 1 idle",
        ),
        (
            "a node whose agent said up-to-date of the image before",
            vec![with(updated("a"), &[(keys::BOOTED_DIGEST, "sha256:v1")])],
            &pool(),
            [1, 0, 0, 1],
            "False RolloutInProgress 0/1 updated; 1 idle",
        ),
        (
            "all had the image before",
            vec![updated("a"), updated("b")],
            &pool(),
            [2, 2, 0, 0],
            "True AllUpdated 2/2 updated",
        ),
        (
            "a rollout",
            vec![updated("a"), draining("b"), waiting("c"), waiting("d"), waiting("e")],
            &pool(),
            [5, 1, 1, 0],
            "False RolloutInProgress 1/5 updated; 1 draining, 3 idle",
        ),
        (
            "a done node that still holds its slot",
            vec![node("a", Stage::BeforeUncordon, AgentState::UpToDate)],
            &pool(),
            [1, 0, 1, 0],
            "False RolloutInProgress 0/1 updated; 1 before-uncordon",
        ),
        (
            "all stages",
            Stage::ALL.map(|stage| node(stage.as_str(), stage, AgentState::UpdateStaged)).to_vec(),
            &pool(),
            // The approval is not acknowledged.
            [7, 0, 5, 1],
            "False RolloutInProgress 0/7 updated; 1 before-uncordon, 1 rebooting, 1 before-reboot, 1 draining, \
             1 before-drain, 1 paused, 1 idle",
        ),
        (
            "a paused pool",
            vec![updated("a"), node("b", Stage::Paused, AgentState::UpdateStaged)],
            &paused,
            [2, 1, 0, 0],
            "False Paused 1/2 updated; 1 paused",
        ),
        (
            "a paused pool without an update",
            vec![updated("a")],
            &paused,
            [1, 1, 0, 0],
            "True AllUpdated 1/1 updated",
        ),
        (
            "nodes that want another image than the pool",
            vec![updated("a")],
            &retargeted,
            [1, 0, 0, 0],
            "False RolloutInProgress 0/1 updated; 1 idle",
        ),
        (
            "a pool without an image",
            vec![rebooted("a"), draining("b")],
            &reboots,
            [2, 1, 1, 0],
            "False RolloutInProgress 1/2 updated; 1 draining",
        ),
        (
            "a host without an image that looks for an update",
            vec![searching("a")],
            &reboots,
            [1, 1, 0, 0],
            "True AllUpdated 1/1 updated",
        ),
        (
            "a node that stages the image",
            vec![node("a", Stage::Idle, AgentState::Staging)],
            &pool(),
            [1, 0, 0, 0],
            "False RolloutInProgress 0/1 updated; 1 idle",
        ),
        (
            "a node that is not ready",
            vec![not_ready(waiting("a")), updated("b")],
            &pool(),
            [2, 1, 0, 1],
            "False RolloutInProgress 1/2 updated; 1 idle",
        ),
    ];
    for (name, nodes, pool, expected, up_to_date) in cases {
        let status = status_of(&nodes, Some(pool));
        assert_eq!(counts(&status), expected, "{name}");
        assert_eq!(condition(&status, UP_TO_DATE), up_to_date, "{name}");
    }
}

#[test]
fn a_closed_window_is_the_reason_until_a_node_holds_a_slot() {
    let window = Window::new(&[], "23:00", Duration::from_hours(1), "").unwrap();
    let pool = Pool { windows: vec![window], ..pool() };
    let status = status_of(&[waiting("a"), waiting("b")], Some(&pool));
    let expected = "False OutsideWindow 0/2 updated; 2 idle; a window opens at 2026-11-23T23:00:00Z";
    assert_eq!(condition(&status, UP_TO_DATE), expected);
    let status = status_of(&[waiting("a"), draining("b")], Some(&pool));
    assert_eq!(condition(&status, UP_TO_DATE), "False RolloutInProgress 0/2 updated; 1 draining, 1 idle");
}

#[test]
fn the_gravest_problem_is_the_reason() {
    let spec = serde_json::json!({
        "nodeSelector": {"matchLabels": {"role": "worker"}}, "rollout": {"maxUnavailable": "many"},
    });
    let (pool, spec) = (pool(), serde_json::from_value(spec).unwrap());
    let invalid = Settings::new(&spec).unwrap_err();
    let healthy = [waiting("a")];
    let one = [not_ready(draining("a")), draining("b")];
    let two = [not_ready(draining("b")), not_ready(draining("a")), not_ready(waiting("c"))];
    let conflicts = [("n2", "x"), ("n1", "x")]
        .map(|(node, pool)| Conflict { node: node.to_owned(), pool: pool.to_owned() });
    let observe = |nodes: &[Node], fields: Observation<'_>| {
        let nodes: Vec<&Node> = nodes.iter().collect();
        let status = pool_status(&Observation { nodes: &nodes, pool: Some(&pool), ..fields }, None, at(NOW));
        condition(&status, DEGRADED)
    };
    let none = Observation::default();
    let conflict = Observation { conflicts: &conflicts, ..none };
    let both = Observation { invalid: Some(&invalid), resolution_error: Some("no\nanswer"), ..conflict };
    assert_eq!(observe(&healthy, none), "False Healthy no node has a problem");
    assert_eq!(observe(&one, none), "True NodeDegraded a: the node is not ready");
    let message = "n1 is selected by the pool x as well; n2 is selected by the pool x as well";
    assert_eq!(observe(&one, conflict), format!("True NodeConflict {message}"));
    let halted =
        "True RolloutHalted no other node begins: a: the node is not ready; b: the node is not ready";
    assert_eq!(observe(&two, conflict), halted);
    let found = observe(&two, Observation { invalid: Some(&invalid), ..conflict });
    assert!(found.starts_with("True InvalidSpec spec.rollout.maxUnavailable: `many` is neither"), "{found}");
    let found = observe(&two, both);
    assert_eq!(found, "True TagResolutionError the tag cannot be resolved: no answer");
}

#[test]
fn a_pool_whose_nodes_are_all_in_older_pools_says_so() {
    let conflicts = [Conflict { node: "n1".to_owned(), pool: "x".to_owned() }];
    let pool = pool();
    let observation = Observation { conflicts: &conflicts, pool: Some(&pool), ..Observation::default() };
    let found = condition(&pool_status(&observation, None, at(NOW)), UP_TO_DATE);
    let expected = "True AllUpdated 0/0 updated; all nodes that spec.nodeSelector selects are in older pools; \
                    NodeConflict";
    assert_eq!(found, expected);
}

/// The nodes stay as they are, and which they are is not known.
#[test]
fn an_invalid_node_selector_keeps_the_last_numbers() {
    let spec = serde_json::from_value(serde_json::json!({"nodeSelector": {}})).unwrap();
    let invalid = Settings::new(&spec).unwrap_err();
    let previous = status_of(&[updated("a"), draining("b"), not_ready(waiting("c"))], Some(&pool()));
    let observation = Observation { generation: 7, invalid: Some(&invalid), ..Observation::default() };
    let status = pool_status(&observation, Some(&previous), at(NOW));
    assert_eq!((status.observed_generation, counts(&status)), (7, [3, 1, 1, 1]));
    assert_eq!(status.target_digest, previous.target_digest);
    let expected = "Unknown RolloutInProgress the nodes stay as they are; InvalidSpec";
    assert_eq!(condition(&status, UP_TO_DATE), expected);
    let expected = "True InvalidSpec spec.nodeSelector: an empty selector is invalid: write matchLabels or matchExpressions";
    assert_eq!(condition(&status, DEGRADED), expected);
}

#[test]
fn a_problem_that_stops_the_rollout_is_in_both_messages() {
    let two = [not_ready(draining("a")), not_ready(draining("b"))];
    let status = status_of(&two, Some(&pool()));
    let expected = "False RolloutInProgress 0/2 updated; 2 draining; RolloutHalted";
    assert_eq!(condition(&status, UP_TO_DATE), expected);
}

/// The nodes stay as they are, and are still counted by their wanted image.
#[test]
fn without_a_pool_it_is_unknown_whether_nodes_are_up_to_date() {
    let previous =
        NodePoolStatus { target_digest: Some("sha256:v2".to_owned()), ..NodePoolStatus::default() };
    let (updated, draining) = (updated("a"), draining("b"));
    let observation = Observation {
        generation: 3,
        nodes: &[&updated, &draining],
        resolution_error: Some("refused"),
        next_tag_resolution: Some(at("2026-11-23T12:05:00.5Z")),
        ..Observation::default()
    };
    let status = pool_status(&observation, Some(&previous), at(NOW));
    assert_eq!(counts(&status), [2, 1, 1, 0]);
    let expected = "Unknown RolloutInProgress 1/2 updated; 1 draining; TagResolutionError";
    assert_eq!(condition(&status, UP_TO_DATE), expected);
    assert_eq!((status.observed_generation, status.target_digest), (3, previous.target_digest));
    assert_eq!(status.next_tag_resolution_time, Some(Time(at("2026-11-23T12:05:00Z"))));
}

#[test]
fn messages_of_hosts_are_bounded_and_printable() {
    let error = |number: usize, text: &str| {
        let node = node(&format!("n{number:02}"), Stage::Idle, AgentState::Error);
        with(node, &[(keys::MESSAGE, text)])
    };
    let nodes: Vec<Node> = (0..8).map(|number| error(number, &"x".repeat(5_000))).collect();
    let found = condition(&status_of(&nodes, Some(&pool())), DEGRADED);
    assert!(
        found.chars().count() < MAX_MESSAGE && found.ends_with("x; 3 more") && found.contains("xx…xx"),
        "{found}"
    );
    assert!(found.contains("n04: x") && !found.contains("n05"), "{found}");
    let found = condition(&status_of(&[error(1, "a\u{1b}[2J\nb")], Some(&pool())), DEGRADED);
    assert_eq!(found, r"True NodeDegraded n01: a\u{1b}[2J b");
}

#[test]
fn a_condition_keeps_its_time_while_its_status_stays() {
    let (pool, mut previous) = (pool(), None);
    let mut times = Vec::new();
    for (time, node) in [
        ("2026-11-23T10:00:00.7Z", waiting("a")),
        ("2026-11-23T11:00:00Z", not_ready(draining("a"))),
        ("2026-11-23T12:00:00Z", updated("a")),
        ("2026-11-23T13:00:00Z", updated("a")),
    ] {
        let observation = Observation { nodes: &[&node], pool: Some(&pool), ..Observation::default() };
        let status = pool_status(&observation, previous.as_ref(), at(time));
        times.push(
            [0, 1]
                .map(|index| status.conditions[index].last_transition_time.0.to_string()[11..13].to_owned()),
        );
        previous = Some(status);
    }
    assert_eq!(times, [["10", "10"], ["10", "11"], ["12", "12"], ["12", "12"]]);
}

/// A node of a step: name, last deployment and its second, reported version.
type Row = (&'static str, &'static str, i64, &'static str);

/// A target, and the nodes at that time.
type Step<'s> = (&'s str, &'s [Row]);

/// Folds steps of a target and nodes, and verifies that a repetition changes nothing.
fn fold(steps: &[Step<'_>]) -> String {
    let mut entries = Vec::new();
    for (target, rows) in steps {
        let nodes: Vec<Node> = rows
            .iter()
            .map(|(name, deployed, second, version)| {
                let time = Timestamp::from_second(*second).unwrap().to_string();
                let record = [(keys::LAST_DEPLOYED, *deployed), (keys::LAST_DEPLOYED_AT, &time)];
                let booted = [(keys::BOOTED_DIGEST, *deployed), (keys::BOOTED_VERSION, *version)];
                with(with(updated(name), &record), &booted)
            })
            .collect();
        let nodes: Vec<&Node> = nodes.iter().collect();
        let pool = Pool { image: Some(format!("r/os@sha256:{target}")), ..pool() };
        let tag = Tag::parse("v9").unwrap();
        let observation =
            Observation { nodes: &nodes, pool: Some(&pool), tag: Some(&tag), ..Observation::default() };
        entries = history(&observation, &entries);
        assert_eq!(history(&observation, &entries), entries, "{steps:?}");
    }
    let text = |entry: &PoolHistoryEntry| {
        let key = entry.digest.as_deref().unwrap_or("-");
        let version = entry.version.as_deref().unwrap_or("-");
        format!("{key}={version}:{}@{}", entry.node_count, entry.last_deployed.0.as_second())
    };
    entries.iter().map(text).collect::<Vec<_>>().join(" ").replace(DIGEST_PREFIX, "")
}

#[test]
fn histories() {
    const B: [Row; 3] = [("a", "sha256:B", 1, "1"), ("b", "sha256:B", 2, "1"), ("c", "sha256:B", 3, "1")];
    const C: [Row; 3] = [("a", "sha256:C", 4, "2"), ("b", "sha256:C", 5, "2"), ("c", "sha256:C", 6, "2")];
    const D: [Row; 3] = [("a", "sha256:D", 7, "3"), ("b", "sha256:D", 8, "3"), ("c", "sha256:D", 9, "3")];
    const E: [Row; 3] = [("a", "sha256:E", 10, "4"), ("b", "sha256:E", 11, "4"), ("c", "sha256:E", 12, "4")];
    const BACK: [Row; 3] =
        [("a", "sha256:D", 13, "3"), ("b", "sha256:D", 14, "3"), ("c", "sha256:D", 15, "3")];
    let joined: [Row; 4] = [B[0], B[1], B[2], ("d", "sha256:B", 9, "1")];
    let cases: &[(&str, &[Step<'_>], &str)] = &[
        ("nodes that had the image before", &[("B", &[])], ""),
        ("the first of three", &[("B", &B[..1])], "B=1:1@1"),
        ("all three", &[("B", &B[..1]), ("B", &B)], "B=1:3@3"),
        ("three entries are kept", &[("B", &B), ("C", &C), ("D", &D), ("E", &E)], "E=4:3@12 D=3:3@9 C=2:3@6"),
        (
            "a rollback moves its entry to the first place",
            &[("C", &C), ("D", &D), ("E", &E), ("D", &BACK)],
            "D=3:3@15 E=4:3@12 C=2:3@6",
        ),
        ("another target in the middle", &[("B", &B[..1]), ("C", &[C[0]]), ("C", &C)], "C=2:3@6 B=1:1@1"),
        ("a node that joins", &[("B", &B), ("B", &joined)], "B=1:4@9"),
        ("a node that leaves", &[("B", &B), ("B", &B[..1])], "B=1:3@3"),
        ("a tag that has moved", &[("A", &B), ("C", &B)], "B=1:3@3"),
        (
            "nodes with records of four images",
            &[("E", &[B[0], ("b", "sha256:C", 4, ""), ("c", "sha256:D", 5, ""), ("d", "sha256:E", 6, "")])],
            "E=v9:1@6 D=-:1@5 C=-:1@4",
        ),
        (
            "the version is that of the newest node",
            &[("B", &[("a", "sha256:B", 2, "new"), ("b", "sha256:B", 1, "old"), ("c", "sha256:B", 1, "")])],
            "B=new:3@2",
        ),
        (
            "without an image the version is the key",
            &[("A", &[("a", "3815.2.0", 1, "3815.2.0"), ("b", "3815.2.1", 2, ""), ("c", "3815.2.1", 3, "")])],
            "-=3815.2.1:2@3 -=3815.2.0:1@1",
        ),
    ];
    for (name, steps, expected) in cases {
        assert_eq!(fold(steps), *expected, "{name}");
    }
}

#[test]
fn a_node_without_a_finished_rollout_is_no_record() {
    let record = [(keys::LAST_DEPLOYED, "sha256:v2"), (keys::LAST_DEPLOYED_AT, "2026-11-23T11:00:00Z")];
    for missing in [
        &record[..1],
        &record[1..],
        &[(keys::LAST_DEPLOYED, ""), record[1]],
        &[record[0], (keys::LAST_DEPLOYED_AT, "yesterday")],
    ] {
        assert_eq!(status_of(&[with(updated("a"), missing)], Some(&pool())).deploy_history, []);
    }
    let status = status_of(&[with(updated("a"), &record)], Some(&pool()));
    let entry = serde_json::to_value(&status.deploy_history).unwrap();
    let expected = serde_json::json!([
        {"digest": "sha256:v2", "nodeCount": 1, "lastDeployed": "2026-11-23T11:00:00Z"},
    ]);
    assert_eq!(entry, expected);
}

/// The API server would refuse the whole status for one text that is too long.
#[test]
fn every_text_of_a_status_is_bounded() {
    let long = "x".repeat(5_000);
    let record = [(keys::LAST_DEPLOYED, long.as_str()), (keys::LAST_DEPLOYED_AT, NOW)];
    let status = serde_json::to_value(status_of(&[with(updated("a"), &record)], Some(&pool()))).unwrap();
    let version = status["deployHistory"][0]["version"].as_str().unwrap();
    assert_eq!(version.chars().count(), MAX_VERSION);
    let fields: Vec<&String> = status.as_object().into_iter().flatten().map(|(name, _)| name).collect();
    assert!(!fields.iter().any(|name| ["deployedDigest", "updateAvailable"].contains(&name.as_str())));
    assert_eq!(status["targetDigest"], Value::from("sha256:v2"));
}
