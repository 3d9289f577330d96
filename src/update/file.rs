//! Resolves the markers of one file, replaces their values, and proves that nothing else changed.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::held_values::FileHolds;
use super::marker::{self, Marker, MarkerError};
use super::object::{self, ObjectTracker, Part};
use super::report::MarkerOutcome;
use super::result::{Change, ObjectChanges, ObjectIdentifier};
use super::setter::Setters;
use crate::yaml::{
    self, Comment, Limits, Scalar, Splice, Step, Visit, Walk, YamlError, YamlErrorKind, fingerprint_of,
    splice::{self, Replacement},
};

/// The outcome of one file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FileOutcome {
    /// The file's new text, if it changes.
    pub text: Option<String>,
    /// The splices that produce the new text.
    pub splices: Vec<Splice>,
    /// The changes by object.
    pub changes: ObjectChanges,
    /// Every marker in it, in the order of lines.
    pub markers: Vec<FileMarker>,
    /// Comments that mention the token but are no markers, by line.
    pub near_misses: Vec<(usize, MarkerError)>,
}

/// A marker in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMarker {
    /// The line of the comment, counted from 1.
    pub line: usize,
    /// The marker.
    pub marker: Marker,
    /// The object that contains the marker.
    pub object: ObjectIdentifier,
    /// The marker's outcome.
    pub outcome: MarkerOutcome,
    /// The YAML node that the marker marks.
    pub node: MarkedNode,
    /// The JSON Pointer (RFC 6901) from the object to that node.
    ///
    /// There is none if a key has no name, or it is long.
    pub pointer: Option<String>,
}

/// The YAML node that a marker marks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MarkedNode {
    /// A scalar with this value.
    Scalar(String),
    /// A key or list item without a value.
    Absent,
    /// No scalar.
    NotScalar,
}

impl FileMarker {
    /// Creates a marker whose object is unknown until the end of its document.
    fn new(line: usize, marker: Marker, outcome: MarkerOutcome, node: MarkedNode) -> Self {
        Self { line, marker, object: ObjectIdentifier::default(), outcome, node, pointer: None }
    }
}

/// The maximum length of a pointer in bytes: each marker of a file has one.
const MAX_POINTER: usize = 1024;

/// Returns the JSON Pointer of a path.
fn json_pointer(path: &[Step<'_>]) -> Option<String> {
    let mut pointer = String::new();
    for step in path {
        pointer.push('/');
        match step {
            Step::Key(key) => pointer.push_str(&key.replace('~', "~0").replace('/', "~1")),
            Step::Index(index) => pointer.push_str(&index.to_string()),
            Step::NoName => return None,
        }
        if pointer.len() > MAX_POINTER {
            return None;
        }
    }
    Some(pointer)
}

/// Resolves the markers of a file and replaces their values, but not those in `holds`.
///
/// # Errors
///
/// Returns an error if the bytes are not YAML within the limits, or if the new text would not read as intended. The
/// file must then be left unchanged.
pub fn update_file(
    content: &[u8],
    setters: &Setters,
    holds: Option<&FileHolds>,
    limits: &Limits,
) -> Result<FileOutcome, YamlError> {
    let source = std::str::from_utf8(content).map_err(|error| YamlError::not_utf8(content, error))?;
    let held_lines = holds.map(|holds| holds.lines(content, limits)).transpose()?.unwrap_or_default();
    let mut update = FileUpdate {
        source,
        setters,
        held_lines,
        outcome: FileOutcome::default(),
        changes: Vec::new(),
        splices: Vec::new(),
        replaced: Vec::new(),
        objects: ObjectTracker::default(),
        open: Vec::new(),
    };
    let mut walk = Walk::new(source, limits);
    while let Some(visit) = walk.next_visit()? {
        match visit {
            Visit::Value(scalar, comment) => update.value(walk.path(), scalar, comment),
            Visit::Stray(comment) => update.stray(walk.path(), &comment),
            Visit::DocumentEnd => update.end_document(),
        }
        if update.outcome.markers.len() + update.open.len() + update.outcome.near_misses.len()
            > limits.markers
        {
            let marker = update.open.last().map(|open| open.marker.line);
            let near_miss = update.outcome.near_misses.last().map(|(line, _)| *line);
            let line = marker.max(near_miss).unwrap_or(1);
            let cause = YamlErrorKind::TooManyMarkers { limit: limits.markers };
            return Err(YamlError { line, column: 1, cause });
        }
    }
    update.end_document();
    let FileUpdate { mut outcome, changes, mut splices, replaced, .. } = update;
    outcome.markers.sort_by_key(|marker| marker.line);
    outcome.changes = changes.into_iter().collect();
    if splices.is_empty() {
        return Ok(outcome);
    }
    splices.sort_by_key(|splice| splice.range.start);
    let text = yaml::apply(source, &splices);
    let mut expected = walk.fingerprint().clone();
    for Replaced { scalar, value, replacement } in &replaced {
        expected.replace(scalar, value, replacement);
    }
    let line = replaced.first().map_or(1, |replaced| replaced.scalar.line);
    let unfaithful = YamlError { line, column: 1, cause: YamlErrorKind::EditNotFaithful };
    match fingerprint_of(&text, limits) {
        Ok(found) if found == expected => Ok(FileOutcome { text: Some(text), splices, ..outcome }),
        _ => Err(unfaithful),
    }
}

struct Replaced<'s> {
    scalar: Scalar<'s>,
    value: String,
    replacement: Replacement,
}

