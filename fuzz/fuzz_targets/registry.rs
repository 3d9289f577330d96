//! See `tagboat_fuzzing::registry`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tagboat_fuzzing::registry(input));
