//! See `tagboat_fuzzing::signing_key`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tagboat_fuzzing::signing_key(input));
