//! Random histories, in which each run sees nothing but the status and two trees.
//!
//! The test judges a run by what the authors did, not by the trees: it follows each marker by a number of its own, over moves and
//! force pushes, and knows who wrote its value last.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;
use tagboat_api::settings::OnRevert;
use tagboat_api::{ImageRef, ObjectName};

use super::{HeldRecord, Reverts, StatusBaseline};
use crate::git::{Baseline, BaselineTree, ProposalTrees};
use crate::reference::ImageReference;
use crate::update::reverts::testing::MemoryTree;
use crate::update::{MarkerIndex, PolicyState, Setters, UpdateRequest, plan};

const POLICIES: [&str; 2] = ["p", "q"];

/// A step of a history.
#[derive(Clone, Debug)]
enum Step {
    /// Another author sets the value of a marker to an older tag.
    Edit { marker: usize, back: u32 },
    /// Another author sets the value of a marker to the wanted tag.
    Accept { marker: usize },
    /// Another author moves the file of a marker.
    Move { marker: usize },
    /// Another author adds a file with a marker, and a value that no other has.
    Add { policy: usize },
    /// Another author copies the file of a marker.
    Copy { marker: usize },
    /// Another author takes the branch back to an earlier tree.
    ForcePush { back: usize },
    /// A policy selects a newer image.
    Select { policy: usize },
    /// The automation runs, or a process that has nothing but the status.
    Run(Fault),
    /// The status is lost.
    Forget,
}

/// A defect of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// The process is killed between its push and its status.
    Killed,
    /// The server does not have the commit of the last run.
    NoBaseline,
}

fn step() -> impl Strategy<Value = Step> {
    let fault = prop_oneof![6 => Just(Fault::None), 1 => Just(Fault::Killed), 1 => Just(Fault::NoBaseline)];
    prop_oneof![
        4 => (0..8_usize, 1..4_u32).prop_map(|(marker, back)| Step::Edit { marker, back }),
        1 => (0..8_usize).prop_map(|marker| Step::Accept { marker }),
        1 => (0..8_usize).prop_map(|marker| Step::Move { marker }),
        2 => (0..2_usize).prop_map(|policy| Step::Add { policy }),
        1 => (0..8_usize).prop_map(|marker| Step::Copy { marker }),
        1 => (1..6_usize).prop_map(|back| Step::ForcePush { back }),
        3 => (0..2_usize).prop_map(|policy| Step::Select { policy }),
        7 => fault.prop_map(Step::Run),
    ]
}

/// Steps in which only files appear, and no other value changes.
fn step_without_others() -> impl Strategy<Value = Step> {
    let fault = prop_oneof![4 => Just(Fault::None), 1 => Just(Fault::Killed)];
    prop_oneof![
        2 => (0..2_usize).prop_map(|policy| Step::Add { policy }),
        3 => (0..2_usize).prop_map(|policy| Step::Select { policy }),
        5 => fault.prop_map(Step::Run),
        1 => Just(Step::Forget),
    ]
}

/// A marker, alone in a file or beside all others.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Marker {
    policy: usize,
    /// The number of its file, or of its key if there is one file.
    file: usize,
    value: String,
}

/// The record that the automation keeps of a marker.
#[derive(Clone, Debug, Default)]
struct Record {
    /// True if a run has seen it.
    is_known: bool,
    /// True if the last run left the wanted value there.
    is_ours: bool,
    /// The tag that was taken back, and is not to be written.
    taken: Option<u32>,
    /// True if the last run held it, because it may be one that moved.
    is_unclear: bool,
    /// True if its file has moved since the last run.
    has_moved: bool,
    /// The value that the last run left.
    left: String,
}

type Markers = BTreeMap<usize, Marker>;

/// The files of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// Each marker has one.
    Many,
    /// All markers are in one.
    One,
}

impl Layout {
    /// Returns the file of a marker, and its line there.
    fn place(self, Marker { policy, file, value }: &Marker) -> (String, String) {
        let (path, key) = match self {
            Self::Many => (format!("{file}.yaml"), "a".to_owned()),
            Self::One => ("all.yaml".to_owned(), format!("k{file}")),
        };
        let policy = POLICIES[*policy];
        (path, format!("{key}: \"{value}\" # {{\"$imagepolicy\": \"n:{policy}:tag\"}}\n"))
    }

