//! The rows of the transition table, and their patches.

mod leaving;
mod slots;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;

use super::testing::{IMAGE, apply, node_of};
use super::*;

fn now() -> Timestamp {
    "2026-11-23T12:00:00Z".parse().unwrap()
}

fn pool() -> Pool {
    let key = |name: &str| vec![format!("example.com/{name}")];
    Pool {
        name: "workers".to_owned(),
        image: Some(IMAGE.to_owned()),
        hooks: Hooks {
            before_drain: key("backup"),
            before_reboot: key("volumes"),
            before_uncordon: key("check"),
        },
        ..Pool::default()
    }
}

/// Takes the next step of a node, and returns the node after its patch.
fn after(node: &Node, pool: &Pool, situation: Situation) -> Option<Node> {
    let step = step(node, pool, situation)?;
    let mut patched = node.clone();
    assert!(apply(&mut patched, &patch(node, pool, &step, now())));
    assert_eq!(patched.stage(), Ok(step.to));
    Some(patched)
}

fn next(node: &Node, pool: &Pool) -> Option<Stage> {
    after(node, pool, Situation::default()).map(|node| node.stage().unwrap())
}

fn drained() -> Situation {
    Situation { is_drained: true, ..Situation::default() }
}

fn with(mut node: Node, keys: &[(&str, &str)]) -> Node {
    for (key, value) in keys {
        let is_label =
            matches!(*key, keys::PAUSE | keys::STATE | keys::AGENT | keys::CONTROL_PLANE | keys::ZONE);
        let map = if is_label { &mut node.labels } else { &mut node.annotations };
        Arc::make_mut(map).insert((*key).to_owned(), (*value).to_owned());
    }
    node
}

/// A node that Tagboat cordoned and guarded from autoscalers.
fn cordoned(stage: Stage, agent: AgentState) -> Node {
    let mut node = with(
        node_of(stage, agent),
        &[(keys::MADE_UNSCHEDULABLE, "true"), (keys::MADE_ANNOTATIONS, "karpenter.sh/do-not-disrupt")],
    );
    Arc::make_mut(&mut node.annotations).insert("karpenter.sh/do-not-disrupt".to_owned(), "true".to_owned());
    node.is_unschedulable = true;
    node
}

fn is_as_before(node: &Node) -> bool {
    !node.is_unschedulable
        && !node.is_made_unschedulable()
        && !node.annotations.contains_key(keys::MADE_ANNOTATIONS)
        && !node.annotations.contains_key("karpenter.sh/do-not-disrupt")
}

#[test]
fn an_idle_node_with_a_staged_update_and_a_slot_begins() {
    let granted = Situation { has_grant: true, ..Situation::default() };
    let node = with(
        node_of(Stage::Idle, AgentState::UpdateStaged),
        &[("example.com/backup", "true"), ("example.com/check", "true")],
    );
    assert_eq!(after(&node, &pool(), Situation::default()), None);
    let begun = after(&node, &pool(), granted).unwrap();
    assert_eq!(begun.stage(), Ok(Stage::BeforeDrain));
    assert!(!begun.annotations.contains_key("example.com/backup"), "confirmations of an earlier rollout");
    assert!(!begun.annotations.contains_key("example.com/check") && !begun.is_unschedulable);
    assert_eq!(begun.annotation(keys::STATE_SINCE), Some("2026-11-23T12:00:00Z"));
    assert_eq!(begun.annotation("karpenter.sh/do-not-repair"), Some("true"));
    for agent in [AgentState::UpToDate, AgentState::Staging, AgentState::Error, AgentState::Rebooting] {
        assert_eq!(after(&node_of(Stage::Idle, agent), &pool(), granted), None, "{agent:?}");
    }
    let other = with(node.clone(), &[(keys::STAGED_DIGEST, "sha256:v1")]);
    assert_eq!(after(&other, &pool(), granted), None, "another image is staged");
    let not_ready = Node { is_ready: false, ..node };
    assert_eq!(after(&not_ready, &pool(), granted), None);
}

