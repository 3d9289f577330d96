//! Nodes that leave their pool.

use super::*;

#[test]
fn a_node_that_leaves_its_pool_gets_rid_of_the_staged_image_and_of_all_keys() {
    let since = |node: Node| with(node, &[(keys::STATE_SINCE, "2026-11-23T11:30:00Z")]);
    for stage in [
        Stage::Idle,
        Stage::Paused,
        Stage::BeforeDrain,
        Stage::Draining,
        Stage::BeforeReboot,
        Stage::Rebooting,
    ] {
        let mut node = since(cordoned(stage, AgentState::UpdateStaged));
        node.is_ready = stage != Stage::Draining;
        let Release::Step(step) = release(&node, now()) else { panic!("{stage}") };
        let mut kept = node.clone();
        assert!(apply(&mut kept, &patch(&node, &pool(), &step, now())));
        assert!(kept.stage() == Ok(Stage::Idle) && is_as_before(&kept));
        assert_eq!(kept.annotation(keys::DESIRED_IMAGE), Some(""));
        // The stage may be that of hours ago; the agent gets its time all the same.
        let deadline = "2026-11-23T12:05:00Z".parse().unwrap();
        assert_eq!(release(&kept, now()), Release::Wait(deadline), "{stage}");
        assert_eq!(release(&kept, deadline), Release::RemoveKeys);
        let unstaged = with(kept, &[(keys::AGENT, "up-to-date")]);
        assert_eq!(release(&unstaged, now()), Release::RemoveKeys);
    }
    let acknowledged = since(cordoned(Stage::Rebooting, AgentState::Rebooting));
    let deadline = "2026-11-23T12:30:00Z".parse().unwrap();
    assert_eq!(release(&acknowledged, now()), Release::Wait(deadline));
    assert_eq!(release(&acknowledged, deadline), Release::RemoveKeys);

    let mut node = with(
        cordoned(Stage::BeforeUncordon, AgentState::UpToDate),
        &[(keys::PAUSE, "true"), ("example.com/check", "true")],
    );
    assert_eq!(release(&node, now()), Release::RemoveKeys);
    let patch = removal(&node, &pool());
    assert!(apply(&mut node, &patch));
    assert!(is_as_before(&node) && node.annotations.is_empty());
    assert_eq!(node.labels.keys().collect::<Vec<_>>(), [keys::PAUSE], "the label of the user stays");
}

/// The agent can fail after it has staged the image.
#[test]
fn a_node_that_leaves_its_pool_with_an_error_gets_rid_of_the_staged_image() {
    let failing = cordoned(Stage::BeforeReboot, AgentState::Error);
    let Release::Step(step) = release(&failing, now()) else { panic!("an image is staged") };
    let mut kept = failing.clone();
    assert!(apply(&mut kept, &patch(&failing, &pool(), &step, now())));
    assert_eq!(kept.annotation(keys::DESIRED_IMAGE), Some(""));
    let deadline = "2026-11-23T12:05:00Z".parse().unwrap();
    assert_eq!(release(&kept, now()), Release::Wait(deadline));
    assert_eq!(release(&kept, deadline), Release::RemoveKeys);
    let own = with(failing.clone(), &[(keys::STAGED_DIGEST, "sha256:v1")]);
    assert_eq!(release(&own, now()), Release::RemoveKeys, "the booted image is staged");
    let mut none = failing;
    Arc::make_mut(&mut none.annotations).remove(keys::STAGED_DIGEST);
    assert_eq!(release(&none, now()), Release::RemoveKeys);
}

#[test]
fn a_node_without_a_time_that_leaves_its_pool_is_awaited_as_long_as_another() {
    for (stage, agent, wanted, limit) in [
        (Stage::Rebooting, AgentState::Rebooting, IMAGE, "2026-11-23T13:00:00Z"),
        (Stage::Idle, AgentState::Staging, "", "2026-11-23T12:05:00Z"),
    ] {
        for since in [None, Some("yesterday"), Some("2999-01-01T00:00:00Z")] {
            let mut node = with(node_of(stage, agent), &[(keys::DESIRED_IMAGE, wanted)]);
            Arc::make_mut(&mut node.annotations).remove(keys::STATE_SINCE);
            let mut node =
                with(node, &since.map(|since| (keys::STATE_SINCE, since)).into_iter().collect::<Vec<_>>());
            let Release::Step(step) = release(&node, now()) else { panic!("{stage} {since:?}") };
            let patch = patch(&node, &pool(), &step, now());
            assert!(apply(&mut node, &patch) && node.stage() == Ok(stage));
            let deadline = limit.parse().unwrap();
            assert_eq!(release(&node, now()), Release::Wait(deadline), "{stage} {since:?}");
            assert_eq!(release(&node, deadline), Release::RemoveKeys);
        }
    }
}