    fn tree(self, markers: &Markers) -> MemoryTree {
        let mut files = BTreeMap::<String, String>::new();
        for (path, line) in markers.values().map(|marker| self.place(marker)) {
            files.entry(path).or_default().push_str(&line);
        }
        MemoryTree(files)
    }
}

/// A branch, and an automation of its.
struct World {
    mode: OnRevert,
    layout: Layout,
    tags: [u32; 2],
    markers: Markers,
    history: Vec<Markers>,
    records: BTreeMap<usize, Record>,
    /// The next number of a marker, of a file, and of a new value.
    next: usize,
    /// The last run that is known.
    ///
    /// It has tags, a tree, and the note of its push if its status was lost.
    last: Option<([u32; 2], MemoryTree, Option<String>)>,
    /// The policies of which a marker has disappeared since the last run.
    gone: BTreeSet<usize>,
    status: StatusBaseline,
    /// True unless a run could not see its baseline.
    ///
    /// New markers may be held too after that.
    is_certain: bool,
    /// The markers that the last run did not write.
    held: BTreeSet<usize>,
}

impl World {
    fn new(mode: OnRevert, layout: Layout) -> Self {
        let marker = |number| Marker { policy: number % 2, file: number, value: "1".to_owned() };
        let markers: Markers = (0..3).map(|number| (number, marker(number))).collect();
        Self {
            mode,
            layout,
            tags: [9, 9],
            history: vec![markers.clone()],
            records: BTreeMap::new(),
            next: markers.len(),
            markers,
            last: None,
            gone: BTreeSet::new(),
            status: StatusBaseline::default(),
            is_certain: true,
            held: BTreeSet::new(),
        }
    }

    fn number(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    /// Returns the number of the marker at a position, if there are any.
    fn nth(&self, position: usize) -> Option<usize> {
        self.markers.keys().nth(position % self.markers.len().max(1)).copied()
    }

    /// Another author sets a value.
    fn touch(&mut self, marker: usize, value: String) {
        self.markers.get_mut(&marker).unwrap().value = value;
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Edit { marker, back } => {
                let Some(marker) = self.nth(marker) else { return };
                let tag = self.tags[self.markers[&marker].policy].saturating_sub(back);
                self.touch(marker, tag.to_string());
            }
            Step::Accept { marker } => {
                let Some(marker) = self.nth(marker) else { return };
                self.touch(marker, self.tags[self.markers[&marker].policy].to_string());
            }
            Step::Move { marker } => {
                let (Some(marker), file) = (self.nth(marker), self.number()) else { return };
                let moved = self.markers.get_mut(&marker).unwrap();
                moved.file = file;
                self.gone.insert(moved.policy);
                self.records.entry(marker).or_default().has_moved = true;
            }
            Step::Add { policy } => {
                let number = self.number();
                let value = format!("new{number}");
                self.markers.insert(number, Marker { policy, file: number, value });
            }
            Step::Copy { marker } => {
                let (Some(marker), number) = (self.nth(marker), self.number()) else { return };
                let copy = Marker { file: number, ..self.markers[&marker].clone() };
                self.markers.insert(number, copy);
            }
            Step::ForcePush { back } => {
                let Some(earlier) = self.history.iter().rev().nth(back).cloned() else { return };
                for (number, marker) in &self.markers {
                    if earlier.get(number).is_none_or(|before| before.file != marker.file) {
                        self.gone.insert(marker.policy);
                        self.records.entry(*number).or_default().has_moved = true;
                    }
                }
                self.markers = earlier;
            }
            Step::Select { policy } => self.tags[policy] += 1,
            Step::Run(fault) => return self.run(fault),
            Step::Forget => {
                (self.last, self.status) = (None, StatusBaseline::default());
                self.records.clear();
                self.is_certain = true;
            }
        }
        self.history.push(self.markers.clone());
    }

