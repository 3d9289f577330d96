//! See `tagboat_fuzzing::watched`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tagboat_fuzzing::watched(input));
