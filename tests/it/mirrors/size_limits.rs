//! Size limits of one mirror and of all mirrors.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::json;
use tagboat::error::chain;
use tagboat::git::outcome::Outcome;
use tagboat::reconcile::automation::proposal::UpdateProposal;
use tagboat::reconcile::automation::reverts::{Reverts, StatusBaseline};
use tagboat_api::ImageRef;
use tagboat_api::settings::OnRevert;

use super::local_remote::{LocalRemote, proposer, size_of};
use crate::support::content::{Change, file};
use crate::support::fleet::{IMAGE, tag_line};

const MEBIBYTE: usize = 1 << 20;

const TIMEOUT: Duration = Duration::from_secs(120);

/// A file that does not compress, different for each number.
fn noise(number: u64, length: usize) -> Change {
    let mut state = 0x9e37_79b9_7f4a_7c15 ^ number;
    let mut step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let bytes: Vec<u8> = (0..length / 8).flat_map(|_| step()).collect();
    file("noise.bin", bytes)
}

#[test]
fn a_repository_beyond_the_limit_is_refused_while_it_is_fetched() {
    const FILE: usize = 32 * MEBIBYTE;
    let limit = 2 * MEBIBYTE as u64;
    let local = LocalRemote::new(&[file("app.yaml", tag_line("1.0.0")), noise(1, FILE)]).within(limit);
    let is_over = AtomicBool::new(false);
    let (result, peak) = thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut peak = 0;
            while !is_over.load(Ordering::Relaxed) {
                peak = peak.max(size_of(&local.mirrors()));
                thread::sleep(Duration::from_millis(2));
            }
            peak
        });
        let result = local.update("2.0.0");
        is_over.store(true, Ordering::Relaxed);
        (result, watch.join().unwrap())
    });
    let error = chain(result.unwrap_err().as_ref());
    assert!(error.contains(&format!("larger than {limit} bytes; raise --mirror-max-size")), "{error}");
    println!("a limit of {limit} bytes, a file of {FILE}: at most {peak} on the disk");
    assert!(peak < FILE as u64 / 2, "{peak} bytes were fetched before git was ended");
    let left = size_of(&local.mirrors());
    assert!(left < 100_000, "{left} bytes are left");
    assert!(matches!(local.within(2 << 30).update("2.0.0").unwrap(), Outcome::Pushed(_)));
}

/// A listing that needs more memory is made again with more.
/// It first reserves little memory, because that is held while a silent server is awaited.
#[test]
fn a_listing_that_needs_more_memory_is_made_again_with_more() {
    let local = LocalRemote::new(&[file("app.yaml", tag_line("1.0.0"))]);
    let tip = local.remote.id("main").unwrap();
    let branches: String =
        (0..300_000).map(|number| format!("{tip} refs/heads/branch-{number:06}\n")).collect();
    let packed = format!("# pack-refs with: peeled fully-peeled sorted \n{branches}");
    fs::write(local.remote.path().join("packed-refs"), packed).unwrap();
    assert!(matches!(local.update("2.0.0").unwrap(), Outcome::Pushed(_)));
}

/// Mirrors that are too large together displace the least recently used.
/// Each mirror alone is within its limit; without a limit on all of them they would fill the node's disk.
#[test]
fn mirrors_that_are_too_large_together_displace_the_least_recently_used() {
    let local = LocalRemote::new(&[file("app.yaml", tag_line("1.0.0")), noise(1, MEBIBYTE)]);
    local.update("1.0.1").unwrap();
    let own = local.mirror().parent().unwrap().to_owned();
    let idle = local.mirrors().join("default.idle.0123456789abcdef");
    fs::create_dir(&idle).unwrap();
    let key = json!({"namespace": "default", "name": "idle", "url": "https://h/idle"});
    fs::write(idle.join("key.json"), key.to_string()).unwrap();
    fs::write(idle.join("lock"), "").unwrap();
    fs::write(idle.join("pack"), vec![0; MEBIBYTE]).unwrap();
    let local = local.within_total(3 * MEBIBYTE as u64);
    local.remote.commit("main", "More", &[noise(2, MEBIBYTE / 4)]);
    assert!(matches!(local.update("1.0.2").unwrap(), Outcome::Pushed(_)));
    assert!(idle.exists() && own.exists(), "there was room for both");
    local.remote.commit("main", "More", &[noise(3, MEBIBYTE)]);
    assert!(matches!(local.update("1.0.3").unwrap(), Outcome::Pushed(_)));
    assert!(!idle.exists() && own.exists());
    // A mirror that does not fit at all is removed again.
    let limit = 4 * MEBIBYTE;
    let local = local.within_total(limit as u64);
    local.remote.commit("main", "More", &[noise(4, 2 * limit)]);
    let error = chain(local.update("1.0.4").unwrap_err().as_ref());
    let sentence = format!("all mirrors together would be larger than {limit} bytes");
    assert!(error.contains(&sentence) && error.contains("raise --mirrors-max-size"), "{error}");
    assert!(size_of(&local.mirrors()) < 100_000);
}

