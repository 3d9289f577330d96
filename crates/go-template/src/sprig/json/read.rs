//! Parses JSON into values.

use crate::budget::{Budget, Failure, MAX_VALUE_DEPTH};
use crate::text::{Text, push_rune, runes};
use crate::value::{Map, Value};

/// Parses a value. The inner error is Go's, for text that is not JSON.
pub(super) fn read(text: &[u8], budget: &mut Budget<'_>) -> Result<Result<Value, String>, Failure> {
    let mut reader = Reader { text, at: 0, budget, out_of_range: None };
    let value = match reader.document() {
        Ok(value) => value,
        Err(ParseError::Text(message)) => return Ok(Err(message)),
        Err(ParseError::Limit(failure)) => return Err(failure),
    };
    Ok(match reader.out_of_range {
        Some(number) => Err(format!("json: cannot unmarshal number {number} into Go value of type float64")),
        None => Ok(value),
    })
}

/// Go's error for text that ends too early.
const END: &str = "unexpected end of JSON input";

enum ParseError {
    Text(String),
    Limit(Failure),
}

impl From<Failure> for ParseError {
    fn from(failure: Failure) -> Self {
        Self::Limit(failure)
    }
}

struct Reader<'t, 'b, 'i> {
    text: &'t [u8],
    at: usize,
    budget: &'b mut Budget<'i>,
    /// The error for a number out of range, which any other error replaces.
    out_of_range: Option<String>,
}

impl Reader<'_, '_, '_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// Returns the error for the next byte.
    fn wrong<T>(&self, place: &str) -> Result<T, ParseError> {
        let Some(byte) = self.peek() else {
            // At the end, Go's scanner gets a space, which is an error inside literals and numbers.
            let is_inside = place.contains("literal") && !place.contains("string");
            let message = if is_inside { format!("invalid character ' ' {place}") } else { END.to_owned() };
            return Err(ParseError::Text(message));
        };
        let shown = match byte {
            b'\'' => r"'\''".to_owned(),
            b'"' => "'\"'".to_owned(),
            byte => {
                let quoted = crate::format::quote(&char::from(byte).to_string());
                format!("'{}'", &quoted[1..quoted.len() - 1])
            }
        };
        Err(ParseError::Text(format!("invalid character {shown} {place}")))
    }

    fn document(&mut self) -> Result<Value, ParseError> {
        let value = self.value(0)?;
        self.skip_space();
        if self.at < self.text.len() {
            return self.wrong("after top-level value");
        }
        Ok(value)
    }

    fn value(&mut self, depth: usize) -> Result<Value, ParseError> {
        if depth > MAX_VALUE_DEPTH {
            return Err(Failure::too_deep().into());
        }
        self.budget.step(0)?;
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => {
                let text = self.string()?;
                self.made(text.into())
            }
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Nil),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.wrong("looking for beginning of value"),
        }
    }

    /// Counts a parsed value.
    fn made(&mut self, value: Value) -> Result<Value, ParseError> {
        self.budget.count(&value)?;
        Ok(value)
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, ParseError> {
        for wanted in word.bytes() {
            if self.peek() != Some(wanted) {
                return self.wrong(&format!("in literal {word} (expecting '{}')", char::from(wanted)));
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn object(&mut self, depth: usize) -> Result<Value, ParseError> {
        self.at += 1;
        let mut members: Vec<(Text, Value)> = Vec::new();
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return self.made(Map::dict(members).into());
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return self.wrong("looking for beginning of object key string");
            }
            let name = self.string()?;
            self.skip_space();
            if self.peek() != Some(b':') {
                return self.wrong("after object key");
            }
            self.at += 1;
            self.made(name.clone().into())?;
            members.push((name, self.value(depth + 1)?));
            self.budget.check_list(2 * members.len())?;
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return self.made(Map::dict(members).into());
                }
                _ => return self.wrong("after object key:value pair"),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, ParseError> {
        self.at += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return self.made(Value::list(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.budget.check_list(items.len())?;
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return self.made(Value::list(items));
                }
                _ => return self.wrong("after array element"),
            }
        }
    }

    fn digits(&mut self, place: &str) -> Result<(), ParseError> {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return self.wrong(place);
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Value, ParseError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits("in numeric literal")?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        let text = std::str::from_utf8(&self.text[start..self.at]).expect("digits are UTF-8");
        let number: f64 = text.parse().expect("JSON's numbers are Rust's as well");
        if number.is_infinite() {
            self.out_of_range.get_or_insert_with(|| text.to_owned());
        }
        Ok(number.into())
    }

    fn string(&mut self) -> Result<Text, ParseError> {
        self.at += 1;
        let mut out = Vec::new();
        let mut plain = self.at;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.push_plain(&mut out, plain);
                    self.at += 1;
                    return Ok(out.into());
                }
                Some(b'\\') => {
                    self.push_plain(&mut out, plain);
                    self.at += 1;
                    let c = self.escape()?;
                    push_rune(&mut out, c);
                    plain = self.at;
                }
                Some(byte) if byte >= b' ' => self.at += 1,
                _ => return self.wrong("in string literal"),
            }
        }
    }

    /// Appends a run of unescaped text; invalid UTF-8 becomes U+FFFD.
    fn push_plain(&self, out: &mut Vec<u8>, start: usize) {
        for (_, c, _) in runes(&self.text[start..self.at]) {
            push_rune(out, c);
        }
    }

    fn escape(&mut self) -> Result<char, ParseError> {
        let c = match self.peek() {
            Some(b @ (b'"' | b'\\' | b'/')) => char::from(b),
            Some(b'b') => '\x08',
            Some(b'f') => '\x0c',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.code_point();
            }
            _ => return self.wrong("in string escape code"),
        };
        self.at += 1;
        Ok(c)
    }

    fn code_point(&mut self) -> Result<char, ParseError> {
        let code = self.four_digits()?;
        if let Some(c) = char::from_u32(code) {
            return Ok(c);
        }
        // The first half of a surrogate pair takes the second with it, if that is one.
        let rest = &self.text[self.at..];
        let is_first = (0xd800..0xdc00).contains(&code);
        if is_first
            && rest.starts_with(b"\\u")
            && let Some(digits) = rest.get(2..6).and_then(|digits| std::str::from_utf8(digits).ok())
            && let Ok(second @ 0xdc00..0xe000) = u32::from_str_radix(digits, 16)
        {
            self.at += 6;
            let code = 0x1_0000 + ((code - 0xd800) << 10) + (second - 0xdc00);
            return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn four_digits(&mut self) -> Result<u32, ParseError> {
        let mut code = 0;
        for _ in 0..4 {
            let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(16)) else {
                return self.wrong("in \\u hexadecimal character escape");
            };
            code = code << 4 | digit;
            self.at += 1;
        }
        Ok(code)
    }
}
