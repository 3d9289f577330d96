//! Implements `decryptAES`.

use aes::Aes256;
use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockDecrypt, KeyInit};

use super::encoding::decode_base64;
use crate::budget::{Budget, Failure};
use crate::functions::{Arguments, Function};
use crate::value::{Type, Value};

const TEXT: Type = Type::String;
const BLOCK: usize = 16;
const KEY: usize = 32;

pub(super) const FUNCTIONS: &[Function] = &[Function::new("decryptAES", &[TEXT, TEXT], decrypt)];

/// Decrypts AES-256 in CBC mode.
/// The first block is the initialization vector, the last byte the length of the padding.
fn decrypt(arguments: Arguments<'_>, _: &mut Budget<'_>) -> Result<Value, Failure> {
    if arguments.text(1).is_empty() {
        return Ok("".into());
    }
    let mut key = [0; KEY];
    let password = arguments.bytes(0);
    let length = password.len().min(KEY);
    key[..length].copy_from_slice(&password[..length]);
    let bytes = decode_base64(arguments.bytes(1))?;
    if bytes.len() < BLOCK {
        return Err(format!(
            "runtime error: slice bounds out of range [:{BLOCK}] with capacity {}",
            bytes.len()
        )
        .into());
    }
    if bytes.len() % BLOCK != 0 {
        return Err("crypto/cipher: input not full blocks".into());
    }
    let cipher = Aes256::new(GenericArray::from_slice(&key));
    let mut plain = Vec::with_capacity(bytes.len());
    for (before, block) in bytes.chunks(BLOCK).zip(bytes.chunks(BLOCK).skip(1)) {
        let mut block = *GenericArray::from_slice(block);
        cipher.decrypt_block(&mut block);
        plain.extend(block.iter().zip(before).map(|(byte, mask)| byte ^ mask));
    }
    let Some(&padding) = plain.last() else {
        return Err("runtime error: index out of range [-1]".into());
    };
    let Some(length) = plain.len().checked_sub(padding.into()) else {
        let end = plain.len() as i64 - i64::from(padding);
        return Err(format!("runtime error: slice bounds out of range [:{end}]").into());
    };
    plain.truncate(length);
    Ok(plain.into())
}
