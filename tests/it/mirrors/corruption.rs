//! Corrupt mirrors: a mirror is a cache, so the next run fetches what it needs again, and commits nothing wrong.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tagboat::git::outcome::Outcome;

use super::local_remote::{Place, files_below};
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
fn place() -> Place {
    let place = Place::new(&fleet());
    assert!(matches!(place.update(OLD).unwrap(), Outcome::NothingToCommit { .. }));
    place.remote.commit("main", "Change", &[file("d000/b.yaml", "b: 1\n")]);
    assert!(matches!(place.update(OLD).unwrap(), Outcome::NothingToCommit { .. }));
    assert_eq!(packs(&place, "pack").len(), 2);
    place
}

fn packs(place: &Place, extension: &str) -> Vec<PathBuf> {
    let files = files_below(&place.mirror().join("objects/pack")).into_iter();
    files.map(|(path, _)| path).filter(|path| path.extension().is_some_and(|is| is == extension)).collect()
}

fn references(place: &Place) -> Vec<PathBuf> {
    files_below(&place.mirror().join("refs")).into_iter().map(|(path, _)| path).collect()
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

/// Asserts that a run makes exactly the right commit, and that the next one works on the same mirror.
#[track_caller]
fn assert_next_run_is_right(place: &Place, what: &str) {
    let before = place.remote.id("main").unwrap();
    let mut wanted = place.remote.tree("main");
    let outcome = place.update("2.0.0").unwrap_or_else(|error| {
        panic!("{what}: {}", tagboat::error::chain(error.as_ref()));
    });
    let Outcome::Pushed(push) = outcome else { panic!("{what}: {outcome:?}") };
    let log = place.remote.log("main");
    assert_eq!(
        (log[0].id.clone(), log[0].parents.clone()),
        (push.commit.to_string(), vec![before]),
        "{what}"
    );
    for (path, text) in [("app.yaml", tag_line("2.0.0")), ("twin/app.yaml", twin("2.0.0"))] {
        *wanted.get_mut(path.as_bytes()).unwrap() = Content::File(text.into_bytes());
    }
    assert_eq!(place.remote.tree("main"), wanted, "{what}");
    place.remote.assert_sound();
    place.remote.commit("main", "More", &[file("d001/c.yaml", "c: 1\n")]);
    assert!(matches!(place.update("2.0.0").unwrap(), Outcome::NothingToCommit { .. }), "{what}");
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
    let place = place();
    let mirror = place.mirror();
    let inode = |place: &Place| {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(place.mirror()).unwrap().ino()
    };
    let before = (inode(&place), packs(&place, "pack"));
    for name in left_overs {
        write(&mirror.join(name), b"left over");
    }
    assert_next_run_is_right(&place, "left-overs");
    for name in left_overs {
        assert!(!mirror.join(name).exists(), "{name}");
    }
    assert_eq!(before.0, inode(&place), "the mirror was begun anew, though nothing was the matter with it");
    assert!(before.1.iter().all(|pack| pack.exists()));
}

/// Unpacks all packs, as a person might, and damages each loose object.
fn loosen(place: &Place, damage: fn(&Path)) {
    let mirror = BareRepository::existing(&place.mirror());
    for path in packs(place, "pack") {
        let outside = place.root().join("outside.pack");
        fs::rename(&path, &outside).unwrap();
        fs::remove_file(path.with_extension("idx")).unwrap();
        output(git(mirror.path()).args(["unpack-objects", "-q"]), &fs::read(outside).unwrap());
    }
    let objects = files_below(&mirror.path().join("objects"));
    assert!(objects.len() > 60);
    objects.iter().for_each(|(path, _)| damage(path));
}

/// Exchanges the contents of two files, by exchanging two offsets in the index of a pack: every part of the pack is
/// sound, and so is every checksum that is verified.
fn exchange(place: &Place, paths: [&str; 2]) {
    let ids = paths.map(|path| {
        let id = place.remote.id(&format!("main:{path}")).unwrap();
        git2::Oid::from_str(&id).unwrap()
    });
    for index in packs(place, "idx") {
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
type Damage = (&'static str, fn(&Place));

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
        ("truncated objects", |place| loosen(place, cut)),
        ("empty objects", |place| loosen(place, |path| write(path, b""))),
        ("objects of other bytes", |place| loosen(place, flip)),
        ("deleted packs", |place| each(&packs(place, "pack"), |path| fs::remove_file(path).unwrap())),
        ("truncated packs", |place| each(&packs(place, "pack"), cut)),
        ("packs of other bytes", |place| each(&packs(place, "pack"), flip)),
        ("garbage packs", |place| each(&packs(place, "pack"), |path| write(path, b"garbage"))),
        ("deleted indexes", |place| each(&packs(place, "idx"), |path| fs::remove_file(path).unwrap())),
        ("garbage indexes", |place| each(&packs(place, "idx"), |path| write(path, b"garbage"))),
        ("empty indexes", |place| each(&packs(place, "idx"), |path| write(path, b""))),
        ("indexes of other bytes", |place| each(&packs(place, "idx"), flip)),
        ("files in each other's place", |place| exchange(place, ["app.yaml", "twin/app.yaml"])),
        ("garbage HEAD", |place| write(&place.mirror().join("HEAD"), b"\xff\0garbage")),
        ("no HEAD", |place| fs::remove_file(place.mirror().join("HEAD")).unwrap()),
        ("garbage config", |place| write(&place.mirror().join("config"), b"[[[garbage")),
        ("no config", |place| fs::remove_file(place.mirror().join("config")).unwrap()),
        ("a config of the future", |place| {
            write(&place.mirror().join("config"), b"[core]\n\trepositoryformatversion = 7\n\tbare = true\n");
        }),
        ("no refs", |place| fs::remove_dir_all(place.mirror().join("refs")).unwrap()),
        ("no objects", |place| fs::remove_dir_all(place.mirror().join("objects")).unwrap()),
        ("garbage refs", |place| {
            each(&references(place), |path| {
                write(path, b"garbage");
            });
        }),
        ("empty refs", |place| {
            each(&references(place), |path| {
                write(path, b"");
            });
        }),
        ("refs to nothing", |place| {
            each(&references(place), |path| {
                write(path, b"1234567890123456789012345678901234567890\n");
            });
        }),
        ("garbage packed-refs", |place| write(&place.mirror().join("packed-refs"), b"garbage\n")),
        ("garbage shallow", |place| write(&place.mirror().join("shallow"), b"garbage\n")),
        ("empty shallow", |place| write(&place.mirror().join("shallow"), b"")),
        ("no shallow", |place| fs::remove_file(place.mirror().join("shallow")).unwrap()),
        ("shallow of others", |place| {
            write(&place.mirror().join("shallow"), b"1234567890123456789012345678901234567890\n");
        }),
        ("shallow of nothing but zeros", |place| write(&place.mirror().join("shallow"), &[0; 20])),
        ("the configuration of others", |place| {
            let other =
                b"[core]\n\tbare = true\n[url \"/nonexistent/\"]\n\tinsteadOf = /\n\tinsteadOf = http\n";
            write(&place.mirror().join("config"), other);
        }),
        ("a file in its place", |place| {
            let mirror = place.mirror();
            fs::remove_dir_all(&mirror).unwrap();
            write(&mirror, b"garbage");
        }),
        ("nothing in its place", |place| fs::remove_dir_all(place.mirror()).unwrap()),
        ("a garbage index and ledger", |place| {
            for name in ["index", "ledger.json"] {
                let path = place.mirror().join("..").join(name);
                assert!(path.exists());
                write(&path, b"{\"garbage\": ");
            }
        }),
    ]
}

fn assert_all_are_mended(is_upstream_ahead: bool) {
    for (what, damage) in damages() {
        let place = place();
        damage(&place);
        if is_upstream_ahead {
            place.remote.commit("main", "Ahead", &[file("d000/a.yaml", "a: ahead\n")]);
        }
        assert_next_run_is_right(&place, what);
    }
}

#[test]
fn a_damaged_mirror_is_mended_where_nothing_is_to_be_fetched() {
    assert_all_are_mended(false);
}

#[test]
fn a_damaged_mirror_is_mended_where_something_is_to_be_fetched() {
    assert_all_are_mended(true);
}

/// Damage to objects that no run reads is found when the mirror is packed.
#[test]
fn a_mirror_that_cannot_be_packed_is_begun_anew() {
    let place = place();
    for number in 0..64 {
        place.remote.commit("main", "Change", &[file("d000/b.yaml", format!("b: {number}\n"))]);
        place.update(OLD).unwrap();
    }
    for path in packs(&place, "pack").into_iter().chain(packs(&place, "idx")) {
        write(&path, b"garbage");
    }
    for number in 0..3 {
        place.remote.commit("main", "Change", &[file("d000/b.yaml", format!("b: again {number}\n"))]);
        place.update(OLD).unwrap();
    }
    assert_next_run_is_right(&place, "packed");
}
