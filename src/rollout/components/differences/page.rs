//! The tables of `docs/rollout-differences.md`.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::comparison::Comparison;
use super::reasons;
use super::state::Judge;

/// The lines of the page around the generated part.
const BEGIN: &str = "<!-- generated from testdata/rollout/health.json -->\n";
const END: &str = "<!-- end -->\n";

/// Returns the generated part.
fn text(comparison: &Comparison) -> String {
    let version = |module: &str| &comparison.modules[module];
    let mut text = format!(
        "The table has {} states. In {} of them, the same image was installed at the last observation, which only Tagboat\nknows. \
         The versions are kubectl {}, cli-utils {} and Argo CD {}.\n\n",
        comparison.rows,
        comparison.installed,
        version("k8s.io/kubectl"),
        version("sigs.k8s.io/cli-utils"),
        version("github.com/argoproj/argo-cd/v3"),
    );
    text.push_str("| judge | same result | other result | no answer |\n|---|---|---|---|\n");
    for judge in Judge::ALL {
        let of = |counts: &BTreeMap<Judge, usize>| counts.get(&judge).copied().unwrap_or(0);
        let (agree, silent) = (of(&comparison.agree), of(&comparison.silent));
        let differ = comparison.rows - agree - silent;
        writeln!(text, "| {} | {agree} | {differ} | {silent} |", judge.name()).unwrap();
    }
    text.push_str("\n| reason | kubectl | kstatus | Argo CD | explanation |\n|---|---|---|---|---|\n");
    for reason in reasons::all() {
        let counts = Judge::ALL.map(|judge| {
            comparison.differ.get(&(reason.name, judge)).map_or_else(String::new, ToString::to_string)
        });
        writeln!(text, "| {} | {} | {} |", reason.name, counts.join(" | "), reason.text).unwrap();
    }
    text
}

/// Returns the page with the generated part.
pub(super) fn with_tables(page: &str, comparison: &Comparison) -> String {
    let (before, rest) = page.split_once(BEGIN).expect("the page has a beginning mark");
    let (_, after) = rest.split_once(END).expect("the page has an end mark");
    format!("{before}{BEGIN}\n{}\n{END}{after}", text(comparison))
}
