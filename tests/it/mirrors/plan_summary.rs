//! A comparable summary of a plan, independent of its tree and index.

use std::fmt::Write;

use tagboat::update::{FileTree, UpdatePlan};

/// Everything in a plan except the ids of contents.
pub(super) fn outline(plan: &UpdatePlan, tree: &dyn FileTree) -> String {
    let mut text = String::new();
    for edit in &plan.edits {
        let mut content = Vec::new();
        tree.read(&edit.entry, usize::MAX, &mut content).unwrap();
        let after = edit.apply(&content).unwrap();
        writeln!(text, "{} {:?} {}", edit.key, edit.entry.path, after.escape_ascii()).unwrap();
    }
    let UpdatePlan { result, markers, unparsable, near_misses, skipped, files, .. } = plan;
    write!(text, "{result:#?}{markers:#?}{unparsable:#?}{near_misses:#?}{skipped:#?}{files}").unwrap();
    text
}
