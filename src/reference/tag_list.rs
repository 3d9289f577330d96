//! The tags of a repository, as they are stored.

/// Tags in falling byte order, none twice: the order in which Flux stores them, on which ties depend.
///
/// A registry may list any text as a tag, and what it lists is kept as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TagList(Vec<String>);

impl TagList {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The tags in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl FromIterator<String> for TagList {
    fn from_iter<I: IntoIterator<Item = String>>(tags: I) -> Self {
        let mut tags: Vec<String> = tags.into_iter().collect();
        tags.sort_unstable_by(|left, right| right.cmp(left));
        tags.dedup();
        Self(tags)
    }
}

impl<'t> FromIterator<&'t str> for TagList {
    fn from_iter<I: IntoIterator<Item = &'t str>>(tags: I) -> Self {
        tags.into_iter().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_fall_by_bytes_and_none_is_there_twice() {
        let tags: TagList = ["1.9", "v1", "1.10", "B", "a", "1.9", ""].into_iter().collect();
        assert_eq!(tags.iter().collect::<Vec<_>>(), ["v1", "a", "B", "1.9", "1.10", ""]);
        assert_eq!(tags.len(), 6);
        assert!(TagList::from_iter([""; 0]).is_empty());
    }
}
