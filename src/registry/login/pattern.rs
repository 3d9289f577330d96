//! Which registries are of a cloud: by their names.

use tagboat_go_text::{Captures, Regexp};

use super::error::LoginError;

/// How much memory a pattern may take; ours take far less.
const SIZE: usize = 1024 * 1024;

/// The names of a cloud's registries, as an expression that Flux's messages show.
#[derive(Debug)]
pub(super) struct HostPattern {
    cloud: &'static str,
    text: &'static str,
    regexp: Regexp,
}

impl HostPattern {
    pub(super) fn new(cloud: &'static str, text: &'static str) -> Self {
        let regexp = Regexp::compile_within(text, SIZE).expect("the patterns of clouds are expressions");
        Self { cloud, text, regexp }
    }

    /// The parts of a name that fits.
    pub(super) fn read<'h>(&self, host: &'h str) -> Result<Captures<'h>, LoginError> {
        self.regexp.captures(host.as_bytes()).ok_or_else(|| LoginError::Registry {
            cloud: self.cloud,
            host: host.to_owned(),
            must: format!("match {}", self.text),
        })
    }

    pub(super) fn fits(&self, host: &str) -> bool {
        self.regexp.is_match(host.as_bytes())
    }
}
