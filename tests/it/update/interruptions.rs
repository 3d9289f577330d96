//! Tests of killed runs and full disks.
//! Every file is completely old or completely new, and the next run finishes.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::fleet::{Fleet, podinfo, tag_line};
use crate::support::program::{Run, run, tagboat, update};
use crate::support::trees::{self, Node, Tree};

/// A long file of marked lines with `value` in each.
fn long_text(lines: usize, value: &str) -> String {
    let mut text = String::new();
    for line in 0..lines {
        write!(
            text,
            "ballast{line}: {0} {0}\n{1}",
            "x".repeat(64),
            tag_line(value).replacen("tag", &format!("tag{line}"), 1)
        )
        .unwrap();
    }
    text
}

fn many_files(count: usize, value: &str) -> Tree {
    let text = long_text(12, value);
    (0..count)
        .map(|file| {
            (format!("d{:02}/f{file:04}.yaml", file / 100).into(), Node::File(text.clone().into_bytes()))
        })
        .collect()
}

/// Asserts that every file is as in `old` or as in `new`.
/// Only temporary files may be beside them. Returns the number of new files and the temporary ones.
#[track_caller]
fn assert_whole(old: &Tree, new: &Tree, found: &Tree) -> (usize, Vec<PathBuf>) {
    let mut count = 0;
    for (path, node) in old {
        let is_new = found[path] == new[path];
        assert!(is_new || found[path] == *node, "{} is neither old nor new", path.display());
        count += usize::from(is_new);
    }
    let strangers: Vec<PathBuf> = found.keys().filter(|path| !old.contains_key(*path)).cloned().collect();
    for path in &strangers {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with(".tagboat-") && name.ends_with(".part"), "{name}");
    }
    (count, strangers)
}

/// Many kills at various moments, most of them during the writing.
#[test]
fn a_kill_leaves_whole_files_and_the_next_run_finishes() {
    let (old, new) = (many_files(900, "4.0.6"), many_files(900, "5.0.3"));
    let mut interrupted = 0;
    for round in 0..4 {
        let fleet = Fleet::of_tree(&old, &podinfo());
        let watched = fleet.directory().join(format!("d{0:02}/f{0:02}00.yaml", round * 2));
        let before = fs::read(&watched).unwrap();
        let mut command = tagboat();
        command.arg("update").arg(fleet.directory()).arg("--policies").arg(fleet.manifests());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while fs::read(&watched).unwrap() == before && child.try_wait().unwrap().is_none() {}
        child.kill().unwrap();
        child.wait().unwrap();
        let (count, _) = assert_whole(&old, &new, &fleet.tree());
        interrupted += usize::from(count < old.len());
        fleet.update([""; 0]).with_status(0);
        assert!(fleet.tree() == new, "round {round}: {}", trees::differences(&new, &fleet.tree()));
    }
    assert!(interrupted > 0, "no kill came in time: the runs were over too soon");
}

/// Runs the program under a limit on the size of the files it writes.
/// The limit is in blocks of 1024 bytes.
fn update_within(limit: usize, trap: &str, directory: &Path, manifests: &Path) -> Run {
    let script = format!("{trap} ulimit -c 0; ulimit -f {limit}; exec \"$@\"");
    let mut command = Command::new("bash");
    command.args(["-c", &script, "bash", env!("CARGO_BIN_EXE_tagboat"), "update"]);
    run(command.arg(directory).arg("--policies").arg(manifests).args(["--output", "json"]))
}

/// Three files, the middle one of which exceeds the limit.
fn three_files(value: &str) -> Tree {
    let file = |lines| Node::File(long_text(lines, value).into_bytes());
    [("a.yaml", file(2)), ("deep/b.yaml", file(200)), ("z.yaml", file(2))]
        .map(|(path, node)| (path.into(), node))
        .into()
}

/// A signal in the middle of a write leaves whole files.
/// The signal comes during the write, so a temporary file is left for certain. The next run removes it.
#[test]
fn a_signal_in_the_middle_of_a_write_leaves_whole_files_and_the_next_run_cleans_up() {
    let (old, new) = (three_files("4.0.6"), three_files("5.0.3"));
    let fleet = Fleet::of_tree(&old, &podinfo());
    let run = update_within(8, "", &fleet.directory(), &fleet.manifests());
    assert_eq!(run.status, None, "a signal was to end it: {run:?}");
    let (count, left_over) = assert_whole(&old, &new, &fleet.tree());
    assert_eq!((count, left_over.len()), (1, 1), "{left_over:?}");
    fleet.update([""; 0]).with_status(0);
    assert_eq!(trees::differences(&new, &fleet.tree()), "");
}