#[test]
fn a_pause_holds_an_idle_node_until_it_ends() {
    let paused = |node: &Node| with(node.clone(), &[(keys::PAUSE, "true")]);
    let pool_paused = Pool { is_paused: true, ..pool() };
    for agent in [AgentState::UpToDate, AgentState::UpdateStaged] {
        let node = node_of(Stage::Idle, agent);
        assert_eq!(next(&paused(&node), &pool()), Some(Stage::Paused));
        let is_staged = agent == AgentState::UpdateStaged;
        assert_eq!(next(&node, &pool_paused), is_staged.then_some(Stage::Paused));
        let node = node_of(Stage::Paused, agent);
        assert_eq!(next(&paused(&node), &pool()), None);
        assert_eq!(next(&node, &pool_paused), (!is_staged).then_some(Stage::Idle));
        assert_eq!(next(&node, &pool()), Some(Stage::Idle));
    }
}

#[test]
fn a_node_that_came_back_updated_is_neither_drained_nor_rebooted() {
    let node = node_of(Stage::BeforeDrain, AgentState::UpToDate);
    assert_eq!(next(&node, &pool()), Some(Stage::Idle));
    for stage in [Stage::Draining, Stage::BeforeReboot] {
        let node = with(cordoned(stage, AgentState::UpToDate), &[("example.com/check", "true")]);
        let last = after(&node, &pool(), Situation::default()).unwrap();
        assert_eq!(last.stage(), Ok(Stage::BeforeUncordon));
        assert!(last.is_unschedulable && !last.annotations.contains_key("example.com/check"));
    }
    // The label is older than the image of the pool.
    let stale =
        with(node_of(Stage::BeforeDrain, AgentState::UpToDate), &[(keys::BOOTED_DIGEST, "sha256:v1")]);
    assert_eq!(next(&stale, &pool()), None);
}

#[test]
fn each_stage_with_hooks_waits_for_all_of_them() {
    let mut pool = pool();
    pool.hooks.before_drain.push("example.com/second".to_owned());
    let node = node_of(Stage::BeforeDrain, AgentState::UpdateStaged);
    let one = with(node.clone(), &[("example.com/backup", "true")]);
    assert_eq!((next(&node, &pool), next(&one, &pool)), (None, None));
    let denied = with(one.clone(), &[("example.com/second", "false")]);
    assert_eq!(next(&denied, &pool), None);
    // A label confirms as well as an annotation does.
    let mut both = one;
    Arc::make_mut(&mut both.labels).insert("example.com/second".to_owned(), "true".to_owned());
    let draining = after(&both, &pool, Situation::default()).unwrap();
    assert_eq!(draining.stage(), Ok(Stage::Draining));
    assert!(draining.is_unschedulable && draining.is_made_unschedulable());

    let node = cordoned(Stage::BeforeReboot, AgentState::UpdateStaged);
    assert_eq!(next(&node, &pool), None);
    let approved =
        after(&with(node, &[("example.com/volumes", "true")]), &pool, Situation::default()).unwrap();
    assert_eq!(approved.stage(), Ok(Stage::Rebooting));
    assert_eq!(approved.annotation(keys::DESIRED_IMAGE), Some(IMAGE));

    let node = cordoned(Stage::BeforeUncordon, AgentState::UpToDate);
    assert_eq!(next(&node, &pool), None);
    let done = after(&with(node, &[("example.com/check", "true")]), &pool, Situation::default()).unwrap();
    assert!(done.stage() == Ok(Stage::Idle) && is_as_before(&done));
    assert_eq!(done.annotation(keys::LAST_DEPLOYED), Some("sha256:v2"));
    assert_eq!(done.annotation(keys::LAST_DEPLOYED_AT), Some("2026-11-23T12:00:00Z"));
}

#[test]
fn a_node_that_was_cordoned_before_stays_cordoned() {
    let mut node =
        with(node_of(Stage::BeforeDrain, AgentState::UpdateStaged), &[("example.com/backup", "true")]);
    node.is_unschedulable = true;
    let draining = after(&node, &pool(), Situation::default()).unwrap();
    assert!(draining.is_unschedulable && !draining.is_made_unschedulable());
    let last = with(draining, &[(keys::STATE, "before-uncordon"), ("example.com/check", "true")]);
    let done = after(&last, &pool(), Situation::default()).unwrap();
    assert!(done.stage() == Ok(Stage::Idle) && done.is_unschedulable);
}

