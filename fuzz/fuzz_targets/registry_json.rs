//! See `tagboat_fuzzing::registry_json`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tagboat_fuzzing::registry_json(input));
