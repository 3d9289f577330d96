//! Prints pools and their nodes, and changes as they come, in each format.

use std::collections::BTreeMap;
use std::io;

use jiff::Timestamp;

use super::rows::{Line, NODE_TITLES, POOL_TITLES, gone};
use crate::cli::output::{OutputFormat, to_json};
use crate::cli::table::{Row, Table};
use crate::cli::terminal::{Palette, print};
use crate::nodes::{PoolDocument, PoolList};
use crate::printable::printable_json;

/// The output of the command.
pub(super) enum Printer {
    /// Tables, to which each change adds rows.
    Tables(Box<Tables>),
    /// One JSON document.
    Json,
    /// A JSON document for each change, on one line; the last one.
    JsonLines(Option<PoolList>),
}

/// A table of pools, and one of nodes.
pub(super) struct Tables {
    pools: Section,
    /// `None` if nodes are not shown.
    nodes: Option<Section>,
    /// The last rows were those of nodes.
    is_at_nodes: bool,
}

/// A table with the lines that it shows.
struct Section {
    table: Table,
    columns: usize,
    lines: BTreeMap<String, Line>,
}

impl Printer {
    pub(super) fn new(format: OutputFormat, has_nodes: bool, is_watch: bool) -> Self {
        match format {
            OutputFormat::Text => Self::Tables(Box::new(Tables::new(has_nodes, Palette::for_output()))),
            OutputFormat::Json if is_watch => Self::JsonLines(None),
            OutputFormat::Json => Self::Json,
        }
    }

    /// Prints pools; what was printed before is not repeated.
    pub(super) fn show(&mut self, pools: Vec<PoolDocument>) -> io::Result<()> {
        let text = match self {
            Self::Tables(tables) => tables.text(&pools, Timestamp::now()),
            Self::Json => {
                let json = to_json(&PoolList { items: pools });
                json.lines().map(|line| printable_json(line.to_owned()) + "\n").collect()
            }
            Self::JsonLines(last) => {
                let list = PoolList { items: pools };
                if last.as_ref() == Some(&list) {
                    return Ok(());
                }
                let json = serde_json::to_string(&list).expect("a document is plain JSON");
                *last = Some(list);
                printable_json(json) + "\n"
            }
        };
        if text.is_empty() { Ok(()) } else { print(&text) }
    }
}

impl Tables {
    fn new(has_nodes: bool, palette: Palette) -> Self {
        Self {
            pools: Section::new(&POOL_TITLES, palette),
            nodes: has_nodes.then(|| Section::new(&NODE_TITLES, palette)),
            is_at_nodes: false,
        }
    }

    /// Returns the rows that are not shown yet; another table begins with titles.
    fn text(&mut self, pools: &[PoolDocument], now: Timestamp) -> String {
        let lines = pools.iter().map(|pool| (pool.name.clone(), Line::of_pool(pool))).collect();
        let rows = self.pools.changes(lines, now);
        let mut text = String::new();
        if !rows.is_empty() {
            text += &self.pools.text(&rows, std::mem::replace(&mut self.is_at_nodes, false));
        }
        if let Some(section) = &mut self.nodes {
            let nodes = pools.iter().flat_map(|pool| &pool.nodes);
            let lines = nodes.map(|node| (node.name.clone(), Line::of_node(node))).collect();
            let rows = section.changes(lines, now);
            if !rows.is_empty() {
                text += &section.text(&rows, !std::mem::replace(&mut self.is_at_nodes, true));
            }
        }
        text
    }
}