#[test]
fn draining_ends_without_pods() {
    let node = with(cordoned(Stage::Draining, AgentState::UpdateStaged), &[("example.com/volumes", "true")]);
    assert_eq!(next(&node, &pool()), None);
    let waiting = after(&node, &pool(), drained()).unwrap();
    assert_eq!(waiting.stage(), Ok(Stage::BeforeReboot));
    assert!(!waiting.annotations.contains_key("example.com/volumes"));
}

#[test]
fn rebooting_ends_in_another_boot() {
    let node = with(cordoned(Stage::Rebooting, AgentState::UpToDate), &[(keys::ATTEMPTED, "sha256:v2 1")]);
    assert_eq!(next(&node, &pool()), None, "the host has not rebooted");
    let rebooted = Node { boot_id: "2".to_owned(), ..node };
    assert_eq!(next(&rebooted, &pool()), Some(Stage::BeforeUncordon));
    let of_earlier = with(rebooted, &[(keys::ATTEMPTED, "sha256:v1 2")]);
    assert_eq!(next(&of_earlier, &pool()), Some(Stage::BeforeUncordon), "an approval of another image");
    for agent in [AgentState::UpdateStaged, AgentState::Rebooting, AgentState::Error] {
        assert_eq!(next(&cordoned(Stage::Rebooting, agent), &pool()), None, "{agent:?}");
    }
}

#[test]
fn each_reason_cancels_in_each_stage_before_the_acknowledgment() {
    let retargeted = Pool { image: Some("registry.example/os:v3@sha256:v3".to_owned()), ..pool() };
    let paused = Pool { is_paused: true, ..pool() };
    for stage in [Stage::BeforeDrain, Stage::Draining, Stage::BeforeReboot, Stage::Rebooting] {
        for agent in [AgentState::UpdateStaged, AgentState::Error] {
            let node = cordoned(stage, agent);
            let idle = after(&node, &retargeted, drained()).unwrap();
            assert!(idle.stage() == Ok(Stage::Idle) && is_as_before(&idle), "{stage}");
            assert_eq!(
                idle.annotation(keys::DESIRED_IMAGE),
                retargeted.image.as_deref(),
                "in the same patch"
            );
            for (node, pool) in
                [(with(node.clone(), &[(keys::PAUSE, "true")]), pool()), (node.clone(), paused.clone())]
            {
                let node = after(&node, &pool, drained()).unwrap();
                assert!(node.stage() == Ok(Stage::Paused) && is_as_before(&node), "{stage}");
            }
        }
        let acknowledged = cordoned(Stage::Rebooting, AgentState::Rebooting);
        for pool in [&retargeted, &paused] {
            assert_eq!(next(&acknowledged, pool), None, "the acknowledgment came first");
        }
    }
}

/// Its hooks before the node is uncordoned run, and its deployment is recorded.
#[test]
fn a_pause_or_another_image_during_a_reboot_has_no_effect_until_the_node_is_idle() {
    let retargeted = Pool { image: Some("registry.example/os:v3@sha256:v3".to_owned()), ..pool() };
    let node = with(cordoned(Stage::Rebooting, AgentState::UpToDate), &[(keys::ATTEMPTED, "sha256:v2 1")]);
    let back = Node { boot_id: "2".to_owned(), ..node.clone() };
    let not_ready = Node { is_ready: false, ..back.clone() };
    for (pause, pool, last) in [
        (Some("true"), pool(), Stage::Paused),
        (None, Pool { is_paused: true, ..pool() }, Stage::Idle),
        (None, retargeted, Stage::Idle),
    ] {
        let held = |node: &Node| {
            with(node.clone(), &pause.map(|pause| (keys::PAUSE, pause)).into_iter().collect::<Vec<_>>())
        };
        assert_eq!(next(&held(&node), &pool), None, "the kubelet has not reported the boot");
        assert_eq!(next(&held(&not_ready), &pool), None, "it is not ready");
        let node = after(&held(&back), &pool, Situation::default()).unwrap();
        assert!(node.stage() == Ok(Stage::BeforeUncordon) && node.is_unschedulable);
        let node = after(&with(node, &[("example.com/check", "true")]), &pool, Situation::default()).unwrap();
        assert!(node.stage() == Ok(Stage::Idle) && is_as_before(&node));
        assert_eq!(node.annotation(keys::LAST_DEPLOYED), Some("sha256:v2"));
        assert_eq!(next(&node, &pool).unwrap_or(Stage::Idle), last);
    }
}

