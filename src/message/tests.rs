//! The table of `hack/oracle/message`: what Go makes of templates on the same data.

use std::fmt::Write;

use serde::Deserialize;
use tagboat_api::settings::TemplateLanguage;

use super::recorded;
use super::{DEFAULT_MESSAGE, MessageData, RemovedField, Template};

#[derive(Deserialize)]
struct Table {
    go: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    data: String,
    template: String,
    #[serde(default)]
    text: String,
    error: Option<String>,
}

fn data(name: &str) -> MessageData {
    let json: &[u8] = match name {
        "several" => include_bytes!("../../testdata/message/data/several.json"),
        "nothing" => include_bytes!("../../testdata/message/data/nothing.json"),
        "sample" => include_bytes!("../../testdata/message/data/sample.json"),
        other => panic!("there are no data named {other}"),
    };
    let result = recorded::read(json).unwrap().remove(0);
    result.data(&result.automation().unwrap()).unwrap()
}

fn render(data: &MessageData, text: &str, language: TemplateLanguage) -> Result<String, String> {
    let template = Template::compile(text, language).map_err(|error| error.fault())?;
    let message = template.render(data).map_err(|error| error.fault())?;
    Ok(String::from_utf8(message).unwrap())
}

#[test]
fn messages_are_what_go_renders() {
    let table: Table = serde_json::from_str(include_str!("../../testdata/message/table.json")).unwrap();
    assert_eq!(table.go, "go1.26.8");
    let mut report = String::new();
    let mut wrong = 0;
    for Case { data: name, template, text, error } in &table.cases {
        let wanted = match error {
            Some(error) => Err(error.clone()),
            // What Go renders to nothing is the default message here.
            None if text.trim_ascii().is_empty() => Ok(DEFAULT_MESSAGE.to_owned()),
            None => Ok(text.clone()),
        };
        let rendered = render(&data(name), template, TemplateLanguage::Go);
        if wanted != rendered {
            wrong += 1;
            writeln!(report, "{name} {template:?}\n  Go:   {wanted:?}\n  ours: {rendered:?}").unwrap();
        }
    }
    assert!(wrong == 0, "{wrong} of {} cases differ:\n{report}", table.cases.len());
}

#[test]
fn the_sample_of_the_table_is_the_embedded_one() {
    assert_eq!(data("sample"), MessageData::sample());
}

#[test]
fn removed_fields_are_found_where_flux_finds_them() {
    let sample = MessageData::sample();
    for (text, found) in [
        ("{{ .Changed.Changes }}{{ .Changed.Objects }}{{ .Values }}{{ .AutomationObject }}", None),
        ("{{ range .Updated.Images }}{{ . }}{{ end }}", Some(RemovedField::Updated)),
        ("{{ .Changed.ImageResult.Files }}", Some(RemovedField::ImageResult)),
        ("{{ if false }}{{ .Updated }}{{ end }}", None),
        ("{{ .Foo }}", None),
    ] {
        let template = Template::compile(text, TemplateLanguage::Go).unwrap();
        assert_eq!(template.removed_field(&sample), found, "{text}");
    }
}
