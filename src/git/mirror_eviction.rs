//! Chooses the mirrors to evict when all together are too large.

use std::collections::BTreeMap;
use std::time::SystemTime;

/// A mirror on the disk, as an eviction needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredMirror {
    /// Namespace of its GitRepository.
    pub(super) namespace: String,
    /// Size of its files.
    pub(super) bytes: u64,
    /// End of its last transaction.
    pub(super) last_used: SystemTime,
    /// True while a transaction uses it.
    pub(super) is_in_use: bool,
    /// True if a push from it may still reach the remote.
    pub(super) has_open_push: bool,
}

impl StoredMirror {
    fn is_evictable(&self) -> bool {
        !self.is_in_use && !self.has_open_push
    }
}

/// Returns the mirrors to evict, in this order.
/// The others then take at most `limit` bytes, or as few as possible.
///
/// Each is the least recently used one of the namespace that has the most bytes at that point, so that a namespace with
/// many repositories displaces its own mirrors first.
pub(super) fn choose_evictions<'m, K: Ord>(
    mirrors: impl Iterator<Item = (&'m K, &'m StoredMirror)>,
    limit: u64,
) -> Vec<&'m K> {
    let mut namespaces: BTreeMap<&str, Namespace<'_, K>> = BTreeMap::new();
    let mut total = 0;
    for (key, mirror) in mirrors {
        let namespace =
            namespaces.entry(&mirror.namespace).or_insert(Namespace { bytes: 0, idle: Vec::new() });
        namespace.bytes += mirror.bytes;
        total += mirror.bytes;
        if mirror.is_evictable() {
            namespace.idle.push((mirror.last_used, key, mirror.bytes));
        }
    }
    for namespace in namespaces.values_mut() {
        // The least recently used one is taken first, from the end.
        namespace.idle.sort_by(|one, other| (other.0, other.1).cmp(&(one.0, one.1)));
    }
    let mut evicted = Vec::new();
    while total > limit {
        let with_idle = namespaces.values_mut().filter(|namespace| !namespace.idle.is_empty());
        let Some(largest) = with_idle.max_by_key(|namespace| namespace.bytes) else { break };
        let Some((_, key, bytes)) = largest.idle.pop() else { break };
        largest.bytes -= bytes;
        total -= bytes;
        evicted.push(key);
    }
    evicted
}

/// The mirrors of a namespace.
struct Namespace<'m, K> {
    bytes: u64,
    /// Those that may be evicted.
    idle: Vec<(SystemTime, &'m K, u64)>,
}

/// Returns true if a namespace has at least as many bytes as each other one.
pub(super) fn is_largest<'m>(mirrors: impl Iterator<Item = &'m StoredMirror>, namespace: &str) -> bool {
    let mut bytes: BTreeMap<&str, u64> = BTreeMap::new();
    for mirror in mirrors {
        *bytes.entry(&mirror.namespace).or_default() += mirror.bytes;
    }
    let own = bytes.get(namespace).copied().unwrap_or_default();
    bytes.values().all(|others| *others <= own)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Parses mirrors from lines `NAME NAMESPACE BYTES AGE [use|push]`.
    /// `AGE` is the time in seconds since the last use.
    fn mirrors(lines: &[&str]) -> BTreeMap<String, StoredMirror> {
        let read = |line: &&str| {
            let words: Vec<&str> = line.split(' ').collect();
            let age = Duration::from_secs(words[3].parse().unwrap());
            let mirror = StoredMirror {
                namespace: words[1].to_owned(),
                bytes: words[2].parse().unwrap(),
                last_used: SystemTime::UNIX_EPOCH + Duration::from_secs(1000) - age,
                is_in_use: words.get(4) == Some(&"use"),
                has_open_push: words.get(4) == Some(&"push"),
            };
            (words[0].to_owned(), mirror)
        };
        lines.iter().map(read).collect()
    }

    #[test]
    fn the_namespace_with_most_bytes_loses_its_least_recently_used_first() {
        let cases: &[(&[&str], u64, &[&str])] = &[
            (&[], 0, &[]),
            (&["a x 5 1", "b y 5 2"], 10, &[]),
            (&["a x 5 1", "b x 5 2", "c x 5 3"], 9, &["c", "b"]),
            // A victim's mirror stays, though it is older.
            (&["a evil 40 1", "b evil 40 2", "c victim 10 9"], 50, &["b"]),
            (&["a evil 40 1", "b evil 40 2", "c victim 10 9"], 20, &["b", "a"]),
            // From then on the other one has most.
            (&["a x 30 1", "b x 30 2", "c y 40 1"], 45, &["b", "c"]),
            (&["a x 30 1 use", "b x 30 2", "c x 30 3 push"], 50, &["b"]),
            // Those in use and with an open push stay, however large, and then others go.
            (&["a x 60 9 use", "b x 60 9 push", "c y 5 1", "d z 6 1"], 125, &["d"]),
            (&["a x 60 9 use"], 10, &[]),
            // Of equal age the names decide, so that the choice is always the same.
            (&["a x 5 1", "b x 5 1"], 5, &["a"]),
            (&["a x 0 9", "b x 5 1"], 0, &["a", "b"]),
        ];
        for (lines, limit, expected) in cases {
            let mirrors = mirrors(lines);
            assert_eq!(choose_evictions(mirrors.iter(), *limit), *expected, "{lines:?} {limit}");
        }
    }

    #[test]
    fn the_largest_namespace_is_found_by_the_sum_of_its_mirrors() {
        let mirrors = mirrors(&["a x 5 1", "b x 5 1", "c y 8 1", "d z 10 1"]);
        for (namespace, expected) in [("x", true), ("y", false), ("z", true), ("none", false)] {
            assert_eq!(is_largest(mirrors.values(), namespace), expected, "{namespace}");
        }
        assert!(is_largest(std::iter::empty(), "none"));
    }
}
