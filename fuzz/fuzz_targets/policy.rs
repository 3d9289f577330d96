//! See `tagboat_fuzzing::policy`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tagboat_fuzzing::policy(input));
