//! Parses and renders any text as a template: deterministic and within limits.

use tagboat_go_template::{Limits, Map, Template, TemplateError, Value};

use crate::text::text_of;

const LIMITS: Limits = Limits { depth: 60, steps: 20_000, output: 1 << 14, value: 1 << 14, memory: 1 << 20 };

/// Parses and renders any text as a template: deterministic and within limits.
pub fn template(input: &[u8]) {
    let text = text_of(input);
    let rendered = render(text);
    // Templates can change their data, so each rendering gets its own.
    assert_eq!(rendered, render(text), "{text:?}");
    match rendered {
        Ok(bytes) => assert!(bytes.len() <= LIMITS.output, "{text:?}"),
        Err(TemplateError::Parse { message }) => assert!(message.starts_with("template: fuzz:"), "{message}"),
        Err(TemplateError::Execute { message }) => {
            assert!(message.starts_with("template: fuzz:"), "{message}");
        }
        Err(TemplateError::Interrupted) => panic!("nothing interrupts it"),
    }
}

fn render(text: &str) -> Result<Vec<u8>, TemplateError> {
    Template::parse("fuzz", text)?.render_within(&data(), LIMITS)
}

fn data() -> Value {
    let list = Value::list(vec![Value::int(1), "two".into(), 3.5.into(), Value::Nil, true.into()]);
    let inner = Map::dict([("key".into(), "value".into()), ("bytes".into(), b"a\xffb".to_vec().into())]);
    let texts = Value::texts(["c", "a", "b"].map(Into::into));
    Map::dict([
        ("list".into(), list),
        ("dict".into(), inner.into()),
        ("texts".into(), texts),
        ("text".into(), "hello wörld".into()),
        ("number".into(), Value::int(-42)),
        ("float".into(), 1e-7.into()),
        ("complex".into(), Value::Complex(1.0, -2.0)),
        ("nothing".into(), Value::Nil),
    ])
    .into()
}
