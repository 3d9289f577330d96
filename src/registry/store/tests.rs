use tempfile::TempDir;

use super::stored::MAX_IMAGES;
use super::*;

fn key(name: &str) -> ObjectName {
    ObjectName { namespace: "apps".to_owned(), name: name.to_owned() }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn scan(tags: &[&str], time: &str) -> Scan {
    Scan {
        canonical: "r.io/app".to_owned(),
        scanned: at(time),
        etag: Some("\"x\"".to_owned()),
        tags: tags.iter().copied().collect(),
    }
}

const FIRST: &str = "2026-11-21T10:00:00Z";
const SECOND: &str = "2026-11-21T11:00:00Z";

#[test]
fn tags_are_first_seen_by_the_scan_that_finds_them_new() {
    let directory = TempDir::new().unwrap();
    for store in [TagStore::new(Some(directory.path().to_owned())), TagStore::new(None)] {
        assert!(store.read(&key("web"), "r.io/app").unwrap().is_none());
        store.save_scan(&key("web"), scan(&["1.0", "1.1"], FIRST)).unwrap();
        let found = store.save_scan(&key("web"), scan(&["1.1", "1.2", "odd\n\"tag\""], SECOND)).unwrap().tags;
        assert_eq!(found.first_seen("1.1"), None);
        assert_eq!(found.first_seen("1.2"), Some(at(SECOND)));
        assert_eq!(found.first_seen("1.0"), None);
        // A tag that comes back is new.
        let found = store.save_scan(&key("web"), scan(&["1.0"], "2026-11-21T12:00:00Z")).unwrap().tags;
        assert_eq!(found.first_seen("1.0"), Some(at("2026-11-21T12:00:00Z")));
    }
}

#[test]
fn the_age_of_an_image_stays_with_its_tag() {
    let directory = TempDir::new().unwrap();
    let root = || Some(directory.path().to_owned());
    let facts = |digit: &str, created: Option<&str>| ImageFacts {
        digest: crate::reference::Digest::parse(&format!("sha256:{}", digit.repeat(64))).unwrap(),
        created: created.map(at),
    };
    let learned =
        |tags: &[&str]| tags.iter().map(|tag| ((*tag).to_owned(), facts("1", Some(FIRST)))).collect();
    let store = TagStore::new(root());
    store.save_images(&key("web"), "r.io/app", learned(&["1.0"])).unwrap();
    assert!(store.read(&key("web"), "r.io/app").unwrap().is_none());
    store.save_scan(&key("web"), scan(&["1.0", "1.1"], FIRST)).unwrap();
    store.save_images(&key("web"), "r.io/other", learned(&["1.0"])).unwrap();
    store.save_images(&key("web"), "r.io/app", learned(&["1.0", "1.1", "gone"])).unwrap();
    store.save_images(&key("web"), "r.io/app", vec![("1.1".to_owned(), facts("2", None))]).unwrap();
    for store in [store, TagStore::new(root())] {
        let known = store.read(&key("web"), "r.io/app").unwrap().unwrap();
        assert_eq!(known.image("1.0").unwrap().created, Some(at(FIRST)));
        let image = known.image("1.1").unwrap();
        assert_eq!((image.digest.as_str(), image.created), (&*format!("sha256:{}", "2".repeat(64)), None));
        assert_eq!((known.image("gone"), known.tags.len()), (None, 2));
    }
    // A tag that comes back has no stored image, and the others keep the time of the first scan.
    let store = TagStore::new(root());
    store.save_scan(&key("web"), scan(&["1.0"], SECOND)).unwrap();
    let known = store.save_scan(&key("web"), scan(&["1.0", "1.1"], SECOND)).unwrap().tags;
    assert!(known.image("1.0").is_some() && known.image("1.1").is_none());
    assert_eq!((known.listed_since("1.0"), known.listed_since("1.1")), (Some(at(FIRST)), None));
    let many: Vec<String> = (0..=MAX_IMAGES).map(|number| format!("{number:05}")).collect();
    let tags: Vec<&str> = many.iter().map(String::as_str).collect();
    store.save_scan(&key("many"), scan(&tags, FIRST)).unwrap();
    store.save_images(&key("many"), "r.io/app", learned(&tags)).unwrap();
    let known = store.read(&key("many"), "r.io/app").unwrap().unwrap();
    assert!(known.image("00000").is_none() && known.image("00001").is_some());
}

#[test]
fn a_restart_loses_nothing() {
    let directory = TempDir::new().unwrap();
    let root = || Some(directory.path().to_owned());
    TagStore::new(root()).save_scan(&key("web"), scan(&["1.0"], FIRST)).unwrap();
    let store = TagStore::new(root());
    let kept = store.save_scan(&key("web"), scan(&["1.0", "1.1"], SECOND)).unwrap().tags;
    let found = TagStore::new(root()).read(&key("web"), "r.io/app").unwrap().unwrap();
    assert_eq!(found, kept);
    assert_eq!(found.first_seen("1.1"), Some(at(SECOND)));
    assert!(TagStore::new(root()).read(&key("web"), "r.io/other").unwrap().is_none());
}

#[test]
fn a_damaged_file_is_treated_as_missing() {
    let directory = TempDir::new().unwrap();
    let root = || Some(directory.path().to_owned());
    TagStore::new(root()).save_scan(&key("web"), scan(&["1.0", "1.1"], FIRST)).unwrap();
    let path = directory.path().join("apps/web.tags");
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(&path, &damaged).unwrap();
        assert!(TagStore::new(root()).read(&key("web"), "r.io/app").unwrap().is_none(), "{at}");
        assert!(TagStore::new(root()).head(&key("web"), "r.io/app").unwrap().is_none(), "{at}");
        fs::write(&path, &whole[..at]).unwrap();
        assert!(TagStore::new(root()).read(&key("web"), "r.io/app").unwrap().is_none(), "{at}");
    }
    TagStore::new(root()).save_scan(&key("web"), scan(&["1.0"], FIRST)).unwrap();
    assert!(TagStore::new(root()).read(&key("web"), "r.io/app").unwrap().is_some());
    let left: Vec<PathBuf> = list(&directory.path().join("apps"));
    assert_eq!(left, [path]);
}

