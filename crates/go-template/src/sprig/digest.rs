//! Hash functions.

use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use crate::functions::Function;
use crate::value::Type;

const TEXT: Type = Type::String;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("sha1sum", &[TEXT], |a, _| Ok(format!("{:x}", Sha1::digest(a.bytes(0))).into())),
    Function::new("sha256sum", &[TEXT], |a, _| Ok(format!("{:x}", Sha256::digest(a.bytes(0))).into())),
    Function::new("sha512sum", &[TEXT], |a, _| Ok(format!("{:x}", Sha512::digest(a.bytes(0))).into())),
    Function::new("adler32sum", &[TEXT], |a, _| Ok(adler32(a.bytes(0)).to_string().into())),
];

fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (low, high) = bytes.iter().fold((1, 0), |(low, high), &byte| {
        let low = (low + u32::from(byte)) % MODULUS;
        (low, (high + low) % MODULUS)
    });
    high << 16 | low
}
