//! See `tagboat_fuzzing::pull_request_body`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tagboat_fuzzing::pull_request_body(input));
