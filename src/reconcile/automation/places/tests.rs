use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::*;
use crate::git::SyncError;
use crate::git::checkout::CheckoutReference;
use crate::git::outcome::Push;
use crate::reconcile::automation::conclusion::Stage;
use crate::reference::ImageReference;
use crate::update::{Entry, EntryKind, PolicyState, Setters, TreeVisitor};

const OLD: &str = "1.0.0";
const NEW: &str = "2.0.0";
const SOURCE: &str = "1111111111111111111111111111111111111111";
const PUSHED: &str = "2222222222222222222222222222222222222222";

/// Files in memory, by path.
#[derive(Clone, Default)]
struct Tree(BTreeMap<String, String>);

impl FileTree for Tree {
    fn walk(&self, under: &TreePath, visitor: &mut dyn TreeVisitor) -> Result<(), TreeError> {
        let paths = self.0.keys().map(|path| TreePath::from_bytes(path.as_bytes()));
        for path in paths.filter(|path| under.is_root() || path.relative_to(under).is_some()) {
            if visitor.entry(Entry { path, kind: EntryKind::File, content: None }) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn kind(&self, path: &TreePath) -> Result<EntryKind, TreeError> {
        let is_directory = |file: &String| TreePath::from_bytes(file.as_bytes()).relative_to(path).is_some();
        if self.0.contains_key(&path.to_string()) {
            Ok(EntryKind::File)
        } else if self.0.keys().any(is_directory) {
            Ok(EntryKind::Directory)
        } else {
            Err(TreeError::NotFound { path: path.clone() })
        }
    }

    fn read(&self, entry: &Entry, _: usize, content: &mut Vec<u8>) -> Result<(), TreeError> {
        *content = self.0[&entry.path.to_string()].clone().into_bytes();
        Ok(())
    }

    fn contains(&self, _: &Entry, _: &[u8]) -> Result<bool, TreeError> {
        Ok(false)
    }
}

/// A tree with the files `apps/NAME.yaml`, with a marked line for each tag.
fn tree(files: &[(&str, &[&str])]) -> Tree {
    let line = |tag: &&str| format!("- tag: {tag} # {{\"$imagepolicy\": \"n:app:tag\"}}\n");
    let file = |(name, tags): &(&str, &[&str])| {
        (format!("apps/{name}.yaml"), tags.iter().map(line).collect::<String>())
    };
    Tree(files.iter().map(file).collect())
}

fn name(name: &str) -> ObjectName {
    ObjectName { namespace: "n".into(), name: name.into() }
}

fn update() -> UpdateRequest {
    let image = PolicyState::Image(ImageReference::parse(&format!("app:{NEW}")).unwrap());
    let setters = Setters::new(BTreeMap::from([(name("app"), image)])).only_for("n".to_owned());
    UpdateRequest { setters, path: Some("apps".to_owned()), ..UpdateRequest::default() }
}

fn origin(push: &str, previous: Option<ScannedPlaces>) -> ScanOrigin {
    ScanOrigin {
        automation: name("fleet"),
        source: name("fleet"),
        repository: "https://git.example/fleet".into(),
        target: Target {
            checkout: CheckoutReference::Branch("main".parse().unwrap()),
            push: push.parse().unwrap(),
            refspec: None,
            own_branches: None,
            options: Vec::new(),
        },
        previous: previous.map(Arc::new),
        observed: BTreeMap::new(),
        known_files: BTreeSet::new(),
        batch_size: 1,
    }
}

fn revision(commit: &str) -> Revision {
    Revision { reference: Some("refs/heads/main".parse().unwrap()), commit: commit.parse().unwrap() }
}

/// The scan of the tree for the commit, and of the other one.
fn scanned(origin: ScanOrigin, base: &Tree, checkout: Option<&Tree>) -> PlaceScan {
    let (mut scan, mut index) = (PlaceScan::new(origin), MarkerIndex::default());
    let checkout = checkout.map(|tree| tree as &dyn FileTree);
    scan.observe_source(&revision(SOURCE), checkout, &update(), &mut index, &mut |_| Ok(()));
    let request = UpdateRequest { own_markers: Some(scan.limits()), ..update() };
    let plan = plan(base, &request, &mut index, &mut |_| Ok(())).unwrap();
    scan.keep(plan.own_markers, base);
    scan
}

fn success(outcome: Outcome) -> Conclusion {
    Conclusion::Success { outcome, policies: BTreeMap::new() }
}

fn pushed(branch: &str, found: Option<Revision>) -> Conclusion {
    success(Outcome::Pushed(Push {
        source: revision(SOURCE),
        branch: branch.parse().unwrap(),
        commit: PUSHED.parse().unwrap(),
        refspec: None,
        message: String::new(),
        found,
    }))
}

fn unchanged() -> Conclusion {
    success(Outcome::NothingToCommit { source: revision(SOURCE) })
}

fn failed() -> Conclusion {
    Conclusion::stopped(Stage::Push, &SyncError::Cancelled)
}

fn finish(scan: PlaceScan, conclusion: &Conclusion) -> Option<ScannedPlaces> {
    scan.finish(conclusion, &ProposedPolicies::new(), "2026-01-01T00:00:05.9Z".parse().unwrap())
}

/// The value, the proposed value, and the former value of a written one.
type Row<'a> = (&'a str, Option<&'a str>, Option<&'a str>);

fn rows(scan: &ScannedPlaces) -> Vec<Row<'_>> {
    scan.places.iter().map(|place| (place.value.as_str(), place.proposed.as_deref(), former(place))).collect()
}

