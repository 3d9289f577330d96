//! Compares the scalars of the old and the new text.

use granit_parser::{Event, ScalarStyle, Tag};

use super::parsed::{self, Node, Parsed};
use crate::rewrite::setup;

/// A scalar whose value or notation changed.
#[derive(Debug)]
pub(crate) struct Difference<'a, 's> {
    /// The scalar in the old text.
    pub(crate) old: &'a Node<'s>,
    /// The scalar in the new text.
    pub(crate) new: &'a Node<'s>,
    /// Its old value.
    pub(crate) old_value: &'a str,
    /// Its new value.
    pub(crate) new_value: &'a str,
    /// Its old style.
    pub(crate) old_style: ScalarStyle,
    /// Its new style.
    pub(crate) new_style: ScalarStyle,
    /// True if its tag was removed.
    pub(crate) lost_tag: bool,
    /// True if its tag became `!!str`.
    pub(crate) is_retagged: bool,
}

/// Compares two texts event by event: only scalars and their tags may differ.
pub(crate) fn differences<'a, 's>(old: &'a Parsed<'s>, new: &'a Parsed<'s>) -> Vec<Difference<'a, 's>> {
    assert_eq!(old.nodes.len(), new.nodes.len(), "the number of nodes changed");
    old.nodes.iter().zip(&new.nodes).filter_map(|(old, new)| difference(old, new)).collect()
}

fn difference<'a, 's>(old: &'a Node<'s>, new: &'a Node<'s>) -> Option<Difference<'a, 's>> {
    let (Event::Scalar(_, old_style, old_anchor, old_tag), Event::Scalar(_, new_style, new_anchor, new_tag)) =
        (&old.0, &new.0)
    else {
        assert_eq!(old.0, new.0, "a node that is not a scalar changed");
        return None;
    };
    let was_absent = parsed::is_absent(*old_style, &old.1);
    if old.0 == new.0 && was_absent == parsed::is_absent(*new_style, &new.1) {
        return None;
    }
    assert_eq!(old_anchor, new_anchor, "an anchor changed");
    let lost_tag = old_tag.is_some() && new_tag.is_none();
    if lost_tag {
        assert!(old_tag.as_deref().is_some_and(is_other_yaml_type), "the tag {old_tag:?} was removed");
    }
    // If the comment is between tag and value, `!!str` replaces another tag.
    let is_retagged = !lost_tag && old_tag != new_tag;
    if is_retagged {
        let fits =
            old_tag.as_deref().is_some_and(is_other_yaml_type) && new_tag.as_deref().is_some_and(is_text);
        assert!(fits, "the tag {old_tag:?} became {new_tag:?}");
    }
    let (old_value, new_value) = (value_of(old), value_of(new));
    if !new_tag.as_deref().is_some_and(is_text) && *new_style == ScalarStyle::Plain {
        assert!(!setup::must_be_quoted(new_value), "{new_value:?} stands without quotes");
    }
    let (old_style, new_style) = (*old_style, *new_style);
    Some(Difference { old, new, old_value, new_value, old_style, new_style, lost_tag, is_retagged })
}

fn value_of<'a>((event, span): &'a Node<'_>) -> &'a str {
    match event {
        Event::Scalar(value, style, ..) if !parsed::is_absent(*style, span) => value,
        _ => "",
    }
}

fn is_text(tag: &Tag) -> bool {
    tag.core_suffix() == Some("str")
}

fn is_other_yaml_type(tag: &Tag) -> bool {
    let name = format!("{}{}", tag.handle(), tag.suffix());
    name.strip_prefix("tag:yaml.org,2002:").is_some_and(|suffix| suffix != "str")
}
