//! The tags that an ImageRepository leaves out.

use tagboat_go_text::{Expression, RegexpError, RegexpSet, SetTooLarge};

use crate::reference::TagList;
use crate::tenancy::Interrupted;

/// The maximum bytes of all expressions of an object when compiled.
const MOST_BYTES: usize = 10 * 1024 * 1024;

/// Expressions; a tag in which one of them has a match is left out.
#[derive(Debug)]
pub struct Exclusion(RegexpSet);

/// The error of expressions that cannot be used, in Flux's words if it has any.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ExclusionError {
    /// An expression is invalid in Go's syntax.
    #[error("failed to compile regex {pattern}")]
    Pattern {
        /// The expression.
        pattern: String,
        /// The defect.
        #[source]
        cause: RegexpError,
    },
    /// All expressions together are too large.
    #[error("failed to compile spec.exclusionList; use fewer or simpler expressions")]
    TooLarge(#[from] SetTooLarge),
}

impl Exclusion {
    /// Parses the list of an ImageRepository.
    ///
    /// # Errors
    ///
    /// If one of its expressions is invalid in Go's syntax, or all together are too large when compiled.
    pub fn parse(patterns: &[String]) -> Result<Self, ExclusionError> {
        let expressions = patterns.iter().map(|pattern| {
            Expression::parse(pattern)
                .map_err(|cause| ExclusionError::Pattern { pattern: pattern.clone(), cause })
        });
        let expressions: Vec<_> = expressions.collect::<Result<_, _>>()?;
        Ok(Self(RegexpSet::compile_within(&expressions, MOST_BYTES)?))
    }

    /// Returns the tags that are left; without a copy if these are all.
    ///
    /// # Errors
    ///
    /// If `check` fails, which is called between two tags.
    pub fn apply(
        &self,
        tags: &TagList,
        check: impl Fn() -> Result<(), Interrupted>,
    ) -> Result<TagList, Interrupted> {
        let mut kept = Vec::new();
        for tag in tags.iter() {
            check()?;
            if !self.0.is_match(tag.as_bytes()) {
                kept.push(tag);
            }
        }
        Ok(if kept.len() == tags.len() { tags.clone() } else { kept.into_iter().collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::chain;

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
            let found = Exclusion::parse(&patterns).unwrap().apply(&tags, || Ok(())).unwrap();
            assert_eq!(found.iter().collect::<Vec<_>>(), left, "{patterns:?}");
        }
        let error = Exclusion::parse(&["[=".to_owned()]).unwrap_err();
        assert_eq!(
            chain(&error),
            "failed to compile regex [=: error parsing regexp: missing closing ]: `[=`"
        );
    }

    /// Each of 25 expressions stays below the bound, which once held for each of them.
    #[test]
    fn the_expressions_of_an_object_are_bounded_together() {
        let pattern = |number: usize| format!(r"x{number}\pL{{100}}");
        assert!(Exclusion::parse(&[pattern(1)]).is_ok());
        let patterns: Vec<String> = (0..25).map(pattern).collect();
        assert_eq!(
            chain(&Exclusion::parse(&patterns).unwrap_err()),
            "failed to compile spec.exclusionList; use fewer or simpler expressions: the expressions take more \
             than 10485760 bytes together when compiled"
        );
    }

    #[test]
    fn matching_stops_between_two_tags() {
        let exclusion = Exclusion::parse(&["a".to_owned()]).unwrap();
        let tags = ["b1", "b2", "b3"].into_iter().collect();
        let checks = std::cell::Cell::new(0);
        let check = || {
            checks.set(checks.get() + 1);
            if checks.get() < 3 { Ok(()) } else { Err(Interrupted::DeadlineExceeded) }
        };
        assert_eq!(exclusion.apply(&tags, check), Err(Interrupted::DeadlineExceeded));
        assert_eq!(checks.get(), 3);
    }
}
