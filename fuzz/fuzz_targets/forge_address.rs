//! See `tagboat_fuzzing::forge_address`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tagboat_fuzzing::forge_address(input));
