//! The golden table of `hack/oracle/template`.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;
use tagboat_go_template::{Template, function_names};

use crate::data;

#[derive(Deserialize)]
struct Table {
    versions: BTreeMap<String, String>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    file: String,
    data: String,
    template: String,
    #[serde(default)]
    text: String,
    bytes: Option<String>,
    error: Option<String>,
}

impl Case {
    /// Returns Go's result: the text (as base64 if it is not UTF-8) or the error.
    fn wanted(&self) -> Result<String, String> {
        match (&self.error, &self.bytes) {
            (Some(error), _) => Err(error.clone()),
            (None, Some(bytes)) => Ok(bytes.clone()),
            (None, None) => Ok(self.text.clone()),
        }
    }

    fn rendered(&self) -> Result<String, String> {
        let template =
            Template::parse("commit message", &self.template).map_err(|error| error.to_string())?;
        let bytes = template.render(&data::named(&self.data)).map_err(|error| error.to_string())?;
        Ok(if self.bytes.is_some() { base64(&bytes) } else { String::from_utf8_lossy(&bytes).into_owned() })
    }
}

fn table() -> Table {
    let table = include_str!("../../../../testdata/template/table.json");
    serde_json::from_str(table).expect("the oracle writes this form")
}

#[test]
fn templates_render_as_in_go() {
    let table = table();
    let mut report = String::new();
    let mut wrong = 0;
    for case in &table.cases {
        let (wanted, rendered) = (case.wanted(), case.rendered());
        if wanted != rendered {
            wrong += 1;
            let Case { file, data, template, .. } = case;
            writeln!(report, "{file}: {data} {template:?}\n  Go:   {wanted:?}\n  ours: {rendered:?}")
                .unwrap();
        }
    }
    assert!(wrong == 0, "{wrong} of {} cases differ:\n{report}", table.cases.len());
}

#[test]
fn the_table_is_of_the_versions_that_are_followed() {
    let table = table();
    assert!(table.cases.len() >= 500, "{} cases", table.cases.len());
    assert_eq!(table.versions["go"], "go1.26.8");
    assert_eq!(table.versions["github.com/Masterminds/sprig/v3"], "v3.3.0");
    assert_eq!(table.versions["github.com/Masterminds/semver/v3"], "v3.5.0");
}

#[test]
fn every_function_has_a_case() {
    let table = table();
    let mut texts = table.cases.iter().map(|case| case.template.as_str()).collect::<Vec<_>>().join("\n");
    texts.push('\n');
    let has_case = |name: &str| {
        texts.match_indices(name).any(|(at, _)| {
            let is_word = |c: char| c == '_' || c.is_alphanumeric();
            !texts[..at].ends_with(is_word) && !texts[at + name.len()..].starts_with(is_word)
        })
    };
    let missing: Vec<_> = function_names().into_iter().filter(|name| !has_case(name)).collect();
    assert!(missing.is_empty(), "no case calls {missing:?}");
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * i) & 63) as usize];
            out.push(if i <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    out
}
