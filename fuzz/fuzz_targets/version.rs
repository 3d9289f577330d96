//! See `tagboat_fuzzing::version`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tagboat_fuzzing::version(input));