/// A paused node stays paused, also if it crashed and came back updated.
#[test]
fn a_cancellation_comes_before_the_end_of_a_rollout_until_its_reboot_is_approved() {
    let pause = [(keys::PAUSE, "true")];
    for (stage, expected) in [
        (Stage::BeforeDrain, Stage::Idle),
        (Stage::Draining, Stage::Paused),
        (Stage::BeforeReboot, Stage::Paused),
    ] {
        let done = cordoned(stage, AgentState::UpToDate);
        let node = after(&with(done, &pause), &pool(), drained()).unwrap();
        assert!(node.stage() == Ok(expected) && is_as_before(&node), "{stage}");
    }
}

#[test]
fn a_node_that_has_moved_from_another_pool_is_canceled() {
    let began_in = |node, pool| with(node, &[(keys::POOL, pool)]);
    for stage in [Stage::BeforeDrain, Stage::Draining, Stage::BeforeReboot, Stage::Rebooting] {
        let node = cordoned(stage, AgentState::UpdateStaged);
        let idle = after(&began_in(node.clone(), "others"), &pool(), Situation::default()).unwrap();
        assert!(idle.stage() == Ok(Stage::Idle) && is_as_before(&idle), "{stage}");
        assert_eq!(idle.annotation(keys::DESIRED_IMAGE), Some(IMAGE));
        assert_eq!(idle.annotation(keys::POOL), Some("workers"));
        for stays in [began_in(node.clone(), "workers"), node] {
            assert_eq!(after(&stays, &pool(), Situation::default()), None, "{stage}");
        }
    }
    let acknowledged = began_in(cordoned(Stage::Rebooting, AgentState::Rebooting), "others");
    assert_eq!(after(&acknowledged, &pool(), drained()), None);
}

#[test]
fn a_node_has_the_name_of_its_pool() {
    let granted = Situation { has_grant: true, is_drained: true, ..Situation::default() };
    let hooks = ["example.com/backup", "example.com/volumes", "example.com/check"];
    let mut node = node_of(Stage::Idle, AgentState::UpdateStaged);
    let mut stages = Vec::new();
    while stages.len() < 6 {
        node = after(&node, &pool(), granted).unwrap();
        let stage = node.stage().unwrap();
        stages.push(stage);
        assert_eq!(node.annotation(keys::POOL), Some("workers"), "{stage}");
        node = with(node, &hooks.map(|hook| (hook, "true")));
        if stage == Stage::Rebooting {
            node = with(node, &[(keys::AGENT, "up-to-date"), (keys::BOOTED_DIGEST, "sha256:v2")]);
        }
    }
    assert_eq!(stages.last(), Some(&Stage::Idle));
}

#[test]
fn a_stage_without_a_time_gets_one() {
    let unlimited = Situation { lacks_since: true, ..Situation::default() };
    for stage in Stage::ALL {
        let agent = AgentState::UpdateStaged;
        let mut node = if stage.holds_slot() { cordoned(stage, agent) } else { node_of(stage, agent) };
        Arc::make_mut(&mut node.annotations).remove(keys::STATE_SINCE);
        let repaired = after(&node, &pool(), unlimited);
        let since = repaired.and_then(|node| node.annotation(keys::STATE_SINCE).map(str::to_owned));
        // A stage that changes has a time as well.
        let expected = (stage.holds_slot() || stage == Stage::Paused).then_some("2026-11-23T12:00:00Z");
        assert_eq!(since.as_deref(), expected, "{stage}");
    }
    let now = "2026-11-23T12:00:00Z".parse().unwrap();
    for (since, expected) in [
        ("2026-11-23T11:00:00Z", false),
        ("2026-11-23T12:00:59Z", false),
        ("2026-11-23T12:01:01Z", true),
        ("today", true),
    ] {
        let node = with(node_of(Stage::Draining, AgentState::UpToDate), &[(keys::STATE_SINCE, since)]);
        assert_eq!(node.lacks_since(now), expected, "{since}");
    }
}

