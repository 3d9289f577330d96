//! Pools and nodes as rows of tables.

use jiff::Timestamp;
use tagboat_api::node_pool::{DEGRADED, UP_TO_DATE};

use crate::cli::age::age;
use crate::cli::table::{GONE, NONE, Row, Tone};
use crate::cli::terminal::cell;
use crate::nodes::{AgentState, NodeDocument, PoolDocument, Stage};

/// The titles of a table of pools.
pub(super) const POOL_TITLES: [&str; 7] =
    ["NAME", "NODES", "UPDATED", "UPDATING", "DEGRADED", "VERSION", "MESSAGE"];

/// The titles of a table of nodes.
pub(super) const NODE_TITLES: [&str; 6] = ["NODE", "STAGE", "SINCE", "AGENT", "BOOTED", "MESSAGE"];

/// The column with the age of a stage.
const SINCE: usize = 2;

/// The number of digits that are shown of a digest.
const DIGITS: usize = 12;

/// The begin of digests.
const DIGEST_PREFIX: &str = "sha256:";

/// A row without a computed age, so that it changes only with its object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    cells: Vec<String>,
    tone: Tone,
    since: Option<Timestamp>,
}

impl Line {
    /// Returns the line of a pool.
    pub(super) fn of_pool(pool: &PoolDocument) -> Self {
        let status = &pool.status;
        let is_true = |type_: &str| pool.condition(type_).filter(|condition| condition.status == "True");
        let message = |type_: &str| pool.condition(type_).map(|condition| condition.message.clone());
        let degraded = is_true(DEGRADED);
        let parts =
            message(UP_TO_DATE).into_iter().chain(degraded.map(|condition| condition.message.clone()));
        let counts = [status.node_count, status.updated_count, status.updating_count, status.degraded_count];
        let counts = counts
            .map(|count| if status.conditions.is_empty() { NONE.to_owned() } else { count.to_string() });
        let mut cells = vec![cell(&pool.name)];
        cells.extend(counts);
        cells.push(pool.version().map_or_else(|| NONE.to_owned(), cell));
        cells.push(cell(&parts.collect::<Vec<_>>().join("; ")));
        let tone = match (degraded.is_some(), is_true(UP_TO_DATE).is_some()) {
            (true, _) => Tone::Bad,
            (false, true) => Tone::Good,
            (false, false) => Tone::Plain,
        };
        Self { cells, tone, since: None }
    }

    /// Returns the line of a node.
    pub(super) fn of_node(node: &NodeDocument) -> Self {
        let none = || NONE.to_owned();
        let digest = node.booted_digest.as_deref().map(short);
        let cells = vec![
            cell(&node.name),
            node.stage.to_string(),
            none(),
            node.agent.map_or_else(none, |agent| agent.as_str().to_owned()),
            node.booted_version.clone().or(digest).map_or_else(none, |text| cell(&text)),
            node.message.as_deref().map(cell).unwrap_or_default(),
        ];
        let tone = match (node.agent, node.stage) {
            (Some(AgentState::Error), _) => Tone::Bad,
            (Some(AgentState::UpToDate), Stage::Idle) => Tone::Good,
            _ => Tone::Plain,
        };
        Self { cells, tone, since: node.since.as_ref().map(|time| time.0) }
    }

    /// Returns the row at a time.
    pub(super) fn row(&self, now: Timestamp) -> Row {
        let mut cells = self.cells.clone();
        if let Some(since) = self.since {
            cells[SINCE] = age(since, now);
        }
        Row { cells, tone: self.tone }
    }
}

/// Returns the row of a removed object, in a table of some columns.
pub(super) fn gone(name: &str, columns: usize) -> Row {
    let mut cells = vec![NONE.to_owned(); columns];
    cells[0] = cell(name);
    cells[columns - 1] = GONE.to_owned();
    Row { cells, tone: Tone::Plain }
}

/// Returns the first digits of a digest.
fn short(digest: &str) -> String {
    match digest.strip_prefix(DIGEST_PREFIX) {
        Some(digits) => format!("{DIGEST_PREFIX}{}", digits.chars().take(DIGITS).collect::<String>()),
        None => digest.to_owned(),
    }
}
