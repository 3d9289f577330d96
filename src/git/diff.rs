//! Unified diffs of two contents of a file.

use git2::Patch;

/// Returns the unified diff between two contents of the file at `path`.
/// It is empty if git cannot show a diff.
///
/// Of binary content it only says that it differs.
pub fn unified_diff(path: &str, old: &[u8], new: &[u8]) -> String {
    let place = std::path::Path::new(path);
    let patch = Patch::from_buffers(old, Some(place), new, Some(place), None);
    let text = patch.and_then(|mut patch| patch.to_buf().map(|text| text.to_vec()));
    String::from_utf8_lossy(&text.unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unified_diff_shows_changed_lines_with_their_context() {
        let diff = unified_diff("a/b.yaml", b"a: 1\nb: 2\n", b"a: 1\nb: 3\n");
        assert!(
            diff.ends_with("--- a/a/b.yaml\n+++ b/a/b.yaml\n@@ -1,2 +1,2 @@\n a: 1\n-b: 2\n+b: 3\n"),
            "{diff}"
        );
        assert_eq!(unified_diff("a", b"x\n", b"x\n"), "");
    }
}
