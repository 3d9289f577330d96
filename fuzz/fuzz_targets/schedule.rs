//! See `tagboat_fuzzing::schedule`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tagboat_fuzzing::schedule(input));
