//! A compact list of the tags of a repository.

use std::sync::{Arc, OnceLock};

use tagboat_versions::Version;

/// Distinct tags in descending byte order.
///
/// It is the order in which Flux stores them, on which ties depend. A registry may list any text as a tag,
/// and it is kept as it is. All tags are in one text, since there may be very many. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct TagList(Arc<Tags>);

#[derive(Debug, Default)]
struct Tags {
    text: Box<str>,
    /// The end of each tag in the text.
    ends: Box<[u32]>,
    /// The indices of the tags that are versions, the greatest first; computed on first use.
    by_version: OnceLock<Box<[u32]>>,
}

impl PartialEq for TagList {
    fn eq(&self, other: &Self) -> bool {
        (&self.0.text, &self.0.ends) == (&other.0.text, &other.0.ends)
    }
}

impl Eq for TagList {}

impl TagList {
    /// The number of tags.
    pub fn len(&self) -> usize {
        self.0.ends.len()
    }

    /// Returns true if there are no tags.
    pub fn is_empty(&self) -> bool {
        self.0.ends.is_empty()
    }

    /// The tags in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + DoubleEndedIterator {
        (0..self.len()).map(|index| self.tag(index))
    }

    /// Returns the tags that are versions, from the greatest to the least.
    ///
    /// Equal ones are in list order. They are sorted once, on first use.
    pub fn by_version(&self) -> impl Iterator<Item = &str> {
        let order = self.0.by_version.get_or_init(|| {
            let versions = (0_u32..).zip(self.iter());
            let mut versions: Vec<(Version, u32)> =
                versions.filter_map(|(index, tag)| Some((Version::parse_tag(tag).ok()?, index))).collect();
            versions.sort_by(|(left, _), (right, _)| right.cmp(left));
            versions.into_iter().map(|(_, index)| index).collect()
        });
        order.iter().map(|index| self.tag(*index as usize))
    }

    /// The index of a tag, if it is in the list.
    pub fn position(&self, tag: &str) -> Option<usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.tag(middle).cmp(tag) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => low = middle + 1,
                std::cmp::Ordering::Less => high = middle,
            }
        }
        None
    }

    /// The memory in bytes, including both orders.
    pub fn size(&self) -> usize {
        self.0.text.len() + 2 * size_of_val(&*self.0.ends)
    }

    /// The checksum by which Flux distinguishes lists: that of the list in Go's JSON.
    pub fn revision(&self) -> String {
        let mut sum = Adler::default();
        sum.add(b"[");
        for (index, tag) in self.iter().enumerate() {
            if index > 0 {
                sum.add(b",");
            }
            sum.add(to_go_json(tag).as_bytes());
        }
        sum.add(b"]");
        sum.to_number().to_string()
    }

    fn tag(&self, index: usize) -> &str {
        let start = if index == 0 { 0 } else { self.0.ends[index - 1] as usize };
        &self.0.text[start..self.0.ends[index] as usize]
    }

    fn from_sorted(tags: &[&str]) -> Self {
        let mut list = SortedTags::with_capacity(tags.iter().map(|tag| tag.len()).sum());
        tags.iter().for_each(|tag| list.push(tag));
        list.finish()
    }
}

/// Builds a list from sorted tags, without a second copy of them.
#[derive(Debug)]
pub struct SortedTags {
    text: String,
    ends: Vec<u32>,
    is_in_order: bool,
}

impl SortedTags {
    /// Creates a builder with room for `bytes` bytes of tags.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), ends: Vec::new(), is_in_order: true }
    }

    /// Adds the next tag.
    pub fn push(&mut self, tag: &str) {
        let start = self.ends.iter().rev().nth(1).map_or(0, |end| *end as usize);
        let last = self.ends.last().map(|end| &self.text[start..*end as usize]);
        self.is_in_order &= last.is_none_or(|last| last > tag);
        self.text.push_str(tag);
        self.ends.push(u32::try_from(self.text.len()).expect("no repository has 4 GiB of tags"));
    }

    /// Returns true if the tags came in descending order.
    pub fn is_in_order(&self) -> bool {
        self.is_in_order
    }

    /// Returns the list.
    pub fn finish(self) -> TagList {
        let (text, ends) = (self.text.into_boxed_str(), self.ends.into());
        TagList(Arc::new(Tags { text, ends, by_version: OnceLock::new() }))
    }
}

