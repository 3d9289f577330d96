use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::directory::Directory;
use crate::metrics::ComparisonOutcome::{agreed, differed, missed};
use crate::objects::ObjectName;
use crate::reference::ImageReference;
use crate::update::{Interrupt, MarkerIndex, PolicyState, Setters, plan};

/// A branch, and an automation that looks at it.
struct Scene {
    branch: TempDir,
    before: Arc<CompareState>,
}

impl Scene {
    fn new() -> Self {
        Self { branch: tempfile::tempdir().unwrap(), before: Arc::default() }
    }

    /// Pushes a file as another controller.
    ///
    /// `A` and `B` are markers of our policies, `C` is a marker of another policy.
    fn push(&mut self, file: &str, content: &str) -> &mut Self {
        let marker = |name| format!("# {{\"$imagepolicy\": \"n:{name}:tag\"}}");
        let content = ["A", "B", "C"].iter().fold(content.to_owned(), |content, name| {
            content.replace(&format!(" {name}\n"), &format!(" {}\n", marker(name.to_lowercase())))
        });
        std::fs::write(self.branch.path().join(file), content).unwrap();
        self
    }

    /// Looks at the branch while the policies have chosen these tags.
    fn compare(&mut self, [a, b]: [&str; 2]) -> CompareResult {
        let policies = [("a", a), ("b", b)].map(|(name, tag)| {
            let image = ImageReference::parse(&format!("img:{tag}")).unwrap();
            (ObjectName { namespace: "n".to_owned(), name: name.to_owned() }, PolicyState::Image(image))
        });
        let update = UpdateRequest { setters: Setters::new(policies.into()), ..UpdateRequest::default() };
        let tree = Directory::open(Path::new(self.branch.path())).unwrap();
        let plan = plan(&tree, &update, &mut MarkerIndex::default(), &mut |_| Ok(())).unwrap();
        let message = (!plan.edits.is_empty()).then_some(b"Update".as_slice());
        let view = View { tree: &tree, update: &update, plan: &plan, edits: &plan.edits, message };
        let mut compare = CompareRun { before: self.before.clone(), result: None };
        compare.compare(&view, &mut |_| Ok(())).unwrap();
        let result = compare.result.unwrap();
        self.before = Arc::new(result.state.clone());
        result
    }
}

fn outcome(result: &CompareResult) -> Option<ComparisonOutcome> {
    result.comparison.as_ref().map(|comparison| comparison.outcome)
}

/// Each row has a file before and after a change by another controller.
///
/// The policies want `2` and `1`.
#[test]
fn pushed_files_are_compared_with_the_would_be_commit() {
    for (before, after, expected) in [
        ("a: '1' A\nb: '1' B\n", "a: '2' A\nb: '1' B\n", Some(agreed)),
        // In other bytes.
        ("a: '1' A\nb: '1' B\n", "a: \"2\" A\nb: '1' B\n", Some(differed)),
        ("a: '1' A\n\nb: '1' B\n", "a: '2' A\nb: '1' B\n", Some(differed)),
        // Other values: where we would have changed something, and where not.
        ("a: '1' A\nb: '1' B\n", "a: '3' A\nb: '1' B\n", Some(differed)),
        ("a: '1' A\nb: '1' B\n", "a: '2' A\nb: '3' B\n", Some(differed)),
        ("a: '2' A\nb: '1' B\n", "a: '2' A\nb: '3' B\n", Some(missed)),
        // Only a part of it, or nothing.
        ("a: '1' A\nx: '1' A\n", "a: '2' A\nx: '1' A\n", None),
        ("a: '1' A\n", "a: '1' A\n# more\n", None),
        // The values of others are theirs.
        ("a: '1' A\nc: '1' C\n", "a: '2' A\nc: '7' C\n", Some(agreed)),
        ("a: '2' A\nc: '1' C\n", "a: '2' A\nc: '7' C\n", None),
        // Places that come and go.
        ("a: '1' A\n", "x: y\n", None),
        ("a: '2' A\n", "a: '2' A\nb: '7' B\n", None),
    ] {
        let mut scene = Scene::new();
        scene.push("f.yaml", before).compare(["2", "1"]);
        let result = scene.push("f.yaml", after).compare(["2", "1"]);
        assert_eq!(outcome(&result), expected, "{before:?} {after:?} {:?}", result.comparison);
        // Nothing is counted twice.
        assert_eq!(outcome(&scene.compare(["2", "1"])), None, "{before:?} {after:?}");
    }
}

#[test]
fn a_would_be_commit_is_reported_once() {
    let mut scene = Scene::new();
    let reported = |result: CompareResult| result.would_be.map(|would_be| would_be.diff);
    scene.push("f.yaml", "a: '1' A\nb: '1' B\n");
    assert_eq!(reported(scene.compare(["1", "1"])), None);
    let first = reported(scene.compare(["2", "1"])).unwrap();
    assert!(first.contains("\n-a: '1' #") && first.contains("\n+a: '2' #"), "{first}");
    assert_eq!(reported(scene.compare(["2", "1"])), None);
    // Another part of the file changes.
    scene.push("f.yaml", "# more\na: '1' A\nb: '1' B\n");
    assert_eq!(reported(scene.compare(["2", "1"])), None);
    assert!(reported(scene.compare(["2", "2"])).unwrap().contains("\n+b: '2' #"));
    // What is pushed then is compared with what stood around it at the last look.
    scene.push("f.yaml", "# more\na: '2' A\nb: '2' B\n");
    let result = scene.compare(["2", "2"]);
    assert_eq!((outcome(&result), reported(result)), (Some(agreed), None));
    // Another time is another commit.
    assert!(reported(scene.compare(["1", "2"])).is_some());
}

