//! Tests of corrupt mirrors.
//! A mirror is a cache, so the next run fetches what it needs again, and commits nothing wrong.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tagboat::git::outcome::Outcome;

use super::local_remote::{LocalRemote, files_below};
use crate::support::bare_repository::BareRepository;
use crate::support::content::{Change, Content, file};
use crate::support::fleet::tag_line;
use crate::support::git_program::{git, output};

const OLD: &str = "1.0.0";

fn twin(tag: &str) -> String {
    format!("twin: 1\n{}", tag_line(tag))
}

fn fleet() -> Vec<Change> {
    let mut files: Vec<Change> =
        (0..30).map(|number| file(format!("d{number:03}/a.yaml"), format!("a: {number}\n"))).collect();
    files.push(file("app.yaml", tag_line(OLD)));
    files.push(file("twin/app.yaml", twin(OLD)));
    files
}

/// A mirror that has had two runs, and holds two packs.
fn local() -> LocalRemote {
    let local = LocalRemote::new(&fleet());
    assert!(matches!(local.update(OLD).unwrap(), Outcome::NothingToCommit { .. }));
    local.remote.commit("main", "Change", &[file("d000/b.yaml", "b: 1\n")]);
    assert!(matches!(local.update(OLD).unwrap(), Outcome::NothingToCommit { .. }));
    assert_eq!(packs(&local, "pack").len(), 2);
    local
}

fn packs(local: &LocalRemote, extension: &str) -> Vec<PathBuf> {
    let files = files_below(&local.mirror().join("objects/pack")).into_iter();
    files.map(|(path, _)| path).filter(|path| path.extension().is_some_and(|is| is == extension)).collect()
}

fn references(local: &LocalRemote) -> Vec<PathBuf> {
    files_below(&local.mirror().join("refs")).into_iter().map(|(path, _)| path).collect()
}

fn write(path: &Path, content: &[u8]) {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).unwrap();
    }
    if path.exists() {
        // Objects and packs are read-only.
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    fs::write(path, content).unwrap();
}

/// Asserts that a run makes exactly the right commit.
/// The next run must work on the same mirror.
#[track_caller]
fn assert_next_run_is_right(local: &LocalRemote, what: &str) {
    let before = local.remote.id("main").unwrap();
    let mut wanted = local.remote.tree("main");
    let outcome = local.update("2.0.0").unwrap_or_else(|error| {
        panic!("{what}: {}", tagboat::error::chain(error.as_ref()));
    });
    let Outcome::Pushed(push) = outcome else { panic!("{what}: {outcome:?}") };
    let log = local.remote.log("main");
    assert_eq!(
        (log[0].id.clone(), log[0].parents.clone()),
        (push.commit.to_string(), vec![before]),
        "{what}"
    );
    for (path, text) in [("app.yaml", tag_line("2.0.0")), ("twin/app.yaml", twin("2.0.0"))] {
        *wanted.get_mut(path.as_bytes()).unwrap() = Content::File(text.into_bytes());
    }
    assert_eq!(local.remote.tree("main"), wanted, "{what}");
    local.remote.assert_sound();
    local.remote.commit("main", "More", &[file("d001/c.yaml", "c: 1\n")]);
    assert!(matches!(local.update("2.0.0").unwrap(), Outcome::NothingToCommit { .. }), "{what}");
}

#[test]
fn left_over_locks_and_unfinished_files_are_removed() {
    let left_overs = [
        "shallow.lock",
        "config.lock",
        "HEAD.lock",
        "packed-refs.lock",
        "refs/tagboat/0000000000000000000000000000000000000000.lock",
        "shallow_a1b2c3",
        "objects/pack/tmp_pack_a1b2c3",
        "objects/pack/tmp_idx_a1b2c3",
        "objects/pack/pack_git2_a1b2c3d4e5f60718",
        "objects/pack/.tmp-123-pack-0000.pack",
        "objects/pack/pack-0000.keep",
        "objects/17/tmp_obj_a1b2c3",
        "objects/tmp_object_git2_a1b2c3",
        "objects/tmp_objdir-incoming-a1b2c3/17/0000",
        "../tmp_a1b2c3",
    ];
    let local = local();
    let mirror = local.mirror();
    let inode = |local: &LocalRemote| {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(local.mirror()).unwrap().ino()
    };
    let before = (inode(&local), packs(&local, "pack"));
    for name in left_overs {
        write(&mirror.join(name), b"left over");
    }
    assert_next_run_is_right(&local, "left-overs");
    for name in left_overs {
        assert!(!mirror.join(name).exists(), "{name}");
    }
    assert_eq!(before.0, inode(&local), "the mirror was begun anew, though nothing was the matter with it");
    assert!(before.1.iter().all(|pack| pack.exists()));
}