#[test]
fn a_node_with_a_problem_is_not_promoted() {
    let confirmed =
        [("example.com/backup", "true"), ("example.com/volumes", "true"), ("example.com/check", "true")];
    for stage in [Stage::BeforeDrain, Stage::Draining, Stage::BeforeReboot, Stage::BeforeUncordon] {
        let agent =
            if stage == Stage::BeforeUncordon { AgentState::UpToDate } else { AgentState::UpdateStaged };
        let node = with(cordoned(stage, agent), &confirmed);
        assert!(after(&node, &pool(), drained()).is_some(), "{stage}");
        let not_ready = Node { is_ready: false, ..node.clone() };
        assert_eq!(after(&not_ready, &pool(), drained()), None, "{stage}");
        let failing = with(node, &[(keys::AGENT, "error")]);
        assert_eq!(after(&failing, &pool(), drained()), None, "{stage}");
    }
}

#[test]
fn an_unknown_stage_is_repaired() {
    let node = with(cordoned(Stage::Draining, AgentState::UpdateStaged), &[(keys::STATE, "reboot-ok")]);
    let idle = after(&node, &pool(), Situation::default()).unwrap();
    assert!(idle.stage() == Ok(Stage::Idle) && is_as_before(&idle));
    let mut new = node_of(Stage::Idle, AgentState::UpToDate);
    Arc::make_mut(&mut new.labels).remove(keys::STATE);
    Arc::make_mut(&mut new.annotations).remove(keys::DESIRED_IMAGE);
    let member = after(&new, &pool(), Situation::default()).unwrap();
    assert!(member.is_labeled() && member.annotation(keys::DESIRED_IMAGE) == Some(IMAGE));
    // What an earlier step did is undone, also if a user sets the label.
    let idle = after(&cordoned(Stage::Idle, AgentState::UpToDate), &pool(), Situation::default()).unwrap();
    assert!(is_as_before(&idle));
    assert_eq!(after(&idle, &pool(), Situation::default()), None);
}

#[test]
fn a_pool_without_an_image_coordinates_reboots() {
    let pool = Pool { image: None, hooks: Hooks::default(), ..pool() };
    let of = |stage, agent| {
        let mut node = node_of(stage, agent);
        for key in [keys::DESIRED_IMAGE, keys::STAGED_DIGEST, keys::BOOTED_DIGEST] {
            Arc::make_mut(&mut node.annotations).remove(key);
        }
        with(node, &[(keys::BOOTED_VERSION, "4230.2.1")])
    };
    let granted = Situation { has_grant: true, ..Situation::default() };
    let begun = after(&of(Stage::Idle, AgentState::UpdateStaged), &pool, granted).unwrap();
    assert_eq!(begun.stage(), Ok(Stage::BeforeDrain));
    let done = after(&of(Stage::BeforeUncordon, AgentState::UpToDate), &pool, Situation::default()).unwrap();
    assert_eq!(done.annotation(keys::LAST_DEPLOYED), Some("4230.2.1"));
}

