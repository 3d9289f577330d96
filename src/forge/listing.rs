//! The choice of the open pull requests that a listing returns.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::pull_request::PullRequest;
use super::reading::Defect;
use crate::git::BranchName;
use crate::tenancy::KeptShare;

/// The maximum size in bytes of the pull requests that a listing returns.
const MAX_KEPT: usize = 16 * 1024 * 1024;

/// The choice of the open pull requests that a listing returns.
///
/// The others are dropped page by page, so that their bodies take no memory.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The head branches whose pull requests are returned.
    pub heads: BTreeSet<BranchName>,
    /// Returns true for the body of a pull request that is returned with any head.
    pub has_mark: fn(&str) -> bool,
    /// True if something is to be opened or closed.
    ///
    /// Then the listing goes on when little is left of a limit.
    pub is_urgent: bool,
    /// The numbers of the pull requests that the listing before this one left out.
    pub strangers: BTreeSet<u64>,
    /// The numbers of the pull requests that this one has left out.
    pub left_out: BTreeSet<u64>,
    /// The memory in which the pull requests are kept.
    pub memory: Arc<KeptShare>,
}

impl Listing {
    /// Chooses the pull requests of heads, and those with a mark in their body.
    pub fn of(heads: BTreeSet<BranchName>, has_mark: fn(&str) -> bool) -> Self {
        let (strangers, left_out) = (BTreeSet::new(), BTreeSet::new());
        Self { heads, has_mark, is_urgent: false, strangers, left_out, memory: Arc::default() }
    }

    /// Makes the choice of all pull requests.
    pub fn all() -> Self {
        Self::of(BTreeSet::new(), |_| true)
    }

    /// Chooses the pull requests of heads, to open one.
    pub(super) fn of_heads(heads: BTreeSet<BranchName>) -> Self {
        Self { is_urgent: true, ..Self::of(heads, |_| false) }
    }

    /// Chooses the pull requests of one head, to open one.
    pub(super) fn of_head(head: &BranchName) -> Self {
        Self::of_heads(BTreeSet::from([head.clone()]))
    }

    /// Returns true if the end of a body has to be known.
    ///
    /// A mark is at the end of a body. One of a pull request that was left out has none: Tagboat adds it only to pull requests
    /// of these heads.
    pub(super) fn needs_whole_body(&self, pull_request: &PullRequest) -> bool {
        self.heads.contains(&pull_request.head) || !self.strangers.contains(&pull_request.number)
    }

    /// Adds the chosen pull requests of a page to those that are returned.
    pub(super) fn keep(
        &mut self,
        page: impl IntoIterator<Item = PullRequest>,
        found: &mut Vec<PullRequest>,
    ) -> Result<(), Defect> {
        let mut size: usize = found.iter().map(PullRequest::size).sum();
        for one in page {
            if self.keeps(&one) {
                size += one.size();
                found.push(one);
            }
            if size > MAX_KEPT {
                return Err(Defect("more than 16 MiB of pull requests of Tagboat's branches"));
            }
            if !self.memory.grow(size) {
                return Err(Defect(
                    "pull requests for which the namespace has no room: those of all its GitRepositories take more than 64 MiB",
                ));
            }
        }
        Ok(())
    }

    /// Returns true if a pull request is returned, and notes one that is left out.
    fn keeps(&mut self, pull_request: &PullRequest) -> bool {
        let is_kept = self.heads.contains(&pull_request.head) || (self.has_mark)(&pull_request.body);
        if !is_kept {
            self.left_out.insert(pull_request.number);
        }
        is_kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forge::pull_request::tests::sample;
    use crate::tenancy::KeptMemory;

    fn pull_request(number: u64, body: &str) -> PullRequest {
        PullRequest { number, body: body.to_owned(), ..sample() }
    }

    /// Many repositories of one namespace filled the memory together.
    #[test]
    fn listings_of_a_namespace_keep_a_bounded_sum() {
        let namespace = Arc::new(KeptMemory::default());
        let body = "x".repeat(1024 * 1024);
        let mut listings: Vec<(Listing, Vec<PullRequest>)> = (0..8)
            .map(|_| {
                (
                    Listing { memory: Arc::new(KeptShare::new(Arc::clone(&namespace))), ..Listing::all() },
                    Vec::new(),
                )
            })
            .collect();
        let mut kept = 0;
        for at in 0..15 {
            for (listing, found) in &mut listings {
                kept += usize::from(listing.keep([pull_request(at, &body)], found).is_ok());
            }
        }
        assert_eq!(kept, 63);
        for has_room in [false, true] {
            let (listing, found) = &mut listings[0];
            found.truncate(8);
            assert_eq!(listing.keep([pull_request(20, &body)], found).is_ok(), has_room);
            // Another repository is gone.
            listings.pop();
        }
    }

    /// A server with our line on 100 pages of 8 MiB filled the memory.
    #[test]
    fn a_listing_keeps_a_bounded_sum() {
        let (mut listing, mut found) = (Listing::all(), Vec::new());
        let body = "x".repeat(1024 * 1024);
        let kept = (0..1_000).take_while(|at| listing.keep([pull_request(*at, &body)], &mut found).is_ok());
        assert_eq!(kept.count(), 15);
        let (mut listing, mut found) = (Listing::of(BTreeSet::new(), |_| false), Vec::new());
        for at in 0..100 {
            listing.keep([pull_request(at, &body)], &mut found).unwrap();
        }
        assert!(found.is_empty() && listing.left_out.len() == 100);
    }
}