/// Unpacks all packs, as a person might, and damages each loose object.
fn loosen(local: &LocalRemote, damage: fn(&Path)) {
    let mirror = BareRepository::existing(&local.mirror());
    for path in packs(local, "pack") {
        let outside = local.root().join("outside.pack");
        fs::rename(&path, &outside).unwrap();
        fs::remove_file(path.with_extension("idx")).unwrap();
        output(git(mirror.path()).args(["unpack-objects", "-q"]), &fs::read(outside).unwrap());
    }
    let objects = files_below(&mirror.path().join("objects"));
    assert!(objects.len() > 60);
    objects.iter().for_each(|(path, _)| damage(path));
}

/// Exchanges the contents of two files, by exchanging two offsets in a pack's index.
/// Every part of the pack is sound, and so is every checksum that is verified.
fn exchange(local: &LocalRemote, paths: [&str; 2]) {
    let ids = paths.map(|path| {
        let id = local.remote.id(&format!("main:{path}")).unwrap();
        git2::Oid::from_str(&id).unwrap()
    });
    for index in packs(local, "idx") {
        let mut bytes = fs::read(&index).unwrap();
        let count = u32::from_be_bytes(bytes[1028..1032].try_into().unwrap()) as usize;
        let names = &bytes[1032..1032 + 20 * count];
        let place_of = |id: &git2::Oid| names.chunks(20).position(|name| name == id.as_bytes());
        let Some([one, other]) = ids
            .each_ref()
            .map(place_of)
            .into_iter()
            .collect::<Option<Vec<_>>>()
            .map(|found| [found[0], found[1]])
        else {
            continue;
        };
        let offsets = 1032 + 24 * count;
        for byte in 0..4 {
            bytes.swap(offsets + 4 * one + byte, offsets + 4 * other + byte);
        }
        write(&index, &bytes);
        return;
    }
    panic!("no pack has both");
}