/// The automation failed in each run.
#[test]
fn a_removed_push_for_which_no_mirror_has_room_counts_as_removed() {
    let app = || file("app.yaml", tag_line("1.0.0"));
    let local = LocalRemote::new(&[app(), noise(1, 4 * MEBIBYTE)]);
    let small = local.remote.commit("small", "Begin without the file", &[app()]);
    let run = |local: &LocalRemote| {
        let reverts = Reverts::new(Some(OnRevert::Hold), StatusBaseline::default(), BTreeSet::new());
        let image = ImageRef { name: IMAGE.to_owned(), tag: "2.0.0".to_owned(), digest: None };
        let policies = BTreeMap::from([("podinfo".to_owned(), image)]);
        let proposer = UpdateProposal { reverts, policies, ..proposer("2.0.0") };
        let [answer] = local.transact(vec![local.request("default/fleet", proposer, TIMEOUT)], false);
        answer.result
    };
    assert!(matches!(run(&local), Ok(Outcome::Pushed(_))));
    // The process was killed during its push, and the mirror was lost, but not the journal.
    let path = local.mirror().with_file_name("push-journal.json");
    let journal = fs::read_to_string(&path).unwrap();
    let unknown = journal.replace("\"isBranchDone\": true", "\"isBranchDone\": false");
    assert_ne!(unknown, journal);
    fs::write(&path, unknown).unwrap();
    fs::remove_dir_all(local.mirror()).unwrap();
    local.remote.move_branch("main", &small);
    let local = local.within(2 * MEBIBYTE as u64);
    for _ in 0..2 {
        let result = run(&local);
        assert!(result.is_ok(), "{result:?}");
        assert_eq!(local.remote.id("main").unwrap(), small);
    }
}

#[test]
fn a_mirror_that_has_grown_too_large_is_replaced() {
    let limit = 3 * MEBIBYTE as u64;
    let file = |number| noise(number, MEBIBYTE);
    let local = LocalRemote::new(&[self::file("app.yaml", tag_line("1.0.0")), file(0)]).within(limit);
    for number in 1..10 {
        local.update("1.0.0").unwrap();
        assert!(size_of(&local.mirror()) <= limit, "in run {number}");
        local.remote.commit("main", "Change", &[file(number)]);
    }
    assert!(matches!(local.update("2.0.0").unwrap(), Outcome::Pushed(_)));
    local.remote.assert_sound();
}

/// The packs of a mirror.
fn packs(local: &LocalRemote) -> Vec<PathBuf> {
    let items = fs::read_dir(local.mirror().join("objects/pack")).unwrap().map(|item| item.unwrap().path());
    let mut packs: Vec<PathBuf> =
        items.filter(|path| path.extension().is_some_and(|it| it == "pack")).collect();
    packs.sort();
    packs
}

/// Each rejected push, and each dry run with large files, left its objects for ever.
#[test]
fn objects_of_commits_that_are_not_pushed_do_not_stay_in_the_mirror() {
    let local = LocalRemote::new(&[file("app.yaml", tag_line("1.0.0"))]);
    local.update("1.0.1").unwrap();
    let before = packs(&local);
    let outcome = local.dry_run("1.0.2").result;
    assert!(matches!(outcome, Ok(Outcome::DryRun { .. })), "{outcome:?}");
    assert_eq!(packs(&local), before);
    local.remote.hook("pre-receive", "echo 'Not on Fridays.' >&2; exit 1");
    for tag in ["1.0.2", "1.0.3"] {
        let error = chain(local.update(tag).unwrap_err().as_ref());
        assert!(error.contains("Not on Fridays."), "{error}");
        assert_eq!(packs(&local), before, "{tag}");
    }
    local.remote.hook("pre-receive", "exit 0");
    assert!(matches!(local.update("1.0.3").unwrap(), Outcome::Pushed(_)));
    assert_eq!(packs(&local).len(), before.len() + 1);
    local.remote.assert_sound();
}
