//! Collects the tags of the pages of a list.

use super::page::{self, PageError, TagLimits, TagPage, TagSet};

/// The different tags of several pages, and the number of names that are no tags.
#[derive(Debug, Default)]
pub(super) struct GatheredTags {
    pub(super) tags: TagSet,
    pub(super) left_out: usize,
    /// The last entry of the last page.
    last: Option<String>,
}

/// The end of a page, from which the next one is requested.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PageEnd {
    /// The number of the page's entries.
    pub(super) entries: usize,
    /// The last entry, if it can be part of an address.
    pub(super) last: Option<String>,
    /// Set if the page has an entry that the pages before do not have.
    pub(super) has_new: bool,
}

impl GatheredTags {
    /// Parses a page and adds its tags.
    ///
    /// The time is proportional to the number of entries, known or new, so a large page belongs on a blocking thread.
    ///
    /// # Errors
    ///
    /// If the page is not a list of tags, or the tags of all pages exceed the limits.
    pub(super) fn add_page(&mut self, body: &[u8], limits: TagLimits) -> Result<PageEnd, PageError> {
        let TagPage { found, entries, left_out, last } = page::parse(body, limits)?;
        let has_new_tags = self.tags.merge(found, limits).ok_or(PageError::TooManyTags)?;
        // Names that are left out are not stored; the same last one twice means the same page again.
        let has_new = has_new_tags || (left_out > 0 && (last.is_none() || last != self.last));
        if has_new {
            self.left_out += left_out;
        }
        self.last.clone_from(&last);
        Ok(PageEnd { entries, last, has_new })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: TagLimits = TagLimits { tags: 3, bytes: 40 };

    /// A page of 250,000 known tags blocked an async worker, on which pages were merged.
    #[test]
    fn one_job_parses_a_page_and_merges_it() {
        let mut gathered = GatheredTags::default();
        for (page, has_new, tags, left_out) in [
            (r#"["a", "b"]"#, true, 2, 0),
            (r#"["a", "b"]"#, false, 2, 0),
            (r#"["b", "-"]"#, true, 2, 1),
            (r#"["a", "-"]"#, false, 2, 1),
            (r#"["a", "c"]"#, true, 3, 1),
        ] {
            let end = gathered.add_page(format!(r#"{{"tags": {page}}}"#).as_bytes(), LIMITS).unwrap();
            assert_eq!((end.entries, end.has_new), (2, has_new), "{page}");
            assert_eq!((gathered.tags.tags.len(), gathered.left_out), (tags, left_out), "{page}");
        }
        assert_eq!(gathered.add_page(br#"{"tags": ["d"]}"#, LIMITS), Err(PageError::TooManyTags));
    }
}
