//! See `tagboat_fuzzing::marker`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tagboat_fuzzing::marker(input));
