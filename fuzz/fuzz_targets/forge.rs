//! See `tagboat_fuzzing::forge`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tagboat_fuzzing::forge(input));
