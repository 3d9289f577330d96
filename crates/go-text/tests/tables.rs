//! Compares with tables of results of Go's standard library; `make oracle` regenerates them.

use serde::Deserialize;
use tagboat_go_text::{Regexp, parse_float};

const MAX_SIZE: usize = 10 << 20;

#[derive(Deserialize)]
struct Filters {
    tags: Vec<String>,
    patterns: Vec<Pattern>,
}

#[derive(Deserialize)]
struct Pattern {
    pattern: String,
    #[serde(default)]
    error: String,
    #[serde(default)]
    matches: String,
    #[serde(default)]
    extracts: Vec<Extract>,
}

#[derive(Deserialize)]
struct Extract {
    extract: String,
    values: Vec<String>,
}

#[test]
fn patterns_match_as_in_go() {
    let filters: Filters = serde_json::from_str(include_str!("../../../testdata/filter/table.json")).unwrap();
    let mut wrong = Vec::new();
    let (mut compiled, mut cells) = (0, 0);
    for row in &filters.patterns {
        let regexp = match Regexp::compile_within(&row.pattern, MAX_SIZE) {
            Ok(regexp) => regexp,
            Err(error) => {
                if error.to_string() != row.error {
                    wrong.push(format!("{:?}: {error}; Go: {:?}", row.pattern, row.error));
                }
                continue;
            }
        };
        compiled += 1;
        if !row.error.is_empty() {
            wrong.push(format!("{:?} is taken; Go: {}", row.pattern, row.error));
            continue;
        }
        let matching: Vec<_> =
            filters.tags.iter().map(|tag| (tag, regexp.captures(tag.as_bytes()))).collect();
        cells += matching.len();
        let bits: String =
            matching.iter().map(|(_, found)| if found.is_some() { '1' } else { '0' }).collect();
        if bits != row.matches {
            wrong.push(format!("{:?} matches {bits}; Go: {}", row.pattern, row.matches));
            continue;
        }
        for Extract { extract, values } in &row.extracts {
            let found = matching.iter().filter_map(|(tag, found)| Some((tag, found.as_ref()?)));
            for ((tag, captures), wanted) in found.zip(values) {
                let mut value = Vec::new();
                regexp.expand(&mut value, extract.as_bytes(), captures, |_| Ok::<_, ()>(())).unwrap();
                let value = String::from_utf8(value).unwrap();
                if value != *wanted {
                    wrong
                        .push(format!("{:?} {extract:?} of {tag:?}: {value:?}; Go: {wanted:?}", row.pattern));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compiled >= 100 && cells >= 100 * 100, "{compiled} patterns, {cells} cells");
}

#[derive(Deserialize)]
struct Numbers {
    rows: Vec<Number>,
}

#[derive(Deserialize)]
struct Number {
    text: String,
    #[serde(default)]
    bits: String,
    #[serde(default)]
    error: String,
}

#[test]
fn numbers_are_parsed_as_in_go() {
    let numbers: Numbers = serde_json::from_str(include_str!("../../../testdata/number/table.json")).unwrap();
    let mut wrong = Vec::new();
    for Number { text, bits, error } in &numbers.rows {
        let found = match parse_float(text) {
            Ok(number) if number.is_nan() => "nan".to_owned(),
            Ok(number) => format!("{:016x}", number.to_bits()),
            Err(found) => found.to_string(),
        };
        if found != format!("{bits}{error}") {
            wrong.push(format!("{text:?}: {found}; Go: {bits}{error}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(numbers.rows.len() >= 500, "{}", numbers.rows.len());
}
