//! Tables of changes by others between two trees.

use std::collections::{BTreeMap, BTreeSet};

use tagboat_api::ObjectName;
use tagboat_api::settings::OnRevert;

use super::testing::MemoryTree;
use super::{Candidate, HeldBefore, RevertQuery, candidates, held_values, reverted};
use crate::reference::ImageReference;
use crate::update::{MarkerIndex, PolicyState, Setters, UpdateRequest, plan};

fn name(name: &str) -> ObjectName {
    ObjectName { namespace: "n".to_owned(), name: name.to_owned() }
}

fn images(images: &[(&str, &str)]) -> BTreeMap<ObjectName, ImageReference> {
    let image = |tag: &str| ImageReference::parse(&format!("app:{tag}")).unwrap();
    images.iter().map(|(policy, tag)| (name(policy), image(tag))).collect()
}

/// A tree of files, where `@p` marks the tag of policy p.
fn tree(files: &[(&str, &str)]) -> MemoryTree {
    let marker = |text: &str| {
        let text = text.replace("@p", r#"# {"$imagepolicy": "n:p:tag"}"#);
        text.replace("@q", r#"# {"$imagepolicy": "n:q:tag"}"#)
            .replace("@n", r#"# {"$imagepolicy": "n:p:name"}"#)
    };
    MemoryTree(files.iter().map(|(path, text)| ((*path).to_owned(), marker(text))).collect())
}

/// The trees and the tags of the last run and the present one.
struct Scene<'s> {
    before: &'s [(&'s str, &'s str)],
    now: &'s [(&'s str, &'s str)],
    wanted: &'s [(&'s str, &'s str)],
    mode: OnRevert,
    held: &'s [&'s str],
}

/// The last run wanted 2 of p and q.
const SCENE: Scene<'_> =
    Scene { before: &[], now: &[], wanted: &[("p", "2"), ("q", "2")], mode: OnRevert::Hold, held: &[] };

impl Scene<'_> {
    /// Returns the reverted values as `FILE:LINE`, and the tree after the update.
    fn run(&self) -> (Vec<String>, MemoryTree) {
        let (found, after) = self.candidates();
        (found.iter().map(|found| format!("{}:{}", found.file, found.line)).collect(), after)
    }

    /// Returns the reverted values, and the tree after the update.
    fn candidates(&self) -> (Vec<Candidate>, MemoryTree) {
        let (before, now) = (tree(self.before), tree(self.now));
        let states = images(self.wanted).into_iter().map(|(name, image)| (name, PolicyState::Image(image)));
        let setters = Setters::new(states.collect());
        let mut request = UpdateRequest { setters, ..UpdateRequest::default() };
        let query = RevertQuery {
            mode: self.mode,
            images: images(&[("p", "2"), ("q", "2")]),
            held: HeldBefore::Policies(self.held.iter().map(|policy| name(policy)).collect()),
            exempt: BTreeSet::new(),
        };
        let mut index = MarkerIndex::default();
        let found = plan(&now, &request, &mut index, &mut |_| Ok(())).unwrap();
        let candidates = candidates(&now, &found, &request, &query, &mut |_| Ok(())).unwrap();
        let found = reverted(&candidates, (&now, &before), &request, &query.held, &mut |_| Ok(())).unwrap();
        let found = found.unwrap();
        request.held = held_values(&found);
        let plan = plan(&now, &request, &mut index, &mut |_| Ok(())).unwrap();
        let mut after = now.clone();
        for edit in &plan.edits {
            let path = edit.entry.path.to_string();
            let new = edit.apply(now.0[&path].as_bytes()).unwrap();
            after.0.insert(path, String::from_utf8(new).unwrap());
        }
        (found, after)
    }
}

