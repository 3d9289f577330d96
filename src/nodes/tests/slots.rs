//! The slots of a pool, and the reasons for which it gives out none.

use super::*;

#[test]
fn slots_go_by_zone_and_name_to_ready_nodes() {
    let node = |name: &str, zone: &str, stage| {
        let node = with(node_of(stage, AgentState::UpdateStaged), &[(keys::ZONE, zone)]);
        Node { name: name.to_owned(), ..node }
    };
    let nodes = [
        node("a", "z2", Stage::Idle),
        node("d", "z1", Stage::Idle),
        node("c", "z1", Stage::Idle),
        node("b", "z1", Stage::Draining),
        node("e", "z1", Stage::Paused),
    ];
    let nodes: Vec<&Node> = nodes.iter().collect();
    let granted = |nodes: &[&Node], max: MaxUnavailable, is_busy: bool| -> Vec<String> {
        let pool = Pool { max_unavailable: max, ..pool() };
        grants(nodes, &pool, is_busy, now()).into_iter().map(|node| node.name.clone()).collect()
    };
    assert_eq!(granted(&nodes, MaxUnavailable::Count(1), false), [""; 0]);
    assert_eq!(granted(&nodes, MaxUnavailable::Count(3), false), ["c", "d"]);
    assert_eq!(granted(&nodes, MaxUnavailable::Percent(100), false), ["c", "d", "a"]);
    let down = Node { is_ready: false, ..node("f", "z1", Stage::Idle) };
    let with_down: Vec<&Node> = nodes.iter().copied().chain([&down]).collect();
    assert_eq!(granted(&with_down, MaxUnavailable::Count(3), false), ["c"], "it is unavailable already");
    let control: Vec<Node> = ["a", "b", "c"]
        .into_iter()
        .map(|name| with(node(name, "", Stage::Idle), &[(keys::CONTROL_PLANE, "")]))
        .chain([node("d", "", Stage::Idle)])
        .collect();
    let control: Vec<&Node> = control.iter().collect();
    assert_eq!(granted(&control, MaxUnavailable::Count(4), false), ["a", "d"]);
    assert_eq!(granted(&control, MaxUnavailable::Count(4), true), ["d"]);
}

/// A pool without time limits halts as well.
#[test]
fn two_nodes_that_do_not_come_back_halt_the_pool_until_one_recovers() {
    let down = || Node { is_ready: false, ..cordoned(Stage::Rebooting, AgentState::Rebooting) };
    let (first, second, waiting) = (down(), down(), node_of(Stage::Idle, AgentState::UpdateStaged));
    let at = |time: &str| availability(&[&first, &second, &waiting], &pool(), time.parse().unwrap());
    // Both are in their stage since ten o'clock.
    assert_eq!(at("2026-11-23T10:14:59Z"), Availability::Open);
    assert_eq!(at("2026-11-23T10:15:00Z"), Availability::Halted);
    let back = Node { is_ready: true, ..first.clone() };
    // Long after the time in which its agent should have reported.
    assert_eq!(availability(&[&back, &second, &waiting], &pool(), now()), Availability::Open);
}

#[test]
fn a_pool_waits_for_healthy_nodes_a_window_and_its_delay() {
    let idle = node_of(Stage::Idle, AgentState::UpdateStaged);
    let failing = node_of(Stage::Draining, AgentState::Error);
    let is = |nodes: &[&Node], pool: &Pool| availability(nodes, pool, now());
    let pool = pool();
    assert_eq!(is(&[&idle, &failing], &pool), Availability::Open);
    assert_eq!(is(&[&idle, &failing, &failing], &pool), Availability::Halted);
    let recovered = node_of(Stage::Draining, AgentState::UpdateStaged);
    assert_eq!(is(&[&idle, &failing, &recovered], &pool), Availability::Open);
    let delayed = Pool { post_complete_delay: std::time::Duration::from_secs(600), ..pool.clone() };
    let done = with(idle.clone(), &[(keys::LAST_DEPLOYED_AT, "2026-11-23T11:55:00Z")]);
    let end = "2026-11-23T12:05:00Z".parse().unwrap();
    assert_eq!(is(&[&idle, &done], &delayed), Availability::Delayed(end));
    let earlier = with(idle.clone(), &[(keys::LAST_DEPLOYED_AT, "2026-11-23T11:50:00Z")]);
    assert_eq!(is(&[&idle, &earlier], &delayed), Availability::Open);
    let hour = std::time::Duration::from_hours(1);
    let window = |start: &str| Window::new(&[], start, hour, "").unwrap();
    let closed = Pool { windows: vec![window("23:00"), window("15:00")], ..pool.clone() };
    let opens = "2026-11-23T15:00:00Z".parse().unwrap();
    assert_eq!(is(&[&idle], &closed), Availability::OutsideWindow(Some(opens)));
    let open = Pool { windows: vec![window("23:00"), window("11:30")], ..pool };
    assert_eq!(is(&[&idle], &open), Availability::Open);
    assert_eq!(next_window_change(&open.windows, now()), Some("2026-11-23T12:30:00Z".parse().unwrap()));
}
