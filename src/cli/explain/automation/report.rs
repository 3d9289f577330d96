//! The explanation of an automation as JSON and as text.
//!
//! `docs/explain-automation.schema.json` is generated from these types.

use std::fmt::Write;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::held::ExplainedHold;
use super::judge::Moment;
use crate::cli::Failure;
use crate::cli::terminal::{Palette, cell, column_width};
use crate::objects::ObjectName;
use crate::printable::printable;
use crate::reconcile::automation::waiting::WaitReason;

/// The explanation of what an automation does not write.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AutomationExplanation")]
pub(in crate::cli) struct Explanation {
    /// The automation.
    pub(super) automation: ObjectName,
    /// The time of the answer in RFC 3339.
    #[serde(serialize_with = "time")]
    #[schemars(with = "String")]
    pub(super) at: Timestamp,
    /// True if windows and freezes allow a write.
    pub(super) open: bool,
    /// The next changes between open and closed.
    pub(super) next: Vec<NextChange>,
    /// The images that may not be written yet.
    pub(super) waiting: Vec<ExplainedWait>,
    /// The held images, as the reports of runs have them.
    pub(super) held: Vec<ExplainedHold>,
    /// The selected policies.
    pub(super) policies: Vec<ExplainedPolicy>,
    /// The errors, as one sentence; null if nothing is wrong.
    pub(super) error: Option<String>,
    /// The rule that closes the automation.
    #[serde(skip)]
    pub(super) closed: Option<ClosingRule>,
    /// The windows and freezes that apply.
    #[serde(skip)]
    pub(super) rules: Vec<ExplainedRule>,
    /// Notes, one sentence each.
    #[serde(skip)]
    pub(super) notes: Vec<String>,
}

/// A change between open and closed.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct NextChange {
    /// The time of the change in RFC 3339.
    #[serde(serialize_with = "time")]
    #[schemars(with = "String")]
    pub(super) at: Timestamp,
    /// True if a write is allowed from then on.
    pub(super) open: bool,
    /// The rule that changes.
    pub(super) by: String,
}

/// Wanted images that may not be written yet.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ExplainedWait {
    /// The policies, as namespace/name.
    pub(super) policies: Vec<String>,
    /// `Frozen`, `WindowClosed`, `QuietPeriod` or `ReleaseGroupIncomplete`.
    pub(super) reason: String,
    /// The rule that delays them.
    pub(super) by: String,
    /// The end of the wait in RFC 3339; null if none is known.
    #[serde(serialize_with = "optional_time")]
    #[schemars(with = "Option<String>")]
    pub(super) until: Option<Timestamp>,
    /// The wait as a sentence.
    pub(super) message: String,
}

/// A selected policy.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ExplainedPolicy {
    /// The policy, as namespace/name.
    pub(super) policy: String,
    /// The wanted image; null if there is none.
    pub(super) image: Option<String>,
    /// The state of the image.
    pub(super) state: PolicyState,
    /// The reason, as a sentence.
    pub(super) reason: String,
}

/// The state of a policy's image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PolicyState {
    /// It is written, or nothing holds it back.
    Written,
    /// People have refused it, or it could not be put on a branch.
    Held,
    /// It may not be written yet.
    Waiting,
    /// There is none.
    NoImage,
}

/// A rule that closes an automation.
#[derive(Clone, Debug)]
pub(super) struct ClosingRule {
    /// The reason of the condition.
    pub(super) reason: WaitReason,
    pub(super) by: String,
    pub(super) until: Option<Timestamp>,
}

/// A list of windows, or a freeze.
#[derive(Debug)]
pub(super) struct ExplainedRule {
    pub(super) name: String,
    /// The part that closes the automation, if one does.
    pub(super) closed_by: Option<String>,
}

fn time<S: serde::Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(time)
}

fn optional_time<S: serde::Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.to_string()).serialize(serializer)
}

impl PolicyState {
    fn as_str(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Held => "held",
            Self::Waiting => "waiting",
            Self::NoImage => "no-image",
        }
    }
}

