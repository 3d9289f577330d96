//! Any bytes as a file: three bytes choose the policies, the rest is the file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tagboat_fuzz::check::check_update;
use tagboat_fuzz::setup::Setup;

fuzz_target!(|input: &[u8]| {
    if let Some((setup, content)) = Setup::split(input) {
        check_update(content, &setup);
    }
});