/// A text in Go's JSON, which is safe inside HTML.
fn to_go_json(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    if !json.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return json;
    }
    let escaped = |c: char| match c {
        '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => format!("\\u{:04x}", u32::from(c)),
        other => other.to_string(),
    };
    json.chars().map(escaped).collect()
}

/// The checksum Adler-32 (RFC 1950).
struct Adler {
    sum: u32,
    sum_of_sums: u32,
}

impl Default for Adler {
    fn default() -> Self {
        Self { sum: 1, sum_of_sums: 0 }
    }
}

impl Adler {
    const MODULUS: u32 = 65_521;

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.sum = (self.sum + u32::from(*byte)) % Self::MODULUS;
            self.sum_of_sums = (self.sum_of_sums + self.sum) % Self::MODULUS;
        }
    }

    fn to_number(&self) -> u32 {
        self.sum_of_sums << 16 | self.sum
    }
}

impl FromIterator<String> for TagList {
    fn from_iter<I: IntoIterator<Item = String>>(tags: I) -> Self {
        let tags: Vec<String> = tags.into_iter().collect();
        tags.iter().map(String::as_str).collect()
    }
}

impl<'t> FromIterator<&'t str> for TagList {
    fn from_iter<I: IntoIterator<Item = &'t str>>(tags: I) -> Self {
        let mut tags: Vec<&str> = tags.into_iter().collect();
        tags.sort_unstable_by(|left, right| right.cmp(left));
        tags.dedup();
        Self::from_sorted(&tags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_sorted_and_other_tags_are_left_out() {
        let list: TagList = "1.10.0 latest v1.9.0 1.9.0 01.9.0 2.0.0-rc.1 2.0.0 1.2 9".split(' ').collect();
        let expected = ["2.0.0", "2.0.0-rc.1", "1.10.0", "v1.9.0", "1.9.0", "01.9.0"];
        assert_eq!(list.by_version().collect::<Vec<_>>(), expected);
        let same: TagList = list.iter().collect();
        assert_eq!(list, same, "whether somebody asked makes no difference");
    }

    #[test]
    fn tags_are_unique_and_in_descending_byte_order() {
        let tags: TagList = ["1.9", "v1", "1.10", "B", "a", "1.9", ""].into_iter().collect();
        assert_eq!(tags.iter().collect::<Vec<_>>(), ["v1", "a", "B", "1.9", "1.10", ""]);
        assert_eq!(tags.len(), 6);
        assert!(TagList::from_iter([""; 0]).is_empty());
        for (index, tag) in tags.iter().enumerate() {
            assert_eq!(tags.position(tag), Some(index));
        }
        for absent in ["v", "v2", "1", "b", "\u{0}"] {
            assert_eq!(tags.position(absent), None);
        }
        assert_eq!(TagList::default().position(""), None);
    }

    #[test]
    fn a_revision_is_that_of_flux() {
        for (tags, revision) in [(&["d", "c", "b", "a"][..], "580584407"), (&[], "18153657")] {
            assert_eq!(tags.iter().copied().collect::<TagList>().revision(), revision, "{tags:?}");
        }
        // The upstream tests store tags in ascending order.
        for (json, expected) in [
            (r#"["latest","v0.0.1","v0.0.2"]"#, 1_943_865_137),
            (r#"["latest","v0.0.1","v0.0.2","v0.0.3"]"#, 3_168_012_550),
            (r#"["v0.0.3","v0.0.4"]"#, 728_958_008),
        ] {
            let mut sum = Adler::default();
            sum.add(json.as_bytes());
            assert_eq!(sum.to_number(), expected, "{json}");
        }
        assert_eq!(to_go_json("a<b>&\u{2028}\"\n"), "\"a\\u003cb\\u003e\\u0026\\u2028\\\"\\n\"");
    }
}
