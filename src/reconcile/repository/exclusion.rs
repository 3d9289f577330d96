//! The tags that an ImageRepository leaves out.

use tagboat_api::Reason;
use tagboat_go_text::{Regexp, RegexpError};

use crate::failing::Failing;
use crate::reference::TagList;

/// How many bytes one expression may take.
const MOST_BYTES: usize = 10 * 1024 * 1024;

/// Expressions; a tag that one of them finds something in is left out.
#[derive(Debug)]
pub struct Exclusion(Vec<Regexp>);

/// An expression that cannot be understood, in Flux's words.
#[derive(Debug, Clone, thiserror::Error)]
#[error("failed to compile regex {pattern}")]
pub struct ExclusionError {
    /// The expression.
    pattern: String,
    /// What is wrong with it.
    #[source]
    cause: RegexpError,
}

/// Flux tries again for ever, and so its users see the same condition.
impl Failing for ExclusionError {
    fn reason(&self) -> Reason {
        Reason::ReadOperationFailed
    }

    fn is_retryable(&self) -> bool {
        true
    }
}

impl Exclusion {
    /// Understands the list of an ImageRepository.
    ///
    /// # Errors
    ///
    /// When one of its expressions is none in Go's syntax.
    pub fn parse(patterns: &[String]) -> Result<Self, ExclusionError> {
        let compiled = patterns.iter().map(|pattern| {
            Regexp::compile_within(pattern, MOST_BYTES)
                .map_err(|cause| ExclusionError { pattern: pattern.clone(), cause })
        });
        compiled.collect::<Result<_, _>>().map(Self)
    }

    /// The tags that are left.
    pub fn apply(&self, tags: &TagList) -> TagList {
        let is_kept = |tag: &&str| !self.0.iter().any(|pattern| pattern.is_match(tag.as_bytes()));
        tags.iter().filter(is_kept).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sentence::chain;

    #[test]
    fn tags_are_left_out_as_flux_leaves_them_out() {
        for (patterns, tags, left) in [
            (&[][..], &["d", "c"][..], &["d", "c"][..]),
            (&["[abc]"], &["a", "b", "c", "d"], &["d"]),
            (&["[a]", "[d]"], &["a", "b", "c", "d"], &["c", "b"]),
            (
                &[r"^.*\-alpha$", r"^.*\.sig$"],
                &["0.1.0", "0.2.0", "0.2.-alpha", "0.3.0", "0.4.0", "0.4.0.sig"],
                &["0.4.0", "0.3.0", "0.2.0", "0.1.0"],
            ),
            (&["aaa|ccc"], &["aaa", "bbb", "ccc", "ddd"], &["ddd", "bbb"]),
        ] {
            let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
            let tags = tags.iter().copied().collect();
            let found = Exclusion::parse(&patterns).unwrap().apply(&tags);
            assert_eq!(found.iter().collect::<Vec<_>>(), left, "{patterns:?}");
        }
        let error = Exclusion::parse(&["[=".to_owned()]).unwrap_err();
        assert_eq!(
            chain(&error),
            "failed to compile regex [=: error parsing regexp: missing closing ]: `[=`"
        );
    }
}