#[test]
fn a_value_that_was_the_wanted_one_and_is_not_any_more_is_reverted() {
    let two = &[("a.yaml", "a: '2' @p\n")][..];
    let one = &[("a.yaml", "a: '1' @p\n")][..];
    for (before, now, wanted, mode, held, expected) in [
        (two, one, "2", OnRevert::Hold, &[][..], true),
        (two, one, "2", OnRevert::Pause, &[], true),
        (two, one, "2", OnRevert::Overwrite, &[], true),
        // Another image ends a hold, but no pause.
        (two, one, "3", OnRevert::Hold, &[], false),
        (two, one, "3", OnRevert::Pause, &[], true),
        // Nothing was changed by others.
        (one, one, "2", OnRevert::Hold, &[], false),
        (two, two, "3", OnRevert::Pause, &[], false),
        // It was reverted before the last run.
        (one, one, "2", OnRevert::Hold, &["p"], true),
        (one, one, "3", OnRevert::Hold, &["p"], false),
        (one, one, "3", OnRevert::Pause, &["p"], true),
        (one, one, "2", OnRevert::Hold, &["q"], false),
    ] {
        let scene = Scene { before, now, wanted: &[("p", wanted)], mode, held };
        let (found, after) = scene.run();
        assert_eq!(found == ["a.yaml:1"], expected, "{before:?} {now:?} {wanted} {mode:?} {held:?}");
        let left = if expected { tree(now) } else { tree(&[("a.yaml", &format!("a: '{wanted}' @p\n"))]) };
        assert_eq!(after, left);
    }
}

#[test]
fn markers_are_followed_when_they_move_and_new_ones_are_written() {
    let entry = |name: &str, tag: &str| format!("- name: {name}\n  tag: '{tag}' @p\n");
    let list =
        |entries: &[(&str, &str)]| entries.iter().map(|(name, tag)| entry(name, tag)).collect::<String>();
    let (before, reordered) = (list(&[("x", "2"), ("y", "2")]), list(&[("y", "2"), ("x", "1")]));
    for (what, before, now, expected) in [
        (
            "entries of a list",
            &[("a.yaml", before.as_str())][..],
            &[("a.yaml", reordered.as_str())][..],
            &["a.yaml:4"][..],
        ),
        ("a file that moved", &[("a.yaml", "a: '2' @p\n")], &[("b/c.yaml", "a: '1' @p\n")], &["b/c.yaml:1"]),
        ("a key that moved", &[("a.yaml", "a: '2' @p\n")], &[("a.yaml", "b:\n  c: '1' @p\n")], &["a.yaml:2"]),
        // It moved to a place with the wanted value, so the one that is new is a copy of nothing.
        ("a new marker", &[("a.yaml", "a: '2' @p\n")], &[("a.yaml", "a: '2' @p\nb: '1' @p\n")], &[]),
        (
            "a new file",
            &[("a.yaml", "a: '2' @p\n")],
            &[("a.yaml", "a: '2' @p\n"), ("b.yaml", "a: '1' @p\n")],
            &[],
        ),
        (
            "a copy of a reverted file",
            &[("a.yaml", "a: '2' @p\n")],
            &[("a.yaml", "a: '1' @p\n"), ("b.yaml", "a: '1' @p\n"), ("c.yaml", "a: '0' @p\n")],
            &["a.yaml:1", "b.yaml:1"],
        ),
        (
            "a new marker beside a held one",
            &[("a.yaml", "a: '2' @p\n")],
            &[("a.yaml", "a: '1' @p\nb: '0' @p\n")],
            &["a.yaml:1"],
        ),
        ("another setter", &[("a.yaml", "a: '2' @p\n")], &[("a.yaml", "a: '1' @q\n")], &[]),
        (
            "a policy beside it",
            &[("a.yaml", "a: '2' @p\nb: '2' @q\n")],
            &[("a.yaml", "a: '1' @p\nb: '2' @q\n")],
            &["a.yaml:1"],
        ),
        (
            "an object that is gone",
            &[("a.yaml", "kind: A\na: '2' @p\n"), ("b.yaml", "b: '2' @q\n")],
            &[("b.yaml", "b: '1' @q\n")],
            &["b.yaml:1"],
        ),
        (
            "a file that could not be parsed, whose values are not known",
            &[("a.yaml", "a: [ @p\n")],
            &[("a.yaml", "a: '1' @p\n")],
            &["a.yaml:1"],
        ),
        ("no file", &[], &[("a.yaml", "a: '1' @p\n")], &[]),
        // It counted as moved.
        (
            "a new marker beside a file that cannot be parsed any more",
            &[("a.yaml", "a: '2' @p\n")],
            &[("a.yaml", "a: [ '2' @p\n"), ("b.yaml", "b: '0' @p\n")],
            &[],
        ),
        (
            "a marker that moved out of a file that cannot be parsed any more",
            &[("a.yaml", "a: '2' @p\nb: '2' @q\n")],
            &[("a.yaml", "b: [ '2' @q\n"), ("b.yaml", "a: '1' @p\n")],
            &["b.yaml:1"],
        ),
        (
            "two that moved",
            &[("a.yaml", "a: '2' @p\nb: '0' @p\n")],
            &[("b.yaml", "x: '1' @p\n")],
            &["b.yaml:1"],
        ),
    ] {
        let (found, after) = Scene { before, now, ..SCENE }.run();
        assert_eq!(found, expected, "{what}");
        // All others are written.
        let left = after.0.values().flat_map(|text| text.lines()).filter(|line| line.contains("imagepolicy"));
        let held = left.filter(|line| !line.contains("'2'")).count();
        assert_eq!(held, expected.len(), "{what}: {after:?}");
    }
}

