//! What a text has to look like: names of a cloud's registries, annotations of accounts.

use tagboat_go_text::{Captures, Regexp};

use super::error::LoginError;

/// How much memory a pattern may take; ours take far less.
const SIZE: usize = 1024 * 1024;

/// Whether a text looks as an expression of ours says.
pub(super) fn is_like(pattern: &'static str, text: &str) -> bool {
    compile(pattern).is_match(text.as_bytes())
}

fn compile(pattern: &'static str) -> Regexp {
    Regexp::compile_within(pattern, SIZE).expect("the patterns of clouds are expressions")
}

/// The names of a cloud's registries, as an expression that Flux's messages show.
#[derive(Debug)]
pub(super) struct HostPattern {
    cloud: &'static str,
    text: &'static str,
    regexp: Regexp,
}

impl HostPattern {
    pub(super) fn new(cloud: &'static str, text: &'static str) -> Self {
        Self { cloud, text, regexp: compile(text) }
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