impl Explanation {
    /// Creates the explanation of an automation, without anything that applies to it.
    pub(super) fn of(automation: ObjectName, moment: Moment) -> Self {
        Self {
            automation,
            at: moment.at,
            open: true,
            next: Vec::new(),
            waiting: Vec::new(),
            held: Vec::new(),
            policies: Vec::new(),
            error: None,
            closed: None,
            rules: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Creates the explanation of an automation whose manifests are invalid.
    pub(super) fn of_invalid(automation: ObjectName, moment: Moment, sentences: &[String]) -> Self {
        Self { open: false, error: Some(sentences.join("; ")), ..Self::of(automation, moment) }
    }

    /// Returns a failure if anything is held, waiting or wrong.
    pub(super) fn done(&self) -> Result<(), Failure> {
        let is_delayed =
            |policy: &ExplainedPolicy| matches!(policy.state, PolicyState::Held | PolicyState::Waiting);
        if let Some(error) = &self.error {
            return Err(Failure::FailedFor(vec![format!("{}: {error}", self.automation)]));
        }
        let is_good = self.waiting.is_empty() && !self.policies.iter().any(is_delayed);
        if is_good { Ok(()) } else { Err(Failure::Reported) }
    }
}

/// Renders an explanation as text.
pub(super) fn render(explanation: &Explanation, palette: Palette) -> String {
    let mut text = String::new();
    write(explanation, palette, &mut text).expect("writing to a string cannot fail");
    text
}

fn write(explanation: &Explanation, palette: Palette, text: &mut String) -> std::fmt::Result {
    let Palette { heading, reset, .. } = palette;
    let mut line = |title: &str, value: &str| {
        writeln!(text, "{heading}{:<11}{reset} {}", format!("{title}:"), printable(value))
    };
    line("Automation", &explanation.automation.to_string())?;
    line("Time", &explanation.at.to_string())?;
    let state = match &explanation.closed {
        Some(ClosingRule { by, until: Some(until), .. }) => format!("closed: {by}; until {until}"),
        Some(ClosingRule { by, until: None, .. }) => format!("closed: {by}; no end is known"),
        None if explanation.rules.is_empty() => "open; no window and no freeze applies".to_owned(),
        None => "open".to_owned(),
    };
    line("Writes", &state)?;
    explanation.waiting.iter().try_for_each(|wait| line("Waiting", &wait.message))?;
    explanation.notes.iter().try_for_each(|note| line("Note", note))?;
    let policies = explanation.policies.iter().map(|one| {
        [&one.policy, one.image.as_deref().unwrap_or("-"), one.state.as_str(), &one.reason].map(cell)
    });
    let rules = explanation.rules.iter().map(|rule| match &rule.closed_by {
        Some(by) => [&rule.name, "closed", by].map(cell),
        None => [&rule.name, "open", ""].map(cell),
    });
    let next = explanation.next.iter().map(|change| {
        [change.at.to_string().as_str(), if change.open { "open" } else { "closed" }, &change.by].map(cell)
    });
    text.push_str(&table(["POLICY", "IMAGE", "STATE", "REASON"], &policies.collect::<Vec<_>>(), palette));
    text.push_str(&table(["RULE", "STATE", "CLOSED BY"], &rules.collect::<Vec<_>>(), palette));
    text.push_str(&table(["NEXT CHANGE", "STATE", "BY"], &next.collect::<Vec<_>>(), palette));
    Ok(())
}

/// Returns a table below an empty line, or nothing without rows.
fn table<const N: usize>(titles: [&str; N], rows: &[[String; N]], palette: Palette) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let Palette { heading, reset, .. } = palette;
    let widths: [usize; N] = std::array::from_fn(|column| {
        column_width(rows.iter().map(|row| row[column].as_str()).chain([titles[column]]))
    });
    let line = |cells: [&str; N]| {
        let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut text = format!("\n{heading}{}{reset}\n", line(titles));
    for row in rows {
        text.push_str(&line(std::array::from_fn(|column| row[column].as_str())));
        text.push('\n');
    }
    text
}
