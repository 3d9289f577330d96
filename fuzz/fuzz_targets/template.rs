//! See `tagboat_fuzzing::template`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tagboat_fuzzing::template(input));
