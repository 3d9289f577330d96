//! See `tagboat_fuzzing::rewrite`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tagboat_fuzzing::rewrite(input));