/// A kind of damage to a mirror, with its name.
type Damage = (&'static str, fn(&LocalRemote));

fn damages() -> Vec<Damage> {
    fn each(paths: &[PathBuf], damage: impl Fn(&Path)) {
        assert!(!paths.is_empty());
        paths.iter().for_each(|path| damage(path));
    }
    fn cut(path: &Path) {
        let content = fs::read(path).unwrap();
        write(path, &content[..content.len() / 2]);
    }
    fn flip(path: &Path) {
        let mut content = fs::read(path).unwrap();
        let middle = content.len() / 2;
        content[middle] ^= 0x55;
        write(path, &content);
    }
    vec![
        ("truncated objects", |local| loosen(local, cut)),
        ("empty objects", |local| loosen(local, |path| write(path, b""))),
        ("objects of other bytes", |local| loosen(local, flip)),
        ("deleted packs", |local| each(&packs(local, "pack"), |path| fs::remove_file(path).unwrap())),
        ("truncated packs", |local| each(&packs(local, "pack"), cut)),
        ("packs of other bytes", |local| each(&packs(local, "pack"), flip)),
        ("garbage packs", |local| each(&packs(local, "pack"), |path| write(path, b"garbage"))),
        ("deleted indexes", |local| each(&packs(local, "idx"), |path| fs::remove_file(path).unwrap())),
        ("garbage indexes", |local| each(&packs(local, "idx"), |path| write(path, b"garbage"))),
        ("empty indexes", |local| each(&packs(local, "idx"), |path| write(path, b""))),
        ("indexes of other bytes", |local| each(&packs(local, "idx"), flip)),
        ("files in each other's local", |local| exchange(local, ["app.yaml", "twin/app.yaml"])),
        ("garbage HEAD", |local| write(&local.mirror().join("HEAD"), b"\xff\0garbage")),
        ("no HEAD", |local| fs::remove_file(local.mirror().join("HEAD")).unwrap()),
        ("garbage config", |local| write(&local.mirror().join("config"), b"[[[garbage")),
        ("no config", |local| fs::remove_file(local.mirror().join("config")).unwrap()),
        ("a config of the future", |local| {
            write(&local.mirror().join("config"), b"[core]\n\trepositoryformatversion = 7\n\tbare = true\n");
        }),
        ("no refs", |local| fs::remove_dir_all(local.mirror().join("refs")).unwrap()),
        ("no objects", |local| fs::remove_dir_all(local.mirror().join("objects")).unwrap()),
        ("garbage refs", |local| {
            each(&references(local), |path| {
                write(path, b"garbage");
            });
        }),
        ("empty refs", |local| {
            each(&references(local), |path| {
                write(path, b"");
            });
        }),
        ("refs to nothing", |local| {
            each(&references(local), |path| {
                write(path, b"1234567890123456789012345678901234567890\n");
            });
        }),
        ("garbage packed-refs", |local| write(&local.mirror().join("packed-refs"), b"garbage\n")),
        ("garbage shallow", |local| write(&local.mirror().join("shallow"), b"garbage\n")),
        ("empty shallow", |local| write(&local.mirror().join("shallow"), b"")),
        ("no shallow", |local| fs::remove_file(local.mirror().join("shallow")).unwrap()),
        ("shallow of others", |local| {
            write(&local.mirror().join("shallow"), b"1234567890123456789012345678901234567890\n");
        }),
        ("shallow of nothing but zeros", |local| write(&local.mirror().join("shallow"), &[0; 20])),
        ("the configuration of others", |local| {
            let other =
                b"[core]\n\tbare = true\n[url \"/nonexistent/\"]\n\tinsteadOf = /\n\tinsteadOf = http\n";
            write(&local.mirror().join("config"), other);
        }),
        ("a file in its local", |local| {
            let mirror = local.mirror();
            fs::remove_dir_all(&mirror).unwrap();
            write(&mirror, b"garbage");
        }),
        ("nothing in its local", |local| fs::remove_dir_all(local.mirror()).unwrap()),
        ("a garbage index and journal", |local| {
            for name in ["index", "push-journal.json"] {
                let path = local.mirror().join("..").join(name);
                assert!(path.exists());
                write(&path, b"{\"garbage\": ");
            }
        }),
    ]
}

fn assert_all_are_repaired(is_upstream_ahead: bool) {
    for (what, damage) in damages() {
        let local = local();
        damage(&local);
        if is_upstream_ahead {
            local.remote.commit("main", "Ahead", &[file("d000/a.yaml", "a: ahead\n")]);
        }
        assert_next_run_is_right(&local, what);
    }
}

#[test]
fn a_corrupt_mirror_is_repaired_without_new_commits() {
    assert_all_are_repaired(false);
}

#[test]
fn a_corrupt_mirror_is_repaired_with_new_commits() {
    assert_all_are_repaired(true);
}

/// Damage to objects that no run reads is found when the mirror is packed.
#[test]
fn a_mirror_that_cannot_be_packed_is_replaced() {
    let local = local();
    for number in 0..64 {
        local.remote.commit("main", "Change", &[file("d000/b.yaml", format!("b: {number}\n"))]);
        local.update(OLD).unwrap();
    }
    for path in packs(&local, "pack").into_iter().chain(packs(&local, "idx")) {
        write(&path, b"garbage");
    }
    for number in 0..3 {
        local.remote.commit("main", "Change", &[file("d000/b.yaml", format!("b: again {number}\n"))]);
        local.update(OLD).unwrap();
    }
    assert_next_run_is_right(&local, "packed");
}