#[test]
fn memory_is_bounded_and_the_disk_has_the_rest() {
    let directory = TempDir::new().unwrap();
    let store = TagStore::new(Some(directory.path().to_owned()));
    *store.memory.lock() = FairCache::sized(2000);
    for number in 0..20 {
        store.save_scan(&key(&format!("web{number}")), scan(&["1.0"], FIRST)).unwrap();
    }
    assert!(
        store.memory.lock().get(&key("web19")).is_some() && store.memory.lock().get(&key("web0")).is_none()
    );
    assert!(store.read(&key("web0"), "r.io/app").unwrap().is_some());
}

#[test]
fn a_tenant_with_many_tags_on_disk_displaces_its_own() {
    let directory = TempDir::new().unwrap();
    let store = || TagStore::new(Some(directory.path().to_owned()));
    let victim = ObjectName { namespace: "victim".to_owned(), name: "web".to_owned() };
    store().save_scan(&victim, scan(&["1.0"], FIRST)).unwrap();
    // After a restart the files that are there count too.
    let limits = StoreLimits { disk: 1500, ..StoreLimits::default() };
    let attacker = TagStore::limited(directory.path().to_owned(), limits);
    for number in 0..20 {
        attacker.save_scan(&key(&format!("web{number:02}")), scan(&["1.0"], FIRST)).unwrap();
    }
    let left = list(&directory.path().join("apps"));
    let bytes: u64 = left.iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert!(!left.is_empty() && bytes <= 1500, "{left:?}");
    let found = store();
    assert!(found.read(&victim, "r.io/app").unwrap().is_some());
    assert!(found.read(&key("web19"), "r.io/app").unwrap().is_some());
    // An evicted list is unknown, so the repository is scanned before a policy selects from it.
    assert!(found.read(&key("web00"), "r.io/app").unwrap().is_none());
}

/// A scan may write an evicted file again before it is removed.
#[test]
fn a_file_that_was_written_again_is_not_evicted() {
    let directory = TempDir::new().unwrap();
    let store = TagStore::new(Some(directory.path().to_owned()));
    for name in ["web", "api"] {
        store.save_scan(&key(name), scan(&["1.0"], FIRST)).unwrap();
    }
    let path = |name: &str| store.path(&key(name)).unwrap().unwrap();
    store.evict(&key("web"));
    assert!(path("web").exists(), "it counts in the table, so it is there again");
    store.with_file_index(|disk| disk.remove(&key("web")));
    {
        let lock = store.object_lock(&key("web"));
        let _writing = lock.lock();
        store.evict(&key("web"));
        assert!(path("web").exists(), "it is being written");
    }
    store.evict(&key("web"));
    assert!(!path("web").exists() && path("api").exists());
}

