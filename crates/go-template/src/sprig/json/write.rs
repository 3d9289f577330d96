//! Writes values as JSON.

use crate::budget::{Budget, Failure, MAX_VALUE_DEPTH};
use crate::sprig::encoding::encode_base64;
use crate::strconv::{FloatFormat, format_float};
use crate::text::{Text, push_rune, runes};
use crate::value::{Json, Map, Slice, Struct, Type, Value};

/// The layout of the JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// On one line, escaped for HTML.
    Compact,
    /// On one line, without HTML escaping.
    Raw,
    /// Indented, escaped for HTML.
    Pretty,
}

/// The reason for which a value cannot be written.
pub(super) enum EncodeError {
    /// JSON cannot represent the value.
    Value(String),
    /// The value exceeds a limit.
    Limit(Failure),
}

impl From<Failure> for EncodeError {
    fn from(failure: Failure) -> Self {
        Self::Limit(failure)
    }
}

/// Writes a value.
pub(super) fn write(value: &Value, style: Style, budget: &mut Budget<'_>) -> Result<Vec<u8>, EncodeError> {
    let mut writer = Writer { out: Vec::new(), style, budget };
    writer.value(value, 0)?;
    Ok(writer.out)
}

struct Writer<'b, 'i> {
    out: Vec<u8>,
    style: Style,
    budget: &'b mut Budget<'i>,
}

impl Writer<'_, '_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), EncodeError> {
        if depth > MAX_VALUE_DEPTH {
            return Err(Failure::too_deep().into());
        }
        self.budget.step(0)?;
        self.budget.check_size(self.out.len())?;
        if let Some((method, receiver)) = value.indirect().method("MarshalText")
            && let Value::String(text) = method.call(&receiver, &[])?
        {
            self.text(&text);
            return Ok(());
        }
        match value {
            Value::Nil => self.word("null"),
            Value::Bool(truth) => self.word(if *truth { "true" } else { "false" }),
            Value::Int(number, _) => self.word(&number.to_string()),
            Value::Uint(number, _) => self.word(&number.to_string()),
            Value::Float(number) => return self.float(*number),
            Value::String(text) => self.text(text),
            Value::Slice(slice) => return self.slice(slice, depth),
            Value::Map(map) => return self.map(map, depth),
            Value::Struct(object) => return self.structure(object, depth),
            Value::Pointer(_) => {
                return match value.indirect() {
                    Value::Pointer(_) => self.value(&Value::Nil, depth),
                    target => self.value(&target, depth),
                };
            }
            Value::Complex(..) | Value::Function(_) => return Err(unsupported(value)),
        }
        Ok(())
    }

    fn word(&mut self, word: &str) {
        self.out.extend_from_slice(word.as_bytes());
    }

    fn float(&mut self, number: f64) -> Result<(), EncodeError> {
        if !number.is_finite() {
            let text = format_float(number, FloatFormat::General, None);
            return Err(EncodeError::Value(format!("json: unsupported value: {text}")));
        }
        let magnitude = number.abs();
        if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
            let text = format_float(number, FloatFormat::Exponent, None);
            // A negative exponent of one digit loses its leading zero.
            self.word(&text.replace("e-0", "e-"));
        } else {
            self.word(&format_float(number, FloatFormat::Plain, None));
        }
        Ok(())
    }

    fn text(&mut self, text: &Text) {
        self.out.push(b'"');
        for (_, c, width) in runes(text.as_bytes()) {
            match c {
                '"' | '\\' => {
                    self.out.push(b'\\');
                    push_rune(&mut self.out, c);
                }
                '\x08' => self.word("\\b"),
                '\x0c' => self.word("\\f"),
                '\n' => self.word("\\n"),
                '\r' => self.word("\\r"),
                '\t' => self.word("\\t"),
                '\0'..' ' | '\u{2028}' | '\u{2029}' => self.word(&format!("\\u{:04x}", u32::from(c))),
                '<' | '>' | '&' if self.style != Style::Raw => {
                    self.word(&format!("\\u{:04x}", u32::from(c)));
                }
                char::REPLACEMENT_CHARACTER if width == 1 => self.word("\\ufffd"),
                c => push_rune(&mut self.out, c),
            }
        }
        self.out.push(b'"');
    }

    /// Breaks the line after an opening or before a closing bracket.
    fn line(&mut self, depth: usize) -> Result<(), EncodeError> {
        if self.style == Style::Pretty {
            self.out.push(b'\n');
            self.out.extend(std::iter::repeat_n(b' ', 2 * depth));
            self.budget.check_size(self.out.len())?;
        }
        Ok(())
    }

    fn slice(&mut self, slice: &Slice, depth: usize) -> Result<(), EncodeError> {
        if slice.is_nil() {
            self.word("null");
            return Ok(());
        }
        if let Some(bytes) = slice.bytes() {
            self.text(&encode_base64(&bytes).into());
            return Ok(());
        }
        self.budget.step(Value::Slice(slice.clone()).weight())?;
        self.out.push(b'[');
        slice.try_each(|i, item| {
            if i > 0 {
                self.out.push(b',');
            }
            self.line(depth + 1)?;
            self.value(item, depth + 1)
        })?;
        if !slice.is_empty() {
            self.line(depth)?;
        }
        self.out.push(b']');
        Ok(())
    }

    fn map(&mut self, map: &Map, depth: usize) -> Result<(), EncodeError> {
        if !matches!(map.kind().key, Type::String | Type::Int(_) | Type::Uint(_)) {
            return Err(unsupported(&Value::Map(map.clone())));
        }
        if map.is_nil() {
            self.word("null");
            return Ok(());
        }
        // Copying is paid for, even if the copy is discarded.
        self.budget.step(Value::Map(map.clone()).weight())?;
        self.out.push(b'{');
        if map.kind().key == Type::String {
            map.try_each(|i, name, value| match name {
                Value::String(name) => self.member(i, name, value, depth),
                _ => Ok(()),
            })?;
        } else {
            // Numeric keys are sorted as strings.
            let (entries, _charge) = self.budget.snapshot(map)?;
            let key = |key: &Value| match key {
                Value::Int(number, _) => number.to_string(),
                Value::Uint(number, _) => number.to_string(),
                _ => String::new(),
            };
            let mut members: Vec<(Text, Value)> =
                entries.into_iter().map(|(name, value)| (key(&name).into(), value)).collect();
            members.sort_by(|(left, _), (right, _)| left.cmp(right));
            for (i, (name, value)) in members.iter().enumerate() {
                self.member(i, name, value, depth)?;
            }
        }
        self.close(map.is_empty(), depth)
    }

    fn structure(&mut self, object: &Struct, depth: usize) -> Result<(), EncodeError> {
        let mut found = Vec::new();
        collect(object, 0, &mut found);
        let members: Vec<(Text, Value)> = found
            .iter()
            .filter(|member| {
                let rivals = || found.iter().filter(|other| other.name == member.name);
                let best = rivals().map(Member::rank).min();
                best == Some(member.rank())
                    && rivals().filter(|other| Some(other.rank()) == best).count() == 1
            })
            .filter(|member| !member.is_left_out)
            .map(|member| (member.name.into(), member.value.clone()))
            .collect();
        self.out.push(b'{');
        for (i, (name, value)) in members.iter().enumerate() {
            self.member(i, name, value, depth)?;
        }
        self.close(members.is_empty(), depth)
    }

    /// Writes a member of an object; the first one has the number 0.
    fn member(&mut self, number: usize, name: &Text, value: &Value, depth: usize) -> Result<(), EncodeError> {
        if number > 0 {
            self.out.push(b',');
        }
        self.line(depth + 1)?;
        self.text(name);
        self.word(if self.style == Style::Pretty { ": " } else { ":" });
        self.value(value, depth + 1)
    }

    /// Writes the end of an object.
    fn close(&mut self, is_empty: bool, depth: usize) -> Result<(), EncodeError> {
        if !is_empty {
            self.line(depth)?;
        }
        self.out.push(b'}');
        Ok(())
    }
}

