//! Hash functions.

use std::fmt::Write;

use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use crate::functions::Function;
use crate::value::{Type, Value};

const TEXT: Type = Type::String;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("sha1sum", &[TEXT], |a, _| Ok(hex(&Sha1::digest(a.bytes(0))))),
    Function::new("sha256sum", &[TEXT], |a, _| Ok(hex(&Sha256::digest(a.bytes(0))))),
    Function::new("sha512sum", &[TEXT], |a, _| Ok(hex(&Sha512::digest(a.bytes(0))))),
    Function::new("adler32sum", &[TEXT], |a, _| Ok(adler32(a.bytes(0)).to_string().into())),
];

fn hex(bytes: &[u8]) -> Value {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a string takes any text");
    }
    text.into()
}

fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (low, high) = bytes.iter().fold((1, 0), |(low, high), &byte| {
        let low = (low + u32::from(byte)) % MODULUS;
        (low, (high + low) % MODULUS)
    });
    high << 16 | low
}
