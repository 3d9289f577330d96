//! See `tagboat_fuzzing::kubeconfig`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tagboat_fuzzing::kubeconfig(input));