/// A field of a struct or of an embedded struct.
struct Member {
    name: &'static str,
    value: Value,
    depth: usize,
    is_named: bool,
    is_left_out: bool,
}

impl Member {
    /// The precedence among members of the same name, lowest first.
    ///
    /// The lowest rank wins if only one member has it.
    fn rank(&self) -> (usize, bool) {
        (self.depth, !self.is_named)
    }
}

fn collect(object: &Struct, depth: usize, found: &mut Vec<Member>) {
    for (field, value) in object.kind().fields.iter().zip(object.fields()) {
        let is_inlined = matches!(field.json, Json::Inline) || field.embedded && field.json == Json::Plain;
        if is_inlined && let Value::Struct(inner) = value.indirect() {
            collect(&inner, depth + 1, found);
            continue;
        }
        if !field.is_exported() || field.json == Json::Skip {
            continue;
        }
        let (name, is_named) = match field.json {
            Json::Name(name) | Json::OmitEmpty(name) => (name, true),
            _ => (field.name, false),
        };
        let is_empty = !matches!(value, Value::Struct(_)) && !value.is_true();
        let is_left_out = matches!(field.json, Json::OmitEmpty(_)) && is_empty;
        found.push(Member { name, value: value.clone(), depth, is_named, is_left_out });
    }
}

fn unsupported(value: &Value) -> EncodeError {
    EncodeError::Value(format!("json: unsupported type: {}", value.type_name()))
}