impl Section {
    fn new(titles: &[&'static str], palette: Palette) -> Self {
        Self { table: Table::new(titles.to_vec(), palette), columns: titles.len(), lines: BTreeMap::new() }
    }

    /// Replaces the lines, and returns the rows that differ.
    fn changes(&mut self, lines: BTreeMap<String, Line>, now: Timestamp) -> Vec<Row> {
        let changed = lines.iter().filter(|(name, line)| self.lines.get(*name) != Some(*line));
        let mut rows: Vec<Row> = changed.map(|(_, line)| line.row(now)).collect();
        let missing = self.lines.keys().filter(|name| !lines.contains_key(*name));
        rows.extend(missing.map(|name| gone(name, self.columns)));
        self.lines = lines;
        rows
    }

    /// Returns rows as text, with titles if the last rows were of another table.
    fn text(&mut self, rows: &[Row], is_switch: bool) -> String {
        if !is_switch {
            return self.table.text(rows);
        }
        self.table.restart();
        "\n".to_owned() + &self.table.text(rows)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::cli::terminal::PLAIN;
    use crate::nodes::PoolView;

    fn now() -> Timestamp {
        "2026-11-23T10:05:00Z".parse().unwrap()
    }

    fn node(name: &str, stage: &str, annotations: &Value) -> Value {
        let mut annotations = annotations.clone();
        annotations["tagboat.dev/state-since"] = json!("2026-11-23T10:00:00Z");
        let labels = json!({"role": "worker", "tagboat.dev/state": stage, "tagboat.dev/agent": "up-to-date"});
        json!({
            "metadata": {"name": name, "labels": labels, "annotations": annotations},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        })
    }

    /// A pool of two nodes, of which some are updated.
    fn pools(updated: i64, nodes: &[Value]) -> Vec<PoolDocument> {
        let condition = |type_: &str, status: &str, reason: &str, message: &str| {
            json!({"type": type_, "status": status, "reason": reason, "message": message,
                "lastTransitionTime": "2026-11-23T10:00:00Z"})
        };
        let message = format!("{updated}/2 updated");
        let conditions = [
            condition("UpToDate", "False", "RolloutInProgress", &message),
            condition("Degraded", "True", "NodeDegraded", "a: bad\nnews"),
        ];
        let pool = json!({
            "apiVersion": "tagboat.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "workers"},
            "spec": {"nodeSelector": {"matchLabels": {"role": "worker"}}},
            "status": {"nodeCount": 2, "updatedCount": updated, "updatingCount": 1, "degradedCount": 1,
                "deployHistory": [{"version": "v1", "nodeCount": 1, "lastDeployed": "2026-11-23T10:00:00Z"}],
                "conditions": conditions},
        });
        let nodes = nodes.iter().map(|node| Arc::new(serde_json::from_value(node.clone()).unwrap()));
        let views = PoolView::all(vec![Arc::new(serde_json::from_value(pool).unwrap())], nodes.collect());
        views.iter().map(PoolView::document).collect()
    }

    #[test]
    fn a_pool_is_above_its_nodes() {
        let digest = json!({"tagboat.dev/booted-digest": "sha256:0123456789abcdef", "tagboat.dev/message": "\u{1b}[2J"});
        let nodes =
            [node("a", "idle", &json!({"tagboat.dev/booted-version": "v2"})), node("b", "draining", &digest)];
        let text = Tables::new(true, PLAIN).text(&pools(1, &nodes), now());
        let expected = "\
NAME     NODES  UPDATED  UPDATING  DEGRADED  VERSION  MESSAGE
workers  2      1        1         1         v1       1/2 updated; a: bad\\nnews

NODE  STAGE     SINCE  AGENT       BOOTED               MESSAGE
a     idle      5m     up-to-date  v2
b     draining  5m     up-to-date  sha256:0123456789ab  \\u{1b}[2J
";
        assert_eq!(text, expected);
        let text = Tables::new(false, PLAIN).text(&pools(1, &nodes), now());
        assert_eq!(text, expected.split_inclusive('\n').take(2).collect::<String>());
    }

    #[test]
    fn only_changes_are_printed_and_each_change_of_the_table_has_titles() {
        let (a, b) = (node("a", "idle", &json!({})), node("b", "draining", &json!({})));
        let mut tables = Tables::new(true, PLAIN);
        tables.text(&pools(1, &[a.clone(), b]), now());
        let text = tables.text(&pools(1, &[a.clone(), node("b", "before-reboot", &json!({}))]), now());
        assert_eq!(text, "b     before-reboot  5m     up-to-date  -\n");
        let later = now() + jiff::SignedDuration::from_hours(1);
        let text = tables.text(&pools(1, &[a.clone(), node("b", "before-reboot", &json!({}))]), later);
        assert_eq!(text, "", "an age alone is no change");
        let text = tables.text(&pools(2, &[a]), now());
        let expected = "
NAME     NODES  UPDATED  UPDATING  DEGRADED  VERSION  MESSAGE
workers  2      2        1         1         v1       2/2 updated; a: bad\\nnews

NODE  STAGE          SINCE  AGENT       BOOTED  MESSAGE
b     -              -      -           -       gone
";
        assert_eq!(text, expected);
        let text = tables.text(&[], now());
        assert!(
            text.starts_with("\nNAME ") && text.contains("workers  -  ") && text.contains("a     -  "),
            "{text}"
        );
    }
}