/// Only temporary files that ended processes of tagboat left are removed.
/// Files with a similar name are not ours, and a running process may still need its own.
#[test]
fn only_own_left_over_files_are_removed() {
    let alive = format!(".tagboat-{}-abc123.part", std::process::id());
    // No process id is that high.
    let names = [
        ".tagboat-4194305-abc123.part",
        ".tagboat-notes.part",
        ".tagboat-4194305-abc123.partial",
        "tagboat-4194305-abc123.part",
        &alive,
    ];
    let fleet = Fleet::small();
    for name in names {
        fs::write(fleet.directory().join(name), "x").unwrap();
    }
    fleet.update([""; 0]).with_status(0);
    let there: Vec<bool> = names.iter().map(|name| fleet.directory().join(name).exists()).collect();
    assert_eq!(there, [false, true, true, true, true]);
}

/// The killed run may have been the last one with something to write there.
#[test]
fn left_over_files_are_removed_even_if_nothing_is_written() {
    let left_over = ".tagboat-4194305-abc123.part";
    for current in ["5.0.3", "4.0.6"] {
        let files = [("app.yaml", tag_line(current)), ("deep/er/other.yaml", "a: 1\n".into())];
        let fleet = Fleet::new(files.each_ref().map(|(path, text)| (*path, text.as_str())), &podinfo());
        let at = |directory: &str| fleet.directory().join(directory).join(left_over);
        for directory in ["", "deep", "deep/er", ".git"] {
            fs::create_dir_all(fleet.directory().join(directory)).unwrap();
            fs::write(at(directory), "x").unwrap();
        }
        let there = || ["", "deep", "deep/er", ".git"].map(|directory| at(directory).exists());
        fleet.update(["--dry-run"]).with_status(0);
        assert_eq!(there(), [true; 4], "a dry run writes nothing");
        fleet.update([""; 0]).with_status(0);
        assert_eq!(there(), [false, false, false, true], "{current}");
    }
}

#[test]
fn a_write_that_is_refused_half_way_leaves_the_file_and_goes_on() {
    let (old, new) = (three_files("4.0.6"), three_files("5.0.3"));
    let fleet = Fleet::of_tree(&old, &podinfo());
    let run = update_within(8, "trap '' XFSZ;", &fleet.directory(), &fleet.manifests()).with_status(1);
    assert!(run.only_error().starts_with("error: cannot write deep/b.yaml; it is unchanged: "), "{run:?}");
    let (count, left_over) = assert_whole(&old, &new, &fleet.tree());
    assert_eq!((count, left_over), (2, vec![]));
    let changed: Vec<String> = run.json()["changes"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(changed, ["a.yaml", "z.yaml"]);
}

/// A file system in memory, which is unmounted at the end of the test.
struct SmallDisk {
    at: PathBuf,
}

impl SmallDisk {
    fn mount(at: PathBuf, size: &str) -> Option<Self> {
        fs::create_dir(&at).unwrap();
        let options = format!("size={size}");
        let mount = run(Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&at));
        (mount.status == Some(0)).then_some(Self { at })
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.at).status();
    }
}

/// A full disk is reported and leaves whole files.
///
/// The disk is really full if the test may mount one. Otherwise a limit of the process refuses the same
/// write.
#[test]
fn a_full_disk_is_named_and_leaves_whole_files() {
    let (old, new) = (three_files("4.0.6"), three_files("5.0.3"));
    let fleet = Fleet::of_tree(&Tree::new(), &podinfo());
    let at = fleet.root().join("disk");
    let disk = SmallDisk::mount(at.clone(), "80k");
    trees::write(&at, &old);
    let run = match &disk {
        Some(_) => update(&at, &fleet.manifests(), ["--output", "json"]),
        None => update_within(8, "trap '' XFSZ;", &at, &fleet.manifests()),
    };
    let run = run.with_status(1);
    assert!(run.only_error().starts_with("error: cannot write deep/b.yaml; it is unchanged: "), "{run:?}");
    assert_eq!(run.json()["outcome"], "failed");
    let (count, left_over) = assert_whole(&old, &new, &trees::read(&at));
    assert_eq!(left_over, Vec::<PathBuf>::new());
    assert_eq!(run.json()["changes"].as_object().unwrap().len(), count);
    if disk.is_some() {
        assert!(run.only_error().contains("No space left on device"), "{run:?}");
        let mut more = Command::new("mount");
        more.args(["-o", "remount,size=8m"]).arg(&at);
        crate::support::program::run(&mut more).with_status(0);
    }
    update(&at, &fleet.manifests(), [""; 0]).with_status(0);
    assert_eq!(trees::differences(&new, &trees::read(&at)), "");
}