    /// Returns the markers whose value was taken back, each with its tag.
    fn taken_back(&self, is_blind: bool) -> BTreeMap<usize, u32> {
        let Some((tags, ..)) = self.last else { return BTreeMap::new() };
        let known = |number: &usize| self.records.get(number).filter(|record| record.is_known);
        let mut taken = BTreeMap::new();
        for (number, marker) in &self.markers {
            let Some(record) = known(number) else { continue };
            // Without the baseline, a change is not known from a value that was never ours, once another image is selected.
            let is_seen = !is_blind || tags[marker.policy] == self.tags[marker.policy];
            let is_touched = is_seen && record.is_ours && marker.value != record.left;
            if let Some(tag) = record.taken.or(is_touched.then(|| tags[marker.policy])) {
                taken.insert(*number, tag);
            }
        }
        // A pause outlasts other images, and a hold does not.
        let lasts = |(number, tag): &(usize, u32)| {
            let Marker { policy, value, .. } = &self.markers[number];
            let wanted = self.tags[*policy];
            *value != wanted.to_string() && (self.mode == OnRevert::Pause || *tag == wanted)
        };
        let mut taken: BTreeMap<usize, u32> = taken.into_iter().filter(lasts).collect();
        for (number, marker) in self.markers.iter().filter(|(number, _)| known(number).is_none()) {
            let is_original = |other: &Marker| (other.policy, &other.value) == (marker.policy, &marker.value);
            let original = taken.iter().find(|(original, _)| is_original(&self.markers[original]));
            if let Some(tag) = original.map(|(_, tag)| *tag) {
                taken.insert(*number, tag);
            }
        }
        taken
    }

    /// Returns true if a marker must be written, by the history alone.
    fn must_be_written(&self, number: usize, taken: &BTreeMap<usize, u32>) -> bool {
        let Marker { policy, value, .. } = &self.markers[&number];
        let record = self.records.get(&number).cloned().unwrap_or_default();
        if self.last.is_none() {
            return true;
        }
        if !self.is_certain || taken.contains_key(&number) {
            return false;
        }
        if record.is_known {
            // Its own value is there, or its hold is over.
            !record.has_moved && !record.is_unclear
        } else {
            // It is new, unless one that disappeared may have moved there.
            let is_unclear = |other: &usize| self.records.get(other).is_some_and(|record| record.is_unclear);
            let is_kept = |other: &usize| taken.contains_key(other) || is_unclear(other);
            let is_copy = self.markers.iter().any(|(other, marker)| marker.value == *value && is_kept(other));
            !is_copy && !self.gone.contains(policy)
        }
    }

    fn run(&mut self, fault: Fault) {
        let is_blind = fault == Fault::NoBaseline && self.last.is_some();
        self.is_certain &= !is_blind;
        let taken = self.taken_back(is_blind);
        let (written, status, note) = self.write(is_blind);
        for (number, Marker { policy, value, .. }) in &self.markers {
            let wanted = self.tags[*policy].to_string();
            let is_open = *value != wanted && !written.contains(number);
            assert!(
                !(written.contains(number) && taken.contains_key(number)),
                "a revert is overwritten: {number}"
            );
            assert!(
                !(is_open && self.must_be_written(*number, &taken)),
                "a value is not written: {number} {value}"
            );
        }
        self.held = self.markers.keys().copied().filter(|number| !written.contains(number)).collect();
        self.held.retain(|number| {
            let Marker { policy, value, .. } = &self.markers[number];
            *value != self.tags[*policy].to_string()
        });
        for number in &written {
            let marker = self.markers.get_mut(number).unwrap();
            marker.value = self.tags[marker.policy].to_string();
        }
        let is_killed = fault == Fault::Killed;
        // A process that is killed before a push leaves nothing.
        if is_killed && written.is_empty() {
            return;
        }
        let note = note.filter(|_| is_killed);
        if !is_killed {
            self.status = status;
        }
        self.last = Some((self.tags, self.layout.tree(&self.markers), note));
        self.records.clear();
        for (number, Marker { policy, value, .. }) in &self.markers {
            let is_ours = *value == self.tags[*policy].to_string();
            let taken = taken.get(number).copied().filter(|_| !is_ours);
            let is_unclear = !is_ours && taken.is_none();
            let left = value.clone();
            let record = Record { is_known: true, is_ours, taken, is_unclear, has_moved: false, left };
            self.records.insert(*number, record);
        }
        self.gone.clear();
        self.history.push(self.markers.clone());
    }

