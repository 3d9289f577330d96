//! Suggestions for misspelled names.

/// Returns the known name that `name` is probably a misspelling of.
///
/// Letter case counts like any other difference. Of several equally close names the first one wins.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut best: Option<(usize, &str)> = None;
    for candidate in known {
        let distance = edit_distance(name, candidate);
        if distance <= tolerance(name, candidate) && best.is_none_or(|(smallest, _)| distance < smallest) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Returns the maximum number of edits of a misspelling.
///
/// In short names two edits turn most words into most others.
fn tolerance(name: &str, candidate: &str) -> usize {
    if name.chars().count().min(candidate.chars().count()) < 5 { 1 } else { 2 }
}

/// Returns the edit distance of two texts.
///
/// Edits are insertions, deletions, replacements and swaps of neighbours.
fn edit_distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut two_back: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=right.len()).collect();
    for row in 1..=left.len() {
        let mut current = Vec::with_capacity(right.len() + 1);
        current.push(row);
        for column in 1..=right.len() {
            let replaced = previous[column - 1] + usize::from(left[row - 1] != right[column - 1]);
            let mut distance = replaced.min(previous[column] + 1).min(current[column - 1] + 1);
            let swapped = row > 1
                && column > 1
                && left[row - 1] == right[column - 2]
                && left[row - 2] == right[column - 1];
            if swapped {
                distance = distance.min(two_back[column - 2] + 1);
            }
            current.push(distance);
        }
        two_back = std::mem::replace(&mut previous, current);
    }
    previous[right.len()]
}

#[cfg(test)]
mod tests {
    use super::{edit_distance, nearest};

    #[test]
    fn the_edit_distance_counts_edits() {
        for (left, right, distance) in [
            ("", "", 0),
            ("", "abc", 3),
            ("tag", "tag", 0),
            ("tga", "tag", 1),
            ("polcySelector", "policySelector", 1),
            ("policy_selector", "policySelector", 2),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(edit_distance(left, right), distance, "{left} {right}");
            assert_eq!(edit_distance(right, left), distance, "{right} {left}");
        }
    }

    #[test]
    fn only_close_names_are_suggested() {
        let known = ["url", "ref", "interval", "policySelector", "suspend"];
        assert_eq!(nearest("intervall", known), Some("interval"));
        assert_eq!(nearest("policyselector", known), Some("policySelector"));
        assert_eq!(nearest("rel", known), Some("ref"));
        assert_eq!(nearest("uri", known), Some("url"));
        assert_eq!(nearest("tag", known), None);
        assert_eq!(nearest("branch", known), None);
    }
}
