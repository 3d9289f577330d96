//! See `tagboat_fuzzing::git_tree`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tagboat_fuzzing::git_tree(input));