/// The commits and the author of the move were named as those of the revert.
#[test]
fn a_held_marker_that_moves_or_is_copied_was_reverted_before() {
    let list = |name: &str| format!("- name: {name}\n  tag: '1' @p\n");
    let (old, renamed) = (list("x"), list("y"));
    let one = "a: '1' @p\n";
    for (what, before, now, expected) in [
        ("a file that moved", &[("a.yaml", one)][..], &[("b.yaml", one)][..], &[("b.yaml", true)][..]),
        ("another name", &[("a.yaml", old.as_str())], &[("a.yaml", renamed.as_str())], &[("a.yaml", true)]),
        (
            "a copy",
            &[("a.yaml", one)],
            &[("0.yaml", one), ("a.yaml", one)],
            &[("0.yaml", true), ("a.yaml", true)],
        ),
        (
            "a copy of a file that moved",
            &[("a.yaml", one)],
            &[("b.yaml", one), ("c.yaml", one)],
            &[("b.yaml", true), ("c.yaml", true)],
        ),
        ("a move with the revert", &[("a.yaml", "a: '2' @p\n")], &[("b.yaml", one)], &[("b.yaml", false)]),
        (
            "a copy of a new revert",
            &[("a.yaml", "a: '2' @p\n")],
            &[("a.yaml", one), ("b.yaml", one)],
            &[("a.yaml", false), ("b.yaml", false)],
        ),
    ] {
        let (found, _) = Scene { before, now, held: &["p"], ..SCENE }.candidates();
        let found: Vec<(&str, bool)> =
            found.iter().map(|found| (&*found.file, found.was_reverted_before)).collect();
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn of_two_files_with_one_content_each_is_decided_alone() {
    let before = &[("a.yaml", "a: '2' @p\n"), ("b.yaml", "a: '1' @p\n")];
    let now = &[("a.yaml", "a: '1' @p\n"), ("b.yaml", "a: '1' @p\n")];
    let (found, after) = Scene { before, now, ..SCENE }.run();
    assert_eq!(found, ["a.yaml:1"]);
    assert_eq!(after, tree(&[("a.yaml", "a: '1' @p\n"), ("b.yaml", "a: '2' @p\n")]));
}

/// All values of a file that were the same as a held one were held.
#[test]
fn a_value_that_nobody_took_back_is_written_beside_a_held_one_that_is_the_same() {
    let text = |a: &str, b: &str| format!("a: '{a}' @p\nb: '{b}' @p\n");
    let now = text("2", "2");
    for (before, wanted, expected) in [
        // The marker `b` is paused, and a person gave it the former image.
        (text("2", "1"), "3", &["a.yaml:2"][..]),
        (text("1", "2"), "3", &["a.yaml:1"]),
        (text("1", "1"), "3", &["a.yaml:1", "a.yaml:2"]),
        (text("2", "2"), "3", &[]),
        (text("2", "1"), "2", &[]),
    ] {
        let (before, now) = ([("a.yaml", before.as_str())], [("a.yaml", now.as_str())]);
        let scene = Scene {
            before: &before,
            now: &now,
            wanted: &[("p", wanted)],
            mode: OnRevert::Pause,
            held: &["p"],
        };
        let (found, after) = scene.run();
        assert_eq!(found, expected, "{before:?}");
        let value = |line: &str| if expected.contains(&line) { "2" } else { wanted };
        let left = text(value("a.yaml:1"), value("a.yaml:2"));
        assert_eq!(after, tree(&[("a.yaml", &left)]), "{before:?}");
    }
}