#[test]
fn superseded_would_be_commits_are_not_counted() {
    let mut scene = Scene::new();
    scene.push("f.yaml", "a: '1' A\n").compare(["2", "1"]);
    // The policy moves on, and the other controller is faster than we are.
    let result = scene.push("f.yaml", "a: '3' A\n").compare(["3", "1"]);
    assert_eq!((outcome(&result), result.would_be), (None, None));
    // It changes back before any push.
    scene.compare(["4", "1"]);
    assert_eq!(outcome(&scene.compare(["3", "1"])), None);
    // The late push has values that are not wanted any more.
    let result = scene.push("f.yaml", "a: '4' A\n").compare(["3", "1"]);
    assert_eq!(outcome(&result), Some(missed));
    let comparison = result.comparison.unwrap();
    assert_eq!(
        comparison.sentence,
        "another controller pushed values that this controller would not change: f.yaml (n:a:tag): \"4\" instead of \"3\""
    );
    assert!(comparison.diff.contains("\n-a: '4' #"), "{}", comparison.diff);
    assert!(result.would_be.is_some());
}

#[test]
fn differences_are_shown_from_theirs_to_ours() {
    let mut scene = Scene::new();
    scene.push("f.yaml", "a: '1' A\n# kept\n").push("g.yaml", "a: '1' A\n").compare(["2", "1"]);
    let result = scene.push("f.yaml", "a: '2' A\n").push("g.yaml", "a: '2' A\n").compare(["2", "1"]);
    let comparison = result.comparison.unwrap();
    assert_eq!(comparison.sentence, "another controller pushed the same values in different bytes: f.yaml");
    assert!(comparison.diff.ends_with("\n+# kept\n"), "{}", comparison.diff);
    assert!(!comparison.diff.contains("g.yaml"), "{}", comparison.diff);
}

#[test]
fn no_line_of_a_file_with_a_secret_is_shown() {
    let mut scene = Scene::new();
    let secret = "---\nkind: Secret\nstringData: {password: hunter2}\n";
    let result = scene.push("f.yaml", &format!("a: '1' A\n{secret}")).compare(["2", "1"]);
    assert_eq!(result.would_be.unwrap().diff, "f.yaml has a Secret, so its lines are not shown\n");
    let result = scene.push("f.yaml", &format!("a: '2' A\n\n{secret}")).compare(["2", "1"]);
    assert_eq!(outcome(&result), Some(differed));
    assert_eq!(result.comparison.unwrap().diff, "f.yaml has a Secret, so its lines are not shown\n");
}

#[test]
fn large_files_are_compared_and_not_stored() {
    let mut scene = Scene::new();
    let rest = "# more of it\n".repeat(20_000);
    let result = scene.push("f.yaml", &format!("a: '1' A\n{rest}")).compare(["2", "1"]);
    assert!(result.would_be.is_some());
    assert!(result.state.pending_commit.unwrap().files.values().all(|file| file.content.is_none()));
    let result = scene.push("f.yaml", &format!("a: '2' A\n{rest}")).compare(["2", "1"]);
    assert_eq!(outcome(&result), Some(agreed));
    scene.compare(["3", "1"]);
    let result = scene.push("f.yaml", &format!("a: '3' A\n\n{rest}")).compare(["3", "1"]);
    assert_eq!(result.comparison.unwrap().diff, "f.yaml is too large to be shown\n");
    assert_eq!(bounded("line\n".repeat(10_000)).lines().last(), Some("… the rest is not shown"));
}

/// A comparison could take minutes, beyond the deadline of a plan.
///
/// This holds for each place where files are read again.
#[test]
fn a_comparison_ends_between_two_files_when_its_time_is_up() {
    let mut scene = Scene::new();
    scene.push("a.yaml", "a: '1' A\n").push("b.yaml", "a: '1' A\n").compare(["2", "1"]);
    scene.push("a.yaml", "a: '2' A\n").push("b.yaml", "a: '2' A\n");
    let update = UpdateRequest::default();
    let tree = Directory::open(Path::new(scene.branch.path())).unwrap();
    let plan = plan(&tree, &update, &mut MarkerIndex::default(), &mut |_| Ok(())).unwrap();
    let view = View { tree: &tree, update: &update, plan: &plan, edits: &plan.edits, message: None };
    let pending_commit = scene.before.pending_commit.as_ref().unwrap();
    assert_eq!(pending_commit.files.len(), 2);
    let mut files = 0;
    let mut checkpoint = |_| {
        files += 1;
        if files > 1 { Err(Interrupt::Cancelled) } else { Ok(()) }
    };
    let interrupted = pending_commit.compare(&view, &mut checkpoint);
    assert!(matches!(interrupted, Err(DiffError::Interrupted(Interrupt::Cancelled))), "{interrupted:?}");
    assert_eq!(files, 2);
}

/// Each marker of each automation was remembered without a bound.
#[test]
fn the_memory_of_a_comparison_counts_its_file_contents() {
    let mut scene = Scene::new();
    let long = "x".repeat(10_000);
    scene.push("f.yaml", &format!("kind: {long}\na: '1' A\n")).compare(["1", "1"]);
    let settled = scene.before.bytes();
    scene.compare(["2", "1"]);
    assert!(scene.before.bytes() > settled + 5_000, "{settled} {}", scene.before.bytes());
    assert!(CompareState::default().bytes() == 0 && settled < 10_000);
}
