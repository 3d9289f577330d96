//! The comparison of all states with each judge.

use std::collections::BTreeMap;

use super::reasons::{self, DifferenceReason};
use super::state::{Judge, Outcome, Row};

/// The output of `hack/oracle/health`.
#[derive(serde::Deserialize)]
pub(super) struct Table {
    modules: BTreeMap<String, String>,
    rows: Vec<Row>,
}

/// The numbers of states, compared with each judge.
#[derive(Default)]
pub(super) struct Comparison {
    pub(super) rows: usize,
    /// The versions of the judges.
    pub(super) modules: BTreeMap<String, String>,
    /// The states after the end of a rollout.
    pub(super) installed: usize,
    pub(super) agree: BTreeMap<Judge, usize>,
    /// The numbers of states that differ, for each reason and judge.
    pub(super) differ: BTreeMap<(&'static str, Judge), usize>,
    /// The states without an answer of a judge.
    pub(super) silent: BTreeMap<Judge, usize>,
    /// Differences without a reason, and reasons that hold without the difference.
    pub(super) problems: Vec<String>,
}

impl Comparison {
    /// Compares all states.
    pub(super) fn new(Table { modules, rows }: Table) -> Self {
        let mut comparison = Self { rows: rows.len(), modules, ..Self::default() };
        comparison.installed = rows.iter().filter(|row| row.installed).count();
        for row in &rows {
            let ours = row.ours();
            for judge in Judge::ALL {
                comparison.add(row, judge, ours);
            }
        }
        comparison
    }

    fn add(&mut self, row: &Row, judge: Judge, ours: Outcome) {
        let theirs = row.answer(judge);
        let reasons: Vec<&DifferenceReason> =
            reasons::all().filter(|reason| reason.applies(row, judge, ours)).collect();
        for reason in &reasons {
            if !reason.theirs.contains(&theirs) {
                self.problem(&format!("{:?} holds, and", reason.name), row, judge, ours);
            }
        }
        if theirs == ours {
            *self.agree.entry(judge).or_default() += 1;
            return;
        }
        if theirs == Outcome::None {
            *self.silent.entry(judge).or_default() += 1;
        }
        match reasons.first() {
            Some(reason) => *self.differ.entry((reason.name, judge)).or_default() += 1,
            None => self.problem("without a reason:", row, judge, ours),
        }
    }

    fn problem(&mut self, text: &str, row: &Row, judge: Judge, ours: Outcome) {
        let theirs = row.answer(judge);
        let installed = if row.installed { " after the end" } else { "" };
        self.problems.push(format!("{text} {judge:?} {theirs:?}, ours {ours:?}{installed}: {}", row.object));
    }
}
