//! The examples of `docs/commit-messages.md`: each template renders to the output that the page shows.

use tagboat::message::{MessageData, Template};
use tagboat_api::settings::TemplateLanguage;

const PAGE: &str = include_str!("../../docs/commit-messages.md");

/// A template of the page, and its output.
struct Example {
    language: TemplateLanguage,
    template: String,
    expected: Result<String, String>,
}

/// The content of the fenced block that follows.
fn block<'a>(lines: &mut impl Iterator<Item = &'a str>) -> String {
    assert_eq!(lines.next(), Some("```"), "a fenced block follows a mark");
    lines.take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect()
}

fn examples() -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut template = None;
    let mut lines = PAGE.lines();
    while let Some(line) = lines.next() {
        match line {
            "<!-- template -->" => template = Some((TemplateLanguage::Go, block(&mut lines))),
            "<!-- template handlebars -->" => {
                template = Some((TemplateLanguage::Handlebars, block(&mut lines)));
            }
            "<!-- output -->" | "<!-- error -->" => {
                let (language, template) = template.take().expect("a template stands before its output");
                let shown = block(&mut lines);
                let expected =
                    if line == "<!-- output -->" { Ok(shown) } else { Err(shown.trim_end().to_owned()) };
                examples.push(Example { language, template, expected });
            }
            _ => assert!(!line.starts_with("<!--"), "unknown mark {line}"),
        }
    }
    assert!(template.is_none(), "the last template has no output");
    examples
}

#[test]
fn every_output_of_the_page_on_messages_is_true() {
    let examples = examples();
    assert_eq!(examples.len(), 8);
    for Example { language, template, expected } in examples {
        let rendered = Template::compile(&template, language)
            .map_err(|error| error.detail())
            .and_then(|template| template.render(&MessageData::sample()).map_err(|error| error.detail()));
        let rendered = rendered.map(|message| String::from_utf8(message).unwrap());
        assert!(rendered == expected, "{template}\n{}", rendered.unwrap_or_else(|error| error));
    }
}

#[test]
fn the_page_names_every_preset() {
    for preset in tagboat::message::presets() {
        assert!(PAGE.contains(&format!("`preset:{}`", preset.name)), "{}", preset.name);
    }
}
