//! Explanation of a policy as JSON and as a table.
//!
//! `docs/explain-policy.schema.json` is generated from these types.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::terminal::{Palette, cell, column_width};
use crate::objects::ObjectName;
use crate::printable::printable;

/// The explanation of a policy's choice.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PolicyExplanation")]
pub(in crate::cli) struct Explanation {
    /// The policy.
    pub(super) policy: ObjectName,
    /// The tag that was chosen; null if none was.
    pub(super) latest: Option<String>,
    /// The message of the policy's condition, or another error; null if nothing is wrong.
    pub(super) error: Option<String>,
    /// Every tag, from best to worst.
    pub(super) tags: Vec<ExplainedTag>,
    /// True if values may differ from the tags.
    #[serde(skip)]
    pub(super) has_values: bool,
    /// Notes, one sentence each.
    #[serde(skip)]
    pub(super) notes: Vec<String>,
}

impl Explanation {
    /// Creates the explanation of a policy, without tags.
    pub(super) fn of(policy: ObjectName) -> Self {
        Self { policy, latest: None, error: None, tags: Vec::new(), has_values: false, notes: Vec::new() }
    }
}

/// A tag and its outcome.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ExplainedTag {
    /// The tag.
    pub(super) tag: String,
    /// The value that the filter extracted; null if the filter does not match.
    pub(super) value: Option<String>,
    /// The outcome, such as `latest`, `candidate` or `filtered`.
    pub(super) outcome: &'static str,
    /// The reason, as a sentence.
    pub(super) reason: String,
}

impl ExplainedTag {
    /// Explains a line of `--tags` that no registry accepts as a tag.
    pub(super) fn not_a_tag(text: &str) -> Self {
        let reason =
            "a tag has at most 128 letters, digits, '_', '.' and '-', and begins with neither '.' nor '-'";
        Self { tag: text.to_owned(), value: None, outcome: "not-a-tag", reason: reason.to_owned() }
    }
}

/// Renders an explanation as a table.
pub(super) fn render(explanation: &Explanation, palette: Palette) -> String {
    let mut text = String::new();
    write(explanation, palette, &mut text).expect("writing to a string cannot fail");
    text
}

fn write(explanation: &Explanation, palette: Palette, text: &mut String) -> std::fmt::Result {
    let Palette { heading, added, reset, .. } = palette;
    writeln!(text, "{heading}Policy:{reset} {}", printable(&explanation.policy.to_string()))?;
    match (&explanation.latest, &explanation.error) {
        (Some(latest), _) => writeln!(text, "{heading}Latest:{reset} {added}{}{reset}", printable(latest))?,
        (None, error) => {
            let error = error.as_deref().unwrap_or_default();
            writeln!(text, "{heading}Latest:{reset} none: {}", printable(error))?;
        }
    }
    for note in &explanation.notes {
        writeln!(text, "{heading}Note:{reset}   {}", printable(note))?;
    }
    if explanation.tags.is_empty() {
        return Ok(());
    }
    let rows: Vec<[String; 3]> = explanation.tags.iter().map(cells).collect();
    let titles = ["TAG", "VALUE", "OUTCOME"];
    let width =
        |column: usize| column_width(rows.iter().map(|row| row[column].as_str()).chain([titles[column]]));
    let (tags, values, outcomes) = (width(0), width(1), width(2));
    let line = |[tag, value, outcome]: [&str; 3], reason: &str| {
        let value = if explanation.has_values { format!("{value:values$}  ") } else { String::new() };
        format!("{tag:tags$}  {value}{outcome:outcomes$}  {reason}")
    };
    writeln!(text, "\n{heading}{}{reset}", line(titles, "REASON"))?;
    for (row, tag) in rows.iter().zip(&explanation.tags) {
        let line = line([&row[0], &row[1], &row[2]], &printable(&tag.reason));
        let (colour, end) = if tag.outcome == "latest" { (added, reset) } else { ("", "") };
        writeln!(text, "{colour}{line}{end}")?;
    }
    Ok(())
}

fn cells(tag: &ExplainedTag) -> [String; 3] {
    let shown = |text: &str| if text.is_empty() { "\"\"".to_owned() } else { cell(text) };
    [shown(&tag.tag), tag.value.as_deref().map_or_else(|| "-".to_owned(), shown), tag.outcome.to_owned()]
}
