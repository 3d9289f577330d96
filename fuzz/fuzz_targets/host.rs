//! See `tagboat_fuzzing::host`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tagboat_fuzzing::host(input));