fn former(place: &Place) -> Option<&str> {
    place.written.as_ref().map(|written| written.former.as_str())
}

/// The places after a run on a file with an old and a current value.
fn after(conclusion: &Conclusion) -> Option<ScannedPlaces> {
    finish(scanned(origin("main", None), &tree(&[("a", &[OLD, NEW])]), None), conclusion)
}

#[test]
fn a_value_is_that_of_the_commit_if_it_was_pushed() {
    let not_pushed: [Row<'_>; 2] = [(OLD, None, None), (NEW, None, None)];
    let scan = after(&pushed("main", None)).unwrap();
    assert_eq!(rows(&scan), [(NEW, None, Some(OLD)), (NEW, None, None)]);
    assert_eq!(scan.revision, format!("main@sha1:{PUSHED}"));
    let commit = &scan.places[0].written.as_ref().unwrap().commit;
    assert_eq!((&*commit.id, &*commit.branch, &*commit.automation), (PUSHED, "main", "fleet"));
    assert_eq!(serde_json::to_value(&commit.time).unwrap(), "2026-01-01T00:00:05Z");
    for conclusion in [unchanged(), failed()] {
        let scan = after(&conclusion).unwrap();
        assert_eq!(rows(&scan), not_pushed, "{conclusion:?}");
        assert_eq!(scan.revision, format!("main@sha1:{SOURCE}"));
    }
    let first = &scan.places[0];
    assert_eq!((&*first.location(), &first.policy, first.field), ("apps/a.yaml:1", &name("app"), Field::Tag));
}

#[test]
fn a_run_without_a_scan_has_no_places() {
    for outcome in [Outcome::NothingNew, Outcome::DryRun { source: revision(SOURCE), refspec: None }] {
        assert_eq!(after(&success(outcome.clone())), None, "{outcome:?}");
    }
    let unscanned = PlaceScan::new(origin("main", None));
    assert_eq!(finish(unscanned, &failed()), None);
    // The plan of a later attempt failed.
    let mut reset = scanned(origin("main", None), &tree(&[("a", &[OLD])]), None);
    reset.reset();
    assert_eq!(finish(reset, &failed()), None);
    // The revision that is checked out could not be scanned.
    let mut broken = PlaceScan::new(origin("auto", None));
    let request = UpdateRequest { path: Some("..".to_owned()), ..update() };
    let mut index = MarkerIndex::default();
    let empty = Tree::default();
    broken.observe_source(&revision(SOURCE), Some(&empty), &request, &mut index, &mut |_| Ok(()));
    broken.keep(OwnMarkers::default(), &empty);
    assert_eq!(finish(broken, &unchanged()), None);
}

/// Formerly, the places of the last file below the path stayed.
#[test]
fn a_checkout_without_the_path_has_no_places() {
    let previous = after(&failed());
    let empty = Tree::default();
    let mut index = MarkerIndex::default();
    let mut scan = |push: &str, checkout: Option<&dyn FileTree>| {
        let mut scan = PlaceScan::new(origin(push, previous.clone()));
        scan.observe_source(&revision(SOURCE), checkout, &update(), &mut index, &mut |_| Ok(()));
        scan.keep(OwnMarkers::default(), &empty);
        finish(scan, &failed()).unwrap()
    };
    for scan in [scan("main", None), scan("auto", Some(&empty))] {
        assert_eq!((scan.places.len(), &scan.removed_files[..]), (0, &["apps/a.yaml".to_owned()][..]));
    }
    // The path is missing on the push branch only.
    let scan = scan("auto", Some(&tree(&[("a", &[OLD])])));
    assert_eq!((rows(&scan), scan.removed_files.len()), (vec![(OLD, None, None)], 0));
}

#[test]
fn a_commit_stays_while_the_value_is_unchanged() {
    let first = after(&pushed("main", None)).unwrap();
    for (tags, expected) in [
        (&[NEW, NEW][..], vec![(NEW, None, Some(OLD)), (NEW, None, None)]),
        (&["3.0.0", NEW], vec![("3.0.0", None, None), (NEW, None, None)]),
    ] {
        let next = scanned(origin("main", Some(first.clone())), &tree(&[("a", tags)]), None);
        assert_eq!(rows(&finish(next, &unchanged()).unwrap()), expected, "{tags:?}");
    }
}

#[test]
fn a_push_of_an_earlier_run_has_made_the_changes_since_the_last_scan() {
    let before = after(&failed()).unwrap();
    let next = || scanned(origin("main", Some(before.clone())), &tree(&[("a", &[NEW, NEW])]), None);
    let found = revision("3333333333333333333333333333333333333333");
    let scan = finish(next(), &pushed("main", Some(found.clone()))).unwrap();
    assert_eq!(rows(&scan), [(NEW, None, Some(OLD)), (NEW, None, None)]);
    assert_eq!(scan.revision, found.to_string());
    // Without a push, another person made them.
    assert_eq!(rows(&finish(next(), &unchanged()).unwrap()), [(NEW, None, None), (NEW, None, None)]);
    // Neither has a push of this run made them.
    let base = tree(&[("a", &[NEW, NEW]), ("b", &[OLD])]);
    let both = scanned(origin("main", Some(before.clone())), &base, None);
    let expected = [(NEW, None, None), (NEW, None, None), (NEW, None, Some(OLD))];
    assert_eq!(rows(&finish(both, &pushed("main", None)).unwrap()), expected);
}

/// Formerly, its commit was lost if the process was killed after the push.
#[test]
fn a_push_of_an_earlier_process_has_made_the_changes_since_the_last_reported_run() {
    let image = |tag: &str| ImageReference::parse(&format!("app:{tag}")).unwrap();
    for (observed, expected) in [(Some(OLD), Some(OLD)), (Some(NEW), None), (None, None)] {
        let observed = observed.map(|tag| (name("app"), image(tag))).into_iter().collect();
        let origin = ScanOrigin { observed, ..origin("main", None) };
        let scan = scanned(origin, &tree(&[("a", &[NEW])]), None);
        let scan = finish(scan, &pushed("main", Some(revision(PUSHED)))).unwrap();
        assert_eq!(rows(&scan), [(NEW, None, expected)]);
    }
    // Without a push, another person made them.
    let origin = ScanOrigin { observed: BTreeMap::from([(name("app"), image(OLD))]), ..origin("main", None) };
    let scan = scanned(origin, &tree(&[("a", &[NEW])]), None);
    assert_eq!(rows(&finish(scan, &unchanged()).unwrap()), [(NEW, None, None)]);
}

#[test]
fn a_value_on_another_branch_is_proposed() {
    let (old, new) = (tree(&[("a", &[OLD])]), tree(&[("a", &[NEW])]));
    let scan =
        |base: &Tree, checkout: Option<&Tree>, previous: Option<&ScannedPlaces>, conclusion: &Conclusion| {
            finish(scanned(origin("auto", previous.cloned()), base, checkout), conclusion).unwrap()
        };
    // The branch does not exist yet.
    let first = scan(&old, None, None, &pushed("auto", None));
    assert_eq!(rows(&first), [(OLD, Some(NEW), Some(OLD))]);
    assert_eq!(first.revision, format!("main@sha1:{SOURCE}"));
    assert_eq!(rows(&scan(&old, None, None, &failed())), [(OLD, None, None)]);
    // It exists, with or without the value.
    let second = scan(&new, Some(&old), Some(&first), &unchanged());
    assert_eq!(rows(&second), [(OLD, Some(NEW), Some(OLD))]);
    assert_eq!(rows(&scan(&old, Some(&old), None, &pushed("auto", None))), [(OLD, Some(NEW), Some(OLD))]);
    assert_eq!(rows(&scan(&old, Some(&old), None, &failed())), [(OLD, None, None)]);
    assert_eq!(rows(&scan(&new, Some(&old), None, &unchanged())), [(OLD, Some(NEW), None)]);
    // It is merged, and deleted.
    assert_eq!(rows(&scan(&new, Some(&new), Some(&second), &unchanged())), [(NEW, None, Some(OLD))]);
    assert_eq!(rows(&scan(&new, None, Some(&second), &unchanged())), [(NEW, None, Some(OLD))]);
    // The file is on one of the branches only.
    let more = tree(&[("a", &[NEW]), ("b", &[NEW])]);
    assert_eq!(rows(&scan(&more, Some(&old), None, &unchanged())), [(OLD, Some(NEW), None)]);
    let expected = [(NEW, None, None), (NEW, None, None)];
    assert_eq!(rows(&scan(&new, Some(&more), None, &unchanged())), expected);
}

#[test]
fn removed_files_are_those_of_the_previous_scan_and_of_statuses() {
    let previous = finish(
        scanned(origin("main", None), &tree(&[("a", &[OLD]), ("b", &[OLD]), ("c", &[OLD])]), None),
        &failed(),
    );
    let mut now = tree(&[("a", &[OLD])]);
    now.0.insert("apps/c.yaml".into(), "no: marker\n".into());
    let known = |files: &[&str]| files.iter().map(|file| (*file).to_owned()).collect::<BTreeSet<_>>();
    let removed = |origin: ScanOrigin, base: &Tree, checkout: Option<&Tree>| {
        finish(scanned(origin, base, checkout), &unchanged()).unwrap().removed_files
    };
    let with = |files: &[&str]| ScanOrigin { known_files: known(files), ..origin("main", previous.clone()) };
    assert_eq!(removed(with(&[]), &now, None), ["apps/b.yaml"]);
    let files = ["apps/a.yaml", "apps/d.yaml", "apps", "apps/\\xff.yaml"];
    assert_eq!(removed(with(&files), &now, None), ["apps/b.yaml", "apps/d.yaml"]);
    // The tree that is checked out counts.
    let other = ScanOrigin { known_files: known(&["apps/c.yaml"]), ..origin("auto", None) };
    assert_eq!(removed(other.clone(), &tree(&[("a", &[NEW])]), Some(&now)), Vec::<String>::new());
    assert_eq!(removed(other, &now, Some(&tree(&[("a", &[NEW])]))), ["apps/c.yaml"]);
    // The automation has another repository now.
    let elsewhere = ScanOrigin { repository: "https://git.example/other".into(), ..with(&files) };
    assert_eq!(removed(elsewhere, &now, None), Vec::<String>::new());
}

#[test]
fn the_automations_of_a_batch_share_memory() {
    let limits = |batch_size| PlaceScan::new(ScanOrigin { batch_size, ..origin("main", None) }).limits();
    assert_eq!([0, 1, 2].map(|size| limits(size).bytes), [MAX_BYTES; 3]);
    assert_eq!(limits(256).bytes, MAX_BATCH_BYTES / 256);
    assert_eq!(limits(1).count, MAX_PLACES);
}
