//! See `tagboat_fuzzing::rewrite_generated`.

#![no_main]

/// Set in the environment, it prints the file that an input stands for.
const SHOW: &str = "TAGBOAT_FUZZ_SHOW";

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if std::env::var_os(SHOW).is_some() {
        eprintln!("{}", tagboat_fuzzing::show_generated(input));
    }
    tagboat_fuzzing::rewrite_generated(input);
});
