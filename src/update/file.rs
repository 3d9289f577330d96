//! One file: its markers resolved, its values replaced, and the proof that nothing else changed.

use super::account::MarkerOutcome;
use super::marker::{self, Marker, NoMarker};
use super::object::{self, ObjectTracker, Part};
use super::result::{Change, ObjectChanges, ObjectIdentifier};
use super::setter::Setters;
use crate::yaml::{
    self, Cause, Comment, Limits, Scalar, Splice, Step, Visit, Walk, YamlError, fingerprint_of, splice,
};

/// What became of one file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FileOutcome {
    /// The file's new text, if it is to change.
    pub text: Option<String>,
    /// What changes in it.
    pub changes: ObjectChanges,
    /// Every marker in it, in the order of lines.
    pub markers: Vec<FileMarker>,
    /// Comments that mention the token but are no markers, by line.
    pub near_misses: Vec<(usize, NoMarker)>,
}

/// A marker of the file at hand.
#[derive(Debug, PartialEq, Eq)]
pub struct FileMarker {
    /// The line of the comment.
    pub line: usize,
    /// The marker.
    pub marker: Marker,
    /// The object around it.
    pub object: ObjectIdentifier,
    /// What became of it.
    pub outcome: MarkerOutcome,
}

/// Resolves the markers of a file and replaces their values.
///
/// # Errors
///
/// When the bytes are not YAML within the limits, or when the new text would not read as intended. The file is
/// to be left as it is then.
pub fn update_file(content: &[u8], setters: &Setters, limits: &Limits) -> Result<FileOutcome, YamlError> {
    let source = std::str::from_utf8(content).map_err(|error| not_utf8(content, error.valid_up_to()))?;
    let mut update = FileUpdate {
        source,
        setters,
        outcome: FileOutcome::default(),
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
            Visit::DocumentStart | Visit::Enter | Visit::Leave => {}
        }
    }
    update.end_document();
    let FileUpdate { mut outcome, mut splices, replaced, .. } = update;
    outcome.markers.sort_by_key(|marker| marker.line);
    if splices.is_empty() {
        return Ok(outcome);
    }
    splices.sort_by_key(|splice| splice.range.start);
    let text = yaml::apply(source, &splices);
    let mut expected = walk.fingerprint().clone();
    for Replaced { scalar, value, style } in &replaced {
        expected.exchange(scalar, value, *style);
    }
    let line = replaced.first().map_or(1, |replaced| replaced.scalar.line);
    let unfaithful = YamlError { line, column: 1, cause: Cause::EditNotFaithful };
    match fingerprint_of(&text, limits) {
        Ok(found) if found == expected => outcome.text = Some(text),
        _ => return Err(unfaithful),
    }
    Ok(outcome)
}

struct Replaced<'s> {
    scalar: Scalar<'s>,
    value: String,
    style: yaml::Style,
}

struct FileUpdate<'s, 'a> {
    source: &'s str,
    setters: &'a Setters,
    outcome: FileOutcome,
    splices: Vec<Splice>,
    replaced: Vec<Replaced<'s>>,
    objects: ObjectTracker,
    /// The markers of the document at hand, whose objects are not yet known.
    open: Vec<(FileMarker, Part, Option<Change>)>,
}

impl<'s> FileUpdate<'s, '_> {
    fn value(&mut self, path: &[Step<'s>], scalar: Scalar<'s>, comment: Option<Comment>) {
        self.objects.see(path, &scalar.value);
        let Some(comment) = comment else { return };
        let Some(marker) = self.marker(&comment) else { return };
        let (outcome, change) = match self.setters.value(&marker) {
            Err(outcome) => (outcome, None),
            Ok(wanted) if wanted == scalar.value => (MarkerOutcome::Current, None),
            Ok(wanted) => match splice::replace(self.source, &scalar, &comment, &wanted) {
                None => (MarkerOutcome::NotOnScalar, None),
                Some(replacement) => {
                    let change = Change {
                        old_value: scalar.value.to_string(),
                        new_value: wanted.clone(),
                        setter: marker.setter.clone(),
                        line: scalar.line,
                    };
                    self.splices.extend(replacement.splices);
                    self.replaced.push(Replaced { scalar, value: wanted, style: replacement.style });
                    (MarkerOutcome::Changed, Some(change))
                }
            },
        };
        self.record(path, &comment, marker, outcome, change);
    }

    fn stray(&mut self, path: &[Step<'_>], comment: &Comment) {
        if let Some(marker) = self.marker(comment) {
            let outcome = match self.setters.value(&marker) {
                Err(MarkerOutcome::OtherNamespace) => MarkerOutcome::OtherNamespace,
                _ => MarkerOutcome::NotOnScalar,
            };
            self.record(path, comment, marker, outcome, None);
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

    fn record(
        &mut self,
        path: &[Step<'_>],
        comment: &Comment,
        marker: Marker,
        outcome: MarkerOutcome,
        change: Option<Change>,
    ) {
        let (part, _) = object::split(path);
        let object = ObjectIdentifier::default();
        self.open.push((FileMarker { line: comment.line, marker, object, outcome }, part, change));
    }

    fn end_document(&mut self) {
        let objects = std::mem::take(&mut self.objects);
        for (mut marker, part, change) in self.open.drain(..) {
            marker.object = objects.identify(part);
            if let Some(change) = change {
                self.outcome.changes.entry(marker.object.clone()).or_default().push(change);
            }
            self.outcome.markers.push(marker);
        }
    }
}

fn not_utf8(content: &[u8], at: usize) -> YamlError {
    let before = &content[..at];
    let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
    let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let column = 1 + String::from_utf8_lossy(&before[start..]).chars().count();
    YamlError { line, column, cause: Cause::NotUtf8 }
}
