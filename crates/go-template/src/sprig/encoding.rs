//! Base64 and base32.

use crate::budget::Failure;
use crate::functions::Function;
use crate::value::{Type, Value};

const TEXT: Type = Type::String;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("b64enc", &[TEXT], |a, _| Ok(BASE64.encode(a.bytes(0)).into())),
    Function::new("b64dec", &[TEXT], |a, _| Ok(decoded(&BASE64, a.bytes(0)))),
    Function::new("b32enc", &[TEXT], |a, _| Ok(BASE32.encode(a.bytes(0)).into())),
    Function::new("b32dec", &[TEXT], |a, _| Ok(decoded(&BASE32, a.bytes(0)))),
];

/// An encoding of bytes as letters; each letter encodes a number of bits.
struct Encoding {
    name: &'static str,
    letters: &'static [u8],
    bits: usize,
    /// The number of letters per group.
    group: usize,
    bytes: usize,
}

const BASE64: Encoding = Encoding {
    name: "base64",
    letters: b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    bits: 6,
    group: 4,
    bytes: 3,
};

const BASE32: Encoding =
    Encoding { name: "base32", letters: b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", bits: 5, group: 8, bytes: 5 };

/// Decodes text; on failure returns the error message as the value.
///
/// Sprig's functions return either as a string.
fn decoded(encoding: &Encoding, text: &[u8]) -> Value {
    let bytes = if encoding.bits == 6 { encoding.decode64(text) } else { encoding.decode32(text) };
    match bytes {
        Ok(bytes) => bytes.into(),
        Err(at) => format!("illegal {} data at input byte {at}", encoding.name).into(),
    }
}

/// Decodes base64.
pub(super) fn decode_base64(text: &[u8]) -> Result<Vec<u8>, Failure> {
    BASE64.decode64(text).map_err(|at| format!("illegal base64 data at input byte {at}").into())
}

/// Encodes bytes as base64.
pub(super) fn encode_base64(bytes: &[u8]) -> Vec<u8> {
    BASE64.encode(bytes)
}

impl Encoding {
    fn encode(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len().div_ceil(self.bytes) * self.group);
        for chunk in bytes.chunks(self.bytes) {
            let mut word = chunk.iter().fold(0u64, |word, &byte| word << 8 | u64::from(byte));
            word <<= 8 * (self.bytes - chunk.len());
            let used = (chunk.len() * 8).div_ceil(self.bits);
            for i in 0..self.group {
                let shift = self.bits * (self.group - 1 - i);
                let digit = usize::try_from(word >> shift).unwrap_or(0) % self.letters.len();
                out.push(if i < used { self.letters[digit] } else { b'=' });
            }
        }
        out
    }

    fn digit(&self, letter: u8) -> Option<u64> {
        self.letters.iter().position(|&known| known == letter).map(|digit| digit as u64)
    }

    /// Appends the bytes of a group of letters.
    fn push_group(&self, out: &mut Vec<u8>, digits: &[u64]) {
        let mut word = digits.iter().fold(0, |word, digit| word << self.bits | digit);
        word <<= self.bits * (self.group - digits.len()) + 64 - self.group * self.bits;
        out.extend_from_slice(&word.to_be_bytes()[..digits.len() * self.bits / 8]);
    }

    /// Decodes base64; the error is the position that Go reports.
    ///
    /// Line breaks are skipped.
    fn decode64(&self, text: &[u8]) -> Result<Vec<u8>, usize> {
        let is_break = |at: usize| text.get(at).is_some_and(|byte| matches!(byte, b'\r' | b'\n'));
        let after_breaks = |mut at: usize| {
            while is_break(at) {
                at += 1;
            }
            at
        };
        let mut out = Vec::new();
        let mut digits = Vec::new();
        let mut at = 0;
        while let Some(&letter) = text.get(at) {
            at += 1;
            if let Some(digit) = self.digit(letter) {
                digits.push(digit);
                if digits.len() == self.group {
                    self.push_group(&mut out, &std::mem::take(&mut digits));
                }
            } else if letter == b'=' {
                if digits.len() < 2 {
                    return Err(at - 1);
                }
                if digits.len() == 2 {
                    at = after_breaks(at);
                    if at == text.len() {
                        return Err(at);
                    }
                    if text[at] != b'=' {
                        return Err(at - 1);
                    }
                    at += 1;
                }
                at = after_breaks(at);
                if at < text.len() {
                    return Err(at);
                }
                self.push_group(&mut out, &digits);
                return Ok(out);
            } else if !matches!(letter, b'\r' | b'\n') {
                return Err(at - 1);
            }
        }
        if digits.is_empty() { Ok(out) } else { Err(at - digits.len()) }
    }

    /// Decodes base32; the error is the position that Go reports.
    ///
    /// The position does not count line breaks.
    fn decode32(&self, text: &[u8]) -> Result<Vec<u8>, usize> {
        let text: Vec<u8> = text.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
        let mut out = Vec::new();
        let mut digits = Vec::new();
        for (at, &letter) in text.iter().enumerate() {
            let rest = &text[at + 1..];
            if letter == b'=' && digits.len() >= 2 && rest.len() < 8 {
                let wanted = 7 - digits.len();
                if rest.len() < wanted {
                    return Err(text.len());
                }
                if let Some(k) = rest[..wanted].iter().position(|&letter| letter != b'=') {
                    return Err(at + k);
                }
                if matches!(digits.len(), 3 | 6) {
                    return Err(at);
                }
                self.push_group(&mut out, &digits);
                return Ok(out);
            }
            digits.push(self.digit(letter).ok_or(at)?);
            if digits.len() == self.group {
                self.push_group(&mut out, &std::mem::take(&mut digits));
            }
        }
        if digits.is_empty() { Ok(out) } else { Err(text.len() - digits.len()) }
    }
}
