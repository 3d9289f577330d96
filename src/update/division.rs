//! Divides the edits of a plan by groups of policies.
//!
//! A plan is made once for all policies. Most files have markers of one group only, and keep their edit. A file with
//! values of several groups is read again for each of them, so that every edit is proved on its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tagboat_api::ObjectName;

use super::edit::{ContentHash, FileEdit};
use super::error::PlanError;
use super::file::update_file;
use super::held_values::HeldValues;
use super::interrupt::{Checkpoint, Interrupt, Progress};
use super::marker::Marker;
use super::plan::{UpdatePlan, UpdateRequest};
use super::report::MarkerOutcome;
use super::result::{ObjectChanges, ResultV2};
use super::setter::Setters;
use super::tree::{Entry, FileTree};
use crate::yaml::Limits;

/// The edits of one group of policies, and their changes.
#[derive(Debug, Clone, Default)]
pub struct PlanPart {
    /// The files to write, in rising order of their paths.
    pub edits: Vec<FileEdit>,
    /// The changes that the edits make.
    pub result: ResultV2,
}

impl PlanPart {
    /// Returns the setters whose values the edits change.
    pub fn setters(&self) -> BTreeSet<String> {
        let changes = self.result.file_changes.values().flat_map(|objects| objects.values()).flatten();
        changes.map(|change| change.setter.clone()).collect()
    }

    fn add(&mut self, edit: FileEdit, changes: Arc<ObjectChanges>) {
        self.result.file_changes.insert(Arc::clone(&edit.key), changes);
        self.edits.push(edit);
    }
}

/// Makes the edits of the same files in another tree.
///
/// Only these files are read.
///
/// A file that is gone there, or cannot be read as YAML, is left out, as in a plan. `setters` restrict those of the request.
///
/// # Errors
///
/// If `checkpoint` returns an error.
pub fn edits_in(
    tree: &dyn FileTree,
    edits: &[FileEdit],
    setters: &Setters,
    (held, limits): (&HeldValues, &Limits),
    checkpoint: &mut Checkpoint<'_>,
) -> Result<Vec<FileEdit>, Interrupt> {
    let mut others = Vec::new();
    for edit in edits {
        checkpoint(Progress::default())?;
        // The content is another one, and unknown.
        let entry = Entry { content: None, ..edit.entry.clone() };
        others.extend(edit_of(tree, entry, &edit.key, setters, (held, limits)).map(|(edit, _)| edit));
    }
    Ok(others)
}

/// Returns true if the files of some edits have the wanted values in another tree.
///
/// Each of the setters `changed`, which the edits give another value, has its wanted one in one of these files, and none of the
/// others in them would be changed. A file that is gone there, or cannot be read as YAML, has no value.
///
/// # Errors
///
/// If `checkpoint` returns an error.
pub fn have_values(
    tree: &dyn FileTree,
    (edits, changed): (&[FileEdit], &BTreeSet<String>),
    setters: &Setters,
    (held, limits): (&HeldValues, &Limits),
    checkpoint: &mut Checkpoint<'_>,
) -> Result<bool, Interrupt> {
    let mut found = BTreeSet::new();
    for edit in edits {
        checkpoint(Progress::default())?;
        let entry = Entry { content: None, ..edit.entry.clone() };
        let mut content = Vec::new();
        if tree.read(&entry, limits.file_size, &mut content).is_err() {
            continue;
        }
        let Ok(outcome) = update_file(&content, setters, held.of_file(&entry.path), limits) else { continue };
        if !outcome.splices.is_empty() {
            return Ok(false);
        }
        let current = outcome.markers.into_iter().filter(|one| one.outcome == MarkerOutcome::Current);
        found.extend(current.map(|one| one.marker.setter));
    }
    Ok(changed.is_subset(&found))
}

/// Divides the edits of a plan of `tree` by groups of policies.
///
/// Each policy is in one group at most. The parts are in the order of the groups. Edits for policies of no group are left out.
///
/// # Errors
///
/// If `checkpoint` returns an error.
pub fn divide(
    plan: &UpdatePlan,
    tree: &dyn FileTree,
    request: &UpdateRequest,
    groups: &[BTreeSet<ObjectName>],
    checkpoint: &mut Checkpoint<'_>,
) -> Result<Vec<PlanPart>, PlanError> {
    let group_of: BTreeMap<&ObjectName, usize> = groups
        .iter()
        .enumerate()
        .flat_map(|(index, policies)| policies.iter().map(move |policy| (policy, index)))
        .collect();
    let setters: Vec<Setters> =
        groups.iter().map(|policies| request.setters.restricted_to(policies)).collect();
    let mut parts = vec![PlanPart::default(); groups.len()];
    for edit in &plan.edits {
        checkpoint(Progress::default())?;
        let Some(changes) = plan.result.file_changes.get(&edit.key) else { continue };
        let owners: BTreeSet<Option<usize>> = changes
            .values()
            .flatten()
            .map(|change| group_of.get(&Marker::of_setter(&change.setter).policy).copied())
            .collect();
        if let (1, Some(Some(index))) = (owners.len(), owners.first()) {
            parts[*index].add(edit.clone(), Arc::clone(changes));
            continue;
        }
        for index in owners.into_iter().flatten() {
            let (entry, setters) = (edit.entry.clone(), &setters[index]);
            if let Some((edit, changes)) =
                edit_of(tree, entry, &edit.key, setters, (&request.held, &request.limits))
            {
                parts[index].add(edit, changes);
            }
        }
    }
    Ok(parts)
}

