//! The references of a remote, as `git ls-remote` lists them.

use std::collections::BTreeMap;

use super::name::{CommitId, RefName};

/// The references of a remote and their targets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Listing {
    references: BTreeMap<RefName, RefTarget>,
    /// True if the remote has no reference at all, as a new repository.
    pub(super) is_empty: bool,
}

/// The target of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RefTarget {
    /// The object: a commit, or a tag object.
    pub(super) object: CommitId,
    /// The commit behind a tag object.
    pub(super) peeled: Option<CommitId>,
}

impl RefTarget {
    /// Returns the commit, through a tag object if there is one.
    pub(super) fn commit(self) -> CommitId {
        self.peeled.unwrap_or(self.object)
    }
}

/// The error of a listing that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListingError {
    /// The ids are longer than SHA-1's.
    #[error("it is a SHA-256 repository, and tagboat works with SHA-1 repositories only")]
    Sha256,
    /// It is no listing.
    #[error("its answer is not a list of references")]
    Unreadable,
}

impl Listing {
    /// Reads the output of `git ls-remote`: lines of an id, a tab and a name.
    /// Names that no manifest can state, because they are not UTF-8 or break git's rules, are left out.
    ///
    /// # Errors
    ///
    /// If the ids are not those of a SHA-1 repository.
    pub(super) fn parse(text: &[u8]) -> Result<Self, ListingError> {
        let mut listing = Self { is_empty: true, ..Self::default() };
        for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let tab = line.iter().position(|&byte| byte == b'\t').ok_or(ListingError::Unreadable)?;
            let (id, name) = (&line[..tab], &line[tab + 1..]);
            if id.len() == 64 {
                return Err(ListingError::Sha256);
            }
            let id = std::str::from_utf8(id).ok().and_then(|id| id.parse::<CommitId>().ok());
            let id = id.ok_or(ListingError::Unreadable)?;
            listing.is_empty = false;
            let Ok(name) = std::str::from_utf8(name) else { continue };
            let (name, is_peeled) = name.strip_suffix("^{}").map_or((name, false), |name| (name, true));
            let Ok(name) = name.parse::<RefName>() else { continue };
            let listed = listing.references.entry(name).or_insert(RefTarget { object: id, peeled: None });
            if is_peeled {
                listed.peeled = Some(id);
            }
        }
        Ok(listing)
    }

    /// Creates the listing of a remote of which one branch is known.
    pub(super) fn of_branch(name: RefName, commit: CommitId) -> Self {
        let listed = RefTarget { object: commit, peeled: None };
        Self { references: BTreeMap::from([(name, listed)]), is_empty: false }
    }

    /// Returns the target of a reference, if it exists.
    pub(super) fn get(&self, name: &RefName) -> Option<RefTarget> {
        self.references.get(name).copied()
    }

    /// Returns the commit of a reference, if it exists.
    pub(super) fn commit(&self, name: &RefName) -> Option<CommitId> {
        self.get(name).map(RefTarget::commit)
    }

    /// Returns the tags, in rising order of their names.
    pub(super) fn tags(&self) -> impl Iterator<Item = (&RefName, RefTarget)> {
        self.references
            .iter()
            .filter(|(name, _)| name.as_str().starts_with("refs/tags/"))
            .map(|(name, at)| (name, *at))
    }

    /// Returns the names of the branches, in rising order.
    pub(super) fn branches(&self) -> impl Iterator<Item = &str> {
        self.references.keys().filter_map(|name| name.as_str().strip_prefix("refs/heads/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    #[test]
    fn a_listing_knows_branches_and_tags() {
        let text = format!(
            "{ONE}\tHEAD\n{ONE}\trefs/heads/main\n{ONE}\trefs/tags/light\n{TWO}\trefs/tags/v1\n{ONE}\trefs/tags/v1^{{}}\n"
        );
        let listing = Listing::parse(text.as_bytes()).unwrap();
        assert!(!listing.is_empty);
        let name = |name: &str| name.parse::<RefName>().unwrap();
        assert_eq!(listing.commit(&name("refs/heads/main")).unwrap().to_string(), ONE);
        let tag = listing.get(&name("refs/tags/v1")).unwrap();
        assert_eq!((tag.object.to_string(), tag.commit().to_string()), (TWO.to_owned(), ONE.to_owned()));
        assert_eq!(listing.commit(&name("refs/heads/other")), None);
        assert_eq!(listing.branches().collect::<Vec<_>>(), ["main"]);
        assert_eq!(listing.tags().count(), 2);
    }

    #[test]
    fn an_empty_answer_is_an_empty_repository() {
        assert!(Listing::parse(b"").unwrap().is_empty);
        let foreign = [ONE.as_bytes(), b"\trefs/heads/\xff\n"].concat();
        assert_eq!(
            Listing::parse(&foreign).map(|listing| (listing.is_empty, listing.branches().count())),
            Ok((false, 0))
        );
    }

    #[test]
    fn unusable_listings_are_errors() {
        let long = format!("{}\trefs/heads/main\n", "1".repeat(64));
        assert_eq!(Listing::parse(long.as_bytes()), Err(ListingError::Sha256));
        for bad in ["x", "<html>\n", "123\trefs/heads/main\n"] {
            assert_eq!(Listing::parse(bad.as_bytes()), Err(ListingError::Unreadable), "{bad}");
        }
    }
}