#[test]
fn a_pool_that_has_an_image_no_longer_withdraws_it_before_the_host_may_ask_for_a_reboot() {
    let (wanting, pool) = (pool(), Pool { image: None, ..pool() });
    let granted = Situation { has_grant: true, is_drained: true, ..Situation::default() };
    for stage in [Stage::Idle, Stage::BeforeDrain, Stage::Draining, Stage::BeforeReboot, Stage::Rebooting] {
        let staged = cordoned(stage, AgentState::UpdateStaged);
        let kept = after(&staged, &pool, granted).unwrap();
        assert!(kept.stage() == Ok(Stage::Idle) && is_as_before(&kept), "{stage}");
        assert_eq!(kept.annotation(keys::DESIRED_IMAGE), Some(""));
        // The label of the agent is of the image before, or it stages the booted image.
        for agent in ["update-staged", "staging", "error"] {
            let waiting = with(kept.clone(), &[(keys::AGENT, agent)]);
            assert_eq!(after(&waiting, &pool, granted), None, "{stage} {agent}");
            assert!(!is_candidate(&waiting, &pool));
        }
        let rests = after(&with(kept, &[(keys::AGENT, "up-to-date")]), &pool, granted).unwrap();
        assert_eq!(rests.annotation(keys::DESIRED_IMAGE), None);
        assert_eq!(after(&rests, &pool, granted), None);
    }
    let mut without_agent = node_of(Stage::Idle, AgentState::UpToDate);
    Arc::make_mut(&mut without_agent.labels).remove(keys::AGENT);
    let kept = after(&without_agent, &pool, granted).unwrap();
    assert_eq!(after(&kept, &pool, granted).unwrap().annotation(keys::DESIRED_IMAGE), None);
    // An image again, before that.
    let mut again = node_of(Stage::Idle, AgentState::Staging);
    Arc::make_mut(&mut again.annotations).insert(keys::DESIRED_IMAGE.to_owned(), String::new());
    assert_eq!(after(&again, &wanting, granted).unwrap().annotation(keys::DESIRED_IMAGE), Some(IMAGE));
}

#[test]
fn a_patch_has_the_version_of_the_node_and_only_changes() {
    let node = with(node_of(Stage::BeforeDrain, AgentState::UpdateStaged), &[("example.com/backup", "true")]);
    let step = step(&node, &pool(), Situation::default()).unwrap();
    let guards = "cluster-autoscaler.kubernetes.io/scale-down-disabled,karpenter.sh/do-not-disrupt,karpenter.sh/do-not-repair";
    assert_eq!(
        patch(&node, &pool(), &step, now()),
        json!({
            "metadata": {
                "resourceVersion": "7",
                "labels": {"tagboat.dev/state": "draining"},
                "annotations": {
                    "tagboat.dev/state-since": "2026-11-23T12:00:00Z",
                    "tagboat.dev/made-unschedulable": "true",
                    "tagboat.dev/made-annotations": guards,
                    "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true",
                    "karpenter.sh/do-not-disrupt": "true",
                    "karpenter.sh/do-not-repair": "true",
                },
            },
            "spec": {"unschedulable": true},
        })
    );
    let mut other = Node { resource_version: "8".to_owned(), ..node.clone() };
    assert!(!apply(&mut other, &patch(&node, &pool(), &step, now())), "the node has changed meanwhile");
}

#[test]
fn an_annotation_that_a_user_set_for_an_autoscaler_stays() {
    let node = with(
        node_of(Stage::BeforeDrain, AgentState::UpdateStaged),
        &[("example.com/backup", "true"), ("karpenter.sh/do-not-disrupt", "mine")],
    );
    let draining = after(&node, &pool(), Situation::default()).unwrap();
    assert_eq!(draining.annotation("karpenter.sh/do-not-disrupt"), Some("mine"));
    let edited = with(draining, &[(keys::PAUSE, "true")]);
    let edited = with(
        edited.clone(),
        &[(
            keys::MADE_ANNOTATIONS,
            &format!("{},example.com/mine", edited.annotation(keys::MADE_ANNOTATIONS).unwrap()),
        )],
    );
    let edited = with(edited, &[("example.com/mine", "true"), ("karpenter.sh/do-not-repair", "since today")]);
    let back = after(&edited, &pool(), Situation::default()).unwrap();
    let left: Vec<&str> =
        back.annotations.keys().map(String::as_str).filter(|key| !key.starts_with("tagboat.dev/")).collect();
    assert_eq!(left, ["example.com/mine", "karpenter.sh/do-not-disrupt", "karpenter.sh/do-not-repair"]);
}
