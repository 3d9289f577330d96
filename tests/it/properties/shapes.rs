//! Generators of YAML files as shapes: structure, styles and markers.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// A whole file.
#[derive(Debug, Clone)]
pub(crate) struct FileShape {
    pub(crate) documents: Vec<Vec<Entry>>,
    pub(crate) has_crlf: bool,
    pub(crate) has_byte_order_mark: bool,
    pub(crate) has_final_newline: bool,
}

/// An entry of a mapping or a sequence.
/// A comment line and a blank line may be above it.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) above: &'static str,
    pub(crate) node: Node,
}

/// The value of an entry.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    Mapping(Vec<Entry>),
    /// Indented by two against its parent or not at all.
    Sequence(bool, Vec<Entry>),
    FlowMapping(Vec<Scalar>),
    FlowSequence(Vec<Scalar>),
    Scalar(Scalar),
}

/// The style of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Absent,
    Plain,
    PlainLines,
    Single,
    Double,
    DoubleLines,
    /// The indicators of a block, and the number of blank lines after it.
    Block(&'static str, usize),
}

/// A scalar value.
#[derive(Debug, Clone)]
pub(crate) struct Scalar {
    pub(crate) style: Style,
    pub(crate) words: (String, String),
    pub(crate) has_anchor: bool,
    pub(crate) has_tag: bool,
    pub(crate) gap: &'static str,
    /// The field and the tag of the marker.
    pub(crate) marker: Option<(&'static str, String)>,
}

/// Tags that some YAML reader mistakes for another type, among harmless ones.
fn tags() -> impl Strategy<Value = String> {
    let odd = [
        "1",
        "1.10",
        "1_000",
        "1e3",
        "0x1F",
        "0o17",
        "017",
        "0b1",
        "y",
        "on",
        "null",
        "No",
        ".inf",
        "2024-01-31",
        "-",
        "---",
        "...",
        ".5",
        "-1",
        "true",
        "685_230.15",
        "5.0.3",
        "v1.0",
        "latest",
    ];
    prop_oneof![select(odd.map(str::to_owned).to_vec()), "[A-Za-z0-9_.-]{1,12}"]
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![8 => "[a-z0-9][a-z0-9.]{0,6}", 1 => Just("🚀é".to_owned()), 1 => Just("true".to_owned())]
}

fn scalar_of(style: impl Strategy<Value = Style>) -> impl Strategy<Value = Scalar> {
    let marker = option::of((select(vec!["", ":tag", ":name"]), tags()));
    let gaps = select(vec![" ", "  ", "\t", "    "]);
    let properties = prop_oneof![6 => Just((false, false)), 1 => Just((true, false)), 1 => Just((false, true)), 1 => Just((true, true))];
    (style, words(), words(), properties, gaps, marker).prop_map(
        |(style, one, other, properties, gap, marker)| {
            let (has_anchor, has_tag) = properties;
            Scalar { style, words: (one, other), has_anchor, has_tag, gap, marker }
        },
    )
}

fn block_scalar() -> impl Strategy<Value = Scalar> {
    let headers = select(vec!["|", "|-", "|+", ">", ">-", ">+", "|2", ">2-", "|2+"]);
    scalar_of(prop_oneof![
        1 => Just(Style::Absent),
        3 => Just(Style::Plain),
        1 => Just(Style::PlainLines),
        2 => Just(Style::Single),
        2 => Just(Style::Double),
        1 => Just(Style::DoubleLines),
        2 => (headers, 0_usize..3).prop_map(|(header, blank)| Style::Block(header, blank)),
    ])
}

fn flow_scalar() -> impl Strategy<Value = Scalar> {
    scalar_of(select(vec![Style::Plain, Style::Single, Style::Double]))
}

fn entries(node: impl Strategy<Value = Node>) -> impl Strategy<Value = Vec<Entry>> {
    let above = prop_oneof![5 => Just(""), 1 => Just("\n"), 1 => Just("# note\n"), 1 => Just("\n# note\n\n")];
    vec((above, node).prop_map(|(above, node)| Entry { above, node }), 1..4)
}

fn nodes() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        6 => block_scalar().prop_map(Node::Scalar),
        1 => vec(flow_scalar(), 1..4).prop_map(Node::FlowMapping),
        1 => vec(flow_scalar(), 1..4).prop_map(Node::FlowSequence),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            entries(inner.clone()).prop_map(Node::Mapping),
            (any::<bool>(), entries(inner)).prop_map(|(indented, entries)| Node::Sequence(indented, entries)),
        ]
    })
}

/// Whole files.
pub(crate) fn files() -> impl Strategy<Value = FileShape> {
    (vec(entries(nodes()), 1..3), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(documents, has_crlf, has_byte_order_mark, has_final_newline)| FileShape {
            documents,
            has_crlf,
            has_byte_order_mark,
            has_final_newline,
        },
    )
}