#[test]
fn a_list_that_is_unchanged_keeps_all_but_the_time_of_its_scan() {
    let directory = TempDir::new().unwrap();
    let root = || Some(directory.path().to_owned());
    TagStore::new(root()).save_scan(&key("web"), scan(&["1.0"], FIRST)).unwrap();
    let store = TagStore::new(root());
    let before = store.save_scan(&key("web"), scan(&["1.0", "1.1"], SECOND)).unwrap().tags;
    let head = StoredHead { canonical: "r.io/app".to_owned(), etag: Some("\"x\"".to_owned()) };
    for store in [store, TagStore::new(root())] {
        assert_eq!(store.head(&key("web"), "r.io/app").unwrap().as_ref(), Some(&head));
        assert_eq!(store.head(&key("web"), "r.io/other").unwrap(), None);
        let third = at("2026-11-21T12:00:00Z");
        let renewed = store.save_unchanged(&key("web"), "r.io/app", third).unwrap().unwrap();
        assert_eq!(*renewed.tags, StoredTags { scanned: third, ..StoredTags::clone(&before) });
        assert!(store.save_unchanged(&key("web"), "r.io/other", third).unwrap().is_none());
    }
    assert_eq!(TagStore::new(root()).head(&key("none"), "r.io/app").unwrap(), None);
}

#[test]
fn invalid_names_in_an_older_file_are_skipped() {
    let directory = TempDir::new().unwrap();
    let store = || TagStore::new(Some(directory.path().to_owned()));
    store().save_scan(&key("web"), scan(&["1.0"], FIRST)).unwrap();
    store().save_scan(&key("web"), scan(&["1.0", "odd\n\"tag\"", ".a", "2.0"], SECOND)).unwrap();
    let found = store().read(&key("web"), "r.io/app").unwrap().unwrap();
    assert_eq!(found.tags.iter().collect::<Vec<_>>(), ["2.0", "1.0"]);
    assert_eq!((found.first_seen("2.0"), found.first_seen("1.0")), (Some(at(SECOND)), None));
}

/// A large list that is being written blocks no other object.
#[test]
fn writing_one_object_does_not_block_another() {
    let store = TagStore::new(None);
    let lock = store.object_lock(&key("large"));
    let _writing = lock.lock();
    store.save_scan(&key("small"), scan(&["1.0"], FIRST)).unwrap();
    assert!(store.read(&key("small"), "r.io/app").unwrap().is_some());
}

#[test]
fn files_without_an_object_are_removed() {
    let directory = TempDir::new().unwrap();
    let store = TagStore::new(Some(directory.path().to_owned()));
    for name in ["web", "api"] {
        store.save_scan(&key(name), scan(&["1.0"], FIRST)).unwrap();
    }
    let left_over = directory.path().join("apps/.new-a1b2c3");
    fs::write(&left_over, "tagboat ta").unwrap();
    store.sweep(|found| *found == key("web"));
    assert!(!left_over.exists());
    assert!(store.read(&key("web"), "r.io/app").unwrap().is_some());
    assert!(store.read(&key("api"), "r.io/app").unwrap().is_none());
    store.delete(&key("web")).unwrap();
    store.delete(&key("web")).unwrap();
    assert!(store.read(&key("web"), "r.io/app").unwrap().is_none());
    store.sweep(|_| false);
    assert!(list(directory.path()).is_empty());
}

#[test]
fn no_name_leads_out_of_the_directory() {
    let store = TagStore::new(Some(PathBuf::from("/nowhere")));
    for name in ["", "..", "a/b", "../x", ".hidden", "a\0b"] {
        let error = store.read(&key(name), "r.io/app").unwrap_err();
        assert!(matches!(error, StoreError::Name { .. }), "{name}");
    }
}

