//! Tests of properties of every file.
//! Only marked values change, they read as expected, and the rewriter never panics.

mod documents;
mod shapes;

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;
use tagboat::reference::ImageReference;
use tagboat::update::file::{FileOutcome, update_file};
use tagboat::update::{MarkerOutcome, PolicyState, Setters};
use tagboat::yaml::{Limits, YamlError};

use crate::support::manifests::marker;
use documents::{Document, Piece};
use tagboat_api::ObjectName;

fn setters<'a>(images: impl Iterator<Item = (String, &'a str)>) -> Setters {
    let policy = |(name, tag): (String, &str)| {
        let image = ImageReference::from_parts("ghcr.io/acme/app", tag, None).unwrap();
        (ObjectName { namespace: "default".to_owned(), name }, PolicyState::Image(image))
    };
    Setters::new(images.map(policy).collect::<BTreeMap<_, _>>())
}

fn update(text: &str, setters: &Setters) -> Result<FileOutcome, YamlError> {
    update_file(text.as_bytes(), setters, None, &Limits::default())
}

/// Reads a file with a parser that the rewriter does not use.
fn read(text: &str) -> Vec<Value> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // A tag such as 1e310 reads as an infinite number, which is accepted here.
    let options =
        serde_saphyr::options! { non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::AsString };
    serde_saphyr::from_multiple_with_options(text, options).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Checks that `found` has the same fixed pieces with other values between them.
/// Each value must be on one line.
fn check_fixed_pieces(document: &Document, found: &str) -> Result<(), TestCaseError> {
    let mut rest = found;
    let mut is_open = false;
    for piece in &document.pieces {
        let Piece::Fixed(text) = piece else {
            is_open = true;
            continue;
        };
        let at = rest.find(text.as_str());
        prop_assert!(at.is_some(), "{text:?} is missing in {rest:?}");
        let value = &rest[..at.unwrap()];
        prop_assert!(is_open || value.is_empty(), "{value:?} was inserted before {text:?}");
        rest = &rest[at.unwrap() + text.len()..];
        is_open = false;
    }
    prop_assert!(is_open || rest.is_empty(), "{rest:?} was added at the end");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn only_marked_values_change_and_they_parse_as_the_new_value(shape in shapes::files()) {
        let document = Document::render(&shape);
        let source = document.text();
        let setters = setters(document.marked.iter().map(|marked| (marked.policy.clone(), marked.tag.as_str())));
        let outcome = update(&source, &setters);
        prop_assert!(outcome.is_ok(), "{outcome:?}\n{source}");
        let outcome = outcome.unwrap();
        let found = outcome.text.clone().unwrap_or_else(|| source.clone());
        check_fixed_pieces(&document, &found)?;

        let mut wanted = read(&source);
        // A current value of any type is never edited: a plain `true` stays plain.
        let is_current = |policy: &str| {
            let marker = outcome.markers.iter().find(|found| found.marker.policy.name == policy);
            marker.is_some_and(|found| found.outcome == MarkerOutcome::Current)
        };
        for marked in document.marked.iter().filter(|marked| !is_current(&marked.policy)) {
            let value = wanted[marked.document].pointer_mut(&marked.pointer);
            *value.expect("a path of the generator") = Value::String(marked.wanted());
        }
        prop_assert_eq!(read(&found), wanted, "{}\n=====\n{}", source, found);

        let resolved = |outcome: &MarkerOutcome| matches!(outcome, MarkerOutcome::Changed | MarkerOutcome::Current);
        prop_assert!(outcome.markers.iter().all(|marker| resolved(&marker.outcome)), "{:?}", outcome.markers);
        prop_assert_eq!(outcome.markers.len(), document.marked.len());
        let changes: usize = outcome.changes.values().map(Vec::len).sum();
        let changed = outcome.markers.iter().filter(|marker| marker.outcome == MarkerOutcome::Changed).count();
        prop_assert_eq!(changes, changed);

        let again = update(&found, &setters).unwrap();
        prop_assert_eq!(again.text, None);
        prop_assert!(again.markers.iter().all(|marker| marker.outcome == MarkerOutcome::Current));
    }

    #[test]
    fn no_input_makes_the_update_panic(content in vec(any::<u8>(), 0..200)) {
        let _ = update_file(&content, &setters([("p".to_owned(), "1.10")].into_iter()), None, &Limits::default());
    }
}

/// Fragments of YAML to combine at random.
fn scraps() -> impl Strategy<Value = String> {
    let (tag, name) = (marker("default:p:tag"), marker("default:p:name"));
    let scraps: Vec<String> = [
        "\n",
        "\n",
        "\n  ",
        "\n    ",
        "\n\n",
        "\r\n",
        "\r",
        " ",
        "  ",
        "\t",
        "- ",
        "-",
        "? ",
        ": ",
        ":",
        "a",
        "b:",
        "k: ",
        "k: v",
        "\nk: ",
        "\n- ",
        "\n  k: ",
        "\n  - ",
        "'",
        "\"",
        "''",
        "\\",
        "|",
        ">",
        "|-",
        ">+",
        "|2",
        "|1-",
        "&a ",
        "*a",
        "!!str ",
        "!!int ",
        "!x ",
        "! ",
        "{",
        "}",
        "[",
        "]",
        ",",
        ", ",
        "#",
        " # c\n",
        "\n---\n",
        "\n...\n",
        "--- ",
        "%YAML 1.2\n",
        "\u{feff}",
        "🚀",
        "\u{85}",
        "\u{2028}",
        "1.0",
        "null",
        "<<: ",
        "\u{7}",
        "\"a\n  b\"",
        "kind: List\n",
        "items:\n",
    ]
    .map(str::to_owned)
    .to_vec();
    let markers =
        vec![format!(" {tag}\n"), format!(" {tag}"), format!("\n{tag}\n"), format!(" {name}\n"), tag];
    let scrap = prop_oneof![3 => prop::sample::select(scraps), 1 => prop::sample::select(markers)];
    vec(scrap, 0..24).prop_map(|scraps| scraps.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn scraps_of_yaml_are_settled_by_one_run(text in scraps()) {
        let setters = setters([("p".to_owned(), "1.10")].into_iter());
        let Ok(outcome) = update(&text, &setters) else { return Ok(()) };
        let Some(found) = outcome.text else { return Ok(()) };
        let again = update(&found, &setters);
        prop_assert!(again.is_ok(), "{again:?}\n{text:?}\n{found:?}");
        let again = again.unwrap();
        prop_assert_eq!(&again.text, &None, "{:?}\n{:?}", text, found);
        prop_assert_eq!(again.markers.len(), outcome.markers.len());
    }
}