    /// Returns the markers that the automation writes, its status, and its note.
    fn write(&self, is_blind: bool) -> (BTreeSet<usize>, StatusBaseline, Option<String>) {
        let name = |policy: &str| ObjectName { namespace: "n".to_owned(), name: policy.to_owned() };
        let image = |policy: usize| ImageReference::parse(&format!("app:{}", self.tags[policy])).unwrap();
        let states = [0, 1].map(|policy| (name(POLICIES[policy]), PolicyState::Image(image(policy))));
        let mut request = UpdateRequest { setters: Setters::new(states.into()), ..UpdateRequest::default() };
        let now = self.layout.tree(&self.markers);
        let commit = |digit: &str| digit.repeat(40).parse().unwrap();
        let baseline = self.last.as_ref().map(|(_, tree, note)| Baseline {
            commit: Some(commit("1")),
            tip: commit("2"),
            author: &|| None,
            note: note.as_deref(),
            tree: if is_blind { BaselineTree::Unavailable("gone") } else { BaselineTree::Here(tree) },
        });
        let trees = ProposalTrees { tree: &now, baseline };
        let mut reverts = Reverts::new(Some(self.mode), self.status.clone(), BTreeSet::new());
        let mut index = MarkerIndex::default();
        let mut found = plan(&now, &request, &mut index, &mut |_| Ok(())).unwrap();
        let held = reverts.decide(&trees, &found, &request, "n", &mut |_| Ok(())).unwrap();
        if let Some(held) = held {
            request.held = held;
            found = plan(&now, &request, &mut index, &mut |_| Ok(())).unwrap();
        }
        let mut after = now.clone();
        for edit in &found.edits {
            let path = edit.entry.path.to_string();
            let new = edit.apply(now.0[&path].as_bytes()).unwrap();
            after.0.insert(path, String::from_utf8(new).unwrap());
        }
        let is_written = |(_, marker): &(&usize, &Marker)| {
            let (path, line) = self.layout.place(marker);
            !after.0[&path].contains(&line)
        };
        let written = self.markers.iter().filter(is_written).map(|(number, _)| *number).collect();
        let images = [0, 1].map(|policy| {
            let tag = self.tags[policy].to_string();
            (POLICIES[policy].to_owned(), ImageRef { name: "app".to_owned(), tag, digest: None })
        });
        let images = BTreeMap::from(images);
        let note = reverts.note(&images);
        // The next run may be in another process.
        let super::RevertOutcome::Known(holds) = reverts.outcome(false) else { panic!("it holds or pauses") };
        let held = holds.is_held().then(|| HeldRecord::from_message(&holds.message()).unwrap());
        (written, StatusBaseline { images, held }, note)
    }
}

fn world() -> impl Strategy<Value = (OnRevert, Layout)> {
    let mode = prop_oneof![Just(OnRevert::Hold), Just(OnRevert::Pause)];
    (mode, prop_oneof![Just(Layout::Many), Just(Layout::One)])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Reverts stay until their hold ends, and each new marker is written.
    #[test]
    fn in_any_history_reverts_stay_and_all_else_is_written(
        steps in vec(prop_oneof![20 => step(), 1 => Just(Step::Forget)], 1..60),
        (mode, layout) in world(),
    ) {
        let mut world = World::new(mode, layout);
        for step in &steps {
            world.apply(step);
        }
        // Without another change, a run holds what the one before it held, and nothing else.
        world.run(Fault::None);
        let held = world.held.clone();
        world.run(Fault::None);
        prop_assert_eq!(world.held, held);
    }

    #[test]
    fn without_a_change_by_others_nothing_is_held(
        steps in vec(step_without_others(), 1..40),
        (mode, layout) in world(),
    ) {
        let mut world = World::new(mode, layout);
        for step in steps.iter().chain([&Step::Run(Fault::None)]) {
            world.apply(step);
            if let Step::Run(_) = step {
                prop_assert!(world.held.is_empty(), "{:?}", world.held);
            }
        }
        prop_assert_eq!(world.status.held, None);
    }
}
