//! A file made by a grammar: three bytes choose the policies, the rest steers the grammar.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tagboat_fuzz::check::check_update;
use tagboat_fuzz::generate;
use tagboat_fuzz::setup::Setup;

/// Set in the environment, it prints the file that an input stands for.
const SHOW: &str = "TAGBOAT_FUZZ_SHOW";

fuzz_target!(|input: &[u8]| {
    if let Some((setup, choices)) = Setup::split(input) {
        let content = generate::file(choices, &setup);
        if std::env::var_os(SHOW).is_some() {
            eprintln!("{setup:?}\n{content:?}\n{content}");
        }
        check_update(content.as_bytes(), &setup);
    }
});
