//! Numeric constants, as every type that can represent them.

use std::sync::Arc;

use super::token::TokenKind;
use super::unquote::unquote_char;
use crate::format::quote;
use crate::strconv::{parse_float, parse_int, parse_uint};

/// A numeric constant.
/// It has its text, and its value as each kind of number that can hold it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Number {
    pub(crate) text: Arc<str>,
    pub(crate) int: Option<i64>,
    pub(crate) uint: Option<u64>,
    pub(crate) float: Option<f64>,
    pub(crate) complex: Option<(f64, f64)>,
}

impl Number {
    pub(super) fn parse(text: &str, kind: TokenKind) -> Result<Self, String> {
        let number = Self { text: text.into(), ..Self::default() };
        match kind {
            TokenKind::CharConstant => number.of_char(text),
            TokenKind::Complex => number.of_complex(text),
            _ => number.of_plain(text),
        }
    }

    fn of_char(self, text: &str) -> Result<Self, String> {
        let (rune, rest) = unquote_char(&text[1..], '\'').ok_or("invalid syntax")?;
        if rest != "'" {
            return Err(format!("malformed character constant: {text}"));
        }
        Ok(Self { int: Some(rune.into()), uint: Some(rune.into()), float: Some(rune.into()), ..self })
    }

    fn of_complex(self, text: &str) -> Result<Self, String> {
        // The imaginary part begins at the last sign that does not belong to an exponent.
        let bytes = text.as_bytes();
        let is_sign = |&at: &usize| {
            matches!(bytes[at], b'+' | b'-') && !matches!(bytes[at - 1], b'e' | b'E' | b'p' | b'P')
        };
        let parts = (1..bytes.len()).rev().find(is_sign).map(|at| text.split_at(at));
        let is_digit = |c: char| c.is_ascii_digit();
        let (real, imaginary) = parts
            .filter(|(real, imaginary)| !real.ends_with('i') && imaginary.contains(is_digit))
            .ok_or("syntax error scanning complex number")?;
        let part = |text: &str| {
            parse_float(text)
                .map_err(|problem| format!("strconv.ParseFloat: parsing {}: {problem}", quote(text)))
        };
        let real = part(real)?;
        let imaginary = part(imaginary.trim_end_matches('i'))?;
        Ok(self.with_complex(real, imaginary))
    }

    fn of_plain(mut self, text: &str) -> Result<Self, String> {
        if let Some(digits) = text.strip_suffix('i')
            && let Ok(imaginary) = parse_float(digits)
        {
            return Ok(self.with_complex(0.0, imaginary));
        }
        self.uint = parse_uint(text, 0).ok();
        self.int = parse_int(text, 0).ok();
        if self.int == Some(0) {
            self.uint = Some(0);
        }
        if let Some(int) = self.int {
            self.float = Some(int as f64);
        } else if let Some(uint) = self.uint {
            self.float = Some(uint as f64);
        } else if let Ok(float) = parse_float(text) {
            if !text.contains(['.', 'e', 'E', 'p', 'P']) {
                return Err(format!("integer overflow: {}", quote(text)));
            }
            self.take_float(float);
        } else {
            return Err(format!("illegal number syntax: {}", quote(text)));
        }
        Ok(self)
    }

    fn with_complex(mut self, real: f64, imaginary: f64) -> Self {
        self.complex = Some((real, imaginary));
        if imaginary == 0.0 {
            self.take_float(real);
        }
        self
    }

    fn take_float(&mut self, float: f64) {
        self.float = Some(float);
        // Outside of these bounds Go's conversion is undefined.
        if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float) {
            self.int = Some(float as i64).filter(|&int| int as f64 == float);
        }
        if (0.0..18_446_744_073_709_551_616.0).contains(&float) {
            self.uint = Some(float as u64).filter(|&uint| uint as f64 == float);
        }
    }
}
