//! The idle nodes that may begin: the slots of a pool.

use jiff::{SignedDuration, Timestamp};

use super::health::Problem;
use super::next::is_candidate;
use super::{Node, Pool, Window, problem};

/// The number of unhealthy nodes in slots that halts a pool.
pub const HALT_THRESHOLD: usize = 2;

/// The answer if nodes of a pool may begin, apart from the number of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// Nodes may begin.
    Open,
    /// Two nodes in slots are unhealthy.
    Halted,
    /// No window is open; it opens at the given time, if that is known.
    OutsideWindow(Option<Timestamp>),
    /// The last node finished a short time ago; the delay ends at the given time.
    Delayed(Timestamp),
}

/// Returns whether nodes of a pool may begin.
#[must_use]
pub fn availability(nodes: &[&Node], pool: &Pool, now: Timestamp) -> Availability {
    let in_slots = nodes.iter().filter(|node| node.holds_slot());
    // An agent without a report says nothing about the host, and all may be late after an outage of the API server.
    let is_unhealthy =
        |node: &&&Node| !matches!(problem(node, pool.limits, now), None | Some(Problem::Silent { .. }));
    let unhealthy = in_slots.filter(is_unhealthy).count();
    if unhealthy >= HALT_THRESHOLD {
        return Availability::Halted;
    }
    if !pool.windows.is_empty() && !pool.windows.iter().any(|window| window.is_open(now)) {
        let opens = pool.windows.iter().filter_map(|window| window.next_opening(now)).min();
        return Availability::OutsideWindow(opens);
    }
    match delay_end(nodes, pool) {
        Some(end) if end > now => Availability::Delayed(end),
        _ => Availability::Open,
    }
}

fn delay_end(nodes: &[&Node], pool: &Pool) -> Option<Timestamp> {
    let newest = nodes.iter().filter_map(|node| Some(node.last_deployment(&pool.name)?.1)).max()?;
    newest.checked_add(SignedDuration::try_from(pool.post_complete_delay).ok()?).ok()
}

/// Returns the nodes of a pool that get a slot: by zone, then by name.
///
/// `control_plane_is_busy` says that a node of the control plane holds a slot or is not ready, in any pool or none: those
/// are updated one at a time in the whole cluster.
#[must_use]
pub fn grants<'n>(
    nodes: &[&'n Node],
    pool: &Pool,
    control_plane_is_busy: bool,
    now: Timestamp,
) -> Vec<&'n Node> {
    if availability(nodes, pool, now) != Availability::Open {
        return Vec::new();
    }
    let unavailable = nodes.iter().filter(|node| node.is_unavailable()).count();
    let free = pool.max_unavailable.of(nodes.len()).saturating_sub(unavailable);
    let mut candidates: Vec<&Node> = nodes.iter().copied().filter(|node| is_candidate(node, pool)).collect();
    candidates.sort_by_key(|node| (node.zone(), node.name.as_str()));
    let mut is_busy = control_plane_is_busy;
    let admitted = candidates.into_iter().filter(|node| {
        let is_admitted = !(node.is_control_plane() && is_busy);
        is_busy |= node.is_control_plane();
        is_admitted
    });
    admitted.take(free).collect()
}

/// Returns the time of the next opening or closing of a window.
#[must_use]
pub fn next_window_change(windows: &[Window], now: Timestamp) -> Option<Timestamp> {
    windows.iter().filter_map(|window| window.next_change(now)).min()
}
