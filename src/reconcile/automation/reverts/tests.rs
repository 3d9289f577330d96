//! Random histories, in which each run sees nothing but the status and two trees.

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
const FILES: usize = 5;

/// A step of a history.
#[derive(Clone, Debug)]
enum Step {
    /// Another author sets the value of a file.
    Edit { file: usize, value: u8 },
    /// Another author moves a file.
    Move { file: usize, to: usize },
    /// Another author adds a file with a marker, and a value that no other has.
    Add { file: usize, policy: usize },
    /// Another author takes the branch back to an earlier tree.
    ForcePush { back: usize },
    /// A policy selects a newer image.
    Select { policy: usize },
    /// The automation runs, or a process that has nothing but the status.
    Run,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..FILES, 0..6_u8).prop_map(|(file, value)| Step::Edit { file, value }),
        1 => (0..FILES, 0..FILES).prop_map(|(file, to)| Step::Move { file, to }),
        2 => (0..FILES, 0..2_usize).prop_map(|(file, policy)| Step::Add { file, policy }),
        1 => (1..5_usize).prop_map(|back| Step::ForcePush { back }),
        2 => (0..2_usize).prop_map(|policy| Step::Select { policy }),
        5 => Just(Step::Run),
    ]
}

/// The policy and the value of each file.
type Files = BTreeMap<usize, (usize, String)>;

fn tree(files: &Files) -> MemoryTree {
    let text = |(policy, value): &(usize, String)| {
        format!("a: \"{value}\" # {{\"$imagepolicy\": \"n:{}:tag\"}}\n", POLICIES[*policy])
    };
    MemoryTree(files.iter().map(|(file, marker)| (format!("{file}.yaml"), text(marker))).collect())
}

/// A branch, and an automation of its.
struct World {
    mode: OnRevert,
    tags: [u32; 2],
    files: Files,
    history: Vec<Files>,
    status: StatusBaseline,
    /// The tree that the last run left, and its tags.
    last: Option<(Files, [u32; 2])>,
    /// The files that are held by the rules, which this test applies by itself.
    held: BTreeSet<usize>,
    added: u32,
}

impl World {
    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Edit { file, value } => {
                let older =
                    self.tags.iter().min().copied().unwrap_or_default().saturating_sub(u32::from(value));
                self.files.entry(file).and_modify(|marker| marker.1 = older.to_string());
            }
            Step::Move { file, to } => {
                if !self.files.contains_key(&to)
                    && let Some(marker) = self.files.remove(&file)
                {
                    self.files.insert(to, marker);
                }
            }
            Step::Add { file, policy } => {
                self.added += 1;
                let value = format!("new{}", self.added);
                self.files.entry(file).or_insert((policy, value));
            }
            Step::ForcePush { back } => {
                if let Some(earlier) = self.history.iter().rev().nth(back) {
                    self.files = earlier.clone();
                }
            }
            Step::Select { policy } => self.tags[policy] += 1,
            Step::Run => return self.run(),
        }
        self.history.push(self.files.clone());
    }

    /// Returns the files whose values the rules hold.
    fn expected(&self) -> BTreeSet<usize> {
        let Some((before, tags)) = &self.last else { return BTreeSet::new() };
        let is_open = |policy: usize| self.mode == OnRevert::Pause || tags[policy] == self.tags[policy];
        let is_named = |policy: usize| {
            let name = POLICIES[policy];
            self.status.held.as_ref().is_some_and(|held| held.policies.as_ref().unwrap().contains_key(name))
        };
        let is_gone = |(file, marker): &(&usize, &(usize, String))| {
            self.files.get(*file).is_none_or(|now| now.0 != marker.0)
        };
        let gone: Vec<&(usize, String)> = before.iter().filter(is_gone).map(|(_, marker)| marker).collect();
        let mut held = BTreeSet::new();
        for (file, (policy, value)) in &self.files {
            let (then, wanted) = (tags[*policy].to_string(), self.tags[*policy].to_string());
            let was = match before.get(file).filter(|was| was.0 == *policy) {
                Some((_, was)) => vec![was],
                None => gone.iter().filter(|marker| marker.0 == *policy).map(|(_, was)| was).collect(),
            };
            let is_reverted = |was: &&String| if **was == then { *value != then } else { is_named(*policy) };
            if *value != wanted && is_open(*policy) && was.iter().any(is_reverted) {
                held.insert(*file);
            }
        }
        let taken_back: BTreeSet<_> = held.iter().map(|file| self.files[file].clone()).collect();
        let is_new = |file: &usize, policy: usize| before.get(file).is_none_or(|was| was.0 != policy);
        let copies =
            self.files.iter().filter(|(file, marker)| is_new(file, marker.0) && taken_back.contains(*marker));
        held.extend(copies.map(|(file, _)| *file).collect::<Vec<_>>());
        held
    }

    fn run(&mut self) {
        let expected = self.expected();
        let name = |policy: &str| ObjectName { namespace: "n".to_owned(), name: policy.to_owned() };
        let image = |policy: usize| ImageReference::parse(&format!("app:{}", self.tags[policy])).unwrap();
        let states = [0, 1].map(|policy| (name(POLICIES[policy]), PolicyState::Image(image(policy))));
        let mut request = UpdateRequest { setters: Setters::new(states.into()), ..UpdateRequest::default() };
        let (now, before) = (tree(&self.files), self.last.as_ref().map(|(files, _)| tree(files)));
        let commit = |digit: &str| digit.repeat(40).parse().unwrap();
        let baseline = before.as_ref().map(|tree| Baseline {
            commit: commit("1"),
            tip: commit("2"),
            author: &|| None,
            note: None,
            tree: BaselineTree::Here(tree),
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
        let changed: BTreeSet<String> = found.edits.iter().map(|edit| edit.key.to_string()).collect();
        for (file, (policy, value)) in &mut self.files {
            let wanted = self.tags[*policy].to_string();
            let is_changed = changed.contains(&format!("{file}.yaml"));
            assert_eq!(is_changed, *value != wanted && !expected.contains(file), "{file} {value} {wanted}");
            if is_changed {
                *value = wanted;
            }
        }
        // The next run may be in another process.
        let super::RevertOutcome::Known(holds) = reverts.outcome(true) else { panic!("it holds or pauses") };
        let held = HeldRecord::from_message(&holds.message());
        let images = [0, 1].map(|policy| {
            let tag = self.tags[policy].to_string();
            (POLICIES[policy].to_owned(), ImageRef { name: "app".to_owned(), tag, digest: None })
        });
        self.status = StatusBaseline { images: images.into(), held };
        self.last = Some((self.files.clone(), self.tags));
        self.held = expected;
        self.history.push(self.files.clone());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn in_any_history_the_rules_alone_decide(steps in vec(step(), 1..40), is_pause in any::<bool>()) {
        let mode = if is_pause { OnRevert::Pause } else { OnRevert::Hold };
        let files: Files = (0..3).map(|file| (file, (file % 2, "1".to_owned()))).collect();
        let mut world = World {
            mode,
            tags: [9, 9],
            history: vec![files.clone()],
            files,
            status: StatusBaseline::default(),
            last: None,
            held: BTreeSet::new(),
            added: 0,
        };
        for step in &steps {
            world.apply(step);
        }
        // Without another change, a run holds what the one before it held, and nothing else.
        world.run();
        let held = world.held.clone();
        world.run();
        prop_assert_eq!(world.held, held);
    }
}
