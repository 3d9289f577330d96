//! Tracks the path from a document's root to the current node.

use std::borrow::Cow;

/// One step of the path from a document's root to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<'s> {
    /// Into a mapping, to the value of a scalar key.
    Key(Cow<'s, str>),
    /// Into a sequence, to the entry of this number, counted from 0.
    Index(usize),
    /// Into a mapping, to a key, or to the value of a non-scalar key.
    NoName,
}

/// The type of an open collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Collection {
    pub(crate) is_mapping: bool,
    pub(crate) is_flow: bool,
    /// The column of its first character; for a block sequence, the column of its dashes.
    pub(crate) column: usize,
}

/// An open collection and the state of its traversal.
#[derive(Debug)]
struct Frame<'s> {
    collection: Collection,
    /// True if the collection is part of a mapping's key.
    is_in_key: bool,
    /// The length of the path to the collection.
    depth: usize,
    /// True if a mapping expects a key next.
    expects_key: bool,
    /// The step to a mapping's next value.
    next_value: Option<Step<'s>>,
    /// The number of a sequence's entries so far.
    entries: usize,
}

/// Tracks the path to each node of a stream.
#[derive(Debug, Default)]
pub(crate) struct PathTracker<'s> {
    open: Vec<Frame<'s>>,
    path: Vec<Step<'s>>,
}

impl<'s> PathTracker<'s> {
    /// The path to the current node.
    pub(crate) fn path(&self) -> &[Step<'s>] {
        &self.path
    }

    /// The innermost open collection.
    pub(crate) fn innermost(&self) -> Option<&Collection> {
        self.open.last().map(|frame| &frame.collection)
    }

    /// The column of the innermost open block collection.
    pub(crate) fn block_column(&self) -> usize {
        let innermost = self.open.iter().rev().find(|frame| !frame.collection.is_flow);
        innermost.map_or(0, |frame| frame.collection.column)
    }

    /// Starts a node; `name` is its name if it is a scalar key.
    ///
    /// Returns true if it is a mapping's key or inside one.
    pub(crate) fn begin_node(&mut self, name: Step<'s>) -> bool {
        let Some(frame) = self.open.last_mut() else {
            self.path.clear();
            return false;
        };
        self.path.truncate(frame.depth);
        if !frame.collection.is_mapping {
            self.path.push(Step::Index(frame.entries));
            frame.entries += 1;
            return frame.is_in_key;
        }
        let is_key = frame.expects_key;
        frame.expects_key = !is_key;
        if is_key {
            frame.next_value = Some(name);
            self.path.push(Step::NoName);
        } else {
            self.path.push(frame.next_value.take().unwrap_or(Step::NoName));
        }
        is_key || frame.is_in_key
    }

    /// Starts a collection.
    pub(crate) fn begin(&mut self, collection: Collection) {
        let is_in_key = self.begin_node(Step::NoName);
        self.open.push(Frame {
            collection,
            is_in_key,
            depth: self.path.len(),
            expects_key: true,
            next_value: None,
            entries: 0,
        });
    }

    /// Ends the innermost collection, which becomes the current node.
    pub(crate) fn end(&mut self) -> Option<Collection> {
        let frame = self.open.pop()?;
        self.path.truncate(frame.depth);
        Some(frame.collection)
    }

    /// Ends a document.
    pub(crate) fn end_document(&mut self) {
        self.open.clear();
        self.path.clear();
    }
}