struct FileUpdate<'s, 'a> {
    source: &'s str,
    setters: &'a Setters,
    /// The lines of the comments whose values stay as they are.
    held_lines: BTreeSet<usize>,
    outcome: FileOutcome,
    changes: Vec<(ObjectIdentifier, Change)>,
    splices: Vec<Splice>,
    replaced: Vec<Replaced<'s>>,
    objects: ObjectTracker,
    /// The markers of the current document, whose objects are not yet known.
    open: Vec<OpenMarker>,
}

/// A marker whose object is not yet known.
struct OpenMarker {
    marker: FileMarker,
    part: Part,
    /// The pointer inside the part.
    inner: Option<String>,
    change: Option<Change>,
}

impl<'s> FileUpdate<'s, '_> {
    fn value(&mut self, path: &[Step<'s>], scalar: Scalar<'s>, comment: Option<Comment>) {
        self.objects.record(path, &scalar.value);
        let Some(comment) = comment else { return };
        let Some(marker) = self.marker(&comment) else { return };
        let node = match scalar.style {
            yaml::Style::Absent => MarkedNode::Absent,
            _ => MarkedNode::Scalar(scalar.value.to_string()),
        };
        let (outcome, change) = match self.setters.value(&marker) {
            Err(MarkerOutcome::Waiting) => (self.setters.outcome_of_kept(&marker, &scalar.value), None),
            Err(outcome) => (outcome, None),
            Ok(wanted) if wanted == scalar.value && scalar.style != yaml::Style::Absent => {
                (self.setters.outcome_of_kept(&marker, &wanted), None)
            }
            Ok(_) if self.held_lines.contains(&comment.line) => (MarkerOutcome::Held, None),
            Ok(wanted) => match splice::replace(self.source, &scalar, &comment, &wanted) {
                None => (MarkerOutcome::NotOnScalar, None),
                Some(replacement) => {
                    let change = Change {
                        old_value: scalar.value.to_string(),
                        new_value: wanted.clone(),
                        setter: marker.setter.clone(),
                        line: scalar.line,
                    };
                    self.splices.extend(replacement.splices.iter().cloned());
                    self.replaced.push(Replaced { scalar, value: wanted, replacement });
                    (MarkerOutcome::Changed, Some(change))
                }
            },
        };
        self.record(path, FileMarker::new(comment.line, marker, outcome, node), change);
    }

    fn stray(&mut self, path: &[Step<'_>], comment: &Comment) {
        if let Some(marker) = self.marker(comment) {
            let outcome = MarkerOutcome::for_stray(&self.setters.value(&marker));
            self.record(path, FileMarker::new(comment.line, marker, outcome, MarkedNode::NotScalar), None);
        }
    }

    fn marker(&mut self, comment: &Comment) -> Option<Marker> {
        let text = comment.text(self.source);
        match marker::parse(text) {
            Ok(marker) => Some(marker),
            Err(cause) => {
                if text.contains(marker::TOKEN) {
                    self.outcome.near_misses.push((comment.line, cause));
                }
                None
            }
        }
    }

    fn record(&mut self, path: &[Step<'_>], mut marker: FileMarker, change: Option<Change>) {
        let (part, rest) = object::split(path);
        marker.pointer = json_pointer(path);
        let inner = if part == Part::Document { None } else { json_pointer(rest) };
        self.open.push(OpenMarker { marker, part, inner, change });
    }

    fn end_document(&mut self) {
        let objects = std::mem::take(&mut self.objects);
        for OpenMarker { mut marker, part, inner, change } in self.open.drain(..) {
            marker.object = objects.identify(part);
            if part != Part::Document && objects.is_list() {
                marker.pointer = inner;
            }
            if let Some(change) = change {
                self.changes.push((marker.object.clone(), change));
            }
            self.outcome.markers.push(marker);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tagboat_api::ObjectName;

    use super::*;
    use crate::reference::ImageReference;
    use crate::update::PolicyState;

    const M: &str = r#"# {"$imagepolicy": "n:p:tag"}"#;

    fn setters(image: &str) -> Setters {
        let name = ObjectName { namespace: "n".to_owned(), name: "p".to_owned() };
        let image = PolicyState::Image(ImageReference::parse(image).unwrap());
        Setters::new(BTreeMap::from([(name, image)]))
    }

    fn update(source: &str, tag: &str) -> FileOutcome {
        let image = format!("app:{tag}");
        update_file(source.as_bytes(), &setters(&image), None, &Limits::default()).unwrap()
    }

    /// Each row is the text before, the desired tag, and the text after.
    ///
    /// `@` stands for a tag marker.
    #[test]
    fn only_values_are_replaced() {
        let table = [
            ("a: v1 @\n", "v2", "a: v2 @\n"),
            ("a: v1   @\n", "1.10", "a: \"1.10\"   @\n"),
            ("a: 'v1' @", "1.10", "a: '1.10' @"),
            ("a: \"v1\" @\r\nb: c\r\n", "v2", "a: \"v2\" @\r\nb: c\r\n"),
            ("\u{feff}a: v1 @\n", "v2", "\u{feff}a: v2 @\n"),
            ("a: 1.0 @\n", "v2", "a: v2 @\n"),
            ("a: v1\n  v2 @\n", "v2", "a: v2 @\n"),
            ("a: \"v1\n  v2\" @\n", "v2", "a: \"v2\" @\n"),
            ("a: @\n", "v2", "a: v2 @\n"),
            ("a: @\nb: c\n", "on", "a: \"on\" @\nb: c\n"),
            ("a: &x @\nb: *x\n", "v2", "a: &x v2 @\nb: *x\n"),
            ("- @\n- v1\n", "v2", "- v2 @\n- v1\n"),
            ("a: {b: , @\n  c: d}\n", "v2", "a: {b: v2 , @\n  c: d}\n"),
            ("a: &x v1 @\nb: *x\n", "v2", "a: &x v2 @\nb: *x\n"),
            ("a: !!str 1.0 @\n", "1.1", "a: !!str 1.1 @\n"),
            ("a: !!float v1 @\n", "v2", "a: v2 @\n"),
            ("a: !!float &x 1.0 @\n", "1.1", "a: &x \"1.1\" @\n"),
            ("a: &x !!int 1 @\n", "2", "a: &x \"2\" @\n"),
            ("a: !!null @\n", "v2", "a: v2 @\n"),
            ("a: !!null &x @\nb: *x\n", "v2", "a: &x v2 @\nb: *x\n"),
            ("a: &x !!null @\nb: *x\n", "v2", "a: &x v2 @\nb: *x\n"),
            ("a: !!timestamp 2024-01-01 @\n", "v2", "a: v2 @\n"),
            ("a: [p: v1, @\n  q]\n", "v2", "a: [p: v2, @\n  q]\n"),
            ("@\n- v1\n", "v2", "@\n- v2\n"),
            ("a:\n  b: |+ @\n    v1\n  c: d\n", "v2", "a:\n  b: |- @\n    v2\n  c: d\n"),
            ("a: | @", "v2", "a: v2 @"),
            ("- ! @\n# note\n\n@\n- v1\n", "v2", "- ! v2 @\n# note\n\n@\n- v2\n"),
            ("k:\n  - ! @\n @\n  - v1\n", "v2", "k:\n  - ! v2 @\n @\n  - v2\n"),
            ("- - ! @\n  @\n- v1\n", "v2", "- - ! v2 @\n  @\n- v1\n"),
            ("- - ! @\n@\n  @\n- v1\n", "v2", "- - ! v2 @\n@\n  @\n- v1\n"),
            ("a: !!float @\n  &x v1\nb: *x\n", "v2", "a: !!str @\n  &x v2\nb: *x\n"),
            ("- !!float @\n  # note\n  |\n   v1\n", "v2", "- !!str @\n  # note\n  |-\n   v2\n"),
            ("- | @\n  # v1\n@\n\n- v1\n", "v2", "- |- @\n  v2\n@\n\n- v1\n"),
            ("k:\n  - |- @\n  - @\n  -\n", "v2", "k:\n  - v2 @\n  - v2 @\n  -\n"),
            ("k:\n@\n- |\n  v1\n", "v2", "k:\n@\n- |-\n  v2\n"),
            ("k:\n- x\n@\n- >+\n\n  | v1\n- y\n", "v2", "k:\n- x\n@\n- >-\n  v2\n- y\n"),
            ("k:\n@\n- |\n- y\n", "v2", "k:\n@\n- v2\n- y\n"),
            ("@\n- |", "v2", "@\n- v2"),
            ("@\r\n- |\r\n  v1\r\n", "v2", "@\r\n- |-\r\n  v2\r\n"),
            ("a: |+2 @\n  v1\n", "v2", "a: |-2 @\n  v2\n"),
            ("a: !mine v1 @\n", "v2", "a: !mine v2 @\n"),
            ("a: | @\n  v1\nb: c\n", "v2", "a: |- @\n  v2\nb: c\n"),
            ("a: |- @\n  v1\n", "v2", "a: |- @\n  v2\n"),
            ("a: |+ @\n  v1\n\n\nb: c\n", "v2", "a: |- @\n  v2\n\n\nb: c\n"),
            ("a: >2+ @\n    v1\n", "v2", "a: >2- @\n  v2\n"),
            ("a: >- @\n  v1\n  and\n\n  more\nb: c\n", "v2", "a: >- @\n  v2\nb: c\n"),
            ("a: | @\n\n\n  v1", "v2", "a: |- @\n  v2"),
            ("a: | @\nb: c\n", "v2", "a: v2 @\nb: c\n"),
            ("a: |\t@\r\n  v1\r\nb: c\r\n", "v2", "a: |-\t@\r\n  v2\r\nb: c\r\n"),
            ("a: [x,\n  v1, @\n  y]\n", "v2", "a: [x,\n  v2, @\n  y]\n"),
            ("a:\n  @\n  - v1\n", "v2", "a:\n  @\n  - v2\n"),
            ("{\"a\": \"v1\", @\n \"b\": 1}\n", "v2", "{\"a\": \"v2\", @\n \"b\": 1}\n"),
            ("# \u{1f680}\na: \u{e9}\nb: v1 @\n", "v2", "# \u{1f680}\na: \u{e9}\nb: v2 @\n"),
            ("---\n# c\n---\na: v1 @\n...\n", "v2", "---\n# c\n---\na: v2 @\n...\n"),
            ("%YAML 1.2\n---\na: v1 @\n", "v2", "%YAML 1.2\n---\na: v2 @\n"),
            ("- v1 @\n---\nv1 @\n", "v2", "- v2 @\n---\nv2 @\n"),
            ("a: v1 @\na: v1 @\n", "v2", "a: v2 @\na: v2 @\n"),
            ("a: null @\n", "~", "a: null @\n"),
        ];
        for (before, tag, after) in table.into_iter().filter(|(_, tag, _)| *tag != "~") {
            let (before, after) = (before.replace('@', M), after.replace('@', M));
            assert_eq!(update(&before, tag).text.as_deref(), Some(after.as_str()), "{before:?}");
            assert_eq!(update(&after, tag).text, None, "{after:?}");
        }
    }

    #[test]
    fn a_marker_has_the_pointer_from_its_object() {
        let deep = format!("a:\n  {}: v1 @\n", "k".repeat(MAX_POINTER));
        for (source, expected) in [
            ("a: v1 @\n", vec![Some("/a")]),
            ("a:\n  b/c~d:\n  - x\n  - e: v1 @\n", vec![Some("/a/b~1c~0d/1/e")]),
            ("- v1 @\n---\nb: v1 @\n", vec![Some("/0"), Some("/b")]),
            ("items:\n- a: v1 @\n", vec![Some("/items/0/a")]),
            ("kind: List\nitems:\n- a: x\n- a: v1 @\n", vec![Some("/a")]),
            ("items:\n- a: v1 @\nkind: List\n", vec![Some("/a")]),
            ("? {a: b}\n: v1 @\n", vec![None]),
            (&deep, vec![None]),
        ] {
            let outcome = update(&source.replace('@', M), "v2");
            let found: Vec<_> = outcome.markers.iter().map(|marker| marker.pointer.as_deref()).collect();
            assert_eq!(found, expected, "{source:?}");
        }
    }

    #[test]
    fn markers_without_a_scalar_are_reported() {
        for source in [
            "@\na: v1\n",
            "a: [v1] @\n",
            "a: {b: v1} @\n",
            "a: @\n  b: c\n",
            "a: @\n  v1\n",
            "b: &x 1\na: *x @\n",
            "a: v1\n@\n",
            "a: {b, @\n  c: d}\n",
            "- @\n  a: b\n",
            "[ @\n a]\n",
            "? a @\n: b\n",
            "--- @\na: b\n",
            "a:\n  # other\n  @\n  - v1\n",
        ] {
            let outcome = update(&source.replace('@', M), "v2");
            let outcomes: Vec<_> = outcome.markers.iter().map(|marker| marker.outcome).collect();
            assert_eq!(outcomes, [MarkerOutcome::NotOnScalar], "{source:?}");
            assert_eq!(outcome.text, None, "{source:?}");
        }
    }

    #[test]
    fn a_current_value_is_unchanged_in_any_style() {
        for source in ["a: 1.10 @\n", "a: '1.10' @\n", "a: |-  @\n  1.10\n", "a: \"1\\u002e10\" @\n"] {
            let outcome = update(&source.replace('@', M), "1.10");
            assert_eq!(outcome.markers[0].outcome, MarkerOutcome::Current, "{source:?}");
            assert_eq!(outcome.text, None, "{source:?}");
        }
    }

    #[test]
    fn an_empty_digest_is_written_as_an_empty_string() {
        let marker = r#"# {"$imagepolicy": "n:p:digest"}"#;
        for (before, after) in [
            ("a: b @\n", "a: \"\" @\n"),
            ("a: 'b' @\n", "a: '' @\n"),
            ("a: @\n", "a: \"\" @\n"),
            ("a: | @\n  b\nc: d\n", "a: \"\" @\nc: d\n"),
        ] {
            let outcome = update_file(
                before.replace('@', marker).as_bytes(),
                &setters("app:1"),
                None,
                &Limits::default(),
            )
            .unwrap();
            assert_eq!(outcome.text, Some(after.replace('@', marker)), "{before:?}");
        }
    }

    #[test]
    fn objects_are_known_at_the_end_of_their_document() {
        let source = format!(
            "apiVersion: v1\nitems:\n- metadata: {{name: a}}\n  image: v1 {M}\n  kind: Pod\n- x: v1 {M}\nkind: List\n---\n\
             image: v1 {M}\nmetadata:\n  name: b\n  namespace: c\nkind: Job\napiVersion: batch/v1\n"
        );
        let objects: Vec<String> =
            update(&source, "v2").markers.iter().map(|marker| marker.object.to_string()).collect();
        assert_eq!(objects, ["Pod//a", "//", "Job/c/b"]);
    }

    #[test]
    fn hostile_files_end_in_an_error() {
        let deep = format!("a: {}", "[".repeat(5000));
        let bomb: String = (1..12).fold("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned(), |text, level| {
            let alias = format!("*a{},", level - 1).repeat(10);
            format!("{text}a{level}: &a{level} [{alias}]\n")
        });
        let comment = format!("a: b # {}\n", "x".repeat(70_000));
        for source in [deep, bomb, comment, "a: &a [*a]\n".to_owned(), "a: \"b\n".to_owned()] {
            update_file(source.as_bytes(), &setters("app:1"), None, &Limits::default()).unwrap_err();
        }
        let error = update_file(b"a: b\nc: \xff", &setters("app:1"), None, &Limits::default()).unwrap_err();
        assert_eq!((error.line, error.column, error.cause), (2, 4, YamlErrorKind::NotUtf8));
    }
}