#[test]
fn a_dry_run_reads_the_store_and_writes_nothing() {
    let directory = TempDir::new().unwrap();
    let root = directory.path().to_owned();
    TagStore::new(Some(root.clone())).save_scan(&key("web"), scan(&["1.0"], FIRST)).unwrap();
    let store = TagStore::dry_run(root.clone());
    let found = store.save_scan(&key("web"), scan(&["1.0", "1.1"], SECOND)).unwrap().tags;
    assert_eq!((found.first_seen("1.0"), found.first_seen("1.1")), (None, Some(at(SECOND))));
    assert_eq!(store.read(&key("web"), "r.io/app").unwrap().unwrap(), found);
    store.save_scan(&key("api"), scan(&["1.0"], FIRST)).unwrap();
    store.delete(&key("web")).unwrap();
    store.sweep(|_| false);
    let there = TagStore::new(Some(root)).read(&key("web"), "r.io/app").unwrap().unwrap();
    assert_eq!(there.tags.iter().collect::<Vec<_>>(), ["1.0"]);
    assert_eq!(list(&directory.path().join("apps")).len(), 1);
}

#[test]
fn an_unreadable_file_is_replaced() {
    let directory = TempDir::new().unwrap();
    let root = || Some(directory.path().to_owned());
    let path = directory.path().join("apps/web.tags");
    TagStore::new(root()).save_scan(&key("web"), scan(&["1.0"], FIRST)).unwrap();
    // root may read any file; a circular link can be read by no user.
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("web.tags", &path).unwrap();
    let store = TagStore::new(root());
    let error = store.read(&key("web"), "r.io/app").unwrap_err();
    assert_eq!(error.to_string(), format!("cannot read {}", path.display()));
    let kept = store.save_scan(&key("web"), scan(&["1.0"], SECOND)).unwrap();
    assert!(kept.write_error.is_none());
    assert_eq!(TagStore::new(root()).read(&key("web"), "r.io/app").unwrap().unwrap(), kept.tags);
}

#[test]
fn a_scan_that_cannot_be_written_stays_in_memory() {
    let directory = TempDir::new().unwrap();
    let root = directory.path().join("tags");
    // No directory can be made in place of a file.
    fs::write(&root, "").unwrap();
    let store = TagStore::new(Some(root.clone()));
    for _ in 0..2 {
        let kept = store.save_scan(&key("web"), scan(&["1.0"], FIRST)).unwrap();
        let message = format!("cannot write {}", root.join("apps/web.tags").display());
        assert_eq!(kept.write_error.unwrap().to_string(), message);
        assert_eq!(store.read(&key("web"), "r.io/app").unwrap().unwrap(), kept.tags);
    }
}

#[test]
fn old_files_without_an_object_are_removed() {
    let directory = TempDir::new().unwrap();
    let store = TagStore::new(Some(directory.path().to_owned()));
    let now = SystemTime::now();
    let set_age = |path: &Path, days: u64| {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(now - Duration::from_secs(days * 24 * 3600)).unwrap();
    };
    let path = |name: &str| directory.path().join("apps").join(name);
    for (name, days) in [("there", 30), ("gone", 8), ("of-another-run", 6)] {
        store.save_scan(&key(name), scan(&["1.0"], FIRST)).unwrap();
        set_age(&path(&format!("{name}.tags")), days);
    }
    for (name, days) in [(".new-old", 8), (".new-under-way", 0), ("note", 30)] {
        fs::write(path(name), "").unwrap();
        set_age(&path(name), days);
    }
    TagStore::dry_run(directory.path().to_owned()).sweep_old(|_| false, now);
    assert_eq!(list(&directory.path().join("apps")).len(), 6);
    store.sweep_old(|found| *found == key("there"), now);
    let mut left = list(&directory.path().join("apps"));
    left.sort();
    assert_eq!(left, [".new-under-way", "note", "of-another-run.tags", "there.tags"].map(path));
}

#[test]
fn loading_a_file_does_not_replace_a_newer_scan() {
    let directory = TempDir::new().unwrap();
    let store = TagStore::new(Some(directory.path().to_owned()));
    store.save_scan(&key("web"), scan(&["1.0"], FIRST)).unwrap();
    let path = store.path(&key("web")).unwrap().unwrap();
    let old = fs::read(&path).unwrap();
    store.save_scan(&key("web"), scan(&["1.0", "1.1"], SECOND)).unwrap();
    fs::write(&path, old).unwrap();
    // As for a caller that read the file before the second scan ended.
    for found in [store.load(&key("web")), store.read(&key("web"), "r.io/app")] {
        assert_eq!(found.unwrap().unwrap().scanned, at(SECOND));
    }
}
