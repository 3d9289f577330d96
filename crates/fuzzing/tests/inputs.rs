//! Runs every fuzz target on its seeds and on inputs derived from them, deterministically.

#![cfg(test)]

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use tagboat_fuzzing::{TARGETS, Target};

/// The maximum length of a derived input, in bytes.
const MAX_LENGTH: usize = 4096;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// Returns the contents of the files of a folder, in the order of their names.
fn contents(folder: &Path) -> Vec<Vec<u8>> {
    let files = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths: BTreeSet<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Returns the words of libFuzzer's dictionary, without its escapes.
fn words() -> Vec<Vec<u8>> {
    let dictionary = fs::read_to_string(fuzz().join("yaml.dict")).unwrap();
    let quoted = dictionary.lines().filter_map(|line| line.split_once("=\"")?.1.strip_suffix('"'));
    quoted
        .map(|word| word.replace("\\x0a", "\n").replace("\\x0d", "\r").replace("\\\"", "\"").into_bytes())
        .collect()
}

/// A random number generator that is the same on every machine (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `count`, which must not be 0.
    fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % count as u64).unwrap()
    }

    /// Returns one of `items`, which must not be empty.
    fn one_of<'i>(&mut self, items: &'i [Vec<u8>]) -> &'i [u8] {
        &items[self.below(items.len())]
    }
}

/// Derives an input from seeds: cuts and splices them, changes bytes and inserts words.
fn input(seeds: &[Vec<u8>], words: &[Vec<u8>], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = numbers.one_of(seeds).to_vec();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(bytes.len() + 1);
        match numbers.below(6) {
            0 => {
                let other = numbers.one_of(seeds);
                let from = numbers.below(other.len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            1 => drop(bytes.splice(at..at, numbers.one_of(words).iter().copied())),
            2 => drop(bytes.drain(at..(at + numbers.below(16)).min(bytes.len()))),
            3 => {
                let part = bytes[at..(at + numbers.below(32)).min(bytes.len())].to_vec();
                let place = numbers.below(bytes.len() + 1);
                bytes.splice(place..place, part);
            }
            4 => {
                let random: Vec<u8> =
                    (0..numbers.below(24)).map(|_| numbers.next().to_le_bytes()[0]).collect();
                bytes.splice(at..at, random);
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << numbers.below(8);
                }
            }
        }
    }
    bytes.truncate(MAX_LENGTH);
    bytes
}

/// Runs a target on its seeds and on `count` derived inputs.
fn run(name: &str, count: usize) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let seeds = contents(&fuzz().join("seeds").join(name));
    let words = words();
    assert!(!seeds.is_empty() && words.len() > 40, "{name}");
    seeds.iter().for_each(|seed| check(target, seed));
    let mut numbers = Numbers(1);
    for _ in 0..count {
        check(target, &input(&seeds, &words, &mut numbers));
    }
}

fn check(target: &Target, input: &[u8]) {
    if catch_unwind(|| (target.run)(input)).is_err() {
        panic!("{} fails on {:?}", target.name, String::from_utf8_lossy(input));
    }
}

/// Makes a test of each target, with the number of its derived inputs.
macro_rules! targets {
    ($($name:ident: $count:expr,)*) => {
        $(
            #[test]
            fn $name() {
                run(stringify!($name), $count);
            }
        )*

        const TESTED: &[&str] = &[$(stringify!($name)),*];
    };
}

targets! {
    forge: 2_000,
    forge_address: 6_000,
    git_tree: 3_000,
    host: 4_000,
    known_hosts: 4_000,
    kubeconfig: 2_000,
    marker: 4_000,
    policy: 2_000,
    pull_request_body: 6_000,
    registry: 4_000,
    registry_json: 4_000,
    rewrite: 3_000,
    rewrite_generated: 3_000,
    schedule: 2_000,
    signing_key: 2_000,
    template: 3_000,
    version: 2_000,
    watched: 2_000,
}

/// A target that is missing in a list would not be built, run or tested.
#[test]
fn every_target_is_built_seeded_and_tested() {
    let known: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    let names = |folder: &str| -> BTreeSet<String> {
        let files = fs::read_dir(fuzz().join(folder)).unwrap();
        files.map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    };
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    let built = manifest
        .lines()
        .filter_map(|line| line.strip_prefix("path = \"fuzz_targets/")?.strip_suffix(".rs\""));
    assert_eq!(built.map(str::to_owned).collect::<BTreeSet<_>>(), known);
    assert_eq!(names("fuzz_targets"), known);
    assert_eq!(names("seeds"), known);
    assert_eq!(TESTED.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(), known);
}
