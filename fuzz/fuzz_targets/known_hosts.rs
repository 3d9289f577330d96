//! See `tagboat_fuzzing::known_hosts`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tagboat_fuzzing::known_hosts(input));