/// Makes the edit of one file, if it can be read and changes.
fn edit_of(
    tree: &dyn FileTree,
    entry: Entry,
    key: &Arc<str>,
    setters: &Setters,
    (held, limits): (&HeldValues, &Limits),
) -> Option<(FileEdit, Arc<ObjectChanges>)> {
    let mut content = Vec::new();
    tree.read(&entry, limits.file_size, &mut content).ok()?;
    let outcome = update_file(&content, setters, held.of_file(&entry.path), limits).ok()?;
    if outcome.splices.is_empty() {
        return None;
    }
    let edit = FileEdit::new(entry, Arc::clone(key), ContentHash::of(&content), outcome.splices.into());
    Some((edit, outcome.changes.into()))
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::reference::ImageReference;
    use crate::update::{
        EntryKind, MarkerIndex, PolicyState, TreeError, TreePath, TreeVisitor, UpdateRequest, plan,
    };

    /// Files in memory, by path.
    struct Tree(BTreeMap<String, String>);

    impl FileTree for Tree {
        fn walk(&self, _: &TreePath, visitor: &mut dyn TreeVisitor) -> Result<(), TreeError> {
            for path in self.0.keys() {
                let path = TreePath::from_bytes(path.as_bytes());
                if visitor.entry(Entry { path, kind: EntryKind::File, content: None })
                    == ControlFlow::Break(())
                {
                    break;
                }
            }
            Ok(())
        }

        fn kind(&self, _: &TreePath) -> Result<EntryKind, TreeError> {
            Ok(EntryKind::Directory)
        }

        fn read(&self, entry: &Entry, _: usize, content: &mut Vec<u8>) -> Result<(), TreeError> {
            let text = self.0.get(&entry.path.to_string());
            let text = text.ok_or_else(|| TreeError::NotFound { path: entry.path.clone() })?;
            content.clear();
            content.extend_from_slice(text.as_bytes());
            Ok(())
        }

        fn contains(&self, _: &Entry, _: &[u8]) -> Result<bool, TreeError> {
            Ok(true)
        }
    }

    fn name(name: &str) -> ObjectName {
        ObjectName { namespace: "n".to_owned(), name: name.to_owned() }
    }

    fn line(policy: &str, value: &str) -> String {
        format!("{policy}: {value} # {{\"$imagepolicy\": \"n:{policy}:tag\"}}\n")
    }

    fn tree(files: &[(&str, &[(&str, &str)])]) -> Tree {
        let text = |lines: &[(&str, &str)]| lines.iter().map(|(policy, value)| line(policy, value)).collect();
        Tree(files.iter().map(|(path, lines)| ((*path).to_owned(), text(lines))).collect())
    }

    fn request() -> UpdateRequest {
        let image = || PolicyState::Image(ImageReference::parse("app:v2").unwrap());
        let policies = ["a", "b", "c"].map(|policy| (name(policy), image()));
        UpdateRequest { setters: Setters::new(BTreeMap::from(policies)), ..UpdateRequest::default() }
    }

    /// The changed files after edits, as `path: text`.
    fn applied(edits: &[FileEdit], tree: &Tree) -> Vec<String> {
        let text = |edit: &FileEdit| {
            let path = edit.entry.path.to_string();
            let new = edit.apply(tree.0[&path].as_bytes()).unwrap();
            format!("{path}: {}", String::from_utf8(new).unwrap())
        };
        edits.iter().map(text).collect()
    }

    #[test]
    fn a_file_with_values_of_several_groups_gets_an_edit_for_each() {
        let tree = tree(&[
            ("one.yaml", &[("a", "1")]),
            ("shared.yaml", &[("a", "1"), ("b", "1"), ("c", "1")]),
            ("two.yaml", &[("b", "1"), ("c", "1")]),
            ("current.yaml", &[("a", "v2")]),
        ]);
        let request = request();
        let plan = plan(&tree, &request, &mut MarkerIndex::default(), &mut |_| Ok(())).unwrap();
        let group = |names: &[&str]| names.iter().map(|policy| name(policy)).collect::<BTreeSet<_>>();
        let parts_of = |groups: &[&[&str]]| {
            let groups: Vec<_> = groups.iter().map(|names| group(names)).collect();
            let parts = divide(&plan, &tree, &request, &groups, &mut |_| Ok(())).unwrap();
            let edits = parts.iter().map(|part| part.result.edits()).collect::<Vec<_>>();
            (parts.iter().map(|part| applied(&part.edits, &tree)).collect::<Vec<_>>(), edits)
        };
        let shared = |a, b, c| format!("shared.yaml: {}{}{}", line("a", a), line("b", b), line("c", c));
        let two = |b, c| format!("two.yaml: {}{}", line("b", b), line("c", c));
        let one = || format!("one.yaml: {}", line("a", "v2"));
        let (parts, edits) = parts_of(&[&["a"], &["b", "c"]]);
        assert_eq!(
            parts,
            [vec![one(), shared("v2", "1", "1")], vec![shared("1", "v2", "v2"), two("v2", "v2")]]
        );
        assert_eq!(edits, [2, 4]);
        // A policy of no group keeps its value.
        let (parts, edits) = parts_of(&[&["b"]]);
        assert_eq!((parts, edits), (vec![vec![shared("1", "v2", "1"), two("v2", "1")]], vec![2]));
        let (parts, _) = parts_of(&[&["a", "b", "c"], &[]]);
        assert_eq!(parts, [vec![one(), shared("v2", "v2", "v2"), two("v2", "v2")], vec![]]);
    }

    /// A tree without the file counted as one with all values.
    #[test]
    fn a_tree_has_the_values_of_edits_only_if_it_has_each_changed_setter_with_its_value() {
        let base = tree(&[("one.yaml", &[("a", "1"), ("b", "1")]), ("two.yaml", &[("a", "1")])]);
        let request = request();
        let groups = [BTreeSet::from(["a", "b"].map(name))];
        let plan = plan(&base, &request, &mut MarkerIndex::default(), &mut |_| Ok(())).unwrap();
        let parts = divide(&plan, &base, &request, &groups, &mut |_| Ok(())).unwrap();
        let changed = parts[0].setters();
        let setters = request.setters.restricted_to(&groups[0]);
        let have = |other: &Tree, checkpoint: &mut Checkpoint<'_>| {
            let of_request = (&request.held, &request.limits);
            have_values(other, (&parts[0].edits, &changed), &setters, of_request, checkpoint)
        };
        for (one, two, expected) in [
            (&[("a", "v2"), ("b", "v2")][..], &[("a", "v2")][..], true),
            // Others have added a marker with the old value since.
            (&[("a", "v2"), ("b", "v2")], &[], true),
            // A policy of no group counts no more than the rest of a file.
            (&[("a", "v2"), ("b", "v2"), ("c", "1")], &[], true),
            (&[("a", "v2"), ("b", "1")], &[("a", "v2")], false),
            (&[("a", "v2"), ("b", "v2")], &[("a", "1")], false),
            // Others have added the only marker of the policy.
            (&[("a", "v2")], &[], false),
            (&[], &[("a", "v2")], false),
        ] {
            let other = tree(&[("one.yaml", one), ("two.yaml", two)]);
            assert_eq!(have(&other, &mut |_| Ok(())), Ok(expected), "{one:?} {two:?}");
        }
        let both: &[(&str, &str)] = &[("a", "v2"), ("b", "v2")];
        // Others have added a file with the old value since, or have moved them.
        for (path, expected) in [("one.yaml", true), ("old.yaml", false)] {
            assert_eq!(have(&tree(&[(path, both)]), &mut |_| Ok(())), Ok(expected), "{path}");
        }
        let broken = Tree([("one.yaml".to_owned(), format!("x: [\n{}", line("a", "v2")))].into());
        assert_eq!(have(&broken, &mut |_| Ok(())), Ok(false));
        let interrupted = have(&tree(&[]), &mut |_| Err(Interrupt::Cancelled));
        assert_eq!(interrupted, Err(Interrupt::Cancelled));
    }

    #[test]
    fn edits_are_made_again_for_a_tree_in_which_others_edited_the_file() {
        let base = tree(&[("gone.yaml", &[("a", "1")]), ("shared.yaml", &[("a", "1"), ("b", "1")])]);
        let request = request();
        let groups = [BTreeSet::from([name("a")])];
        let plan = plan(&base, &request, &mut MarkerIndex::default(), &mut |_| Ok(())).unwrap();
        let parts = divide(&plan, &base, &request, &groups, &mut |_| Ok(())).unwrap();
        let edited = tree(&[("shared.yaml", &[("a", "1"), ("b", "9")])]);
        let setters = request.setters.restricted_to(&groups[0]);
        let edits =
            edits_in(&edited, &parts[0].edits, &setters, (&request.held, &request.limits), &mut |_| Ok(()))
                .unwrap();
        let expected = format!("shared.yaml: {}{}", line("a", "v2"), line("b", "9"));
        assert_eq!(applied(&edits, &edited), [expected]);
        let interrupted =
            edits_in(&edited, &parts[0].edits, &setters, (&request.held, &request.limits), &mut |_| {
                Err(Interrupt::Cancelled)
            });
        assert_eq!(interrupted.unwrap_err(), Interrupt::Cancelled);
    }
}
