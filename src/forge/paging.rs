//! The place in a listing that is read page by page.

use std::collections::BTreeSet;

use super::error::ForgeError;
use super::exchange::ApiResponse;
use super::reading::Defect;

/// The maximum number of full pages of one listing.
const MAX_PAGES: usize = 100;

/// The maximum number of entries that are skipped.
const MAX_SKIPPED: usize = 100;

/// The place in a listing that is read page by page.
///
/// It guards against pages without end. Pages become smaller where one is larger than a response may be, and an entry that is too
/// large alone is skipped.
#[derive(Debug)]
pub(super) struct Pages {
    /// The number of entries of a full page.
    full: usize,
    /// The number of entries of the next page, which divides `full` and `offset`.
    size: usize,
    /// The number of entries before the next page.
    offset: usize,
    /// The numbers of all entries so far.
    seen: BTreeSet<u64>,
    /// The number of entries of the last page that was read.
    counted: usize,
    /// The number of pages that may still be read.
    left: usize,
    /// The number of entries that were skipped.
    skipped: usize,
}

impl Pages {
    /// Begins a listing with pages of a number of entries.
    pub(super) fn of(full: usize) -> Self {
        let seen = BTreeSet::new();
        Self { full, size: full, offset: 0, seen, counted: full, left: MAX_PAGES, skipped: 0 }
    }

    /// Returns the number of entries of the next page.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Returns the number of entries before the next page.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the number of the next page, beginning with 1.
    pub(super) fn number(&self) -> usize {
        self.offset / self.size + 1
    }

    /// Returns the number of different entries so far.
    pub(super) fn entries(&self) -> u64 {
        self.seen.len() as u64
    }

    /// Returns the response with a page; there is none if the page was too large.
    ///
    /// The next page is a smaller one then.
    pub(super) fn admit(
        &mut self,
        response: Result<ApiResponse, ForgeError>,
    ) -> Result<Option<ApiResponse>, ForgeError> {
        match response {
            Err(ForgeError::TooLarge { .. }) if self.size > 1 => {
                let parts = smallest_divisor(self.size);
                self.size /= parts;
                self.left += parts - 1;
                Ok(None)
            }
            Err(ForgeError::TooLarge { .. }) if self.skipped < MAX_SKIPPED => {
                self.skipped += 1;
                self.go_on();
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    /// Counts a page with the numbers of its entries.
    pub(super) fn count(&mut self, numbers: impl IntoIterator<Item = u64>) -> Result<(), Defect> {
        self.left = self.left.checked_sub(1).ok_or(Defect("more than 100 pages"))?;
        let before = self.seen.len();
        self.counted = 0;
        for number in numbers {
            self.counted += 1;
            self.seen.insert(number);
        }
        // Entries can move to the next page while pages are read, but not all of them.
        if self.counted > 0 && self.seen.len() == before {
            return Err(Defect("a page that repeats earlier ones"));
        }
        Ok(())
    }

    /// Goes on behind a page that was read, or an entry that is skipped.
    ///
    /// The next page is the largest one that begins there.
    pub(super) fn go_on(&mut self) {
        if self.offset == 0 && self.size == self.full && self.counted > 0 {
            // The maximum of the server is smaller.
            self.full = self.full.min(self.counted);
            self.size = self.full;
        }
        self.offset += self.size;
        self.size = self.full;
        while !self.offset.is_multiple_of(self.size) {
            self.size /= smallest_divisor(self.size);
        }
    }
}

/// Returns the smallest divisor of a number above 1.
fn smallest_divisor(number: usize) -> usize {
    (2..number).find(|divisor| number.is_multiple_of(*divisor)).unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::forge::error::SizeLimit;

    #[test]
    fn pages_end() {
        let mut pages = Pages::of(2);
        assert_eq!(pages.count([3, 2]), Ok(()));
        assert_eq!(pages.count([2, 1]), Ok(()), "an entry moved to the next page");
        assert_eq!(pages.entries(), 3);
        assert_eq!(pages.count([]), Ok(()));
        assert!(pages.count([3]).is_err(), "a loop");
        let mut endless = Pages::of(50);
        let pages = (0..1_000).take_while(|page| endless.count([*page]).is_ok()).count();
        assert_eq!(pages, MAX_PAGES);
    }

    /// Reads a listing where the sum of the sizes of a page's entries is limited.
    ///
    /// Returns the entries, and each page as its offset and size.
    fn read(sizes: &[usize], limit: usize, full: usize) -> (Vec<usize>, Vec<(usize, usize)>) {
        let (mut pages, mut found, mut asked) = (Pages::of(full), Vec::new(), Vec::new());
        loop {
            assert_eq!((pages.number() - 1) * pages.size(), pages.offset());
            asked.push((pages.offset(), pages.size()));
            let range = pages.offset().min(sizes.len())..(pages.offset() + pages.size()).min(sizes.len());
            let response = if sizes[range.clone()].iter().sum::<usize>() > limit {
                Err(ForgeError::TooLarge {
                    host: String::new(),
                    operation: "list",
                    limit: SizeLimit::Bytes(limit),
                })
            } else {
                Ok(ApiResponse::new(200, Vec::new(), Value::Null))
            };
            let Some(_) = pages.admit(response).unwrap() else { continue };
            found.extend(range.clone());
            pages.count(range.clone().map(|at| at as u64)).unwrap();
            if range.len() < pages.size() {
                return (found, asked);
            }
            pages.go_on();
        }
    }

    #[test]
    fn a_page_that_is_too_large_is_read_in_parts() {
        let (found, asked) = read(&[1; 7], 10, 4);
        assert_eq!((found, asked), ((0..7).collect(), vec![(0, 4), (4, 4)]));
        let (found, asked) = read(&[1, 1, 3, 3, 1, 1], 5, 4);
        assert_eq!(found, (0..6).collect::<Vec<_>>());
        assert_eq!(asked, [(0, 4), (0, 2), (2, 2), (2, 1), (3, 1), (4, 4)]);
    }

    #[test]
    fn an_entry_that_is_too_large_alone_is_skipped() {
        let (found, asked) = read(&[1, 9, 1, 1, 1], 5, 4);
        assert_eq!(found, [0, 2, 3, 4]);
        assert_eq!(asked, [(0, 4), (0, 2), (0, 1), (1, 1), (2, 2), (4, 4)]);
        let (found, asked) = read(&[9; 100], 5, 50);
        assert!(found.is_empty() && asked.len() < 150, "{}", asked.len());
        let large = || {
            Err(ForgeError::TooLarge { host: String::new(), operation: "list", limit: SizeLimit::Bytes(5) })
        };
        let mut pages = Pages::of(50);
        let calls = (0..1_000).take_while(|_| pages.admit(large()).is_ok()).count();
        assert!((MAX_SKIPPED..2 * MAX_SKIPPED).contains(&calls), "{calls}");
    }

    #[test]
    fn a_smaller_maximum_of_the_server_counts() {
        let mut pages = Pages::of(50);
        pages.count(0..20).unwrap();
        pages.go_on();
        assert_eq!((pages.number(), pages.size(), pages.offset()), (2, 20, 20));
    }

    #[test]
    fn other_errors_are_passed_on() {
        let error = ForgeError::Unavailable { host: "h".to_owned(), detail: "x".to_owned() };
        assert_eq!(Pages::of(4).admit(Err(error.clone())).unwrap_err(), error);
    }
}
