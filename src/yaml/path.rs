//! The way from a document's root to the node at hand.

use std::borrow::Cow;

/// One step of the way from a document's root to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<'s> {
    /// Into a mapping, by a scalar key.
    Key(Cow<'s, str>),
    /// Into a sequence, by the entry's number, counted from 0.
    Index(usize),
    /// Into a mapping, as a key or by a key that is no scalar.
    NoName,
}

/// What kind of collection is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Collection {
    pub(crate) is_mapping: bool,
    pub(crate) is_flow: bool,
    /// The column where it begins; of a block sequence, the column of its dashes.
    pub(crate) column: usize,
}

/// A collection that is open, and how far it has come.
#[derive(Debug)]
struct Frame<'s> {
    collection: Collection,
    /// Whether everything in it is part of some mapping's key.
    is_in_key: bool,
    /// The length of the path to the collection.
    depth: usize,
    /// Whether a mapping expects a key next.
    expects_key: bool,
    /// The step to a mapping's next value.
    next_value: Option<Step<'s>>,
    /// How many entries of a sequence have begun.
    entries: usize,
}

/// Follows the nodes of a stream and knows the path to each.
#[derive(Debug, Default)]
pub(crate) struct PathTracker<'s> {
    open: Vec<Frame<'s>>,
    path: Vec<Step<'s>>,
}

impl<'s> PathTracker<'s> {
    /// The way to the node that began last.
    pub(crate) fn path(&self) -> &[Step<'s>] {
        &self.path
    }

    /// The innermost collection that is open.
    pub(crate) fn innermost(&self) -> Option<&Collection> {
        self.open.last().map(|frame| &frame.collection)
    }

    /// The column of the innermost block collection that is open.
    pub(crate) fn block_column(&self) -> usize {
        let innermost = self.open.iter().rev().find(|frame| !frame.collection.is_flow);
        innermost.map_or(0, |frame| frame.collection.column)
    }

    /// Takes note of a node that begins, with its name should it be a scalar key; true if it is a mapping's
    /// key or within one.
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

    /// Takes note of a collection that begins.
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

    /// Takes note of the end of the innermost collection, which then is the node at hand.
    pub(crate) fn end(&mut self) -> Option<Collection> {
        let frame = self.open.pop()?;
        self.path.truncate(frame.depth);
        Some(frame.collection)
    }

    /// Takes note of a document's end.
    pub(crate) fn end_document(&mut self) {
        self.open.clear();
        self.path.clear();
    }
}
