//! Regular expressions for host names of a cloud's registries and for annotations.

use tagboat_go_text::{Captures, Regexp};

use super::error::LoginError;

/// The maximum memory of a compiled pattern in bytes; ours need far less.
const MAX_MEMORY: usize = 1024 * 1024;

/// Returns `true` if a text matches one of our patterns.
pub(super) fn is_match(pattern: &'static str, text: &str) -> bool {
    compile(pattern).is_match(text.as_bytes())
}

/// Returns the captures of a text that matches one of our patterns.
pub(super) fn captures<'t>(pattern: &'static str, text: &'t str) -> Option<Captures<'t>> {
    compile(pattern).captures(text.as_bytes())
}

fn compile(pattern: &'static str) -> Regexp {
    Regexp::compile_within(pattern, MAX_MEMORY).expect("the patterns of clouds are expressions")
}

/// The pattern of a cloud's registry names, which Flux's messages show.
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

    /// Returns the captures of a matching name.
    pub(super) fn captures<'h>(&self, host: &'h str) -> Result<Captures<'h>, LoginError> {
        self.regexp.captures(host.as_bytes()).ok_or_else(|| LoginError::Registry {
            cloud: self.cloud,
            host: host.to_owned(),
            must: format!("match {}", self.text),
        })
    }

    pub(super) fn is_match(&self, host: &str) -> bool {
        self.regexp.is_match(host.as_bytes())
    }
}
