//! Masks some scalars of a text, so that the rest can be compared.

use std::ops::Range;

use granit_parser::ScalarStyle;

use super::block::{self, Block};
use super::parsed::{self, Node, Parsed};
use super::scalars::Difference;

/// Replaces the bytes of a scalar; YAML forbids this character everywhere.
const MASK: &str = "\0";

type Masks = Vec<(Range<usize>, &'static str)>;

/// Panics unless the two texts are the same outside of the scalars that differ.
pub(crate) fn assert_same_outside(old: &Parsed<'_>, new: &Parsed<'_>, differences: &[Difference<'_, '_>]) {
    let old_masks = differences.iter().flat_map(|difference| old_masks(old, difference)).collect();
    let new_masks = differences.iter().flat_map(|difference| new_masks(old, new, difference)).collect();
    let (old_rest, new_rest) = (masked(old.source, old_masks), masked(new.source, new_masks));
    assert_eq!(old_rest, new_rest, "bytes outside of the changed values changed");
}

fn old_masks(text: &Parsed<'_>, difference: &Difference<'_, '_>) -> Masks {
    let span = &difference.old.1;
    let mut masks: Masks = lost_tag(text.source, difference).map(|range| (range, "")).into_iter().collect();
    masks.extend(tag_mask(&difference.old.1, difference));
    if parsed::is_block(difference.old_style) {
        let stays_block = parsed::is_block(difference.new_style);
        masks.extend(block_masks(text, difference.old, stays_block));
    } else if !parsed::is_absent(difference.old_style, span) {
        masks.push((parsed::bytes(span), MASK));
    }
    masks
}

fn new_masks(old: &Parsed<'_>, new: &Parsed<'_>, difference: &Difference<'_, '_>) -> Masks {
    let span = parsed::bytes(&difference.new.1);
    if parsed::is_absent(difference.old_style, &difference.old.1) {
        let takes_place_of_tag =
            lost_tag(old.source, difference).is_some_and(|range| ends_node(old.source, range.end));
        let blank = usize::from(!takes_place_of_tag);
        assert!(blank == 0 || new.source[..span.start].ends_with(' '), "no blank before a value that came");
        vec![(span.start - blank..span.end, "")]
    } else if parsed::is_block(difference.new_style) {
        assert_ne!(difference.old_style, ScalarStyle::Plain, "a block came");
        let mut masks = block_masks(new, difference.new, true);
        masks.extend(tag_mask(&difference.new.1, difference));
        masks
    } else {
        let mut masks: Masks = tag_mask(&difference.new.1, difference).into_iter().collect();
        masks.push((span, MASK));
        masks
    }
}

/// Returns the range of the tag of a retagged scalar.
fn tag_mask(
    span: &granit_parser::Span,
    difference: &Difference<'_, '_>,
) -> Option<(Range<usize>, &'static str)> {
    let tag = difference.is_retagged.then(|| span.tag_span()).flatten()?;
    Some((parsed::bytes(&tag), MASK))
}

/// Returns the range that is removed with a tag.
///
/// It has the spaces behind the tag, or those before it at the end of a line. If an absent value takes the place of
/// the tag, it is the tag alone.
fn lost_tag(source: &str, difference: &Difference<'_, '_>) -> Option<Range<usize>> {
    let span = &difference.old.1;
    if !difference.lost_tag {
        return None;
    }
    let tag = parsed::bytes(&span.tag_span().expect("a scalar with a tag has the tag's place"));
    let rest = source[tag.end..].trim_start_matches([' ', '\t']);
    Some(if rest.starts_with(['\n', '\r']) {
        source[..tag.start].trim_end_matches([' ', '\t']).len()..tag.end
    } else if parsed::is_absent(difference.old_style, span) && ends_node(source, tag.end) {
        tag
    } else {
        tag.start..source.len() - rest.len()
    })
}

/// Returns whether only spaces separate a position from a comma or a comment.
fn ends_node(source: &str, at: usize) -> bool {
    source[at..].trim_start_matches([' ', '\t']).starts_with(['#', ','])
}

/// Returns the ranges of a block's header (`|` or `>`, indicators) and of its lines.
///
/// The last line break is excluded if the block stays a block, and included otherwise.
fn block_masks(text: &Parsed<'_>, node: &Node<'_>, stays_block: bool) -> Masks {
    let Block { header, lines, .. } = Block::of(text, node);
    let mut masks = vec![(header, MASK)];
    if !lines.is_empty() {
        masks.push(if stays_block {
            (lines, MASK)
        } else {
            (lines.start..block::next_line(text.source, lines.end), "")
        });
    }
    masks
}

fn masked(source: &str, mut masks: Masks) -> String {
    masks.sort_by_key(|(range, _)| range.start);
    let mut rest = String::with_capacity(source.len());
    let mut from = 0;
    for (range, text) in masks {
        assert!(from <= range.start, "two changed values overlap");
        rest.push_str(&source[from..range.start]);
        rest.push_str(text);
        from = range.end;
    }
    rest + &source[from..]
}
